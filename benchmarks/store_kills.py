"""Kills whoever writes to the store: `python -m benchmarks.store_kills --kills 5000 [--database URL] [--json FILE]`.

A process writes turns and acknowledges each after it was stored; it is killed by SIGKILL at a random moment. Every
acknowledged turn must be there to the byte, numbers must have no gaps, and the audit chain must verify. A killed
process is no power cut: what the operating system holds survives it. The disk is waited for by `synchronous=FULL`.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.serving.fakes import ANN, PlainRules
from tests.serving.writers import heard, start_writer

from vrbot.serving.audit import verify
from vrbot.serving.chain import FileWitness
from vrbot.serving.consultations import Consultations
from vrbot.serving.queries import turns_of
from vrbot.serving.store import Store

ENDLESS = 1_000_000
KILLS_A_CONSULTATION = 10
KILLS_A_DATABASE = 100


@dataclass(frozen=True)
class Figures:
    """What became of the turns."""

    kills: int
    acknowledged: int
    stored: int
    lost: int
    gaps: int
    faults: tuple[str, ...]
    seconds: float = 0.0


def kill_campaign(address: str, witness: FileWitness, kills: int, seed: int) -> Figures:
    """Kills a writer again and again on one database; the audit chain is verified in the end."""
    chance = random.Random(seed)
    acknowledged = stored = lost = gaps = 0
    with closing(Store.open(address, witness=witness.path)) as store:
        desk = Consultations(store, PlainRules(), demo=False)
        for start in range(0, kills, KILLS_A_CONSULTATION):
            consultation = desk.open(ANN, "en").id
            known: set[tuple[int, str, str]] = set()
            for life in range(start, min(start + KILLS_A_CONSULTATION, kills)):
                known |= one_life(address, consultation, f"life{life}", witness, chance)
            with store.reading() as connection:
                found = turns_of(connection, consultation)
            acknowledged += len(known)
            stored += len(found)
            lost += len(known - {(turn.seq, turn.client_turn_id, turn.text_sha256) for turn in found})
            gaps += [turn.seq for turn in found] != list(range(1, len(found) + 1))
        faults = tuple(f"{fault.place}: {fault.problem}" for fault in verify(store).faults)
    return Figures(kills, acknowledged, stored, lost, gaps, faults)


def one_life(
    address: str, consultation: str, name: str, witness: FileWitness, chance: random.Random
) -> set[tuple[int, str, str]]:
    """What one writer acknowledged before it was killed, soon after some turn."""
    writer = start_writer(address, consultation, name, ENDLESS, witness)
    acknowledged = set()
    lines = heard(writer)
    for _ in range(chance.randint(0, 6)):
        acknowledged.add(next(lines))
    time.sleep(chance.uniform(0, 0.01))
    writer.process.kill()
    acknowledged |= set(lines)
    writer.process.join()
    writer.pipe.close()
    writer.process.close()
    return acknowledged


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--database", help="an empty PostgreSQL database; SQLite files of its own if not given")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    args = parser.parse_args()
    started, parts = time.perf_counter(), []
    with tempfile.TemporaryDirectory() as name:
        for start in range(0, args.kills, KILLS_A_DATABASE):
            address = args.database or str(Path(name) / f"{start}.sqlite")
            Store.open(address, create=True, witness=Path(name) / "unused").close()
            witness = FileWitness(Path(name) / ("witness" if args.database else f"{start}.witness"))
            count = min(KILLS_A_DATABASE, args.kills - start)
            parts.append(kill_campaign(address, witness, count, args.seed + start))
    totals = {key: sum(getattr(part, key) for part in parts) for key in ("acknowledged", "stored", "lost", "gaps")}
    faults = tuple(fault for part in parts for fault in part.faults)
    figures = Figures(args.kills, **totals, faults=faults, seconds=round(time.perf_counter() - started, 1))
    text = json.dumps(asdict(figures), indent=2)
    if args.json is not None:
        args.json.write_text(text + "\n", encoding="utf-8")
    print(text)
    sys.exit(1 if figures.lost or figures.gaps or figures.faults else 0)


if __name__ == "__main__":
    main()
