"""Labels that people gave, joined with the dialogues they belong to; of every label it stays known where it is from.

Nothing is lost: where a person changes a label that was there, the former one is kept beside it. Proposals are taken
only where nobody labelled, only if asked for, and are marked as what they are. The key `provenance` of a session holds
for each turn and kind who a label is by: `human`, `proposed`, or `source` (it came with the dialogues).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vrbot.dialogue.formats import write_sessions
from vrbot.dialogue.session import Session, Turn
from vrbot.errors import UsageError
from vrbot.explain.proposals import KINDS, Kind, ProposedSession, Value, label_of, with_label

PROVENANCE = "provenance"
HUMAN, PROPOSED, SOURCE = "human", "proposed", "source"
Note = Mapping[str, Any]
"""Who a label is by, and what else is known of it: `annotator`, `confidence`, `former`."""


@dataclass(frozen=True)
class GivenLabel:
    """What a person decided for one kind of label of a turn."""

    session: str
    turn: int
    kind: Kind
    value: Value
    annotator: str | None = None


@dataclass(frozen=True, eq=False)
class Joined:
    """The sessions of every split with all labels, and how many of those that are new or changed are by whom."""

    sessions: Mapping[str, Sequence[Session]]
    counts: Mapping[str, int]

    def write(self, folder: Path) -> None:
        """Writes a canonical file for each split: a source that `vrbot prepare` reads."""
        folder.mkdir(parents=True, exist_ok=True)
        for split, sessions in self.sessions.items():
            write_sessions(folder / f"{split}.jsonl", sessions)


def labels_written_into(annotated: Iterable[ProposedSession], source: Mapping[str, Session]) -> Iterator[GivenLabel]:
    """The labels that people wrote into the turns of a file of proposals: those that the source does not have so."""
    for one in annotated:
        session = source.get(one.session.id)
        if session is None:
            raise UsageError(f"dialogue {one.session.id!r} is none of the corpus's: give the corpus it was taken from")
        if [_texts(turn) for turn in session.turns] != [_texts(turn) for turn in one.session.turns]:
            raise UsageError(f"the texts of dialogue {one.session.id!r} are not the corpus's: change labels only")
        for number, (turn, former) in enumerate(zip(one.session.turns, session.turns, strict=True)):
            for kind in KINDS:
                value = label_of(turn, kind)
                if value is not None and value != label_of(former, kind):
                    yield GivenLabel(session.id, number, kind, value)


def join_labels(
    splits: Mapping[str, Sequence[Session]],
    given: Iterable[GivenLabel],
    proposed: Iterable[ProposedSession] = (),
    accept: float | None = None,
) -> Joined:
    """All labels of people, then the proposals of at least the confidence `accept` where there is no label yet."""
    if accept is not None and not 0 <= accept <= 1:
        raise UsageError(f"proposals are accepted from a confidence between 0 and 1, got {accept}")
    drafts = {session.id: _Draft.of(session) for sessions in splits.values() for session in sessions}
    counts: Counter[str] = Counter()
    for label in given:
        counts[_draft(drafts, label.session).give(label)] += 1
    for one in proposed if accept is not None else ():
        counts[PROPOSED] += _draft(drafts, one.session.id).fill(one, accept or 0.0)
    joined = {split: [drafts[session.id].session() for session in sessions] for split, sessions in splits.items()}
    return Joined(joined, dict(counts))


@dataclass
class _Draft:
    """A session while labels come in."""

    former: Session
    turns: list[Turn]
    notes: list[dict[str, Note]]

    @classmethod
    def of(cls, session: Session) -> _Draft:
        kept = session.extra.get(PROVENANCE)
        notes: list[dict[str, Note]] = [dict(note) for note in kept] if isinstance(kept, list) else []
        if len(notes) != len(session.turns):
            notes = [{} for _ in session.turns]
        return cls(session, list(session.turns), notes)

    def give(self, label: GivenLabel) -> str:
        """A person's label; says what became of the former one."""
        if not 0 <= label.turn < len(self.turns):
            raise UsageError(f"dialogue {label.session!r} has {len(self.turns)} turns, and none is number {label.turn}")
        turn, notes = self.turns[label.turn], self.notes[label.turn]
        former = label_of(turn, label.kind)
        self.turns[label.turn] = with_label(turn, label.kind, label.value)
        note: dict[str, Any] = {"by": HUMAN}
        if label.annotator is not None:
            note["annotator"] = label.annotator
        if former is not None and former != label.value:
            before = notes.get(label.kind, {"by": SOURCE})
            note["former"] = {"value": former if isinstance(former, str) else list(former), **before}
        notes[label.kind] = note
        return "new" if former is None else "confirmed" if former == label.value else "changed"

    def fill(self, one: ProposedSession, accept: float) -> int:
        """Takes sure proposals where there is no label."""
        if len(one.turns) != len(self.turns):
            raise UsageError(f"dialogue {one.session.id!r} has {len(self.turns)} turns, not {len(one.turns)}")
        taken = 0
        for number, proposals in enumerate(one.turns):
            for kind, proposal in proposals.items():
                if proposal.confidence >= accept and label_of(self.turns[number], kind) is None:
                    self.turns[number] = with_label(self.turns[number], kind, proposal.value)
                    note = {"by": PROPOSED, "confidence": proposal.confidence, "model": one.model}
                    self.notes[number][kind] = note
                    taken += 1
        return taken

    def session(self) -> Session:
        """With its labels, and for every one of them who it is by."""
        noted = [
            {kind: notes.get(kind, {"by": SOURCE}) for kind in KINDS if label_of(turn, kind) is not None}
            for turn, notes in zip(self.turns, self.notes, strict=True)
        ]
        return replace(self.former, turns=tuple(self.turns), extra={**self.former.extra, PROVENANCE: noted})


def _draft(drafts: Mapping[str, _Draft], name: str) -> _Draft:
    if name not in drafts:
        raise UsageError(f"dialogue {name!r} is none of the corpus's: give the corpus it was taken from")
    return drafts[name]


def _texts(turn: Turn) -> tuple[str, str]:
    return turn.patient, turn.physician
