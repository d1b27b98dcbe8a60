"""What the annotation page shows of a turn: for every kind of label the one given, else the one proposed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from vrbot.serving.annotation import LabelledTurn, Unlabelled
from vrbot.serving.schema import LABELS

Origin = Literal["saved", "proposed", "open"]


@dataclass(frozen=True)
class Shown:
    """A value on the screen and where it comes from; a list of names, or one category or none."""

    kind: str
    value: Any
    origin: Origin
    confidence: float | None = None
    by_labeller: bool = False  # proposed by networks that have read the answer, not behind a draft


def wanted_kinds(turn: LabelledTurn) -> tuple[str, ...]:
    """What there is to label; without a reply there is no action."""
    return LABELS if turn.physician else LABELS[:1]


def shown(turn: LabelledTurn, kind: str) -> Shown:
    """The label of a kind as the page shows it."""
    if label := turn.labels.get(kind):
        return Shown(kind, label.value, "saved")
    if proposal := turn.proposals.get(kind):
        by_labeller = proposal.source == "auto-labeller"
        return Shown(kind, proposal.value, "proposed", proposal.confidence, by_labeller)
    return Shown(kind, None if kind == "category" else [], "open")


def number_seen(turn: LabelledTurn, kind: str) -> int:
    """The number of the label that is shown; 0 where none was given."""
    return turn.labels[kind].number if kind in turn.labels else 0


def with_name(turn: LabelledTurn, kind: str, name: str) -> list[str]:
    """The names shown and one more."""
    return list(dict.fromkeys([*shown(turn, kind).value, name.strip()]))


def without_name(turn: LabelledTurn, kind: str, name: str) -> list[str]:
    """The names shown but one."""
    return [each for each in shown(turn, kind).value if each != name]


def confirmed(turn: LabelledTurn) -> dict[str, Any] | None:
    """What confirming the turn stores: all that is shown and not yet saved; None while a category is missing."""
    views = [shown(turn, kind) for kind in wanted_kinds(turn)]
    if any(view.value is None for view in views):
        return None
    return {view.kind: view.value for view in views if view.origin != "saved"}


def is_done(turn: LabelledTurn) -> bool:
    """Whether everything is labelled."""
    return all(kind in turn.labels for kind in wanted_kinds(turn))


def next_open(queue: list[Unlabelled], current: str | None) -> str | None:
    """The dialogue to go on with: the first that is open and not this one."""
    open_ones = [each.consultation.id for each in queue if each.given < each.wanted]
    return next((key for key in open_ones if key != current), None)
