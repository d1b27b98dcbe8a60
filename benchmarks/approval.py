"""Random sequences of events at a desk: `python -m benchmarks.approval --sequences 10000 [--json FILE]`.

Drafts, edits, approvals of the right and of the wrong text, rejections, retries, a kill switch, a second physician, a
simulated one: after every event each patient sees exactly what the books of the machine say was approved.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from tests.serving.approval_machine import ApprovalMachine


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sequences", type=int, default=10_000)
    parser.add_argument("--events", type=int, default=20, help="the most events of a sequence")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    args = parser.parse_args()
    started = time.perf_counter()
    how = settings(
        max_examples=args.sequences,
        stateful_step_count=args.events,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(ApprovalMachine, settings=how)
    figures = {
        "sequences": next(ApprovalMachine.sequences),
        "events_at_most": args.events,
        "unapproved_texts_seen": 0,  # anything else is an AssertionError with the shortest sequence that shows it
        "seconds": round(time.perf_counter() - started, 1),
    }
    text = json.dumps(figures, indent=2)
    if args.json is not None:
        args.json.write_text(text + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
