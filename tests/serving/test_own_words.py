"""What holds for a model's text holds for a physician's own: it is checked, marked, and not the model's in disguise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.serving.fakes import ANN, DeskAtWork, Parrot
from vrbot.safety.switch import KillSwitch
from vrbot.serving.problems import RefusedError
from vrbot.serving.records import Draft, Turn
from vrbot.serving.rules_desk import RulesDesk
from vrbot.serving.safety_desk import Conversation
from vrbot.serving.service import Desk
from vrbot.serving.store import Store

Own = Callable[[DeskAtWork, Turn, str], Draft]


def written(work: DeskAtWork, turn: Turn, text: str) -> Draft:
    return work.desk.drafting.write(ANN, turn.id, text)


def edited(work: DeskAtWork, turn: Turn, text: str) -> Draft:
    draft = work.drafted(turn)
    return work.desk.signoff.edit(ANN, draft.id, draft.text_sha256 or "", text)


WAYS = pytest.mark.parametrize("own", [written, edited])


@WAYS
@pytest.mark.parametrize(("text", "medicine"), [("Take ibuprofen three times a day.", True), ("Drink tea.", False)])
def test_a_medicine_is_a_suggestion_though_nothing_speaks_against_it(
    own: Own, text: str, medicine: bool, work: DeskAtWork
) -> None:
    consultation = work.opened()
    work.said(consultation, "Shall I take ibuprofen?")
    draft = own(work, work.said(consultation, "a cough"), text)
    assert (draft.suggests_medicine, draft.checks.findings) == (medicine, ())
    assert work.sent(draft).medicine_suggestion is medicine


@pytest.mark.parametrize("text", ["Take ibuprofen 400 mg three times a day.", "布洛芬，每次一片。"])
def test_the_shipped_rules_know_a_medicine_by_its_name(text: str, tmp_path: Path) -> None:
    store = Store.open("sqlite://", create=True)
    desk = Desk(store, RulesDesk(KillSwitch(tmp_path / "switch.json")), Parrot())
    turn = desk.consultations.receive(ANN, desk.consultations.open(ANN, "en").id, "1", "I have a headache.")
    assert desk.drafting.write(ANN, turn.id, text).suggests_medicine
    assert not desk.drafting.write(ANN, turn.id, "多喝水。 Since when?").suggests_medicine
    store.close()


@WAYS
def test_what_comes_out_of_nowhere_is_marked_in_a_physicians_words_too(own: Own, work: DeskAtWork) -> None:
    consultation = work.opened()
    draft = own(work, work.said(consultation, "a cough"), "It is unicorn fever: take ibuprofen.")
    assert {(each["check"], each["kind"]) for each in draft.checks.findings} == {
        ("unsupported", "disease"),
        ("unsupported", "medicine"),
    }
    assert not draft.checks.stops
    work.sent(draft)
    assert work.desk.consultations.case(ANN, consultation.id).decisions[-1].checks == draft.checks


class Prescriber(Parrot):
    """Has a medicine in mind."""

    def respond(self, conversation: Conversation) -> Mapping[str, Any]:
        return {**super().respond(conversation), "keywords": [{"name": "ibuprofen", "type": "medicine"}]}


def test_what_the_model_had_in_mind_supports_what_a_physician_made_of_its_draft(store: Store) -> None:
    work = DeskAtWork(store, parrot=Prescriber())
    turn = work.said(work.opened(), "a cough")
    assert written(work, turn, "Take ibuprofen.").checks.findings
    once = edited(work, turn, "Take ibuprofen.")
    twice = work.desk.signoff.edit(ANN, once.id, once.text_sha256 or "", "Please take ibuprofen.")
    assert (once.checks.findings, twice.checks.findings) == ((), ())
    work.sent(twice)


@WAYS
def test_the_models_words_stay_its_own_when_a_physician_repeats_them(own: Own, work: DeskAtWork) -> None:
    consultation = work.opened()
    turn = work.said(consultation, "a cough")
    said = work.drafted(turn).text or ""
    for text in (said, f" {said}\n", said.upper()):
        repeated = own(work, turn, text)
        work.rules.stopped = "wrong doses seen"
        with pytest.raises(RefusedError, match="in your own words"):
            work.sent(repeated)
        work.rules.stopped = None
    work.rules.stopped = "wrong doses seen"
    work.sent(written(work, turn, "How long have you had it?"))
    assert work.seen_by_patient(consultation) == ["How long have you had it?"]


def test_the_rules_are_not_waited_for_inside_a_transaction(work: DeskAtWork, monkeypatch: pytest.MonkeyPatch) -> None:
    consultation = work.opened()
    draft = work.drafted(work.said(consultation, "a cough"))
    seen: list[int] = []
    real = work.rules.medication

    def watched(text: str, conversation: Conversation) -> Any:
        seen.append(work.store.engine.pool.checkedout())  # type: ignore[attr-defined]
        return real(text, conversation)

    monkeypatch.setattr(work.rules, "medication", watched)
    own = work.desk.signoff.edit(ANN, draft.id, draft.text_sha256 or "", "Rest.")
    work.sent(own)
    assert seen == [0, 0]
