"""Every model that names keywords has MEP and MER, each by the knowledge its own action rests on."""

from __future__ import annotations

import pytest
import torch

from tests.model.tiny import MODELS, tiny_config, tiny_model
from vrbot.dialogue.corpus import Corpus
from vrbot.evaluation.explainability import explainability_scores
from vrbot.evaluation.measuring import measure_model, placed_batches
from vrbot.evaluation.reach import ends_of_fact, reached_by_paths
from vrbot.evaluation.turns import ScoredTurn

WITHOUT_KEYWORDS = {
    "seq2seq",
    "hred",
    "vhred",
    "transformer",
    "ccm",
    "nkd",
    "sedst",
    "labes",
    "vrbot-no-action",
}
WITHOUT_PATHS = ("moss", "damd", "hred-bert", "vrbot-no-graph")


def turns_of(name: str, corpus: Corpus) -> list[ScoredTurn]:
    config = tiny_config()
    return measure_model(tiny_model(name, config, corpus), corpus, "test", config, config.decoding).turns


@pytest.mark.parametrize("name", MODELS)
def test_a_model_is_scored_exactly_if_it_names_keywords_before_it_writes(name: str, corpus: Corpus) -> None:
    config = tiny_config()
    model = tiny_model(name, config, corpus)
    batch = next(iter(placed_batches(corpus.split("test"), config))).batch
    reached = reached_by_paths(model, batch, model.perceive(batch.inputs, batch.layout))
    assert len(reached) == len(batch.turn)
    assert all((one is None) == (name in WITHOUT_KEYWORDS) for one in reached)
    if name in WITHOUT_PATHS:
        assert set(reached) == {frozenset()}


@pytest.mark.parametrize("name", ["postks", "dual-flow", "damd", "vrbot"])
def test_scores_of_models_with_keywords_are_shares(name: str, corpus: Corpus) -> None:
    found = explainability_scores(turns_of(name, corpus))
    mer = found["mer"].value
    assert mer is not None
    assert 0 <= mer <= 100


def test_a_fact_leads_from_the_end_that_was_said_to_the_other_and_from_nowhere_nowhere() -> None:
    assert ends_of_fact(1, 2, frozenset({1})) == {2}
    assert ends_of_fact(1, 2, frozenset({2})) == {1}
    assert ends_of_fact(1, 2, frozenset({1, 2})) == {1, 2}
    assert ends_of_fact(1, 2, frozenset({3})) == frozenset()
    assert ends_of_fact(-1, -1, frozenset({3})) == frozenset()
    assert ends_of_fact(1, -1, frozenset({1})) == frozenset()


def test_what_postks_selected_is_explained_by_what_was_said_or_by_that_one_fact(corpus: Corpus) -> None:
    selected = [turn for turn in turns_of("postks", corpus) if turn.prior.keywords]
    assert selected
    for turn in selected:
        assert turn.evidence is not None
        keywords = frozenset(turn.prior.keywords or ())
        assert turn.evidence.reached <= keywords
        other_ends = turn.evidence.reached - turn.evidence.context
        assert not other_ends or keywords & turn.evidence.context


def test_the_flows_enter_the_graph_by_the_entities_last_named(corpus: Corpus) -> None:
    config = tiny_config()
    model = tiny_model("dual-flow", config, corpus)
    batch = next(iter(placed_batches(corpus.split("test"), config))).batch
    perception = model.perceive(batch.inputs, batch.layout)
    reached = reached_by_paths(model, batch, perception)
    for row, ends in enumerate(reached):
        named = perception.conditions.state.mask[row].any()
        assert ends is not None
        assert bool(named) or ends == frozenset()
    assert any(reached)
    assert torch.equal(perception.keywords, model.perceive(batch.inputs, batch.layout).keywords)  # type: ignore[arg-type]
