"""A trained model at the desk: its drafts replay to the last bit, and its fingerprint is its own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from tests.agent.conftest import MakeAgent, make_agent, run, tiny_corpus
from tests.serving.fakes import ANN, PlainRules
from vrbot.dialogue.batching import limits_of
from vrbot.dialogue.corpus import Corpus
from vrbot.dialogue.supervision import LabelMasks
from vrbot.explain.autolabel import AutoLabeller
from vrbot.serving.replay import replay
from vrbot.serving.responder import AgentResponder, DescribesItself, ExplainedResponder, ProposesLabels, responder_of
from vrbot.serving.service import Desk
from vrbot.serving.store import Store

__all__ = ["make_agent", "run", "tiny_corpus"]


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


def test_a_model_at_the_desk_has_the_card_that_is_saved_with_it(make_agent: MakeAgent, tmp_path: Path) -> None:
    agent = make_agent(seed=0)
    agent.save_pretrained(tmp_path / "saved")
    at_the_desk = responder_of(tmp_path / "saved")
    assert isinstance(at_the_desk, DescribesItself)
    assert at_the_desk.card == (tmp_path / "saved" / "README.md").read_text("utf-8") == agent.card


def test_a_loaded_model_computes_in_one_thread_so_that_sums_have_one_order(run: Path) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        responder_of(run)
        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)


def test_the_desk_proposes_the_labels_of_the_auto_labeller(make_agent: MakeAgent, corpus: Corpus) -> None:
    pretrained = make_agent(seed=2).pretrained
    labeller = AutoLabeller(pretrained.model, limits_of(pretrained.config.network))  # type: ignore[arg-type]
    split, responder = corpus.split("test"), ExplainedResponder(pretrained)
    nothing = np.zeros(split.num_turns, dtype=np.bool_)
    session = corpus.session("test", 0)
    (rows,) = labeller.label(split, [0], LabelMasks(nothing, nothing, nothing))
    found = responder.propose_labels([(turn.patient, turn.physician) for turn in session.turns])
    assert len(found) == len(session.turns) == len(rows.turns)
    for mine, expected in zip(found, labeller.proposals(rows.inferred, corpus.inventory.names), strict=True):
        assert set(mine) == set(expected)
        for kind, each in expected.items():
            value = each.value if isinstance(each.value, str) else list(each.value)
            assert (mine[kind].value, mine[kind].confidence) == (value, each.confidence)
            assert (mine[kind].source, mine[kind].model) == ("auto-labeller", responder.fingerprint)


def test_what_is_proposed_goes_on_from_the_states_people_gave(make_agent: MakeAgent, corpus: Corpus) -> None:
    responder = ExplainedResponder(make_agent(seed=2).pretrained)
    said = [("我头痛", "多久了"), ("三天", "有没有发烧"), ("没有", "")]
    freely, given = responder.propose_labels(said), responder.propose_labels(said, [["乏力", "没有的"], None, None])
    assert "state" not in given[0]
    assert {"category", "keywords"} <= set(given[0])
    assert "乏力" not in freely[1]["state"].value
    assert "乏力" in given[1]["state"].value  # an untrained tracker keeps what it can copy


def test_an_action_is_proposed_only_where_somebody_answered(make_agent: MakeAgent) -> None:
    responder = ExplainedResponder(make_agent(seed=2).pretrained)
    answered, unanswered = responder.propose_labels([("头痛", "多久了"), ("三天", "")])
    assert set(answered) == {"state", "category", "keywords"}
    assert set(unanswered) == {"state"}


def test_a_model_without_inference_networks_proposes_nothing(make_agent: MakeAgent) -> None:
    assert isinstance(ExplainedResponder(make_agent().pretrained), ProposesLabels)
    assert not isinstance(AgentResponder(make_agent("seq2seq").pretrained), ProposesLabels)
