"""Who is asking: by cookie, by `Authorization: Bearer`, or everybody as the demo physician in an open demonstration."""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.requests import HTTPConnection

from vrbot.serving.accounts import MICROSECONDS
from vrbot.serving.actors import MAY, Actor
from vrbot.serving.api.bodies import Setup, SignIn
from vrbot.serving.api.records_out import API, LoginOut, MeOut, UserOut, answer, plain, problems
from vrbot.serving.api.settings import DEMO_PHYSICIAN, AppSettings
from vrbot.serving.problems import RefusedError, SignInError
from vrbot.serving.service import Desk

COOKIE = "vrbot_session"
BEARER = HTTPBearer(auto_error=False, description="The token `POST /api/v1/sign-in` gives.")


@dataclass(frozen=True, eq=False)
class Gate:
    """What tells who is asking; the outermost layer puts it into `request.state.gate` for every part of the app."""

    desk: Desk
    settings: AppSettings


def token_of(connection: HTTPConnection) -> str | None:
    """The token a request carries; the header counts before the cookie."""
    scheme, _, token = connection.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return token.strip() or None
    return connection.cookies.get(COOKIE) or None


def signed_in(connection: HTTPConnection) -> Actor | None:
    """Whoever asks, if the desk knows them; reads the database, so call it in a thread.

    In an open demonstration whoever carries no token is the demo physician.
    """
    gate: Gate = connection.state.gate
    token = token_of(connection)
    if token is not None:
        user = gate.desk.accounts.who(token)
        if user is not None:
            return user.actor
    return DEMO_PHYSICIAN if gate.settings.open_demo else None


def require_actor(
    request: Request, shown: Annotated[HTTPAuthorizationCredentials | None, Security(BEARER)] = None
) -> Actor:
    """Whoever asks; SignInError if nobody the desk knows."""
    del shown  # named for the OpenAPI document; `signed_in` reads the header itself
    actor = signed_in(request)
    if actor is None:
        raise SignInError("sign in first: POST /api/v1/sign-in, then send the cookie or Authorization: Bearer TOKEN")
    return actor


SignedIn = Annotated[Actor, Depends(require_actor)]


def signin_routes(desk: Desk, settings: AppSettings) -> APIRouter:
    """Under /api/v1."""
    routes = APIRouter(prefix=API, tags=["sign-in"])

    @routes.post("/sign-in", response_model=LoginOut, responses=problems(401))
    def sign_in(body: SignIn) -> Response:
        """A token for a name and its password, in the answer and as a cookie."""
        login = desk.accounts.sign_in(body.name, body.password)
        response = answer({"token": login.token, "expires_at": login.expires_at, "user": plain(login.user)})
        seconds = max(0, (login.expires_at - desk.store.clock()) // MICROSECONDS)
        response.set_cookie(
            COOKIE, login.token, max_age=seconds, path="/", secure=settings.https, httponly=True, samesite="strict"
        )
        return response

    @routes.post("/sign-out", status_code=204, responses=problems())
    def sign_out(request: Request, response: Response) -> None:
        """Ends the sign-in."""
        token = token_of(request)
        if token is not None:
            desk.accounts.sign_out(token)
        response.delete_cookie(COOKIE, path="/", secure=settings.https, httponly=True, samesite="strict")

    @routes.get("/me", response_model=MeOut, responses=problems(401))
    def who_am_i(actor: SignedIn) -> Response:
        """Who is signed in, and what the role allows."""
        may = sorted(MAY.get(actor.role, frozenset()))
        return answer({"id": actor.id, "role": actor.role, "may": may, "demo": desk.demo})

    @routes.post("/setup", status_code=201, response_model=UserOut, responses=problems(409))
    def set_up(body: Setup) -> Response:
        """Makes the first administrator, with the code the server printed; once."""
        code = settings.setup_code
        if code is None or not hmac.compare_digest(body.code.encode("utf-8"), code.encode("utf-8")):
            raise RefusedError("the set-up code is wrong, or there is none: see the server's terminal")
        return answer(plain(desk.accounts.add_first(body.name, body.password)), 201)

    return routes
