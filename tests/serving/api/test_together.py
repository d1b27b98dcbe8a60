"""Batched replies of a real model are, to the last bit, those it gives alone."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from tests.agent.conftest import MakeAgent, make_agent, tiny_corpus
from vrbot.serving import together
from vrbot.serving.responder import AgentResponder, ExplainedResponder
from vrbot.serving.texts import canonical_json

__all__ = ["make_agent", "tiny_corpus"]

CONVERSATIONS = [
    [("头痛", "")],
    [("头痛", "多久了"), ("三天了，还有点发烧 \0😷", "")],
    [("", "")],
    [("咳嗽", "有发烧吗"), ("没有", "好"), ("需要吃什么药吗", "不看这一句")],
    [("头痛 咳嗽 发烧 " * 8, "")],
]


def responders(make: MakeAgent) -> list[tuple[str, Callable[[], AgentResponder]]]:
    explained = make("vrbot", seed=3).pretrained
    plain = make("seq2seq", seed=3).pretrained
    return [("explained", lambda: ExplainedResponder(explained)), ("plain", lambda: AgentResponder(plain))]


@pytest.mark.parametrize("kind", [0, 1], ids=["explained", "plain"])
def test_a_batch_of_any_size_answers_as_each_alone(
    kind: int, make_agent: MakeAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    responder = responders(make_agent)[kind][1]()
    alone = [canonical_json(dict(responder.respond(conversation))) for conversation in CONVERSATIONS]
    for lead, size in ((-1.0, 5), (together.SAFE_LEAD, 2)):  # words always from the batch, and as it is
        monkeypatch.setattr(together, "SAFE_LEAD", lead)
        found = []
        for start in range(0, len(CONVERSATIONS), size):
            found += responder.respond_many(CONVERSATIONS[start : start + size])
        assert [canonical_json(dict(reply)) for reply in found] == alone


def test_words_from_a_batch_that_perceived_something_else_are_not_taken(
    make_agent: MakeAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    responder = ExplainedResponder(make_agent("vrbot", seed=3).pretrained)
    alone = [canonical_json(dict(responder.respond(conversation))) for conversation in CONVERSATIONS[:2]]
    wrong = together.Found((5, 6), ("no such state",), "diagnosis", ())
    monkeypatch.setattr(together, "find_together", lambda agent, conversations: [wrong] * len(conversations))
    found = responder.respond_many(CONVERSATIONS[:2])
    assert [canonical_json(dict(reply)) for reply in found] == alone


def test_evidence_and_guard_are_part_of_the_fingerprint(make_agent: MakeAgent) -> None:
    pretrained = make_agent("vrbot", seed=3).pretrained
    plain, explained = AgentResponder(pretrained), ExplainedResponder(pretrained)
    assert plain.fingerprint != explained.fingerprint == ExplainedResponder(pretrained).fingerprint
    assert "evidence" in explained.respond(CONVERSATIONS[0])
    assert explained.entity_names == tuple(pretrained.corpus.inventory.names)
    assert not torch.is_grad_enabled() or plain.respond_many(CONVERSATIONS[:1])
