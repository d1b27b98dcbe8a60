"""Laws of evidence: it changes no reply, its shares add up, and what is copied stands where it is said to."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
import torch

from tests.agent.conftest import MakeAgent
from tests.explain.conftest import CONVERSATION
from tests.model.tiny import FORMS, sessions
from vrbot.agent.reply import Reply
from vrbot.agent.respond import Agent
from vrbot.agent.searching import Search, find_words
from vrbot.agent.sources import Judging
from vrbot.dialogue.session import CATEGORIES
from vrbot.dialogue.vocabulary import EOS, PAD
from vrbot.errors import UsageError
from vrbot.explain.evidence import Evidence, KeywordEvidence
from vrbot.explain.explainer import Explainer
from vrbot.explain.places import word_spans
from vrbot.explain.steering import Change, perceive
from vrbot.explain.words import shares_along
from vrbot.model.contract import Perception
from vrbot.model.keyword_scores import SetScores

VARIANTS = ("vrbot", "vrbot-no-state", "vrbot-no-action", "vrbot-no-graph", "vrbot-no-context")


def evidence_of(reply: Reply) -> Evidence:
    assert isinstance(reply.evidence, Evidence)
    return reply.evidence


def all_turns() -> list[list[tuple[str, str]]]:
    said = [[(turn.patient, turn.physician) for turn in session.turns] for session in sessions()]
    return [turns[: count + 1] for turns in said for count in range(len(turns))]


@pytest.mark.parametrize("form", FORMS)
def test_evidence_changes_no_reply_and_its_shares_add_up(form: str, make_agent: MakeAgent) -> None:
    agent = make_agent("vrbot", form)
    explainer = Explainer(agent)
    for conversation in all_turns():
        reply = explainer.respond(conversation)
        assert replace(reply, evidence=None) == agent.respond(conversation)
        evidence = evidence_of(reply)
        for word in evidence.words:
            assert math.isclose(word.generated + sum(copy.share for copy in word.copies), 1.0, abs_tol=1e-9)
        for keyword, shown in zip(evidence.keywords or (), reply.keywords or (), strict=True):
            assert math.isclose(keyword.from_conversation + keyword.from_graph, 1.0, abs_tol=1e-9)
            assert (keyword.name, keyword.probability, keyword.from_graph) == (
                shown.name,
                shown.probability,
                shown.from_graph,
            )
        named = [entity for entity in evidence.state or () if entity.status != "dropped"]
        assert [(entity.name, entity.status) for entity in named] == [(e.name, e.status) for e in reply.state or ()]
        for entity in named:
            total = entity.generated + entity.remembered + sum(mention.share for mention in entity.mentions)
            assert math.isclose(total, 1.0, abs_tol=1e-9)
        dropped = tuple(entity.name for entity in evidence.state or () if entity.status == "dropped")
        assert dropped == reply.dropped


def test_evidence_is_of_the_words_that_are_read(make_agent: MakeAgent) -> None:
    agent = make_agent()
    encoder = agent.pretrained.corpus.encoder
    echo = tuple(map(encoder.vocabulary.id_of, ("咳嗽", "，", "咳嗽", "。")))
    reply = Explainer(agent).what_if(CONVERSATION, Change(), words=echo)
    assert reply.text == encoder.segmenter.join(word.text for word in evidence_of(reply).words) == "咳嗽。"


@pytest.mark.parametrize("name", ["vrbot", "vrbot-no-graph", "vrbot-no-context"])
@pytest.mark.parametrize("form", ["small", "span"])
def test_a_keyword_is_as_probable_as_the_policy_holds_it_under_every_category(
    form: str, name: str, make_agent: MakeAgent
) -> None:
    explainer = Explainer(make_agent(name, form))
    inventory = explainer.agent.pretrained.corpus.inventory
    change = Change(state=("咳嗽", "发烧"), keywords=("胸片", "流感"))
    perception = perceive(explainer.model, explainer.agent.hear(CONVERSATION), change, inventory).perception
    row = len(CONVERSATION) - 1
    judging = Judging.of(explainer.model, perception, torch.arange(row + 1))
    assert judging is not None
    count, expected = judging.judged.chances.shape[0], torch.zeros(judging.keywords.shape)
    assert count == (len(CATEGORIES) if form == "small" else 1)
    for chances, actions in zip(judging.judged.chances, torch.arange(count * (row + 1)).split(row + 1), strict=True):
        scores = judging.policy.score_along(judging.evidence, judging.judged.actions.select(actions)).keywords
        if isinstance(scores, SetScores):
            found = scores.logits.sigmoid().gather(1, judging.keywords)
        else:
            found = scores.log_probs.gather(2, judging.keywords.unsqueeze(2)).squeeze(2).exp()
        expected += chances.unsqueeze(1) * found
    torch.testing.assert_close(judging.probability(), expected)
    torch.testing.assert_close(judging.sources().probability, expected)


@pytest.mark.parametrize("name", ["vrbot", "vrbot-bert"])
def test_the_policy_is_asked_for_reasons_with_the_context_it_has_read(name: str, make_agent: MakeAgent) -> None:
    agent = make_agent(name)
    model = Explainer(agent).model
    batch = agent.hear(CONVERSATION)
    heard = model.hear(batch.inputs, batch.layout)
    assert heard.by_policy is not None
    assert (heard.by_policy.context is heard.context) == (name == "vrbot")
    judging = Judging.of(model, model.perceive(batch.inputs, batch.layout), torch.arange(len(CONVERSATION)))
    assert judging is not None
    read = model.policy_evidence(heard, model.track(heard, batch.layout))
    torch.testing.assert_close(judging.evidence.context.summary, read.context.summary)
    assert read.standing is not None
    assert judging.evidence.standing is not None
    assert torch.equal(judging.evidence.standing, read.standing)


@pytest.mark.parametrize("name", VARIANTS)
def test_a_variant_shows_evidence_for_the_parts_it_has(name: str, make_agent: MakeAgent) -> None:
    reply = Explainer(make_agent(name)).respond(CONVERSATION)
    evidence = evidence_of(reply)
    assert (evidence.keywords is None) == (name == "vrbot-no-action")
    assert (evidence.state is None) == (name == "vrbot-no-state")
    for keyword in evidence.keywords or ():
        assert keyword.from_graph == 0.0 or name != "vrbot-no-graph"
        assert keyword.from_graph == 1.0 or name != "vrbot-no-context"


def test_a_model_without_states_and_actions_is_refused(make_agent: MakeAgent) -> None:
    with pytest.raises(UsageError, match="seq2seq has no states and actions"):
        Explainer(make_agent("seq2seq"))


def _words_and_perception(agent: Agent) -> tuple[list[int], Perception, int]:
    explainer, change = Explainer(agent), Change(keywords=("流感", "胸片"))
    perceived = perceive(explainer.model, agent.hear(CONVERSATION), change, agent.pretrained.corpus.inventory)
    row = len(CONVERSATION) - 1
    found = find_words(explainer.model, perceived.perception, row, Search(), agent.config.decoding)
    return agent.pretrained.corpus.vocabulary.written(found), perceived.perception, row


@pytest.mark.parametrize("form", ["small", "paper"])
def test_a_word_is_generated_as_often_as_when_every_slot_held_another_word(form: str, make_agent: MakeAgent) -> None:
    agent = make_agent("vrbot", form)
    model = Explainer(agent).model
    words, perception, row = _words_and_perception(agent)
    named = agent.pretrained.corpus.vocabulary.id_of("流感")  # from then on one keyword less is read
    words = [named, *words, *perception.conditions.context_words[row].tolist()]
    _, state = model.begin_reply(perception, torch.tensor([row]))
    elsewhere = replace(state.memory, copy_words=torch.full_like(state.memory.copy_words, PAD))
    shares = shares_along(model, perception, row, words)
    assert any(share.generated < 0.99 for share in shares)
    last = model.generator.bos
    for word, share in zip(words, shares, strict=True):
        relabelled, _ = model.generator.step(torch.tensor([last]), replace(state, memory=elsewhere))
        log_probs, state = model.generator.step(torch.tensor([last]), state)
        torch.testing.assert_close(
            share.generated * math.exp(share.log_prob), float(relabelled[0, word].exp()), atol=1e-6, rtol=1e-4
        )
        assert share.log_prob == pytest.approx(float(log_probs[0, word]), abs=1e-5)
        last = word


@pytest.mark.parametrize("form", FORMS)
def test_the_words_probabilities_multiply_to_that_of_the_reply(form: str, make_agent: MakeAgent) -> None:
    agent = make_agent("vrbot", form)
    model = Explainer(agent).model
    words, perception, row = _words_and_perception(agent)
    complete = [*words, EOS]
    total = math.fsum(share.log_prob for share in shares_along(model, perception, row, complete))
    lengths = torch.zeros(row + 1, dtype=torch.long)
    lengths[row] = len(complete)
    response = torch.tensor(complete).expand(row + 1, -1)
    expected = model.reply_log_prob(perception, response, lengths)[row]
    torch.testing.assert_close(total, float(expected), atol=1e-3, rtol=1e-4)


def test_base_and_scores_of_a_set_keyword_add_up_to_its_logit(make_agent: MakeAgent) -> None:
    explainer = Explainer(make_agent())
    names = tuple(explainer.agent.pretrained.corpus.inventory.names)[:3]
    change = Change(category="diagnosis", keywords=names)
    keywords = evidence_of(explainer.what_if(CONVERSATION, change)).keywords or ()
    assert len(keywords) == 3
    for keyword in keywords:
        assert keyword.base is not None
        logit = keyword.base + (keyword.conversation_score or 0.0) + (keyword.graph_score or 0.0)
        assert math.isclose(1 / (1 + math.exp(-logit)), keyword.probability, abs_tol=1e-6)
        assert keyword.copy_weight == keyword.probability * keyword.from_graph


def test_the_habit_score_is_what_forgetting_takes_from_the_conversation_score(make_agent: MakeAgent) -> None:
    explainer = Explainer(make_agent())
    model, names = explainer.model, tuple(explainer.agent.pretrained.corpus.inventory.names)[:3]
    assert model.habits is not None
    said = "".join(text for turn in CONVERSATION for text in turn)

    def keywords() -> tuple[KeywordEvidence, ...]:
        return evidence_of(explainer.what_if(CONVERSATION, Change(category="diagnosis", keywords=names))).keywords or ()

    before = keywords()
    model.habits.forget()
    for with_habits, without in zip(before, keywords(), strict=True):
        assert with_habits.habit_score
        assert without.habit_score == 0.0
        assert with_habits.conversation_score is not None
        assert without.conversation_score is not None
        lost = with_habits.conversation_score - without.conversation_score
        assert math.isclose(with_habits.habit_score, lost, abs_tol=1e-5)
        assert with_habits.habit_words
        assert all(word.text in said and word.score > 0 for word in with_habits.habit_words)
        assert not without.habit_words


def test_mentions_and_copies_stand_where_they_are_said_to(make_agent: MakeAgent) -> None:
    explainer = Explainer(make_agent())
    places = 0
    for conversation in all_turns():
        evidence = evidence_of(explainer.respond(conversation))
        shown = [(copy.text, copy.place) for word in evidence.words for copy in word.copies]
        shown += [(entity.name, mention.place) for entity in evidence.state or () for mention in entity.mentions]
        for text, place in shown:
            if place is not None:
                said = conversation[place.turn][0 if place.speaker == "patient" else 1]
                assert said[place.start : place.end] == text
                places += 1
    assert places > 10


def test_a_context_that_was_cut_keeps_its_places(make_agent: MakeAgent) -> None:
    explainer = Explainer(make_agent(network__max_context=4))
    evidence = evidence_of(explainer.respond([("头痛，头痛，头痛，乏力，咳嗽", "")]))
    shown = [(mention.text, mention.place) for entity in evidence.state or () for mention in entity.mentions]
    assert shown
    for text, place in shown:
        assert "头痛，头痛，头痛，乏力，咳嗽"[place.start : place.end] == text


@pytest.mark.parametrize(
    "text", ["", "咳嗽，咳嗽，咳嗽", " 咳嗽 \t\u3000 发烧 ", "咳嗽\ud800发烧", "a  b\n咳嗽", "👩🏽‍⚕️咳嗽"]
)
def test_word_spans_are_those_of_the_encoders_words(text: str, make_agent: MakeAgent) -> None:
    encoder = make_agent().pretrained.corpus.encoder
    spans = word_spans(text, encoder)
    assert len(spans) == len(encoder.encode([text]).tokens)
    assert all(0 <= start <= end <= len(text) for start, end in spans)
    assert spans == sorted(set(spans))
    cut = [text[start:end] for start, end in spans]
    assert ("咳嗽" in cut) == ("咳嗽" in text)


def test_a_reply_with_evidence_is_plain_json(make_agent: MakeAgent) -> None:
    content = Explainer(make_agent()).respond(CONVERSATION).to_dict()
    assert json.loads(json.dumps(content, allow_nan=False)) == content
    assert {"words", "state", "keywords"} <= set(content["evidence"])
    assert all(word["source"] for word in content["evidence"]["words"])


def test_keywords_are_explained_by_the_rule_of_mep(make_agent: MakeAgent) -> None:
    explainer = Explainer(make_agent())
    change = Change(state=("咳嗽",), keywords=("咳嗽", "气管炎", "腹泻"))
    reply = explainer.what_if([("咳嗽", "")], change)
    reasons = {keyword.name: keyword.explained_by for keyword in evidence_of(reply).keywords or ()}
    assert reasons == {"咳嗽": ("state", "context"), "气管炎": ("path",), "腹泻": ()}
