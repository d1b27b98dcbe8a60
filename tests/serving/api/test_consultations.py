"""A consultation over HTTP, from the first word to what the patient reads."""

from __future__ import annotations

import json

import pytest

from tests.serving.api.served import Served
from vrbot.safety.tables import NOTICE
from vrbot.serving.queries import turns_of


def test_a_patient_reads_exactly_what_was_approved_and_nothing_else(served: Served) -> None:
    consultation = served.opened()
    key = served.get(f"/consultations/{consultation}/patient-link").json()["key"]
    said = {"client_turn_id": "p1", "text": "I cough"}
    line = served.post(f"/patient/{key}/turns", said, who=None).json()
    assert (line["author"], line["text"], set(line)) == (
        "patient",
        "I cough",
        {"seq", "author", "text", "at", "medicine_suggestion"},
    )
    turn = served.get(f"/consultations/{consultation}").json()["turns"][0]
    assert turn["received_by"] == "patient"
    draft = served.post(f"/turns/{turn['id']}/drafts").json()
    assert [each["text"] for each in served.get(f"/patient/{key}", who=None).json()["lines"]] == ["I cough"]
    edited = served.post(
        f"/drafts/{draft['id']}/edit", {"seen_sha256": draft["text_sha256"], "text": "Since when?"}
    ).json()
    approval = {"seen_sha256": edited["text_sha256"], "seen_turn": 1}
    message = served.post(f"/drafts/{edited['id']}/approve", approval).json()
    assert message["text"] == "Since when?"
    lines = served.get(f"/patient/{key}", who=None).json()["lines"]
    assert [(each["author"], each["text"]) for each in lines] == [("patient", "I cough"), ("physician", "Since when?")]


def test_a_patients_link_cannot_be_made_up(served: Served) -> None:
    one, two = served.opened(), served.opened()
    key = served.get(f"/consultations/{one}/patient-link").json()["key"]
    forged = two + key[32:]
    assert served.get(f"/patient/{forged}", who=None).status_code == 404
    said = {"client_turn_id": "p1", "text": "hello"}
    assert served.post(f"/patient/{forged}/turns", said, who=None).status_code == 404
    assert served.get(f"/patient/{key}", who=None).status_code == 200


def test_a_patient_who_floods_the_desk_is_told_to_wait(served: Served) -> None:
    key = served.get(f"/consultations/{served.opened()}/patient-link").json()["key"]
    path = f"/patient/{key}/turns"
    answers = [served.post(path, {"client_turn_id": str(number), "text": "x"}, who=None) for number in range(40)]
    assert {answer.status_code for answer in answers} == {200, 429}
    assert answers[-1].headers["retry-after"] == "5"


def test_a_retry_gives_the_same_bytes_and_a_changed_body_is_a_conflict(served: Served) -> None:
    consultation = served.opened()
    path, body = f"/consultations/{consultation}/turns", {"client_turn_id": "t1", "text": "头痛 \u0000 😷"}
    first = served.post(path, body)
    retries = [served.post(path, body) for _ in range(20)]
    assert {(each.status_code, each.content) for each in retries} == {(first.status_code, first.content)}
    changed = served.post(path, {**body, "text": "头痛"})
    assert changed.status_code == 409
    assert changed.headers["content-type"] == "application/problem+json"
    assert "t1" in changed.json()["detail"]
    with served.desk.store.reading() as connection:
        (stored,) = turns_of(connection, consultation)
    assert stored.text == body["text"]
    assert first.content == stored.to_json()


def test_a_draft_is_stored_before_it_is_shown_and_asked_for_again_it_is_the_same_bytes(served: Served) -> None:
    consultation = served.opened()
    turn = served.said(consultation, "a cough")
    first, again = (served.post(f"/turns/{turn['id']}/drafts") for _ in range(2))
    assert first.content == again.content == served.get(f"/drafts/{first.json()['id']}").content
    assert [each["id"] for each in served.get(f"/consultations/{consultation}").json()["drafts"]] == [
        first.json()["id"]
    ]


def test_a_model_that_fails_is_a_stored_failure_and_not_an_error(served: Served) -> None:
    draft = served.drafted("this will crash")
    assert draft["text"] is None
    assert draft["failure"].startswith("RuntimeError")
    assert served.get(f"/drafts/{draft['id']}/explanation").status_code == 409


def test_a_check_that_says_stop_asks_for_a_reason_and_names_what_it_found(served: Served) -> None:
    turn = served.said(served.opened(), "I am allergic to aspirin")
    draft = served.post(f"/turns/{turn['id']}/answers", {"text": "take aspirin"}).json()
    seen = {"seen_sha256": draft["text_sha256"], "seen_turn": 1}
    refused = served.post(f"/drafts/{draft['id']}/approve", seen)
    assert (refused.status_code, refused.json()["findings"][0]["code"]) == (422, "allergy")
    approved = served.post(f"/drafts/{draft['id']}/approve", {**seen, "override_reason": "tested: no allergy"})
    assert (approved.status_code, approved.json()["medicine_suggestion"]) == (200, True)


def test_a_reason_given_before_a_stop_was_shown_is_asked_for_again(served: Served) -> None:
    consultation = served.opened()
    turn = served.said(consultation, "a headache")
    draft = served.post(f"/turns/{turn['id']}/answers", {"text": "take aspirin"}).json()
    served.said(consultation, "I am allergic to aspirin", "t2")
    reason = {"seen_sha256": draft["text_sha256"], "seen_turn": 2, "override_reason": "it is only a headache"}
    refused = served.post(f"/drafts/{draft['id']}/approve", reason)
    assert (refused.status_code, refused.json()["findings"][0]["level"]) == (422, "stop")
    shown = {"seen_findings": refused.json()["findings_sha256"]}
    assert served.post(f"/drafts/{draft['id']}/approve", {**reason, **shown}).status_code == 200


def test_wherever_findings_are_given_it_is_said_what_the_rules_are_worth(served: Served) -> None:
    consultation = served.opened()
    turn = served.said(consultation, "I am allergic to aspirin")
    draft = served.post(f"/turns/{turn['id']}/answers", {"text": "take aspirin"}).json()
    refused = served.post(
        f"/drafts/{draft['id']}/approve", {"seen_sha256": draft["text_sha256"], "seen_turn": 1}
    ).json()
    decision = served.post(f"/drafts/{draft['id']}/reject", {"reason": "an allergy"}).json()
    case = served.get(f"/consultations/{consultation}").json()
    told = [turn, draft, refused, decision, *case["turns"], *case["drafts"], *case["decisions"]]
    assert len(told) == 7
    assert [each["notice"] for each in told] == [NOTICE] * 7
    assert served.get(f"/drafts/{draft['id']}").json() == draft == case["drafts"][0]


def test_approval_of_another_text_or_of_an_old_screen_is_a_conflict(served: Served) -> None:
    consultation = served.opened()
    turn = served.said(consultation, "a cough")
    draft = served.post(f"/turns/{turn['id']}/drafts").json()
    approve = f"/drafts/{draft['id']}/approve"
    assert served.post(approve, {"seen_sha256": "0" * 64, "seen_turn": 1}).status_code == 409
    assert served.post(approve, {"seen_sha256": draft["text_sha256"]}).status_code == 422
    assert served.post(approve, {"seen_sha256": draft["text_sha256"], "seen_turn": None}).status_code == 422
    served.said(consultation, "and a fever", "t2")
    assert served.post(approve, {"seen_sha256": draft["text_sha256"], "seen_turn": 1}).status_code == 409
    assert served.post(approve, {"seen_sha256": draft["text_sha256"], "seen_turn": 2}).status_code == 200


def test_what_if_explanation_feedback_and_rejection_work_on_a_draft(served: Served) -> None:
    draft = served.drafted()
    other = served.post(f"/turns/{draft['turn']}/what-if", {"category": "diagnosis"}).json()
    assert (other["origin"], other["change"], other["text"]) == (
        "what_if",
        {"category": "diagnosis"},
        "Then: ['category']",
    )
    assert served.post(f"/turns/{draft['turn']}/what-if", {}).status_code == 422
    explained = served.get(f"/drafts/{draft['id']}/explanation").json()
    assert (explained["text"], explained["action"]["category"]) == (draft["text"], "ask_symptoms")
    assert served.post(f"/drafts/{draft['id']}/feedback", {"quality": 4, "fluency": 5}).status_code == 204
    assert served.post(f"/drafts/{draft['id']}/feedback", {"quality": 6}).status_code == 422
    judged = served.get("/ratings/feedback", who="researcher").json()
    assert {(each["item"], each["system"], each["measure"], each["value"]) for each in judged} == {
        (draft["id"], "parrot-1", "quality", 4),
        (draft["id"], "parrot-1", "fluency", 5),
    }
    rejected = served.post(f"/drafts/{draft['id']}/reject", {"reason": "no"}).json()
    assert (rejected["kind"], rejected["draft"]) == ("reject", draft["id"])


def test_what_belongs_to_another_physician_looks_like_nothing_until_it_is_handed_over(served: Served) -> None:
    consultation = served.opened()
    turn = served.said(consultation, "hello")
    draft = served.post(f"/turns/{turn['id']}/drafts").json()
    for path in (f"/consultations/{consultation}", f"/turns/{turn['id']}", f"/drafts/{draft['id']}"):
        assert served.get(path, who="bob").status_code == 404
    assert served.post(f"/turns/{turn['id']}/drafts", who="bob").status_code == 404
    assert served.post(f"/consultations/{consultation}/hand-over", {"to": "nobody"}).status_code == 404
    assert served.post(f"/consultations/{consultation}/hand-over", {"to": "bob"}).status_code == 200
    assert served.get(f"/drafts/{draft['id']}", who="bob").status_code == 200
    assert served.get(f"/drafts/{draft['id']}").status_code == 404


def test_labels_ratings_and_export_without_names(fresh: Served) -> None:
    turn = fresh.said(fresh.opened(), "I am Ann Smith and I cough")
    label = fresh.call("PUT", f"/api/v1/turns/{turn['id']}/labels/state", "annotator", json={"value": ["cough"]})
    assert label.json()["value"] == ["cough"]
    assert fresh.get(f"/turns/{turn['id']}/labels", who="annotator").json()["state"]["number"] == 1
    order = fresh.post("/ratings/orders", {"campaign": "c", "item": "i", "systems": ["a", "b"]}, who="annotator")
    assert set(order.json()) == {"order"}
    rating = {"measure": "fluency", "position": 1, "value": 4}
    assert fresh.post(f"/ratings/orders/{order.json()['order']}", rating, who="annotator").status_code == 204
    assert fresh.get("/ratings/c", who="researcher").json()[0]["value"] == 4
    (line,) = fresh.get("/export/sessions", who="researcher").text.splitlines()
    assert json.loads(line)["turns"][0]["patient"] == "I am [name] and I cough"
    assert json.loads(line)["turns"][0]["state"] == ["cough"]


def test_the_audit_route_verifies_and_names_faults(fresh: Served) -> None:
    fresh.drafted()
    report = fresh.get("/audit", who="admin").json()
    assert report["good"]
    with fresh.desk.store.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE turns SET received_by = 'x'")
    report = fresh.get("/audit", who="admin").json()
    assert not report["good"]
    assert "was changed" in report["faults"][0]["problem"]


@pytest.mark.parametrize("closed", [False, True])
def test_a_closed_consultation_takes_nothing_more(closed: bool, served: Served) -> None:
    consultation = served.opened()
    if closed:
        assert served.post(f"/consultations/{consultation}/close").json()["closed_at"] is not None
    answer = served.post(f"/consultations/{consultation}/turns", {"client_turn_id": "x", "text": "hello"})
    assert answer.status_code == (403 if closed else 200)
