"""How every entity stands in the conversation: who has named it, and whether the state holds it.

That a physician seldom asks what was asked before, or takes up what was just said, is true of all entities alike: told
by flags it is learnt once, and not again for each. Letters: N rows (turns), M mentions, E entities.
"""

from __future__ import annotations

import torch
from torch import Tensor

from vrbot.dialogue.batching import TurnInputs, TurnLayout
from vrbot.model.spans import Span

NUM_STANDINGS = 5
"""By the patient now; in the last answer; by the patient before; in answers before that; in the state."""


def named_so_far(inputs: TurnInputs, layout: TurnLayout, num_entities: int) -> Tensor:
    """1 where the patient names an entity now, the last answer did, either did in a turn before [N, E, 4]."""
    entities, by_patient = inputs.mention_entities, inputs.patient_mentions
    now = torch.stack([_flags(entities, by_patient == who, num_entities) for who in (True, False)], dim=-1)
    heap, before = now.new_zeros(layout.num_sessions, num_entities, 2), []
    for turn in now.split(layout.turn_sizes):
        heap = heap[: len(turn)]
        before.append(heap)
        heap = torch.maximum(heap, turn)
    return torch.cat((now, torch.cat(before)), dim=-1)


def standings(named: Tensor, state: Span) -> Tensor:
    """What was named so far [N, E, 4] and what the state holds [N, E, 5]."""
    held = _flags(state.ids, state.mask, named.shape[1])
    return torch.cat((named, held.unsqueeze(-1)), dim=-1)


def is_lacking(standing: Tensor) -> Tensor:
    """Whether what stands like this [..., 5] was spoken of and is not in the state [...]."""
    return (standing[..., :-1] > 0).any(dim=-1) & (standing[..., -1] == 0)


def _flags(entities: Tensor, counted: Tensor, num_entities: int) -> Tensor:
    """1 for each of these entities [N, M] that is counted [N, E]."""
    ids = torch.where(counted & (entities >= 0), entities, num_entities)
    flags = torch.zeros(len(ids), num_entities + 1, device=ids.device)
    return flags.scatter(1, ids, 1.0)[:, :-1]
