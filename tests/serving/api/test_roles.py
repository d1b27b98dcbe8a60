"""Every route for every role; a route that is not in the table fails the test until it is covered."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.routing import APIRoute

from tests.serving.api.served import Served, desk_of, serving
from vrbot.safety.switch import KillSwitch
from vrbot.serving.store import Store

EVERYBODY = frozenset({"nobody", "physician", "annotator", "researcher", "admin"})
SIGNED_IN = EVERYBODY - {"nobody"}
PHYSICIAN, ADMIN, RESEARCHER = frozenset({"physician"}), frozenset({"admin"}), frozenset({"researcher"})
LABELLING, RATING = frozenset({"physician", "annotator"}), frozenset({"physician", "annotator", "researcher"})

Body = dict[str, Any] | None
SHA = "0" * 64
ROUTES: dict[tuple[str, str], tuple[frozenset[str], Body]] = {
    ("GET", "/livez"): (EVERYBODY, None),
    ("GET", "/readyz"): (EVERYBODY, None),
    ("GET", "/metrics"): (EVERYBODY, None),
    ("POST", "/api/v1/sign-in"): (EVERYBODY, {"name": "ann", "password": "a long password"}),
    ("POST", "/api/v1/sign-out"): (EVERYBODY, None),
    ("POST", "/api/v1/setup"): (frozenset(), {"code": "wrong", "name": "eve", "password": "a long password"}),
    ("GET", "/api/v1/me"): (SIGNED_IN, None),
    ("POST", "/api/v1/consultations"): (PHYSICIAN, {"language": "en"}),
    ("GET", "/api/v1/consultations"): (PHYSICIAN, None),
    ("GET", "/api/v1/consultations/{consultation}"): (PHYSICIAN, None),
    ("POST", "/api/v1/consultations/{consultation}/close"): (PHYSICIAN, None),
    ("POST", "/api/v1/consultations/{consultation}/hand-over"): (PHYSICIAN, {"to": "bob"}),
    ("POST", "/api/v1/consultations/{consultation}/turns"): (PHYSICIAN, {"client_turn_id": "n", "text": "x"}),
    ("GET", "/api/v1/consultations/{consultation}/patient-link"): (PHYSICIAN, None),
    ("GET", "/api/v1/turns/{turn}"): (PHYSICIAN, None),
    ("POST", "/api/v1/turns/{turn}/drafts"): (PHYSICIAN, None),
    ("POST", "/api/v1/turns/{turn}/what-if"): (PHYSICIAN, {"state": []}),
    ("POST", "/api/v1/turns/{turn}/answers"): (PHYSICIAN, {"text": "rest"}),
    ("GET", "/api/v1/drafts/{draft}"): (PHYSICIAN, None),
    ("POST", "/api/v1/drafts/{draft}/approve"): (PHYSICIAN, {"seen_sha256": SHA, "seen_turn": 1}),
    ("POST", "/api/v1/drafts/{draft}/edit"): (PHYSICIAN, {"seen_sha256": SHA, "text": "rest"}),
    ("POST", "/api/v1/drafts/{draft}/reject"): (PHYSICIAN, {}),
    ("GET", "/api/v1/drafts/{draft}/explanation"): (PHYSICIAN, None),
    ("POST", "/api/v1/drafts/{draft}/feedback"): (PHYSICIAN, {"quality": 3}),
    ("GET", "/api/v1/patient/{key}"): (EVERYBODY, None),
    ("POST", "/api/v1/patient/{key}/turns"): (EVERYBODY, {"client_turn_id": "p", "text": "x"}),
    ("GET", "/api/v1/turns/{turn}/labels"): (LABELLING, None),
    ("PUT", "/api/v1/turns/{turn}/labels/{kind}"): (LABELLING, {"value": ["cough"]}),
    ("POST", "/api/v1/ratings/orders"): (RATING, {"campaign": "c", "item": "i", "systems": ["a"]}),
    ("POST", "/api/v1/ratings/orders/{order}"): (RATING, {"measure": "fluency", "position": 0, "value": 3}),
    ("GET", "/api/v1/ratings/{campaign}"): (RESEARCHER, None),
    ("GET", "/api/v1/export/sessions"): (RESEARCHER, None),
    ("GET", "/api/v1/users"): (ADMIN, None),
    ("POST", "/api/v1/users"): (ADMIN, {"name": "new", "password": "a long password", "role": "physician"}),
    ("POST", "/api/v1/users/{name}/disable"): (ADMIN, None),
    ("POST", "/api/v1/users/{name}/enable"): (ADMIN, None),
    ("PUT", "/api/v1/users/{name}/password"): (ADMIN, {"password": "another password"}),
    ("GET", "/api/v1/audit"): (ADMIN, None),
    ("GET", "/api/v1/safety/switch"): (SIGNED_IN, None),
    ("PUT", "/api/v1/safety/switch"): (ADMIN, {"on": False, "reason": "checked"}),
    ("GET", "/v1/models"): (PHYSICIAN, None),
    ("GET", "/v1/models/{model}"): (PHYSICIAN, None),
    ("POST", "/v1/chat/completions"): (PHYSICIAN, {"messages": [{"role": "user", "content": "hi"}]}),
}
"""(method, route) -> who is let in, and a body; a body may still be wrong for the state of things (409)."""
NOT_LET_IN = (401, 403, 404)


@pytest.fixture(scope="module")
def desk_with_switch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    store = Store.open("sqlite://", create=True)
    switch = KillSwitch(tmp_path_factory.mktemp("switch") / "switch.json")
    with serving(desk_of(store), switch=switch) as served:
        yield served
    store.close()


@pytest.fixture
def things(desk_with_switch: Served) -> dict[str, str]:
    """What stands in the places of addresses; all of the consultation is the physician's."""
    served = desk_with_switch
    token = served.tokens["physician"]
    served.tokens["ann"], former = token, served.tokens["ann"]
    draft = served.drafted()
    consultation = served.get(f"/turns/{draft['turn']}").json()["consultation"]
    key = served.get(f"/consultations/{consultation}/patient-link").json()["key"]
    served.tokens["ann"] = former
    return {
        "consultation": consultation,
        "turn": draft["turn"],
        "draft": draft["id"],
        "key": key,
        "kind": "state",
        "campaign": "c",
        "name": "bob",
        "model": "vrbot",
    }


def test_the_table_names_every_route_and_no_other(desk_with_switch: Served) -> None:
    document = desk_with_switch.client.get("/api/v1/openapi.json").json()
    described = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
    assert described == set(ROUTES)
    hidden = [
        route.path
        for route in desk_with_switch.client.app.routes  # type: ignore[attr-defined]
        if isinstance(route, APIRoute)
    ]
    assert sorted(hidden) == ["/api/{rest:path}", "/v1/{rest:path}"]


@pytest.mark.parametrize(("method", "route"), ROUTES, ids=[" ".join(route) for route in ROUTES])
def test_a_route_lets_in_whom_the_table_says_and_nobody_else(
    method: str, route: str, desk_with_switch: Served, things: dict[str, str]
) -> None:
    welcome, body = ROUTES[method, route]
    for who in sorted(EVERYBODY):
        order = ""
        if "{order}" in route and who in welcome:
            asked = {"campaign": "c", "item": "i", "systems": ["a"]}
            order = desk_with_switch.post("/ratings/orders", asked, who=who).json()["order"]
        path = route.format(**things, order=order or "0" * 32)
        caller = None if who == "nobody" or route == "/api/v1/sign-out" else who
        answer = desk_with_switch.call(method, path, caller, json=body)
        if who in welcome:
            assert answer.status_code in (200, 201, 204, 409), (who, answer.text)
        else:
            assert answer.status_code in NOT_LET_IN, (who, answer.text)
            assert answer.status_code == 401 or who != "nobody" or not welcome, answer.text


@pytest.mark.parametrize(
    "route", sorted(route for _, route in ROUTES if "{consultation}" in route or "{draft}" in route)
)
def test_another_physician_finds_nothing_there(route: str, desk_with_switch: Served, things: dict[str, str]) -> None:
    for (method, path), (_, body) in ROUTES.items():
        if path == route:
            answer = desk_with_switch.call(method, path.format(**things, order="0" * 32), "ann", json=body)
            assert answer.status_code == 404, answer.text
