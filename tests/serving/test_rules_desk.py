"""The shipped safety rules at the desk."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.agent.conftest import run, tiny_corpus
from tests.serving.fakes import ANN, RAY, Parrot
from vrbot.safety.switch import KillSwitch
from vrbot.serving.api.settings import AppSettings
from vrbot.serving.problems import ReasonNeededError
from vrbot.serving.rules_desk import RulesDesk
from vrbot.serving.running import Plan, open_desk
from vrbot.serving.service import Desk
from vrbot.serving.store import Store

__all__ = ["run", "tiny_corpus"]


@pytest.fixture
def switch(tmp_path: Path) -> KillSwitch:
    return KillSwitch(tmp_path / "switch.json")


@pytest.fixture
def desk(switch: KillSwitch) -> Iterator[Desk]:
    store = Store.open("sqlite://", create=True)
    yield Desk(store, RulesDesk(switch), Parrot())
    store.close()


def test_rules_that_were_prepared_keep_nobody_waiting(switch: KillSwitch, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = RulesDesk(switch)
    rules.prepare()

    def too_late(*args: object) -> None:
        raise AssertionError("compiled while a patient waits")

    monkeypatch.setattr(re, "compile", too_late)
    for text in ("胸痛，出冷汗，对青霉素过敏", "I am allergic to aspirin. Crushing chest pain!"):
        rules.red_flags(text)
        rules.medication(f"aspirin 阿莫西林 {text}", [(text, "")])
        assert rules.unsupported("阿莫西林, amoxicillin", [(text, "")], {})
        rules.deidentify(text)


def test_a_desk_is_opened_with_its_rules_prepared(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared: list[RulesDesk] = []
    monkeypatch.setattr(RulesDesk, "prepare", lambda rules: prepared.append(rules))
    desk = open_desk(Plan(run, str(tmp_path / "desk.sqlite"), AppSettings()))
    assert prepared == [desk.safety]
    desk.store.close()


def test_the_switch_in_its_file_stops_drafts_until_it_is_off(desk: Desk, switch: KillSwitch) -> None:
    consultation = desk.consultations.open(ANN, "zh").id
    turn = desk.consultations.receive(ANN, consultation, "1", "头痛")
    switch.switch_on("剂量有误", "ann", datetime(2026, 1, 1, tzinfo=UTC))
    assert desk.drafting.draft(ANN, turn.id).failure == "drafts are switched off: 剂量有误"
    switch.switch_off("已修正", "ann", datetime(2026, 1, 2, tzinfo=UTC))
    assert desk.drafting.draft(ANN, turn.id).failure is None
    switch.path.write_text("damaged", encoding="utf-8")
    assert "switched off" in str(desk.drafting.draft(ANN, turn.id).failure)


def test_a_medicine_nobody_named_is_marked_in_a_draft_and_one_the_reply_is_about_is_not() -> None:
    rules = RulesDesk(KillSwitch("nowhere.json"))
    conversation = [("头痛三天", "")]
    found = rules.unsupported("建议服用布洛芬。", conversation, {"keywords": [{"name": "阿莫西林"}]})
    assert [finding["level"] for finding in found] == ["caution"]
    assert rules.unsupported("建议服用布洛芬。", conversation, {"keywords": [{"name": "布洛芬"}]}) == []


def test_an_emergency_raises_the_banner_and_a_cold_does_not(desk: Desk) -> None:
    consultation = desk.consultations.open(ANN, "zh").id
    emergency = desk.consultations.receive(ANN, consultation, "1", "我突然胸口剧痛，出冷汗，喘不过气")
    cold = desk.consultations.receive(ANN, consultation, "2", "我有点流鼻涕")
    assert emergency.urgent
    assert not cold.urgent
    assert emergency.flags.findings[0]["check"] == "red_flag"


def test_a_medicine_the_patient_is_allergic_to_needs_a_reason(desk: Desk) -> None:
    consultation = desk.consultations.open(ANN, "zh").id
    turn = desk.consultations.receive(ANN, consultation, "1", "我对青霉素过敏，嗓子疼")
    draft = desk.drafting.write(ANN, turn.id, "建议您口服阿莫西林。")
    assert draft.suggests_medicine
    with pytest.raises(ReasonNeededError) as caught:
        desk.signoff.approve(ANN, draft.id, draft.text_sha256 or "")
    assert caught.value.findings[0]["kind"] == "allergy"


def test_what_goes_to_training_has_no_telephone_number(desk: Desk) -> None:
    consultation = desk.consultations.open(ANN, "zh").id
    desk.consultations.receive(ANN, consultation, "1", "我的电话是13812345678，头痛三天")
    (session,) = desk.annotation.export(RAY)
    assert "13812345678" not in session.turns[0].patient
    assert "头痛" in session.turns[0].patient


def kinds_and_levels(text: str, conversation: list[tuple[str, str]]) -> set[tuple[str, str]]:
    found = RulesDesk(KillSwitch("nowhere.json")).medication(text, conversation)
    return {(finding["kind"], finding["level"]) for finding in found}


def test_a_medicine_is_checked_against_what_approved_messages_advised() -> None:
    before = [("I have a headache", "Take ibuprofen 400 mg."), ("It still hurts", "")]
    assert ("interaction", "stop") in kinds_and_levels("Take warfarin too.", before)
    assert ("duplicate", "stop") in kinds_and_levels("Take diclofenac.", before)
    zh = [("头痛", "可以吃布洛芬。"), ("还是疼", "")]
    assert ("duplicate", "stop") in kinds_and_levels("加双氯芬酸。", zh)


@pytest.mark.parametrize(
    "conversation",
    [
        [("I have a headache", "Do not take ibuprofen."), ("All right", "")],
        [("I have a headache", "Have you taken ibuprofen?"), ("No", "")],
        [("头痛", "吃过布洛芬吗？"), ("没有", "")],
        [("I have a headache", "Take ibuprofen."), ("It is no use", "Stop ibuprofen."), ("All right", "")],
    ],
)
def test_what_was_only_asked_advised_against_or_stopped_is_not_taken(conversation: list[tuple[str, str]]) -> None:
    assert kinds_and_levels("Take diclofenac.", conversation) == set()


def test_a_draft_that_stops_what_was_advised_may_put_another_in_its_place() -> None:
    before = [("I have a headache", "Take ibuprofen."), ("It is no use", "")]
    assert kinds_and_levels("Stop ibuprofen and take diclofenac instead.", before) == set()


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Do you have any allergies?", "Penicillin."),
        ("Any allergies to medicines?", "Yes, penicillin I think"),
        ("Are you allergic to penicillin?", "Yes."),
        ("有药物过敏吗？", "青霉素"),
        ("您对什么药过敏？", "好像是青霉素。"),
        ("对青霉素过敏吗？", "是的"),
    ],
)
def test_a_bare_answer_is_read_with_its_question(question: str, answer: str) -> None:
    conversation = [("My throat is sore. 嗓子疼", question), (answer, "")]
    assert kinds_and_levels("amoxicillin", conversation) == {("allergy", "stop")}


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Do you have any allergies?", "No."),
        ("Are you allergic to penicillin?", "No."),
        ("对青霉素过敏吗？", "没有"),
        ("有药物过敏吗？", "没有，吃过青霉素"),
        ("Do you have any allergies?", "No, penicillin is fine"),
    ],
)
def test_an_answer_that_denies_tells_of_no_allergy(question: str, answer: str) -> None:
    found = kinds_and_levels("amoxicillin", [("My throat is sore. 嗓子疼", question), (answer, "")])
    assert "allergy" not in {kind for kind, _ in found}


def test_medicines_ages_and_conditions_are_read_from_bare_answers_too() -> None:
    asked = [("I have a headache", "What medicines do you take?"), ("Warfarin.", "")]
    assert ("interaction", "stop") in kinds_and_levels("Take ibuprofen.", asked)
    assert ("child_age", "stop") in kinds_and_levels("aspirin", [("发烧", "孩子多大了？"), ("3", "")])
    assert ("child_age", "stop") in kinds_and_levels("aspirin", [("Fever", "How old is the child?"), ("8 months", "")])
    assert ("pregnancy", "stop") in kinds_and_levels("Take ibuprofen.", [("Hello", "Are you pregnant?"), ("Yes", "")])
    assert ("contraindication", "stop") in kinds_and_levels("普萘洛尔", [("心慌", "有没有哮喘？"), ("有", "")])
