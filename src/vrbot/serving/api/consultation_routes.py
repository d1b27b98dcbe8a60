"""Consultations and what patients say in them, for their physicians; and the patient's side of one consultation."""

from __future__ import annotations

from fastapi import APIRouter, Response
from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import SlidingWindowCounterRateLimiter

from vrbot.serving.api.bodies import HandOver, Id, NewConsultation, NewTurn, PatientKey, PatientTurn
from vrbot.serving.api.records_out import (
    API,
    CaseOut,
    ConsultationOut,
    LineOut,
    LinkOut,
    PatientOut,
    TurnOut,
    answer,
    plain,
    problems,
)
from vrbot.serving.api.settings import AppSettings
from vrbot.serving.api.signin import SignedIn
from vrbot.serving.patient_links import consultation_of, patient_token
from vrbot.serving.problems import BusyError, NotFoundError
from vrbot.serving.queries import own_consultation
from vrbot.serving.records import Case
from vrbot.serving.service import Desk

OWN = problems(401, 404, 409)
PAUSE_SECONDS = 5


def consultation_routes(desk: Desk, settings: AppSettings) -> APIRouter:
    """Under /api/v1; every consultation is its physician's alone. As long as there are routes, each a few lines."""
    routes = APIRouter(prefix=API, tags=["consultations"])

    @routes.post("/consultations", status_code=201, response_model=ConsultationOut, responses=problems(401, 409))
    def open_consultation(body: NewConsultation, actor: SignedIn) -> Response:
        """Opens a consultation of one's own; a retry under the same id gives the same one."""
        name = body.client_consultation_id
        return answer(plain(desk.consultations.open(actor, body.language, body.reference, name)), 201)

    @routes.get("/consultations", response_model=list[ConsultationOut], responses=problems(401))
    def list_consultations(actor: SignedIn) -> Response:
        """One's own consultations, newest first."""
        return answer([plain(each) for each in desk.consultations.all_of(actor)])

    @routes.get("/consultations/{consultation}", response_model=CaseOut, responses=OWN)
    def read_consultation(consultation: Id, actor: SignedIn) -> Response:
        """Everything of one consultation, as of one moment."""
        return answer(_case(desk.consultations.case(actor, consultation)))

    @routes.post("/consultations/{consultation}/close", response_model=ConsultationOut, responses=OWN)
    def close_consultation(consultation: Id, actor: SignedIn) -> Response:
        """Ends a consultation: nothing more is said or sent in it."""
        return answer(plain(desk.consultations.close(actor, consultation)))

    @routes.post("/consultations/{consultation}/hand-over", response_model=ConsultationOut, responses=OWN)
    def hand_over(consultation: Id, body: HandOver, actor: SignedIn) -> Response:
        """Gives a consultation to another physician, who alone may go on with it."""
        with desk.store.reading() as connection:
            own_consultation(connection, actor, consultation, to_change=True)
        to = desk.accounts.active_physician(body.to).id
        return answer(plain(desk.consultations.hand_over(actor, consultation, to)))

    @routes.post("/consultations/{consultation}/turns", response_model=TurnOut, responses=OWN)
    def receive_turn(consultation: Id, body: NewTurn, actor: SignedIn) -> Response:
        """Stores what the patient said, once: a retry gives the same bytes, another text under the id is a conflict."""
        turn = desk.consultations.receive(actor, consultation, body.client_turn_id, body.text)
        return Response(turn.to_json(), media_type="application/json")

    @routes.get("/turns/{turn}", response_model=TurnOut, responses=OWN)
    def read_turn(turn: Id, actor: SignedIn) -> Response:
        """One turn."""
        return Response(desk.consultations.turn(actor, turn).to_json(), media_type="application/json")

    @routes.get("/consultations/{consultation}/patient-link", response_model=LinkOut, responses=OWN)
    def patient_link(consultation: Id, actor: SignedIn) -> Response:
        """What to give the patient: it opens the patient's side of this consultation and nothing else."""
        with desk.store.reading() as connection:
            own_consultation(connection, actor, consultation)
        key = patient_token(settings.secret, consultation)
        return answer({"key": key, "path": f"/patient/{key}"})

    return routes


def patient_routes(desk: Desk, settings: AppSettings) -> APIRouter:
    """Under /api/v1/patient; a signed link is all a patient needs, and approved text all a patient gets."""
    routes = APIRouter(prefix=f"{API}/patient", tags=["patient"])
    limiter = SlidingWindowCounterRateLimiter(MemoryStorage())
    limit = RateLimitItemPerMinute(settings.patient_turns_per_minute)

    def opened_by(key: str) -> str:
        consultation = consultation_of(settings.secret, key)
        if consultation is None:
            raise NotFoundError("this link opens nothing: ask your physician for a new one")
        return consultation

    @routes.get("/{key}", response_model=PatientOut, responses=problems(404))
    def read_as_patient(key: PatientKey) -> Response:
        """The patient's own words, and the replies a physician approved to the letter."""
        return answer({"lines": [plain(line) for line in desk.patient_view(opened_by(key))]})

    @routes.post("/{key}/turns", response_model=LineOut, responses=problems(404, 409))
    def speak_as_patient(key: PatientKey, body: PatientTurn) -> Response:
        """Stores what the patient says, once, and gives it back as the patient sees it."""
        consultation = opened_by(key)
        if not limiter.hit(limit, consultation):
            raise BusyError("a patient can say only so much in a minute: wait a moment", retry_after=PAUSE_SECONDS)
        turn = desk.consultations.receive_from_patient(consultation, body.client_turn_id, body.text)
        line = {"seq": turn.seq, "author": "patient", "text": turn.text, "at": turn.received_at}
        return answer({**line, "medicine_suggestion": False})

    return routes


def _case(case: Case) -> dict[str, object]:
    parts = ("turns", "drafts", "decisions", "messages")
    whole = {name: [plain(each) for each in getattr(case, name)] for name in parts}
    return {"consultation": plain(case.consultation), **whole}
