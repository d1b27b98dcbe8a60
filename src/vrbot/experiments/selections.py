"""Corpora made from a corpus: a share of the training dialogues, one without a department, one that tells categories.

What is cut has the words, entities, graph and vocabulary of the whole, so that models and figures compare. What tells
categories has words more, and figures that compare with no honest ones.
"""

from __future__ import annotations

import fcntl
import hashlib
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from vrbot.dialogue.corpus import SPLITS, Corpus
from vrbot.dialogue.formats import write_sessions
from vrbot.dialogue.preparation import PreparationSettings, prepare
from vrbot.dialogue.session import Session
from vrbot.errors import ConfigError, UsageError
from vrbot.experiments.told_category import write_told_corpus


@dataclass(frozen=True)
class Whole:
    """The corpus as it is."""

    @property
    def key(self) -> str:
        return "whole"


@dataclass(frozen=True)
class TrainShare:
    """A share of the training dialogues; validation and test stay. A smaller share lies inside a larger one."""

    share: float

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise ConfigError(f"the share of training dialogues must be above 0 and at most 1, got {self.share}")

    @property
    def key(self) -> str:
        return f"share-{self.share:g}"


@dataclass(frozen=True)
class HeldOut:
    """Test on the dialogues of one department only; `seen` says whether training had others of that department.

    Both sides train on equally many dialogues. `fields` are tried in order; the most frequent value is held out.
    """

    seen: bool
    fields: tuple[str, ...] = ("department", "diagnosis")

    @property
    def key(self) -> str:
        return "seen" if self.seen else "unseen"


@dataclass(frozen=True)
class ToldCategory:
    """Every dialogue, but the patient's words give away the labelled category of the reply, at test too: a leak.

    It is the authors' (`told_category`), there to be measured; a row with it is no result and compares with no other.
    """

    @property
    def key(self) -> str:
        return "told-category"


Part = Whole | TrainShare | HeldOut | ToldCategory
WHOLE = Whole()


def part_as_dict(part: Part) -> dict[str, object]:
    """As plain data, for a result file."""
    return {"kind": type(part).__name__, **asdict(part)}


def cut_corpus(corpus: Corpus, part: Part, seed: int, folder: Path) -> Path:
    """The directory of the corpus that `part` asks for, made below `folder` where it is not there yet.

    `seed` decides which dialogues a share keeps, so that several seeds also differ in their data; the corpus that tells
    categories keeps all and is the same for every seed.
    """
    if isinstance(part, Whole):
        return corpus.directory
    out = folder / (part.key if isinstance(part, ToldCategory) else f"{part.key}-seed-{seed}")
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f".{out.name}.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another job may be cutting the same corpus
        if not out.exists():
            if isinstance(part, ToldCategory):
                write_told_corpus(corpus, out)
            else:
                _write(corpus, _chosen(corpus, part, seed), out)
    return out


def held_out_value(corpus: Corpus, fields: Sequence[str]) -> tuple[str, str]:
    """The field and its most frequent value among the test dialogues; UsageError where no field serves."""
    extras = [session.extra for session in corpus.sessions("test")]
    for field in fields:
        counts = Counter(str(extra[field]) for extra in extras if extra.get(field))
        if len(counts) > 1:
            return field, min(counts, key=lambda value: (-counts[value], value))
    raise UsageError(
        f"{corpus.directory} has no {' or '.join(fields)} beside its dialogues: to hold one out, prepare dialogues "
        f"whose lines have the key {fields[0]!r} (the clinic's do, `vrbot simulate`)"
    )


def _chosen(corpus: Corpus, part: Part, seed: int) -> dict[str, list[Session]]:
    sessions = {split: corpus.sessions(split) for split in SPLITS}
    if isinstance(part, TrainShare):
        count = math.ceil(round(part.share * len(sessions["train"]), 9))
        return {**sessions, "train": _ranked(sessions["train"], seed)[:count]}
    if isinstance(part, HeldOut):
        return _held_out(corpus, part, seed, sessions)
    return sessions


def _held_out(
    corpus: Corpus, part: HeldOut, seed: int, all_sessions: dict[str, list[Session]]
) -> dict[str, list[Session]]:
    field, value = held_out_value(corpus, part.fields)

    def outside(sessions: list[Session]) -> list[Session]:
        return [session for session in sessions if str(session.extra.get(field)) != value]

    inside = [session for session in all_sessions["test"] if str(session.extra.get(field)) == value]
    without = {split: outside(all_sessions[split]) for split in ("train", "valid")}
    if not part.seen:
        return {**without, "test": inside}
    whole = {split: _ranked(all_sessions[split], seed)[: len(without[split])] for split in without}
    return {**whole, "test": inside}


def _ranked(sessions: Sequence[Session], seed: int) -> list[Session]:
    """In an order that depends on the seed and the names only."""
    return sorted(sessions, key=lambda session: hashlib.sha256(f"part {seed}\n{session.id}".encode()).digest())


def _write(corpus: Corpus, sessions: dict[str, list[Session]], out: Path) -> None:
    empty = [split for split, chosen in sessions.items() if not chosen]
    if empty:
        raise UsageError(f"nothing is left of the {empty[0]} dialogues of {corpus.directory}: use a larger corpus")
    with TemporaryDirectory(dir=out.parent, prefix=".source-") as name:
        for split, chosen in sessions.items():
            write_sessions(Path(name) / f"{split}.jsonl", chosen)
        prepare(Path(name), out, PreparationSettings(format="canonical", like=corpus.directory))
