"""The auto-labeller on the annotation page: what the served model's inference networks hold for the open dialogue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from nicegui import ui

from vrbot.errors import VRBotError
from vrbot.serving.actors import Actor
from vrbot.serving.annotation import Annotation, LabelledTurn
from vrbot.serving.console.annotation_view import wanted_kinds
from vrbot.serving.console.parts import told
from vrbot.serving.proposals import Proposal
from vrbot.serving.responder import ProposesLabels
from vrbot.serving.service import Desk

if TYPE_CHECKING:
    from vrbot.serving.console.annotation_page import AnnotationScreen


def can_suggest(desk: Desk) -> bool:
    """Whether the served model has inference networks."""
    return isinstance(desk.responder, ProposesLabels)


async def suggest(screen: AnnotationScreen) -> None:
    """Has labels proposed for what nobody has labelled in the open dialogue, and shows them; states go on from those
    that people gave."""
    if not screen.cards or not await screen.visit.goes_on():
        return
    turns, here = [card.turn for card in screen.cards], str(screen.cards[screen.current].turn.seq)
    said = [(turn.patient, turn.physician) for turn in turns]
    states = [turn.labels["state"].value if "state" in turn.labels else None for turn in turns]
    try:
        found = await screen.visit.console.drafter.propose_labels(said, states)
    except VRBotError as error:
        ui.notify(told(error, screen.heard), type="warning", position="top")
        return
    desk, actor = screen.visit.desk, screen.visit.actor
    count = await screen.visit.asked(screen.heard, keep_suggestions, desk.annotation, actor, turns, found)
    if count is None:
        return
    told_now = screen.heard("suggested now", count=count) if count else screen.heard("suggested nothing")
    ui.notify(told_now, type="positive" if count else "info", position="top")
    await screen.reload(here)


def keep_suggestions(
    annotation: Annotation, actor: Actor, turns: Sequence[LabelledTurn], found: Sequence[Mapping[str, Proposal]]
) -> int:
    """Stores the proposals for labels that nobody has given yet, each with the model it is by; says how many."""
    count = 0
    for turn, proposals in zip(turns, found, strict=True):
        open_kinds = [kind for kind in wanted_kinds(turn) if kind not in turn.labels and kind in proposals]
        for kind in open_kinds:
            each = proposals[kind]
            annotation.propose(actor, turn.id, kind, each.value, each.confidence, each.model)
        count += len(open_kinds)
    return count
