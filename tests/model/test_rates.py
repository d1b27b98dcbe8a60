"""What serves the policy alone learns more slowly than what the reply is written with."""

from __future__ import annotations

import pytest

from tests.model.tiny import tiny_config, tiny_vrbot
from vrbot.dialogue.corpus import Corpus
from vrbot.training.optimiser import rate_factors

POLICY = (
    "prior_policy",
    "inference_policy",
    "subgraph_encoder",
    "context_encoder.characters",
    "context_encoder.entities",
)


@pytest.mark.parametrize("factor", [0.2, 0.5])
def test_the_policys_own_parts_have_its_share_of_the_rate_and_no_others(corpus: Corpus, factor: float) -> None:
    model = tiny_vrbot(tiny_config(policy__learning_rate_factor=factor), corpus)
    names = dict(model.named_parameters())  # what several parts share is there once, under the model's own name
    found = {name: value for name, value in rate_factors(model).items() if name in names}
    own = {name for name in names if name.startswith(tuple(f"{part}." for part in POLICY))}
    assert own
    assert found == dict.fromkeys(own, factor)
