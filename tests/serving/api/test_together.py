"""Batched replies of a real model are, to the last bit, those it gives alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
import torch

from tests.agent.conftest import MakeAgent, make_agent, tiny_corpus
from vrbot.agent.respond import Agent
from vrbot.decoding.step import Decoded
from vrbot.serving import together
from vrbot.serving.responder import AgentResponder, ExplainedResponder
from vrbot.serving.safety_desk import Conversation
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
    explained = make("vrbot", seed=3, decoding__beam=3).pretrained
    plain = make("seq2seq", seed=3, decoding__beam=3).pretrained
    return [("explained", lambda: ExplainedResponder(explained)), ("plain", lambda: AgentResponder(plain))]


@pytest.mark.parametrize("kind", [0, 1], ids=["explained", "plain"])
def test_a_batch_of_any_size_answers_as_each_alone(
    kind: int, make_agent: MakeAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    responder = responders(make_agent)[kind][1]()
    alone = [canonical_json(dict(responder.respond(conversation))) for conversation in CONVERSATIONS]
    batched, find = list[together.Found | None](), together.find_together

    def noted(agent: Agent, conversations: Sequence[Conversation]) -> list[together.Found | None]:
        batched.extend(found := find(agent, conversations))
        return found

    monkeypatch.setattr(together, "find_together", noted)
    # words always from the batch; only where it is safe; and as it is
    for lead, fewest, size in ((-1.0, 1, 5), (together.SAFE_LEAD, 1, 2), (together.SAFE_LEAD, together.FEWEST, 5)):
        monkeypatch.setattr(together, "SAFE_LEAD", lead)
        monkeypatch.setattr(together, "FEWEST", fewest)
        found: list[Mapping[str, Any]] = []
        for start in range(0, len(CONVERSATIONS), size):
            found += responder.respond_many(CONVERSATIONS[start : start + size])
        assert [canonical_json(dict(reply)) for reply in found] == alone
    assert len(batched) == 2 * len(CONVERSATIONS)
    assert None not in batched[: len(CONVERSATIONS)]


def test_words_from_a_batch_that_perceived_something_else_are_not_taken(
    make_agent: MakeAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    responder = ExplainedResponder(make_agent("vrbot", seed=3).pretrained)
    alone = [canonical_json(dict(responder.respond(conversation))) for conversation in CONVERSATIONS[:2]]
    monkeypatch.setattr(together, "FEWEST", 1)
    wrong = together.Found((5, 6), ("no such state",), "diagnosis", ())
    monkeypatch.setattr(together, "find_together", lambda agent, conversations: [wrong] * len(conversations))
    found = list(responder.respond_many(CONVERSATIONS[:2]))
    assert [canonical_json(dict(reply)) for reply in found] == alone


def test_a_lead_is_safe_in_nats_whatever_a_long_reply_counts(
    make_agent: MakeAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = make_agent("vrbot", seed=3, decoding__beam=2, decoding__length_penalty=2.0)
    scores = torch.tensor([[-1.0, -1.0 - 0.002 / 16], [-1.0, -1.0 - 0.0005 / 16]])  # 2 and 0.5 thousandths at 4 words
    decoded = Decoded(torch.full((2, 2, 4), 7), torch.tensor([[4, 9], [9, 4]]), scores, torch.ones(2, 2).bool())
    monkeypatch.setattr(together, "search", lambda *args, **settings: decoded)
    first, second = together.find_together(agent, CONVERSATIONS[:2])
    assert first is not None
    assert first.words == (7, 7, 7, 7)
    assert second is None


def test_evidence_and_guard_are_part_of_the_fingerprint(make_agent: MakeAgent) -> None:
    pretrained = make_agent("vrbot", seed=3).pretrained
    plain, explained = AgentResponder(pretrained), ExplainedResponder(pretrained)
    assert plain.fingerprint != explained.fingerprint == ExplainedResponder(pretrained).fingerprint
    assert "evidence" in explained.respond(CONVERSATIONS[0])
    assert explained.entity_names == tuple(pretrained.corpus.inventory.names)
    assert not torch.is_grad_enabled() or list(plain.respond_many(CONVERSATIONS[:1]))
