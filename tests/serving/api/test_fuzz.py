"""Requests drawn from the OpenAPI document, right and wrong: none is answered by a fault of the server."""

from __future__ import annotations

import random
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance

from tests.serving.api.served import PASSWORD, desk_of, settings_of
from vrbot.serving.actors import OPERATOR, Actor
from vrbot.serving.app import create_app
from vrbot.serving.store import Store

EXAMPLES = 4
"""Of each route."""
ROLES = ("physician", "annotator", "researcher", "admin")
CHECKS = [not_a_server_error, status_code_conformance, response_schema_conformance]


class World:
    """An app with something in it, so that ids that are drawn can be real ones."""

    def __init__(self) -> None:
        self.store = Store.open("sqlite://", create=True)
        self.desk = desk_of(self.store)
        self.app = create_app(self.desk, settings_of())
        self.tokens: dict[str, str] = {}
        for role in ROLES:
            self.desk.accounts.add(OPERATOR, role, PASSWORD, role)
            self.tokens[role] = self.desk.accounts.sign_in(role, PASSWORD).token
        self.ids = self._ids(self.desk.accounts.active_physician("physician").actor)
        self.chance = random.Random(7)

    def _ids(self, actor: Actor) -> dict[str, str]:
        consultation = self.desk.consultations.open(actor, "en").id
        turn = self.desk.consultations.receive(actor, consultation, "t", "a cough").id
        draft = self.desk.drafting.draft(actor, turn).id
        order = self.desk.ratings.order(actor, "c", "i", ["a", "b"])
        return {"consultation": consultation, "turn": turn, "draft": draft, "order": order, "campaign": "c"}

    def send(self, case: Any) -> None:
        """As somebody, and half of the time about something that is there."""
        if isinstance(case.path_parameters, dict) and self.chance.random() < 0.5:
            known = {name: self.ids[name] for name in case.path_parameters if name in self.ids}
            case.path_parameters = {**case.path_parameters, **known}
        role = self.chance.choice((*ROLES, ""))
        headers = {"Authorization": f"Bearer {self.tokens[role]}"} if role else {}
        response = case.call(headers={**headers, "Host": "127.0.0.1"})
        case.validate_response(response, checks=CHECKS)


@pytest.fixture(scope="module")
def world() -> Any:
    found = World()
    yield found
    found.store.close()


@pytest.fixture(scope="module")
def described(world: World) -> Any:
    found = schemathesis.openapi.from_asgi("/api/v1/openapi.json", world.app)
    return found.exclude(path="/api/v1/sign-out").exclude(path_regex="/users/.*/(disable|password)")


schema = schemathesis.pytest.from_fixture("described")


@schema.parametrize()
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_no_request_is_answered_by_a_fault_or_in_a_form_that_is_not_described(case: Any, world: World) -> None:
    world.send(case)
