"""The objective against everything there is: with spans of one symbol, all states and actions can be written out.

Letters: M states, K actions (pairs of a category and a keyword).
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from tests.model.tiny import FORMS, batch_of, moment, sessions, tiny_config, tiny_vrbot, without_labels
from tests.objective.test_bounds import Guess, Tables, in_the_papers_words, joint, of_action, of_state
from tests.objective.watched import terms_of, watched_vrbot
from vrbot.config import Config
from vrbot.dialogue.batching import SessionBatch
from vrbot.dialogue.corpus import Corpus
from vrbot.model.policy_network import Action
from vrbot.model.spans import Span
from vrbot.model.vrbot import VRBot

SESSION = [session.id for session in sessions()].index("stomach")
SAMPLES = 3000
CATEGORIES = 4


def one_symbol(form: str, bound: str) -> Config:
    return tiny_config(
        form,
        tracker__length=1,
        policy__length=1,
        policy__form="span",
        objective__straight_through=True,
        objective__bound=bound,
    )


def repeated(corpus: Corpus, times: int) -> SessionBatch:
    """The same single turn, many times."""
    return without_labels(batch_of(corpus, [SESSION] * times))


@torch.no_grad()
def written_out(model: VRBot, corpus: Corpus) -> tuple[Tables, Guess]:
    """Prior and posterior of all M states and K actions, and what the response costs in each."""
    symbols = model.table.num_entities + 1
    number = torch.arange(symbols * CATEGORIES * symbols)
    batch = repeated(corpus, len(number))
    state_id, action_id = number // (CATEGORIES * symbols), number % (CATEGORIES * symbols)

    def spans(ids: Tensor) -> Span:
        return Span(torch.eye(symbols)[ids].unsqueeze(1))

    heard, response = model.hear(batch.inputs, batch.layout), model.hear_response(batch.targets)
    state, action = spans(state_id), Action(torch.eye(CATEGORIES)[action_id // symbols], spans(action_id % symbols))
    read, mentions = model.recall(model.first_state(len(number), torch.device("cpu")), heard.mentions, heard.table)
    evidence = (heard.context.summary, read.summary)
    states = [
        model.prior_tracker.score_along(evidence, state, mentions, heard.table),  # type: ignore[operator]
        model.inference_tracker.score_along((*evidence, response.encoded.summary), state, mentions, heard.table),  # type: ignore[operator]
    ]
    actions = [
        model.prior_policy.score_along(model.policy_evidence(heard, state), action),  # type: ignore[operator]
        model.inference_policy.score_along(model.policy_evidence(heard, state, response), action),  # type: ignore[operator]
    ]
    chosen = [
        scores.category.gather(1, (action_id // symbols).unsqueeze(1)).squeeze(1)
        + scores.keywords.log_probs[:, 0].gather(1, (action_id % symbols).unsqueeze(1)).squeeze(1)
        for scores in actions
    ]
    given = model.conditions(heard, state, action)
    cost = model.generator.log_prob(
        given, model.category_vectors(action), batch.targets.response, batch.targets.response_lengths
    )
    prior, posterior = (part.double().view(symbols, -1) for part in chosen)
    return (
        Tables(states[0][0, 0].double(), prior, cost.double().view(symbols, -1)),
        Guess(states[1][0, 0].double(), posterior),
    )


@torch.no_grad()
def drawn(model: VRBot, corpus: Corpus) -> dict[str, Tensor]:
    return {name: term.double() for name, term in terms_of(model, repeated(corpus, SAMPLES), moment(3)).items()}


def assert_mean(values: Tensor, expected: Tensor) -> None:
    """The mean of the draws is the expectation, as far as so many draws can tell."""
    error = float(values.std()) / len(values) ** 0.5
    assert float(values.mean()) == pytest.approx(float(expected), abs=4.5 * error + 1e-4)


@pytest.mark.parametrize("form", ["small", "paper"])
def test_the_two_stage_terms_are_draws_of_the_two_collapsed_bounds(corpus: Corpus, form: str) -> None:
    model = watched_vrbot(one_symbol(form, "two-stage"), corpus, scale=1.5)
    p, q = written_out(model, corpus)
    terms = drawn(model, corpus)
    assert_mean(terms["reconstruction_state"] - terms["kl_state"], of_state(p, q))
    kl_action = terms["kl_category"] + terms["kl_keywords"]
    assert_mean(terms["reconstruction_action"] - kl_action, of_action(p, q))


@pytest.mark.parametrize("form", ["small", "paper"])
def test_the_joint_terms_are_draws_of_the_joint_bound_and_not_of_the_papers_two_state_version(
    corpus: Corpus, form: str
) -> None:
    model = watched_vrbot(one_symbol(form, "joint"), corpus, scale=3.0)
    p, q = written_out(model, corpus)
    terms = drawn(model, corpus)
    found = terms["reconstruction"] - terms["kl_state"] - terms["kl_category"] - terms["kl_keywords"]
    assert_mean(found, joint(p, q))
    error = float(found.std()) / len(found) ** 0.5
    assert abs(float(found.mean() - in_the_papers_words(p, q))) > 6 * error


@pytest.mark.parametrize("bound", [joint, of_state, of_action])
@pytest.mark.parametrize("form", FORMS)
def test_a_fresh_models_bounds_lie_below_its_log_evidence(
    corpus: Corpus, form: str, bound: Callable[[Tables, Guess], Tensor]
) -> None:
    model = tiny_vrbot(one_symbol(form, "two-stage"), corpus)
    p, q = written_out(model, corpus)
    assert float(p.joint.logsumexp(dim=(0, 1))) == pytest.approx(float(p.evidence))
    assert float(p.action.exp().sum(dim=1).mean()) == pytest.approx(1.0, abs=1e-5)
    assert float(bound(p, q)) < float(p.evidence)
