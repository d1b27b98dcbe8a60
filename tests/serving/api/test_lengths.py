"""No text is so long that others wait for the rules to read it."""

from __future__ import annotations

import pytest

from tests.serving.api.served import V1, Served
from vrbot.serving.problems import InvalidInputError
from vrbot.serving.texts import LONGEST_OF_PATIENT, LONGEST_OF_STAFF


def test_a_patient_says_as_much_over_the_api_as_on_the_console(served: Served) -> None:
    consultation = served.opened()
    key = served.get(f"/consultations/{consultation}/patient-link").json()["key"]
    for number, (length, status) in enumerate([(LONGEST_OF_PATIENT, 200), (LONGEST_OF_PATIENT + 1, 422)]):
        body = {"client_turn_id": f"p{number}", "text": "咳" * length}
        assert served.client.post(f"{V1}/patient/{key}/turns", json=body).status_code == status
    with pytest.raises(InvalidInputError, match="4,001 characters"):
        served.desk.consultations.receive_from_patient(consultation, "p9", "x" * 4001)
    assert len(served.get(f"/consultations/{consultation}").json()["turns"]) == 1


def test_staff_may_send_whole_reports_but_not_books(served: Served) -> None:
    consultation = served.opened()
    report, book = "x" * LONGEST_OF_STAFF, "x" * (LONGEST_OF_STAFF + 1)
    turn = served.said(consultation, report)
    assert turn["text"] == report
    draft = served.post(f"/turns/{turn['id']}/answers", {"text": "Rest."}).json()
    seen = {"seen_sha256": draft["text_sha256"]}
    for path, body in [
        (f"/consultations/{consultation}/turns", {"client_turn_id": "t2", "text": book}),
        (f"/turns/{turn['id']}/answers", {"text": book}),
        (f"/drafts/{draft['id']}/edit", {**seen, "text": book}),
        (f"/drafts/{draft['id']}/approve", {**seen, "seen_turn": 1, "override_reason": book}),
    ]:
        assert served.post(path, body).status_code == 422
