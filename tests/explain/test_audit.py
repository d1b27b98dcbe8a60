"""Laws of the audit: true explanations pass it, and every kind of untrue one is found."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import astuple, replace
from typing import Any

import numpy as np
import pytest

from tests.agent.conftest import MakeAgent
from tests.explain.conftest import CONVERSATION
from tests.explain.test_evidence import evidence_of
from tests.model.tiny import entity_id
from vrbot.agent.reply import Reply
from vrbot.dialogue.corpus import Corpus
from vrbot.explain.audit import Audit, audit
from vrbot.explain.evidence import Copy, Evidence, Path, Place
from vrbot.explain.explainer import Explainer
from vrbot.explain.faithfulness import Trial, edges_of, try_paths, try_word
from vrbot.explain.keywords import Reasoning
from vrbot.explain.steering import Change, perceive
from vrbot.explain.words import shares_along


@pytest.mark.parametrize("form", ["small", "paper"])
def test_the_explanations_of_a_model_pass(form: str, make_agent: MakeAgent, corpus: Corpus) -> None:
    counted: list[int] = []
    report = audit(Explainer(make_agent("vrbot", form, seed=2)), corpus, "test", done=counted.append)
    assert report.num_turns == sum(counted) == corpus.split("test").num_turns
    assert report.passed, report.failures
    assert set(report.checks) >= {"word shares add up", "keyword shares add up", "state shares add up"}
    assert report.checks["keyword probability as used"].tried == report.num_keywords > 0
    assert report.checks["copied word in its source"].tried > 0


def test_an_audit_stops_after_so_many_turns_and_repeats_itself(make_agent: MakeAgent, corpus: Corpus) -> None:
    explainer = Explainer(make_agent(seed=2))
    first, second = (audit(explainer, corpus, "test", 4, seed=5) for _ in range(2))
    assert first == second
    assert first.num_turns == 4


def _words(evidence: Evidence, **changes: Any) -> Evidence:
    return replace(evidence, words=(replace(evidence.words[0], **changes), *evidence.words[1:]))


def _keyword(evidence: Evidence, **changes: Any) -> Evidence:
    first, *others = evidence.keywords or ()
    return replace(evidence, keywords=(replace(first, **changes), *others))


def _heavier(evidence: Evidence) -> Evidence:
    first, *_ = evidence.keywords or ()
    return _keyword(evidence, paths=(replace(first.paths[0], weight=0.987),))


INVENTED = Path(("咳嗽", "腹泻"), ("to_treat",), ((0.5, 0.5),), 0.5, 0.1)
MISPLACED = Copy("context", "x", 1.0, Place("patient", 0, 0, 0, 1))
UNTRUE: Mapping[str, Callable[[Evidence], Evidence]] = {
    "word shares add up": lambda evidence: _words(evidence, generated=0.9, copies=()),
    "copied word in its source": lambda evidence: _words(evidence, text="x", generated=0.0, copies=(MISPLACED,)),
    "keyword shares add up": lambda evidence: _keyword(evidence, from_graph=2.0),
    "keyword probability as used": lambda evidence: _keyword(evidence, probability=2.0),
    "state shares add up": lambda evidence: replace(
        evidence, state=tuple(replace(entity, generated=0.7) for entity in evidence.state or ())
    ),
    "path exists": lambda evidence: _keyword(evidence, paths=(INVENTED,)),
    "path weight as used": _heavier,
}


@pytest.mark.parametrize("name", UNTRUE)
def test_an_untrue_explanation_is_found(
    name: str, make_agent: MakeAgent, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    explainer = Explainer(make_agent("vrbot", "span", seed=2))
    explain = explainer.what_if
    touched: list[str] = []

    def untrue(*arguments: Any, **named: Any) -> Reply:
        reply = explain(*arguments, **named)
        evidence = evidence_of(reply)
        needs = {"path weight as used": bool(evidence.keywords and evidence.keywords[0].paths)}
        if not touched and evidence.keywords and evidence.words and evidence.state and needs.get(name, True):
            touched.append(name)
            return replace(reply, evidence=UNTRUE[name](evidence))
        return reply

    monkeypatch.setattr(explainer, "what_if", untrue)
    report = audit(explainer, corpus, "test", 5)
    assert touched
    assert not report.passed
    assert any(failure.endswith(f": {name}") for failure in report.failures)


def test_an_audit_fails_where_deletion_seldom_lowers() -> None:
    report = Audit()
    for lowers in [True] * 8 + [False] * 2:
        report.test("deleting the shown path lowers the keyword", lowers)
    assert not report.passed
    for _ in range(10):
        report.test("deleting the shown path lowers the keyword", True)
    assert report.passed


def test_a_path_is_tried_by_taking_it_away_and_by_leaving_it_alone(make_agent: MakeAgent) -> None:
    explainer = Explainer(make_agent("vrbot-no-context", "span"))
    corpus = explainer.agent.pretrained.corpus
    change = Change(state=("咳嗽",), keywords=("胸片",))
    perceived = perceive(explainer.model, explainer.agent.hear(CONVERSATION), change, corpus.inventory)
    reasoning = Reasoning.of(explainer.model, perceived.perception, len(CONVERSATION) - 1)
    assert reasoning is not None
    assert reasoning.subgraph is not None
    (edges,) = reasoning.paths(entity_id(corpus, "胸片"))
    path = Path(("咳嗽", "气管炎", "胸片"), ("symptom_of", "check_item"), ((0.0,), (0.0,)), 0.0, 0.0)
    assert edges_of(reasoning.subgraph, path, corpus.graph.relations, corpus.inventory) == edges
    (tested,) = try_paths(reasoning, [(0, edges)], np.random.default_rng(0))
    assert tested.without == tested.nothing == 0.0  # only the graph can name it, and only this path leads there
    assert tested.deletion_lowers
    assert tested.insertion_raises
    assert edges_of(reasoning.subgraph, INVENTED, corpus.graph.relations, corpus.inventory) is None


def test_paths_tried_together_are_tried_as_each_alone(make_agent: MakeAgent) -> None:
    explainer = Explainer(make_agent("vrbot", "small"))
    change = Change(state=("咳嗽", "发烧"), keywords=("胸片", "流感"))
    inventory = explainer.agent.pretrained.corpus.inventory
    perceived = perceive(explainer.model, explainer.agent.hear(CONVERSATION), change, inventory)
    reasoning = Reasoning.of(explainer.model, perceived.perception, len(CONVERSATION) - 1)
    assert reasoning is not None
    paths = [
        (position, path)
        for position, entity in enumerate(reasoning.keywords[0, :2].tolist())
        for path in reasoning.paths(entity)
    ]
    assert len(paths) > 1
    random = np.random.default_rng(3)
    together, random = try_paths(reasoning, paths, random), np.random.default_rng(3)
    alone = [trial for path in paths for trial in try_paths(reasoning, [path], random)]
    for one, other in zip(together, alone, strict=True):
        assert astuple(one) == pytest.approx(astuple(other), abs=1e-6)
    assert try_paths(reasoning, [], random) == []


def test_a_word_is_as_probable_as_the_evidence_says_and_as_after_the_long_way(make_agent: MakeAgent) -> None:
    explainer = Explainer(make_agent("vrbot", "span", seed=2))  # given keywords of a span keep their order
    reply = explainer.respond(CONVERSATION)
    shown, corpus = evidence_of(reply).words, explainer.agent.pretrained.corpus
    words = [corpus.vocabulary.id_of(word.text) for word in shown]
    index, source = len(words) - 1, Place("patient", 2, 2, 4, 6)
    tested = try_word(explainer, CONVERSATION, words, index, source, None)
    assert tested.full == pytest.approx(shown[index].probability, abs=1e-6)
    assert tested.without_another is None
    kept = Change(
        tuple(entity.name for entity in reply.state or ()),
        reply.category,
        tuple(keyword.name for keyword in reply.keywords or ()),
    )
    blanked = [*CONVERSATION[:2], (CONVERSATION[2][0][:4] + " ", "")]
    perceived = perceive(explainer.model, explainer.agent.hear(blanked), kept, corpus.inventory)
    log_prob = shares_along(explainer.model, perceived.perception, 2, words)[index].log_prob
    assert tested.without == pytest.approx(np.exp(log_prob), abs=1e-6)


def test_a_word_is_tried_on_the_text_itself(make_agent: MakeAgent) -> None:
    explainer = Explainer(make_agent())
    vocabulary = explainer.agent.pretrained.corpus.vocabulary
    words = [vocabulary.id_of("咳嗽")]
    source, another = Place("patient", 2, 2, 4, 6), Place("patient", 2, 0, 0, 3)
    assert CONVERSATION[2][0][4:6] == "咳嗽"
    tested = try_word(explainer, CONVERSATION, words, 0, source, another)
    assert len({tested.full, tested.without, tested.without_another, tested.alone, tested.nothing}) == 5
    assert Trial(0.5, 0.4, 0.45, 0.2, 0.1).lowers_more_than_another
    assert Trial(0.5, 0.4, None, 0.2, 0.1).lowers_more_than_another is None
