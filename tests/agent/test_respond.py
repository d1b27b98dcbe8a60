"""Laws of replies: the same conversation gives the same reply, and no text whatever stops an agent."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.agent.conftest import MakeAgent
from tests.contract.replying import reply_to_batch
from tests.model.tiny import FORMS, MODELS, sessions
from vrbot.agent.respond import Agent
from vrbot.agent.searching import Search, find_words
from vrbot.config import DecodingSettings
from vrbot.dialogue.batching import collate, limits_of
from vrbot.dialogue.corpus import Corpus
from vrbot.dialogue.session import CATEGORIES
from vrbot.errors import ConfigError, UsageError

CONVERSATION = [("我咳嗽三天了", "有没有发烧，头痛？"), ("发烧，没有头痛", "")]
VRBOTS = {"vrbot", "vrbot-un", "vrbot-no-graph", "vrbot-no-context", "vrbot-joint", "vrbot-bert"}
HAS_STATE = VRBOTS | {"vrbot-no-action", "sedst", "labes", "moss", "damd"}
HAS_CATEGORY = VRBOTS | {"vrbot-no-state", "moss", "damd", "dual-flow"}
HAS_KEYWORDS = HAS_CATEGORY | {"postks", "hred-bert"}
ODD_TEXTS = {
    "empty": "",
    "blank": " \t\n\u3000 ",
    "line ends": "咳嗽\r\n发烧\n\n头痛\u2028乏力\x85",
    "nul": "咳\x00嗽\x00",
    "emoji": "👩🏽‍⚕️🤒🤧🇨🇳",
    "right to left": "\u202eمرحبا, אני חולה\u202c",
    "lone surrogate": "咳嗽\ud800\udfff",
    "unknown words": "zyzzyva qwrtpsd 龘靐齉",
    "specials": "<pad> <unk> <bos> <eos> <sep>",
    "combining": "e\u0301" * 300 + "\u0301",
    "case that grows": "İΣßŉ" * 50,
    "control": "\x1b[31m\x07\x7f",
    "one long word": "咳" * 5000,
    "markup": "[bold red]咳嗽[/] <script>alert(1)</script> {0} %s",
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", MODELS)
def test_every_system_replies_and_shows_the_parts_it_has(name: str, form: str, make_agent: MakeAgent) -> None:
    reply = make_agent(name, form).respond(CONVERSATION)
    assert isinstance(reply.text, str)
    assert (reply.state is not None) == (reply.dropped is not None) == (name in HAS_STATE)
    assert (reply.categories is not None) == (name in HAS_CATEGORY)
    assert (reply.keywords is not None) == (name in HAS_KEYWORDS)
    if reply.categories is not None:
        assert tuple(reply.categories) == CATEGORIES
        assert math.isclose(sum(reply.categories.values()), 1.0, abs_tol=1e-5)
        assert reply.category == max(CATEGORIES, key=lambda category: (reply.categories or {})[category])
    json.dumps(reply.to_dict(), allow_nan=False)


@pytest.mark.parametrize("method", ["beam", "greedy", "sampling"])
def test_the_same_conversation_gives_the_same_reply(method: Any, make_agent: MakeAgent) -> None:
    agent, how = make_agent(), Search(method, seed=5)
    first = agent.respond(CONVERSATION, how)
    torch.manual_seed(99)
    agent.respond([("你好", "")], how)
    assert agent.respond(CONVERSATION, how) == first


def test_the_ways_to_search_are_different_ones(make_agent: MakeAgent) -> None:
    agent = make_agent()
    samples = {agent.respond(CONVERSATION, Search("sampling", seed=seed)).text for seed in range(5)}
    assert len(samples) > 1
    short = Search("greedy", settings=DecodingSettings(max_length=2))
    assert len(agent.respond(CONVERSATION, short).text) < len(agent.respond(CONVERSATION, Search("greedy")).text)
    cold = Search("sampling", temperature=1e-4, seed=8)
    assert agent.respond(CONVERSATION, cold).text == agent.respond(CONVERSATION, Search("greedy")).text


@pytest.mark.parametrize("method", ["beam", "greedy", "sampling"])
def test_no_words_in_a_row_come_twice_unless_they_may(method: Any, make_agent: MakeAgent) -> None:
    agent = make_agent()
    model: Any = agent.pretrained.model
    batch = agent.hear(CONVERSATION)
    for size in (0, 1, 2):
        how = Search(method, DecodingSettings(word_reward=9.0, no_repeat=size, max_length=30))
        with torch.no_grad():
            words = find_words(model, model.perceive(batch.inputs, batch.layout), 1, how, agent.config.decoding)
        runs = [words[start : start + max(size, 2)] for start in range(len(words) - max(size, 2) + 1)]
        once = len(set(runs)) == len(runs)
        assert once if size else not once or method == "sampling"


def test_sampling_among_one_word_is_greedy(make_agent: MakeAgent) -> None:
    agent = make_agent()
    greedy = agent.respond(CONVERSATION, Search("greedy")).text
    for how in (Search("sampling", top_k=1, seed=3), Search("sampling", top_p=1e-9, seed=3)):
        assert agent.respond(CONVERSATION, how).text == greedy


def test_a_search_there_is_not_is_refused() -> None:
    with pytest.raises(ConfigError, match="'best' is not a search"):
        Search("best")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="top_p must be above 0"):
        Search("sampling", top_p=0.0)
    with pytest.raises(ConfigError, match="of the search 'sampling', not of 'beam'"):
        Search(top_k=5)


@pytest.mark.parametrize("name", MODELS)
def test_a_reply_does_not_depend_on_the_batch(name: str, make_agent: MakeAgent, corpus: Corpus) -> None:
    agent = make_agent(name)
    batch = collate(corpus.split("train"), range(len(sessions())), limits=limits_of(agent.config.network))
    model: Any = agent._pretrained.model
    together = {(each.session_id, each.turn): each for each in reply_to_batch(model, batch, agent.config.decoding)}
    names = corpus.inventory.names
    for session in sessions():
        said = [(turn.patient, turn.physician) for turn in session.turns]
        for turn in range(len(said)):
            alone, other = agent.respond(said[: turn + 1]), together[session.id, turn]
            assert alone.text == corpus.encoder.decode(other.words)
            if alone.state is not None and other.state is not None:
                assert [entity.name for entity in alone.state] == [names[entity] for entity in other.state]
            if alone.keywords is not None and other.keywords is not None:
                assert [keyword.name for keyword in alone.keywords] == [names[entity] for entity in other.keywords]


def test_what_stands_in_the_place_of_the_last_answer_is_not_read(make_agent: MakeAgent) -> None:
    agent = make_agent()
    answered = [*CONVERSATION[:-1], (CONVERSATION[-1][0], "考虑流感，查胸片。")]
    assert agent.respond(answered) == agent.respond(CONVERSATION)


def test_entities_of_the_state_are_new_once_and_then_kept(make_agent: MakeAgent) -> None:
    agent = make_agent()
    replies = [agent.respond(CONVERSATION[:turns]) for turns in (1, 2)]
    before = {entity.name for entity in replies[0].state or ()}
    now = {entity.name: entity.status for entity in replies[1].state or ()}
    assert before
    assert set(now) & before
    assert set(now) - before
    assert all(status == ("kept" if name in before else "new") for name, status in now.items())
    assert {entity.status for entity in replies[0].state or ()} == {"new"}
    assert set(replies[1].dropped or ()) == before - set(now)


@pytest.mark.parametrize("form", ["span", "set"])
@pytest.mark.parametrize(
    ("name", "graph"), [("vrbot", None), ("vrbot-no-state", None), ("vrbot-no-graph", 0.0), ("vrbot-no-context", 1.0)]
)
def test_the_shares_of_a_keyword_add_up_to_one(
    name: str, graph: float | None, form: str, make_agent: MakeAgent
) -> None:
    seen = 0
    for seed in range(3):
        agent = make_agent(name, seed=seed, policy__form=form)
        agent._pretrained.model.none_offset.fill_(-20.0)  # type: ignore[operator]
        for keyword in agent.respond(CONVERSATION).keywords or ():
            assert keyword.from_conversation is not None
            assert keyword.from_graph is not None
            assert keyword.probability is not None
            assert 0 < keyword.probability <= 1
            assert math.isclose(keyword.from_conversation + keyword.from_graph, 1.0, abs_tol=1e-6)
            assert keyword.source == ("graph" if keyword.from_graph > 0.5 else "conversation")
            if graph is not None:
                assert keyword.from_graph == graph
            seen += 1
    assert seen


@pytest.mark.parametrize("kind", ODD_TEXTS)
@pytest.mark.parametrize("name", ["vrbot", "seq2seq", "vrbot-no-state"])
def test_no_odd_text_stops_an_agent(name: str, kind: str, make_agent: MakeAgent) -> None:
    agent, text = make_agent(name), ODD_TEXTS[kind]
    for conversation in ([(text, "")], [("咳嗽", text), (text, text)], [(text, "你好"), ("", "")]):
        json.dumps(agent.respond(conversation).to_dict(), allow_nan=False).encode()


def test_a_megabyte_of_text_is_answered(make_agent: MakeAgent) -> None:
    text = "我咳嗽三天了，发烧。abc 123 👩🏽‍⚕️ " * 20_000
    assert len(text.encode()) > 1_000_000
    make_agent().respond([(text, text), (text, "")])


def test_two_hundred_turns_are_answered(make_agent: MakeAgent) -> None:
    make_agent().respond([("咳嗽", "发烧吗？")] * 200)


@pytest.fixture(scope="module")
def spoken_to(make_agent: MakeAgent) -> Agent:
    return make_agent()


@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(conversation=st.lists(st.tuples(st.text(), st.text()), min_size=1, max_size=4))
def test_any_conversation_is_answered(spoken_to: Agent, conversation: list[tuple[str, str]]) -> None:
    spoken_to.respond(conversation, Search("greedy"))


@pytest.mark.parametrize("wrong", [[], ["咳嗽"], [("咳嗽",)], [("咳嗽", None)], [("a", "b", "c")]])
def test_what_is_no_conversation_is_refused(wrong: Any, make_agent: MakeAgent) -> None:
    with pytest.raises(UsageError, match="conversation"):
        make_agent().respond(wrong)
