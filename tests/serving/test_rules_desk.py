"""The shipped safety rules at the desk."""

from __future__ import annotations

import pytest

from tests.serving.fakes import ANN, RAY
from vrbot.serving.problems import ReasonNeededError
from vrbot.serving.rules_desk import RulesDesk
from vrbot.serving.service import Desk
from vrbot.serving.store import Store


@pytest.fixture
def desk(store: Store) -> Desk:
    return Desk(store, RulesDesk(lambda: None))


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
