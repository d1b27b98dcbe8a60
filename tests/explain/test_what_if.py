"""Laws of what-if: the result is what the model itself does once it has inferred what is given."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.agent.conftest import MakeAgent
from tests.explain.conftest import CONVERSATION
from tests.explain.test_evidence import evidence_of
from tests.model.tiny import ENTITIES, FORMS, entity_id
from vrbot.agent.respond import Agent
from vrbot.dialogue.session import CATEGORIES
from vrbot.errors import UsageError
from vrbot.explain.explainer import Explainer
from vrbot.explain.steering import Change
from vrbot.model.policy_network import Action
from vrbot.model.spans import Span, span_of

names = st.lists(st.sampled_from(ENTITIES), max_size=3, unique=True).map(tuple)


def own_change(agent: Agent) -> Change:
    """The agent's own state and action, as a change."""
    reply = agent.respond(CONVERSATION)
    state, keywords = reply.state or (), reply.keywords or ()
    return Change(tuple(each.name for each in state), reply.category, tuple(each.name for each in keywords))


@pytest.mark.parametrize("form", FORMS)
def test_giving_the_model_what_it_inferred_changes_nothing(form: str, make_agent: MakeAgent) -> None:
    agent = make_agent("vrbot", form)
    explainer = Explainer(agent)
    inferred, own = explainer.respond(CONVERSATION), own_change(agent)
    given_back = explainer.what_if(CONVERSATION, replace(own, category=None))
    assert evidence_of(given_back).changed == ("state", "keywords")
    assert replace(given_back, evidence=None) == replace(inferred, evidence=None)
    assert replace(evidence_of(given_back), changed=()) == evidence_of(inferred)
    certain = explainer.what_if(CONVERSATION, own)
    assert (certain.state, certain.category) == (inferred.state, inferred.category)
    if [each.name for each in certain.keywords or ()] == [each.name for each in inferred.keywords or ()]:
        assert certain.text == inferred.text
        assert evidence_of(certain).words == evidence_of(inferred).words


def with_state(agent: Agent, state: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the agent's tracker infer this state in the last turn."""
    model: Any = agent.pretrained.model
    track = model.track
    ids = torch.tensor([[entity_id(agent.pretrained.corpus, name) for name in state]]).view(1, -1)

    def inferred(heard: Any, layout: Any) -> Span:
        spans = track(heard, layout)
        given = span_of(ids.long(), model.state_length, model.table.num_entities)
        return Span(torch.cat((spans.weights[:-1], given.weights)))

    monkeypatch.setattr(model, "track", inferred)


@pytest.mark.parametrize("form", ["small", "paper"])
@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(state=names)
def test_a_given_state_does_what_the_same_state_does_when_inferred(
    form: str, make_agent: MakeAgent, state: tuple[str, ...]
) -> None:
    agent = make_agent("vrbot", form)
    steered = Explainer(agent).what_if(CONVERSATION, Change(state=state))
    with pytest.MonkeyPatch.context() as patch:
        with_state(agent, state, patch)
        inferred = Explainer(agent).respond(CONVERSATION)
        assert replace(inferred, evidence=None) == agent.respond(CONVERSATION)
    assert replace(steered, evidence=None) == replace(inferred, evidence=None)
    assert replace(evidence_of(steered), changed=()) == evidence_of(inferred)
    assert tuple(entity.name for entity in steered.state or ()) == state


def with_action(agent: Agent, category: str, keywords: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the agent's policy write this action in the last turn."""
    model: Any = agent.pretrained.model
    decide = model.prior_policy.decide
    ids = torch.tensor([[entity_id(agent.pretrained.corpus, name) for name in keywords]]).view(1, -1)

    def inferred(*arguments: Any, **settings: Any) -> Any:
        written = decide(*arguments, **settings)
        span = span_of(ids.long(), model.action_length, model.table.num_entities)
        one_hot = torch.nn.functional.one_hot(torch.tensor([CATEGORIES.index(category)]), len(CATEGORIES)).float()
        action = Action(
            torch.cat((written.action.category[:-1], one_hot)),
            Span(torch.cat((written.action.keywords.weights[:-1], span.weights))),
        )
        return replace(written, action=action)

    monkeypatch.setattr(model.prior_policy, "decide", inferred)


@pytest.mark.parametrize("form", ["small", "span"])
@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(category=st.sampled_from(CATEGORIES), keywords=names)
def test_a_given_action_does_what_the_same_action_does_when_inferred(
    form: str, make_agent: MakeAgent, category: str, keywords: tuple[str, ...]
) -> None:
    agent = make_agent("vrbot", form)
    steered = Explainer(agent).what_if(CONVERSATION, Change(category=category, keywords=keywords))
    named = tuple(keyword.name for keyword in steered.keywords or ())
    assert set(named) == set(keywords)
    assert steered.category == category
    if form == "span":
        assert named == keywords
    else:
        policy: Any = Explainer(agent).model.prior_policy
        places = [float(policy.order[entity_id(agent.pretrained.corpus, name)]) for name in named]
        assert places == sorted(places, reverse=True)
    with pytest.MonkeyPatch.context() as patch:
        with_action(agent, category, named, patch)
        inferred = agent.respond(CONVERSATION)
    assert (steered.text, steered.state) == (inferred.text, inferred.state)
    assert named == tuple(keyword.name for keyword in inferred.keywords or ())


def test_another_category_lets_the_keywords_be_inferred_anew(make_agent: MakeAgent) -> None:
    explainer = Explainer(make_agent(seed=3))
    replies = [explainer.what_if(CONVERSATION, Change(category=category)) for category in CATEGORIES]
    assert [reply.category for reply in replies] == list(CATEGORIES)
    assert len({tuple(k.probability for k in reply.keywords or ()) for reply in replies}) > 1
    assert replies[0].categories == {name: float(name == CATEGORIES[0]) for name in CATEGORIES}


def test_a_change_reads_plain_values_as_a_request_holds_them(make_agent: MakeAgent) -> None:
    explainer = Explainer(make_agent())
    content = explainer.steer(CONVERSATION, {"keywords": ["流感"], "category": "diagnosis"})
    assert content == explainer.what_if(CONVERSATION, Change(category="diagnosis", keywords=("流感",))).to_dict()
    assert content["evidence"]["changed"] == ["category", "keywords"]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"mood": "good"}, "'mood' cannot be changed: choose among state, category, keywords"),
        ({"category": "sing"}, "'sing' is not a category"),
        ({"state": "咳嗽"}, "state must be a list of names"),
        ({"keywords": [1]}, "keywords must be a list of names"),
        ({"state": ["不存在"]}, "'不存在' in the state is no entity"),
        ({"keywords": list(ENTITIES[:4])}, "the keywords has room for 3 entities, got 4"),
    ],
)
def test_a_change_that_cannot_be_is_refused(change: dict[str, Any], complaint: str, make_agent: MakeAgent) -> None:
    with pytest.raises(UsageError, match=complaint):
        Explainer(make_agent()).steer(CONVERSATION, change)


@pytest.mark.parametrize(("name", "change"), [("vrbot-no-state", "state"), ("vrbot-no-action", "keywords")])
def test_a_part_the_model_has_not_cannot_be_changed(name: str, change: str, make_agent: MakeAgent) -> None:
    with pytest.raises(UsageError, match="this model has no"):
        Explainer(make_agent(name)).steer(CONVERSATION, {change: ["流感"]})
