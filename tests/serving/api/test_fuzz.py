"""Requests drawn from the OpenAPI document, right and wrong: none is answered by a fault of the server."""

from __future__ import annotations

import random
from typing import Any
from unittest import SkipTest

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import not_a_server_error
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance

from tests.serving.api.served import PASSWORD, desk_of, on_a_port, settings_of
from tests.serving.api.test_roles import ROUTES
from vrbot.serving.actors import OPERATOR, Actor
from vrbot.serving.app import create_app
from vrbot.serving.store import Store

EXAMPLES = 4
"""Of each route."""
ROLES = ("physician", "annotator", "researcher", "admin")
ENDS_SIGN_INS = {
    ("POST", "/api/v1/sign-out"),
    ("POST", "/api/v1/users/{name}/disable"),
    ("PUT", "/api/v1/users/{name}/password"),
}
FUZZED = sorted(set(ROUTES) - ENDS_SIGN_INS)
CHECKS = [not_a_server_error, status_code_conformance, response_schema_conformance]


class World:
    """An app with something in it, so that ids that are drawn can be real ones."""

    address = ""

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
        response = case.call(base_url=self.address, headers=headers, timeout=60)
        case.validate_response(response, checks=CHECKS)


@pytest.fixture(scope="module")
def world() -> Any:
    found = World()
    with on_a_port(found.app) as found.address:
        yield found
    found.store.close()


@pytest.fixture(scope="module")
def operations(world: World) -> dict[tuple[str, str], Any]:
    """Every route of the document by method and path."""
    schema = schemathesis.openapi.from_dict(world.app.openapi())
    results: Any = schema.get_all_operations()
    found = [result.ok() for result in results]
    return {(operation.method.upper(), operation.path): operation for operation in found}


@pytest.mark.parametrize(("method", "route"), FUZZED, ids=[" ".join(route) for route in FUZZED])
def test_no_request_is_answered_by_a_fault_or_in_a_form_that_is_not_described(
    method: str, route: str, world: World, operations: dict[tuple[str, str], Any]
) -> None:
    for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
        try:
            drawn = operations[method, route].as_strategy(generation_mode=mode)
            settings(
                max_examples=EXAMPLES,
                phases=[Phase.explicit, Phase.generate],
                suppress_health_check=list(HealthCheck),
            )(given(case=drawn)(world.send))()
        except (Unsatisfiable, SkipTest):  # a route without a value cannot have a wrong one
            assert mode is GenerationMode.NEGATIVE
