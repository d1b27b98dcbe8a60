"""A trained model at the desk: its drafts replay to the last bit, and its fingerprint is its own."""

from __future__ import annotations

from tests.agent.conftest import MakeAgent, make_agent, tiny_corpus
from tests.serving.fakes import ANN, PlainRules
from vrbot.serving.replay import replay
from vrbot.serving.responder import AgentResponder
from vrbot.serving.service import Desk
from vrbot.serving.store import Store

__all__ = ["make_agent", "tiny_corpus"]


def responder(make: MakeAgent, seed: int) -> AgentResponder:
    return AgentResponder(make(seed=seed)._pretrained)


def test_the_drafts_of_a_model_replay_with_that_model_only(make_agent: MakeAgent) -> None:
    store = Store.open("sqlite://", create=True)
    desk = Desk(store, PlainRules(), responder(make_agent, 0))
    consultation = desk.consultations.open(ANN).id
    for number, text in enumerate(["头痛", "还有点发烧 \0😷", ""]):
        turn = desk.consultations.receive(ANN, consultation, str(number), text)
        draft = desk.drafting.draft(ANN, turn.id)
        assert draft.failure is None
        desk.signoff.approve(ANN, draft.id, draft.text_sha256 or "")
    assert desk.drafting.draft(ANN, turn.id, {"state": []}).failure == (
        "RefusedError: this model cannot be asked what-if"
    )
    report = replay(store, responder(make_agent, 0))
    assert (report.same, report.different, report.other_model) == (3, (), 0)
    assert replay(store, responder(make_agent, 1)).other_model == 3
    store.close()
