"""How well the red flags do on every set of sentences: the column "now" of docs/safety.md.

python -m tests.safety.measure_redflags
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

from tests.safety.redflag_cases import (
    LATER,
    PLAIN,
    STRANGER,
    Case,
    later,
    later_negatives,
    negatives,
    of_a_stranger,
    positives,
)
from vrbot.safety.redflags import scan


def misjudged(cases: Iterable[Case], wanted: bool) -> list[Case]:
    """The cases that do not raise their category, or, if none is wanted, those that raise any."""
    found = ((case, {flag.category for flag in scan(case.text)}) for case in cases)
    return [case for case, raised in found if (case.category not in raised if wanted else raised)]


def main() -> None:
    """Prints for every set how many of its cases are judged right, and the others themselves, but for the unread."""
    sets = [(f"positives, half {half}", list(positives(half)), True) for half in (0, 1)]
    sets += [(name, list(later(name)), True) for name in (*LATER, *PLAIN)]
    sets += [(f"negatives, half {half}", list(negatives(half)), False) for half in (0, 1)]
    sets += [("later negatives", list(later_negatives()), False)]
    for name in STRANGER:
        raising, harmless = of_a_stranger(name)
        for kind in ("plain", "colloquial"):
            sets += [(f"{name}, {kind}", [case for case in raising if case.kind == kind], True)]
        sets += [(f"{name}, harmless", harmless, False)]
    for name, cases, wanted in sets:
        wrong = misjudged(cases, wanted)
        sys.stdout.write(f"{name}: {len(cases)} cases, {1 - len(wrong) / len(cases):.1%} right\n")
        for case in () if "unread" in name else wrong:
            sys.stdout.write(f"    {case.category} {case.kind}: {case.text}\n")


if __name__ == "__main__":
    main()
