"""A law of the decoders that point at entities: at the recipe's sizes and rate their units do not run to their ends."""

from __future__ import annotations

import pytest
from torch import Tensor, nn

from tests.model.tiny import batch_of, moment, tiny_config, tiny_model
from vrbot.baselines.ccm import CCM
from vrbot.baselines.nkd import NKD
from vrbot.config import recipe
from vrbot.dialogue.corpus import Corpus
from vrbot.training.optimiser import Optimiser, rate_factors, trainable

UPDATES = 60
AT_ITS_END = 0.95


@pytest.mark.parametrize("name", ["nkd", "ccm"])
def test_units_of_the_decoder_stay_between_their_ends(corpus: Corpus, name: str) -> None:
    small = recipe("small")
    size, graph_size = small.network.hidden_size, small.policy.graph_size
    config = tiny_config(network__hidden_size=size, network__embedding_size=size, policy__graph_size=graph_size)
    model = tiny_model(name, config, corpus, scale=1.0)
    assert isinstance(model, NKD | CCM)
    optimiser = Optimiser(trainable(model), small.training, rate_factors(model))
    units: list[Tensor] = []

    def keep(layer: nn.Module, given: tuple[Tensor, ...], result: Tensor) -> None:
        units.append(result.detach().tanh().abs())

    combine = model.writer.cell.combine
    assert isinstance(combine, nn.Linear)
    combine.register_forward_hook(keep)
    batch = batch_of(corpus)
    for step in range(UPDATES):
        model.zero_grad()
        loss = model.loss(batch, moment(step, step=step))
        (loss.total / loss.num_turns).backward()
        nn.utils.clip_grad_norm_(model.parameters(), small.training.gradient_clip)
        optimiser.step(small.training.learning_rate)
    assert (units[-1] > AT_ITS_END).float().mean() < 0.3
