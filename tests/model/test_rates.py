"""What serves the policy alone learns more slowly than what the reply is written with."""

from __future__ import annotations

import pytest

from tests.model.tiny import tiny_config
from vrbot.baselines.catalogue import build_model
from vrbot.dialogue.corpus import Corpus
from vrbot.errors import ConfigError
from vrbot.model.detectors import TraitScore
from vrbot.model.spreading import RATE
from vrbot.training.optimiser import rate_factors

POLICY = (
    "prior_policy",
    "inference_policy",
    "subgraph_encoder",
    "context_encoder.characters",
    "context_encoder.entities",
)
PARTS = {"vrbot": POLICY, "dual-flow": ("prior_policy", "subgraph_encoder", "flows")}


def of_what_all_share(name: str) -> float:
    """How much faster than its policy a parameter learns: what means the same for all entities does."""
    if ".spreading." in name:
        return RATE
    return TraitScore.learning_rate_factor if ".trait_score." in name or ".standing_score." in name else 1.0


@pytest.mark.parametrize("factor", [0.2, 0.5])
@pytest.mark.parametrize("name", PARTS)
def test_the_policys_own_parts_have_its_share_of_the_rate_and_no_others(
    corpus: Corpus, name: str, factor: float
) -> None:
    model = build_model(name, tiny_config(policy__learning_rate_factor=factor), corpus)
    names = dict(model.named_parameters())  # what several parts share is there once, under the model's own name
    found = {name: value for name, value in rate_factors(model).items() if name in names}
    own = {each for each in names if each.startswith(tuple(f"{part}." for part in PARTS[name]))}
    assert own
    assert found == {each: pytest.approx(factor * of_what_all_share(each)) for each in own}


def test_a_system_named_in_the_settings_learns_more_slowly_its_slow_parts_more_slowly_still(corpus: Corpus) -> None:
    config = tiny_config(training__rate_factors={"vrbot": 0.5}, policy__learning_rate_factor=0.2)
    model, other = build_model("vrbot", config, corpus), build_model("vrbot-un", config, corpus)
    names = dict(model.named_parameters())
    slow = {name for name in names if name.startswith(tuple(f"{part}." for part in POLICY))}
    for built, factor in ((model, 0.5), (other, 1.0)):
        found = rate_factors(built)
        assert {name: found.get(name, 1.0) for name in names} == {
            name: pytest.approx(factor * (0.2 * of_what_all_share(name) if name in slow else 1.0)) for name in names
        }


def test_a_rate_for_a_system_that_does_not_exist_is_refused(corpus: Corpus) -> None:
    with pytest.raises(ConfigError, match="'transfomer' is not a model; known: vrbot"):
        build_model("vrbot", tiny_config(training__rate_factors={"transfomer": 0.4}), corpus)
