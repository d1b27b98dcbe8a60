"""What the inference networks make of each turn; they read the recorded reply, so this is for measuring only.

Letters: N rows (turns), L span positions.
"""

from __future__ import annotations

import torch
from torch import Tensor

from vrbot.dialogue.batching import TurnLayout
from vrbot.model.policy_network import WrittenAction
from vrbot.model.spans import Span, one_hot_choice
from vrbot.model.vrbot import Heard, HeardResponse, VRBot


@torch.no_grad()
def infer_states(model: VRBot, heard: Heard, response: HeardResponse, layout: TurnLayout) -> Span:
    """S^q along each dialogue, the most probable ones; every turn builds on the inference tracker's own last state."""
    previous = model.first_state(layout.num_sessions, heard.words.device)
    sizes = layout.turn_sizes
    turns = zip(
        torch.split(heard.context.summary, sizes),
        heard.mentions.split(sizes),
        torch.split(response.encoded.summary, sizes),
        strict=True,
    )
    spans = []
    for summary, mentioned, said in turns:
        read, mentions = model.recall(previous.select(slice(0, len(summary))), mentioned, heard.table)
        previous = model.inference_tracker.write(  # type: ignore[operator]
            (summary, read.summary, said), model.state_length, mentions, heard.table, one_hot_choice
        ).span
        spans.append(previous.weights)
    return Span(torch.cat(spans))


@torch.no_grad()
def infer_action(model: VRBot, heard: Heard, response: HeardResponse, state: Span) -> WrittenAction:
    """A^q given a state, the most probable one."""
    evidence = model.policy_evidence(heard, state, response)
    written: WrittenAction = model.inference_policy.write(  # type: ignore[operator]
        evidence, model.action_length, one_hot_choice, one_hot_choice
    )
    return written


def entity_rows(span: Span) -> list[tuple[int, ...]]:
    """The entities each row of a span names."""
    return named_rows(torch.where(span.mask, span.ids, -1))


def named_rows(ids: Tensor) -> list[tuple[int, ...]]:
    """Entity ids [N, L], -1 where there is none, as one tuple per row."""
    return [tuple(entity for entity in row if entity >= 0) for row in ids.tolist()]
