"""How readily MOSS and DAMD name keywords: an offset on NONE, calibrated as VRBot's is, that training never sees."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from tests.model.tiny import batch_of, moment, tiny_config, tiny_model, without_labels
from vrbot.baselines.span_chain import ChainedReplies
from vrbot.dialogue.batching import Limits, SessionBatch
from vrbot.dialogue.corpus import Corpus
from vrbot.evaluation.calibration import OFFSETS, _Tally, calibrate, calibrate_chain
from vrbot.model.contract import Perception
from vrbot.model.spans import one_hot_choice

both = pytest.mark.parametrize("name", ["moss", "damd"])


def chain(name: str, corpus: Corpus) -> ChainedReplies:
    """A model that seldom names a keyword, as models do that have learnt."""
    model = tiny_model(name, tiny_config(), corpus)
    assert isinstance(model, ChainedReplies)
    model.action.decoder.tracker.ending_bias = 3.0
    return model


def perceive_at(model: ChainedReplies, batch: SessionBatch, offset: float) -> Perception:
    model.none_offset.fill_(offset)
    perception: Perception = model.perceive(batch.inputs, batch.layout)  # type: ignore[operator]
    return perception


def keywords_at(model: ChainedReplies, batch: SessionBatch, offset: float) -> Tensor:
    keywords = perceive_at(model, batch, offset).keywords
    assert keywords is not None
    return keywords


def scores_at(model: ChainedReplies, batch: SessionBatch, offset: float) -> tuple[float, float]:
    """Keyword micro-F1 (0-100) against what the responses name: over all, and without the most frequent one."""
    said = [{e for e in row if e >= 0} for row in batch.targets.response_mentions.tolist()]
    named = [{e for e in row if e >= 0} for row in keywords_at(model, batch, offset).tolist()]
    everything = [e for row in said for e in row]
    usual = min(set(everything), key=lambda e: (-everything.count(e), e))

    def f1(left_out: set[int]) -> float:
        hits = sum(len((mine & theirs) - left_out) for mine, theirs in zip(named, said, strict=True))
        return 200 * hits / max(sum(len(row - left_out) for row in named + said), 1)

    return f1(set()), f1({usual})


@both
@pytest.mark.parametrize(("offset", "number"), [(1e4, 0), (-1e4, 3)])
def test_the_offset_of_none_decides_how_readily_keywords_are_named(
    corpus: Corpus, name: str, offset: float, number: int
) -> None:
    model, batch = chain(name, corpus), batch_of(corpus)
    assert (keywords_at(model, batch, offset) >= 0).sum(dim=1).tolist() == [number] * len(batch.turn)


@both
def test_without_an_offset_the_most_probable_keywords_are_named(corpus: Corpus, name: str) -> None:
    model, batch = chain(name, corpus), batch_of(corpus)
    conditions = perceive_at(model, batch, 0.0).conditions
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(model, "choose_keyword", one_hot_choice)
        plain = perceive_at(model, batch, -1e4).conditions
    assert torch.equal(plain.action.keywords.weights, conditions.action.keywords.weights)


def test_the_offset_leaves_the_state_of_moss_as_it_is(corpus: Corpus) -> None:
    model, batch = chain("moss", corpus), batch_of(corpus)
    plain, eager = (perceive_at(model, batch, offset).state for offset in (0.0, -1e4))
    assert plain is not None
    assert eager is not None
    assert torch.equal(plain, eager)


@both
@pytest.mark.parametrize("labelled", [True, False])
def test_training_does_not_see_the_offset(corpus: Corpus, name: str, labelled: bool) -> None:
    """Not even where a decoder without a label names keywords of its own."""
    model, batch = chain(name, corpus), batch_of(corpus)
    batch = batch if labelled else without_labels(batch, batch.turn > 0)
    costs = []
    for offset in (0.0, -4.8, 1e4):
        model.none_offset.fill_(offset)
        costs.append(float(model.loss(batch, moment()).total.detach()))  # type: ignore[operator]
    assert costs[0] > 0
    assert costs == [costs[0]] * 3


def smoothed(scores: Sequence[float]) -> list[float]:
    """A quarter of each neighbour and half of the score itself; at the ends the score stands in for the missing one."""
    before, after = [scores[0], *scores[:-1]], [*scores[1:], scores[-1]]
    return [(low + 2 * own + high) / 4 for low, own, high in zip(before, scores, after, strict=True)]


@both
def test_calibration_finds_the_offset_that_is_best_together_with_its_neighbours(corpus: Corpus, name: str) -> None:
    model, batch = chain(name, corpus), batch_of(corpus)
    scores = [scores_at(model, batch, offset) for offset in OFFSETS]
    merits = smoothed([sum(each) for each in scores])
    best = merits.index(max(merits))
    assert merits[best] > max(merits[0], merits[-1])  # neither end serves best
    reached = calibrate_chain(model, corpus.split("valid"), Limits())
    assert float(model.none_offset) == pytest.approx(OFFSETS[best])
    assert reached == pytest.approx(scores[best][0], abs=1e-3)
    model.none_offset.zero_()
    calibrate(model, corpus.split("valid"), Limits())
    assert float(model.none_offset) == pytest.approx(OFFSETS[best])


def test_a_score_that_stands_alone_is_taken_for_chance() -> None:
    tally = _Tally.of(2)
    tally.said.copy_(torch.tensor([50.0, 40.0]))
    tally.hits[:, 0], tally.named[:, 0], tally.named[:, 1] = 30.0, 50.0, 40.0
    tally.hits[3:6, 1] = 15.0
    best, f1 = tally.best()
    assert best == 4
    assert f1 == pytest.approx(200 * 45 / 180)
    tally.hits[10, 1] = 16.0  # higher, between others that are low
    assert tally.best()[0] == 4
    tally.hits[10, 1] = 40.0  # too high for chance
    assert tally.best()[0] == 10


@both
@torch.no_grad()
def test_the_keywords_of_calibration_are_those_of_use(corpus: Corpus, name: str) -> None:
    model, batch = chain(name, corpus), batch_of(corpus)
    name_keywords = model.keyword_namer(batch.inputs, batch.layout)
    found = []
    for offset in (0.0, -2.4, -1e4):
        expected = keywords_at(model, batch, offset)
        found.append(name_keywords())
        assert torch.equal(found[-1], expected)
    assert not torch.equal(found[0], found[2])


@both
def test_the_offset_is_kept_with_the_weights(corpus: Corpus, name: str) -> None:
    assert "none_offset" in chain(name, corpus).state_dict()
