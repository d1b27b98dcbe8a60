"""What changed in the state since the last turn, and which words caused it.

The tracker generates an entity or copies it, from the state before or from a mention in the context, under one
normaliser (paper, Eq. 7); each way has its share of the entity's probability. Letters: J slots to copy from.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from vrbot.dialogue.batching import SessionBatch
from vrbot.explain.evidence import Mention, StateEvidence
from vrbot.explain.places import ContextPlaces
from vrbot.explain.steering import Perceived
from vrbot.knowledge.entities import Inventory
from vrbot.model.spans import Span
from vrbot.model.state_tracker import StateTracker
from vrbot.model.vrbot import VRBot


@dataclass(frozen=True, eq=False)
class _Written:
    """How the tracker wrote one turn's state: probabilities [L], shares of generating [L] and of each slot [L, J]."""

    probability: Tensor
    generated: Tensor
    copied: Tensor


@torch.no_grad()
def state_evidence(
    model: VRBot, batch: SessionBatch, perceived: Perceived, places: ContextPlaces, inventory: Inventory
) -> tuple[StateEvidence, ...] | None:
    """Every entity of the last turn's state, then those that were dropped; None for a model without a tracker."""
    if not isinstance(model.prior_tracker, StateTracker):
        return None
    row = len(batch.turn) - 1
    previous = model.first_state(1, torch.device("cpu")) if row == 0 else perceived.states.select(slice(row - 1, row))
    state = perceived.states.select(slice(row, row + 1))
    before, now = _entities(previous), _entities(state)
    named = Span(state.weights[:, : max(len(now), 1)])  # what follows names nothing
    written = _as_written(model, model.prior_tracker, perceived, row, previous, named)
    positions = batch.inputs.mention_positions[row].tolist()
    found = []
    for position, entity in enumerate(now):
        shares = written.copied[position]
        held, mentioned = shares[: model.state_length], shares[model.state_length :].tolist()
        mentions = [
            Mention(places.texts[at], share, place)
            for at, share in zip(positions, mentioned, strict=False)
            if share > 0 and (place := places.places[at]) is not None
        ]
        found.append(
            StateEvidence(
                inventory.names[entity],
                inventory.types[entity],
                "kept" if entity in before else "new",
                float(written.probability[position]),
                float(written.generated[position]),
                float(held.sum()),
                tuple(sorted(mentions, key=lambda mention: -mention.share)),
            )
        )
    dropped = [entity for entity in before if entity not in now]
    return (
        *found,
        *(StateEvidence(inventory.names[entity], inventory.types[entity], "dropped") for entity in dropped),
    )


def _as_written(
    model: VRBot, tracker: StateTracker, perceived: Perceived, row: int, previous: Span, state: Span
) -> _Written:
    heard = perceived.heard
    read, slots = model.recall(previous, heard.mentions.select(slice(row, row + 1)), heard.table)
    evidence = (heard.context.summary[row : row + 1], read.summary)
    generation, copies = tracker.parts_along(evidence, state, slots, heard.table)
    entities = state.ids[0].clamp_max(model.table.num_entities - 1)  # [L]
    generated = generation[0].gather(1, entities.unsqueeze(1))  # [L, 1]
    holds = slots.entities[0] == entities.unsqueeze(1)  # [L, J]
    masses = torch.cat((generated, copies[0].masked_fill(~holds, -math.inf)), dim=1).double().softmax(dim=1)
    log_probs = tracker.score_along(evidence, state, slots, heard.table)[0]
    probability = log_probs.gather(1, entities.unsqueeze(1)).squeeze(1).exp()
    return _Written(probability, masses[:, 0], masses[:, 1:])


def _entities(span: Span) -> list[int]:
    return [int(entity) for entity, there in zip(span.ids[0], span.mask[0], strict=True) if there]
