"""Keywords as a set: a distribution over all sets of entities, and a price that is never below the divergence.

Letters: E entities.
"""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor

from tests.model.tiny import batch_of, random_spans, tiny_config, tiny_vrbot
from vrbot.dialogue.corpus import Corpus
from vrbot.dialogue.session import CATEGORIES
from vrbot.errors import ConfigError
from vrbot.model.keyword_scores import SetScores, SpanScores
from vrbot.model.policy_network import Action
from vrbot.model.set_policy import SetPolicy
from vrbot.model.spans import Span, one_hot_choice, span_of

ENTITIES = 4


def every_set() -> Span:
    """All sets of the entities, as spans."""
    chosen = [names for size in range(ENTITIES + 1) for names in itertools.combinations(range(ENTITIES), size)]
    return span_of(torch.tensor([[*names, *[-1] * (ENTITIES - len(names))] for names in chosen]), ENTITIES, ENTITIES)


def scores(seed: int) -> Tensor:
    return torch.randn(1, ENTITIES, generator=torch.Generator().manual_seed(seed)) * 2


def test_all_sets_together_have_the_probability_one_whatever_the_order_of_their_names() -> None:
    sets = every_set()
    found = SetScores(scores(0).expand(len(sets.weights), -1)).log_prob(sets)
    torch.testing.assert_close(found.exp().sum(), torch.tensor(1.0))
    turned = Span(sets.weights.flip(1))
    torch.testing.assert_close(SetScores(scores(0).expand(len(sets.weights), -1)).log_prob(turned), found)


def test_the_price_of_drawn_sets_is_on_average_at_least_the_divergence() -> None:
    """What is left out is the entropy of the posterior, which is zero where it is sure of its set."""
    sets = every_set()
    prior = SetScores(scores(1).expand(len(sets.weights), -1))
    nothing = SpanScores(torch.zeros(len(sets.weights), 1, ENTITIES + 1))
    price = prior.divergence_from(nothing, sets, None)
    posterior = torch.randn(len(price), generator=torch.Generator().manual_seed(2)).log_softmax(dim=0)
    divergence = (posterior.exp() * (posterior - prior.log_prob(sets))).sum()
    entropy = -(posterior.exp() * posterior).sum()
    torch.testing.assert_close((posterior.exp() * price).sum() - entropy, divergence)


@torch.no_grad()
def test_a_set_names_the_likeliest_entities_once_each_in_the_order_of_responses_and_then_nothing(
    corpus: Corpus,
) -> None:
    model, batch = tiny_vrbot(tiny_config(), corpus), batch_of(corpus)
    policy = model.prior_policy
    assert isinstance(policy, SetPolicy)
    state = random_spans(len(batch.turn), model.state_length, model.table.num_entities, seed=0)
    evidence = model.policy_evidence(model.hear(batch.inputs, batch.layout), state)
    written = policy.write(evidence, model.action_length, one_hot_choice, one_hot_choice)
    assert isinstance(written.scores.keywords, SetScores)
    for row, logits in enumerate(written.scores.keywords.logits):
        likely = [entity for entity in logits.argsort(descending=True).tolist() if logits[entity] > 0]
        ids, kept = written.action.keywords.ids[row], written.action.keywords.mask[row]
        named = sorted(likely[: model.action_length], key=lambda entity: -float(policy.order[entity]))
        assert ids[kept].tolist() == named
        assert kept.tolist() == sorted(kept.tolist(), reverse=True)
    torch.testing.assert_close(
        written.action.keywords.weights.sum(dim=-1), torch.ones(len(batch.turn), model.action_length)
    )


@torch.no_grad()
def test_where_a_keyword_is_to_be_expected_and_none_is_likely_enough_the_likeliest_is_named(corpus: Corpus) -> None:
    plain, bold = (tiny_vrbot(tiny_config(policy__at_least_one=each), corpus) for each in (False, True))
    pairs = torch.randn(200, 9, generator=torch.Generator().manual_seed(4)) * 2 - 3
    log_probs = torch.nn.functional.logsigmoid(torch.stack((pairs, -pairs), dim=-1))
    before, after = plain.decide(log_probs)[..., 0], bold.decide(log_probs)[..., 0]
    lacking = (before.sum(dim=1) == 0) & (pairs.sigmoid().sum(dim=1) >= 0.5)
    assert 20 < int(lacking.sum()) < 180
    assert torch.equal(after[~lacking], before[~lacking])
    assert torch.equal(after[lacking].nonzero()[:, 1], pairs[lacking].argmax(dim=1))
    assert bool(((before.sum(dim=1) == 0) & ~lacking).any())
    torch.testing.assert_close(bold.decide(log_probs).sum(dim=-1), torch.ones(200, 9))


def test_spans_expect_no_keyword() -> None:
    with pytest.raises(ConfigError, match=r"at_least_one needs policy\.form=set, got span"):
        tiny_config("span", policy__at_least_one=True)


@torch.no_grad()
def test_a_decision_weighs_the_keywords_under_every_category_by_how_likely_it_is(corpus: Corpus) -> None:
    model, batch = tiny_vrbot(tiny_config(), corpus), batch_of(corpus)
    heard = model.hear(batch.inputs, batch.layout)
    evidence = model.policy_evidence(heard, model.track(heard, batch.layout))
    policy = model.prior_policy
    assert isinstance(policy, SetPolicy)
    torch.nn.init.normal_(policy.begin.weight, generator=torch.Generator().manual_seed(3))
    decided = policy.decide(evidence, 3, one_hot_choice)
    expected = torch.zeros(len(batch.turn), model.table.num_entities)
    for category, share in enumerate(decided.scores.category.exp().unbind(dim=1)):
        given = Action(torch.eye(len(CATEGORIES))[category].expand(len(share), -1), decided.action.keywords)
        found = policy.score_along(evidence, given).keywords
        assert isinstance(found, SetScores)
        expected += share.unsqueeze(1) * found.logits.sigmoid()
    assert isinstance(decided.scores.keywords, SetScores)
    torch.testing.assert_close(decided.scores.keywords.logits.sigmoid(), expected)
    assert torch.equal(decided.action.category.argmax(dim=1), decided.scores.category.argmax(dim=1))
