"""Every system can learn: one small batch by heart, in seconds."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.contract.replying import reply_to_batch
from tests.model.tiny import MODELS, batch_of, moment, tiny_config, tiny_model
from vrbot.dialogue.batching import SessionBatch
from vrbot.dialogue.corpus import Corpus
from vrbot.model.contract import DialogueModel

SESSIONS = (1, 2)
MOST_STEPS, STEPS_BETWEEN_LOOKS = 100, 10
FIRST_RATE, LAST_RATE = 0.03, 0.003
"""The rate falls, so that no system jumps about its end for ever; which one does at a steady rate hangs on rounding."""
SETTINGS: dict[str, Any] = {
    "network__hidden_size": 24,
    "network__embedding_size": 24,
    "tracker__length": 2,
    "policy__length": 2,
    "objective__temperature_start": 0.5,
    "objective__temperature_steps": MOST_STEPS,
    "decoding__no_repeat": 0,  # what is recorded may say things twice
    "decoding__only_keywords": False,  # and name what a variant's policy cannot reach
    "decoding__keyword_bonus": 0.0,  # and in an order of its own
}


def replies_as_recorded(model: DialogueModel, batch: SessionBatch) -> float:
    """The share of turns whose greedy reply is the recorded one, word for word."""
    replies = reply_to_batch(model, batch, tiny_config(**SETTINGS).decoding)
    recorded = zip(batch.targets.response.tolist(), batch.targets.response_lengths.tolist(), strict=True)
    right = [
        reply.words == tuple(words[: length - 1]) for reply, (words, length) in zip(replies, recorded, strict=True)
    ]
    return sum(right) / len(right)


@pytest.mark.parametrize("name", MODELS)
def test_a_system_learns_one_batch_by_heart(corpus: Corpus, name: str) -> None:
    """A label the graph cannot reach keeps its price, so a loss need not fall to zero."""
    model, batch = tiny_model(name, tiny_config(**SETTINGS), corpus, scale=1.0), batch_of(corpus, SESSIONS)
    assert isinstance(model, torch.nn.Module)
    optimiser = torch.optim.Adam(model.parameters(), lr=FIRST_RATE)
    falling = torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, LAST_RATE / FIRST_RATE, MOST_STEPS)
    losses: list[float] = []
    assert replies_as_recorded(model, batch) < 0.5
    for step in range(MOST_STEPS):
        optimiser.zero_grad()
        loss = model.loss(batch, moment(step, step=step))
        (loss.total / loss.num_turns).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimiser.step()
        falling.step()
        losses.append(float(loss.total.detach()))
        learned = losses[-1] < 0.35 * losses[0]
        if step % STEPS_BETWEEN_LOOKS == STEPS_BETWEEN_LOOKS - 1 and learned and replies_as_recorded(model, batch) == 1:
            return
    pytest.fail(
        f"after {MOST_STEPS} steps the loss is {losses[-1]:.1f} of {losses[0]:.1f} and replies are not as recorded"
    )
