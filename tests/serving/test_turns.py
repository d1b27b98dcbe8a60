"""What a patient says is stored once, in order, to the byte."""

from __future__ import annotations

import threading

import pytest

from tests.serving.conftest import OpenStore
from tests.serving.fakes import ANN, BOB, EVE, RAY, SUE, DeskAtWork
from tests.serving.writers import ended, start_writer
from vrbot.serving.actors import Actor
from vrbot.serving.audit import verify
from vrbot.serving.problems import ConflictError, InvalidInputError, NotFoundError, RefusedError
from vrbot.serving.queries import turns_of
from vrbot.serving.texts import MAX_TEXT_BYTES

ODD_TEXTS = {
    "empty": "",
    "blank": " \t\r\n\u3000",
    "nul": "a\0b\0",
    "right to left": "\u202eابت \u0645\u0631\u062d\u0628\u0627\u202c",
    "emoji": "😷👩🏽‍⚕️🏳️‍🌈",
    "decomposed": "e\u0301 ﬁ Å",
    "mixed script": "头痛 headache صداع 頭痛",
    "outside the first plane": "𠀋𝄞",
    "not characters": "\ufffe\uffff\x7f\x80",
    "byte order mark": "\ufeffx",
    "quotes": "'; DROP TABLE turns; -- \\ \" %s {} <script>",
    "one megabyte": "发烧" * 174_763,
}


@pytest.mark.parametrize("name", ODD_TEXTS)
def test_odd_text_comes_back_byte_for_byte(name: str, work: DeskAtWork) -> None:
    consultation = work.opened()
    stored = work.said(consultation, ODD_TEXTS[name])
    again = work.desk.consultations.turn(ANN, stored.id)
    assert again.text.encode() == ODD_TEXTS[name].encode()
    assert work.desk.patient_view(consultation.id)[0].text == ODD_TEXTS[name]
    draft = work.desk.drafting.write(ANN, stored.id, ODD_TEXTS[name])
    assert work.sent(draft).text == ODD_TEXTS[name]
    assert verify(work.store).good


@pytest.mark.parametrize("text", ["\ud800", "fine \udfff", "x" * (MAX_TEXT_BYTES + 1)], ids=["high", "low", "long"])
def test_text_that_cannot_be_stored_is_refused_without_repeating_it(text: str, work: DeskAtWork) -> None:
    consultation = work.opened()
    with pytest.raises(InvalidInputError, match=r"^text (holds half a surrogate pair|has 4,194,305 bytes)") as caught:
        work.said(consultation, text)
    assert len(str(caught.value)) < 200
    assert work.desk.patient_view(consultation.id) == ()


@pytest.mark.parametrize("name", ["", "a b", "é", "x" * 129, "a\0", 5, None])
def test_a_client_turn_id_is_a_plain_name(name: str, work: DeskAtWork) -> None:
    consultation = work.opened()
    with pytest.raises(InvalidInputError, match="client_turn_id"):
        work.desk.consultations.receive(ANN, consultation.id, name, "hello")


def test_a_retry_gives_the_same_bytes_and_stores_nothing(work: DeskAtWork) -> None:
    consultation = work.opened()
    receive = work.desk.consultations.receive
    first = receive(ANN, consultation.id, "t-1", "my head hurts")
    receive(ANN, consultation.id, "t-2", "and my back")
    head = work.store.head()
    retries = {receive(ANN, consultation.id, "t-1", "my head hurts").to_json() for _ in range(20)}
    assert retries == {first.to_json()}
    assert work.store.head() == head


def test_a_retry_with_another_body_is_a_conflict_and_changes_nothing(work: DeskAtWork) -> None:
    consultation = work.opened()
    work.desk.consultations.receive(ANN, consultation.id, "t-1", "my head hurts")
    head = work.store.head()
    with pytest.raises(ConflictError, match="t-1"):
        work.desk.consultations.receive(ANN, consultation.id, "t-1", "my head hurts ")
    assert work.store.head() == head


def test_the_same_client_turn_id_in_another_consultation_is_another_turn(work: DeskAtWork) -> None:
    one, two = work.opened(), work.opened()
    receive = work.desk.consultations.receive
    assert receive(ANN, one.id, "t", "one").id != receive(ANN, two.id, "t", "two").id


def test_a_retry_after_the_end_of_the_consultation_still_gives_the_turn(work: DeskAtWork) -> None:
    consultation = work.opened()
    first = work.desk.consultations.receive(ANN, consultation.id, "t-1", "hello")
    closed = work.desk.consultations.close(ANN, consultation.id)
    assert work.desk.consultations.close(ANN, consultation.id) == closed
    assert work.desk.consultations.receive(ANN, consultation.id, "t-1", "hello") == first
    with pytest.raises(RefusedError, match="closed"):
        work.desk.consultations.receive(ANN, consultation.id, "t-2", "hello?")


def test_threads_number_the_turns_of_a_consultation_without_gap_or_double(work: DeskAtWork) -> None:
    consultation = work.opened()
    retried: list[bytes] = []

    def write(number: int) -> None:
        for turn in range(8):
            work.desk.consultations.receive(ANN, consultation.id, f"w{number}-{turn}", f"text {number} {turn}")
            retried.append(work.desk.consultations.receive(ANN, consultation.id, f"shared-{turn}", "x").to_json())

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with work.store.reading() as connection:
        assert [turn.seq for turn in turns_of(connection, consultation.id)] == list(range(1, 4 * 8 + 8 + 1))
    assert len(retried) == 32
    assert len(set(retried)) == 8
    assert verify(work.store).good


def test_two_processes_number_the_turns_of_a_consultation_without_gap_or_double(
    database: str, open_store: OpenStore
) -> None:
    work = DeskAtWork(open_store(database))
    consultation = work.opened()
    writers = [start_writer(database, consultation.id, f"w{number}", 25, work.store.witness) for number in range(2)]
    acknowledged = [line for writer in writers for line in ended(writer)]
    with work.store.reading() as connection:
        stored = turns_of(connection, consultation.id)
    assert [turn.seq for turn in stored] == list(range(1, 51))
    assert sorted(acknowledged) == sorted((turn.seq, turn.client_turn_id, turn.text_sha256) for turn in stored)
    assert verify(work.store).good


def test_a_consultation_is_its_physicians_alone_until_it_is_handed_over(work: DeskAtWork) -> None:
    consultation = work.opened()
    turn = work.said(consultation, "hello")
    for attempt in (
        lambda: work.desk.consultations.case(BOB, consultation.id),
        lambda: work.desk.consultations.turn(BOB, turn.id),
        lambda: work.desk.consultations.receive(BOB, consultation.id, "b", "hello"),
        lambda: work.desk.drafting.draft(BOB, turn.id),
        lambda: work.desk.annotation.label(BOB, turn.id, "state", []),
    ):
        with pytest.raises(NotFoundError):
            attempt()
    assert work.desk.consultations.all_of(BOB) == []
    work.desk.consultations.hand_over(ANN, consultation.id, BOB.id)
    assert work.desk.consultations.case(BOB, consultation.id).turns == (turn,)
    with pytest.raises(NotFoundError):
        work.desk.consultations.case(ANN, consultation.id)


@pytest.mark.parametrize("actor", [EVE, RAY, SUE, Actor("x", "operator"), Actor("x", "unheard of")], ids=str)
def test_only_physicians_consult(actor: Actor, work: DeskAtWork) -> None:
    with pytest.raises(RefusedError, match="may not consult"):
        work.desk.consultations.open(actor)


def test_red_flags_are_stored_with_the_turn_and_a_broken_rule_raises_the_banner(work: DeskAtWork) -> None:
    consultation = work.opened()
    calm, flagged, broken = (
        work.said(consultation, text) for text in ("a cold", "chest pain since noon", "this is broken")
    )
    assert (calm.urgent, flagged.urgent, broken.urgent) == (False, True, True)
    assert flagged.flags.findings == ({"check": "red_flag", "code": "chest_pain", "level": "stop"},)
    assert broken.flags.findings[0]["code"] == "check_failed"
    assert work.desk.consultations.turn(ANN, broken.id) == broken
