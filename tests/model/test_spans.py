"""Spans: what is written can be scored again, and what is scored is what would have been written."""

from __future__ import annotations

import pytest
import torch

from tests.model.test_distributions import drawing
from tests.model.tiny import FORMS, batch_of, keyword_log_probs, random_spans, tiny_config, tiny_vrbot
from vrbot.dialogue.corpus import Corpus
from vrbot.model.policy_network import Action, ActionClamp
from vrbot.model.spans import Clamp, Span, SpanWriter, Written, one_hot_choice, span_of, vectors_of

TRACKERS, POLICIES = ("prior_tracker", "inference_tracker"), ("prior_policy", "inference_policy")


def test_a_span_of_ids_is_cut_or_filled_with_none() -> None:
    span = span_of(torch.tensor([[3, 1, 2], [0, -1, -1], [-1, -1, -1]]), 2, 4)
    assert span.ids.tolist() == [[3, 1], [0, 4], [4, 4]]
    assert span.mask.tolist() == [[True, True], [True, False], [False, False]]
    assert span_of(torch.zeros(2, 0, dtype=torch.long), 3, 4).ids.tolist() == [[4, 4, 4], [4, 4, 4]]


@pytest.mark.parametrize("hard", [True, False], ids=["hard", "soft"])
def test_the_vectors_of_a_span_are_one_product_with_and_without_gradient(hard: bool) -> None:
    weights = random_spans(9, 4, 6, seed=0).weights
    weights = weights if hard else (weights + 0.1).softmax(dim=-1)
    table = torch.randn(7, 5, generator=torch.Generator().manual_seed(1))
    expected = torch.einsum("nle,ed->nld", weights, table)
    torch.testing.assert_close(vectors_of(weights, table), expected)
    with torch.no_grad():
        torch.testing.assert_close(vectors_of(weights, table), expected)


def test_what_stands_before_each_position_is_what_writing_one_by_one_would_remember() -> None:
    span = random_spans(9, 4, 6, seed=0)
    along, step = Written.before_each(span), Written.nothing(9, 7, torch.device("cpu"))
    for position in range(4):
        assert torch.equal(along.used[:, position], step.used[:, 0])
        assert torch.equal(along.ended[:, position], step.ended[:, 0])
        step = step.after(span.weights[:, position])


def test_in_use_nothing_is_computed_for_spans_that_have_all_ended() -> None:
    generator = torch.Generator().manual_seed(0)
    writer, table = SpanWriter(5, 4, (3,)), torch.randn(7, 5, generator=generator)
    calls: list[int] = []

    def score(states: torch.Tensor, written: Written) -> torch.Tensor:
        calls.append(len(calls))
        ending = torch.tensor([0.0] * 6 + [9.0 if written.used.any() else -9.0])
        likes = torch.arange(7.0).roll(len(calls)) + ending - 99.0 * written.used
        return written.close(likes.expand(len(states), 1, 7).log_softmax(dim=-1))

    initial = torch.randn(2, 4, generator=generator)
    whole = writer.write(initial, 8, table, score, one_hot_choice)
    assert len(calls) == 8
    calls.clear()
    with torch.no_grad():
        short = writer.write(initial, 8, table, score, one_hot_choice)
    assert len(calls) == 2
    assert torch.equal(short.log_probs, whole.log_probs)
    assert torch.equal(short.span.weights, whole.span.weights)


@pytest.mark.parametrize("hard", [True, False], ids=["hard", "soft"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", TRACKERS)
def test_a_tracker_scores_its_own_span_as_it_wrote_it(corpus: Corpus, name: str, form: str, hard: bool) -> None:
    model, batch = tiny_vrbot(tiny_config(form), corpus), batch_of(corpus)
    tracker, heard = getattr(model, name), model.hear(batch.inputs, batch.layout)
    previous = random_spans(len(batch.turn), model.state_length, len(corpus.inventory.names), seed=1)
    read, mentions = model.recall(previous, heard.mentions, heard.table)
    evidence: tuple[torch.Tensor, ...] = (heard.context.summary, read.summary)
    if name == "inference_tracker":
        evidence = (*evidence, model.hear_response(batch.targets).encoded.summary)
    written = tracker.write(evidence, model.state_length, mentions, heard.table, drawing(2, hard=hard))
    along = tracker.score_along(evidence, written.span, mentions, heard.table)
    torch.testing.assert_close(along, written.log_probs, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("hard", [True, False], ids=["hard", "soft"])
@pytest.mark.parametrize("variant", ["vrbot", "vrbot-no-graph", "vrbot-no-context", "vrbot-no-action"])
@pytest.mark.parametrize("form", ["small", "span", "paper"])
@pytest.mark.parametrize("name", POLICIES)
def test_a_policy_scores_its_own_action_as_it_wrote_it(
    corpus: Corpus, name: str, form: str, variant: str, hard: bool
) -> None:
    model, batch = tiny_vrbot(tiny_config(form), corpus, name=variant), batch_of(corpus)
    policy, heard = getattr(model, name), model.hear(batch.inputs, batch.layout)
    state = random_spans(len(batch.turn), model.state_length, len(corpus.inventory.names), seed=1)
    response = model.hear_response(batch.targets) if name == "inference_policy" else None
    evidence = model.policy_evidence(heard, state, response)
    written = policy.write(evidence, model.action_length, drawing(2, hard=hard), drawing(3, hard=hard))
    along = policy.score_along(evidence, written.action)
    torch.testing.assert_close(along.category, written.scores.category)
    found, expected = keyword_log_probs(along.keywords), keyword_log_probs(written.scores.keywords)
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)


def test_known_rows_are_written_as_they_are_known_and_the_others_as_drawn(corpus: Corpus) -> None:
    model, batch = tiny_vrbot(tiny_config("paper"), corpus), batch_of(corpus)
    heard, rows = model.hear(batch.inputs, batch.layout), len(batch.turn)
    state = random_spans(rows, model.state_length, len(corpus.inventory.names), seed=1)
    keywords = random_spans(rows, model.action_length, len(corpus.inventory.names), seed=2)
    category = torch.eye(4)[torch.arange(rows) % 4]
    some, others = torch.arange(rows) % 2 == 0, torch.arange(rows) % 3 == 0
    clamp = ActionClamp(others, category, Clamp(some, keywords))
    evidence = model.policy_evidence(heard, state)

    def write(clamp: ActionClamp | None) -> Action:
        action: Action = model.prior_policy.write(
            evidence, model.action_length, one_hot_choice, one_hot_choice, clamp
        ).action  # type: ignore[operator]
        return action

    clamped, drawn = write(clamp), write(None)
    assert torch.equal(clamped.keywords.weights[some], keywords.weights[some])
    assert torch.equal(clamped.category[others], category[others])
    free = ~some & ~others
    assert torch.equal(clamped.keywords.weights[free], drawn.keywords.weights[free])
    assert torch.equal(clamped.category[~others], drawn.category[~others])


def test_choosing_other_rows_of_a_span_leaves_the_rest() -> None:
    first, second, chosen = (
        random_spans(4, 3, 5, seed=0),
        random_spans(4, 3, 5, seed=1),
        torch.tensor([True, False, False, True]),
    )
    mixed = first.where(second, chosen)
    assert torch.equal(mixed.weights[chosen], second.weights[chosen])
    assert torch.equal(mixed.weights[~chosen], first.weights[~chosen])
    assert torch.equal(first.followed_by(second).weights, Span(torch.cat((first.weights, second.weights))).weights)
