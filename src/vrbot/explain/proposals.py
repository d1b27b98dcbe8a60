"""Labels a model proposes for finished dialogues, as data and as a file: canonical sessions, the proposals beside them.

A line is a session in the canonical format. Its turns hold the labels there are, and nothing that was only proposed;
the key `annotation` holds the split, the model, and for each turn and kind what is proposed and how sure the model is.
Whoever corrects such a file writes labels into the turns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from vrbot.dialogue.formats import read_sessions, write_sessions
from vrbot.dialogue.session import CATEGORIES, Action, Session, Turn
from vrbot.errors import DataError

Kind = Literal["state", "category", "keywords"]
KINDS: tuple[Kind, ...] = ("state", "category", "keywords")
Value = tuple[str, ...] | str
"""Names of entities, or the name of a category."""

ANNOTATION = "annotation"
_FIX = "give a file that `vrbot annotate propose` wrote"


@dataclass(frozen=True)
class Proposal:
    """A label nobody has confirmed; how probable all of it is, and of a list also each entity where it stands."""

    value: Value
    confidence: float
    entities: tuple[float, ...] = ()


TurnProposals = Mapping[Kind, Proposal]


@dataclass(frozen=True)
class ProposedSession:
    """A session with its own labels only, and what is proposed for each of its turns.

    `copied` names the kinds that the model cannot learn to correct: they repeat what the texts name.
    """

    session: Session
    turns: tuple[TurnProposals, ...]
    split: str = "train"
    model: str = ""
    copied: tuple[Kind, ...] = field(default=())

    @property
    def confidence(self) -> float:
        """How sure the model is of what it proposes and does not merely copy: the mean over turns of the least sure."""
        least = [
            min(found)
            for turn in self.turns
            if (found := [one.confidence for kind, one in turn.items() if kind not in self.copied])
        ]
        return sum(least) / len(least) if least else 1.0


def label_of(turn: Turn, kind: Kind) -> Value | None:
    """The label of a kind; None where the turn has none."""
    if kind == "state":
        return turn.state
    return None if turn.action is None else getattr(turn.action, kind)


def with_label(turn: Turn, kind: Kind, value: Value) -> Turn:
    """The turn with this label, the others as they are."""
    if kind == "state":
        return replace(turn, state=tuple(value))
    action = turn.action or Action(None, None)
    if kind == "category":
        return replace(turn, action=replace(action, category=str(value)))
    return replace(turn, action=replace(action, keywords=tuple(value)))


def write_proposals(path: Path | str, proposed: Sequence[ProposedSession]) -> int:
    """Writes one line for each session, whole or not at all, and gives their number."""
    return write_sessions(path, (_with_annotation(one) for one in proposed))


def read_proposals(path: Path | str) -> Iterator[ProposedSession]:
    """What `write_proposals` wrote, also after people have written labels into its turns."""
    for number, session in enumerate(read_sessions(path), start=1):
        try:
            yield _from_annotation(session)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            problem = f"of dialogue {session.id} cannot be read ({error})"
            raise DataError(path, number, ANNOTATION, problem, _FIX) from None


def _with_annotation(one: ProposedSession) -> Session:
    turns = [{kind: _plain(proposal) for kind, proposal in turn.items()} for turn in one.turns]
    content = {"split": one.split, "model": one.model, "copied": list(one.copied), "proposals": turns}
    return replace(one.session, extra={**one.session.extra, ANNOTATION: content})


def _plain(proposal: Proposal) -> dict[str, Any]:
    value = proposal.value if isinstance(proposal.value, str) else list(proposal.value)
    return {"value": value, "confidence": proposal.confidence, "entities": list(proposal.entities)}


def _from_annotation(session: Session) -> ProposedSession:
    content = session.extra[ANNOTATION]
    turns = tuple(
        {kind: _proposal(kind, turn[kind]) for kind in KINDS if kind in turn} for turn in content["proposals"]
    )
    if len(turns) != len(session.turns):
        raise ValueError(f"{len(session.turns)} turns have proposals for {len(turns)}")
    others = {key: value for key, value in session.extra.items() if key != ANNOTATION}
    copied = tuple(kind for kind in KINDS if kind in content["copied"])
    return ProposedSession(replace(session, extra=others), turns, str(content["split"]), str(content["model"]), copied)


def _proposal(kind: Kind, content: Mapping[str, Any]) -> Proposal:
    confidence = float(content["confidence"])
    if not 0 <= confidence <= 1:
        raise ValueError(f"a confidence of {confidence} is not between 0 and 1")
    return Proposal(checked_value(kind, content["value"]), confidence, tuple(map(float, content["entities"])))


def checked_value(kind: Kind, value: Any) -> Value:
    """A label that others wrote, or a ValueError that says what is wrong with it."""
    if kind == "category":
        if value not in CATEGORIES:
            raise ValueError(f"{value!r} is not a category: use one of {', '.join(CATEGORIES)}")
        return str(value)
    if not isinstance(value, list | tuple) or not all(isinstance(name, str) and name.strip() for name in value):
        raise ValueError(f"{kind} is not a list of entity names")
    return tuple(dict.fromkeys(name.strip() for name in value))
