"""What administrators do: accounts, the audit log, the kill switch for drafts."""

from __future__ import annotations

from datetime import UTC, datetime

from fastapi import APIRouter, Response

from vrbot.safety.switch import KillSwitch
from vrbot.serving.actors import ADMINISTER, AUDIT
from vrbot.serving.api.bodies import NewPassword, NewUser, PathUser, SwitchChange
from vrbot.serving.api.records_out import API, AuditOut, SwitchOut, UserOut, answer, plain, problems
from vrbot.serving.api.settings import AppSettings
from vrbot.serving.api.signin import SignedIn
from vrbot.serving.audit import verify
from vrbot.serving.problems import RefusedError
from vrbot.serving.service import Desk


def admin_routes(desk: Desk, settings: AppSettings) -> APIRouter:
    """Under /api/v1. As long as there are routes, each a few lines."""
    routes = APIRouter(prefix=API, tags=["administration"])

    @routes.get("/users", response_model=list[UserOut], responses=problems(401))
    def list_users(actor: SignedIn) -> Response:
        """All accounts by name."""
        return answer([plain(user) for user in desk.accounts.everyone(actor)])

    @routes.post("/users", status_code=201, response_model=UserOut, responses=problems(401, 409))
    def add_user(body: NewUser, actor: SignedIn) -> Response:
        """A new account."""
        return answer(plain(desk.accounts.add(actor, body.name, body.password, body.role)), 201)

    @routes.post("/users/{name}/disable", response_model=UserOut, responses=problems(401, 404))
    def disable_user(name: PathUser, actor: SignedIn) -> Response:
        """Shuts an account out and ends its sign-ins; what it did stays."""
        return answer(plain(desk.accounts.set_disabled(actor, name)))

    @routes.post("/users/{name}/enable", response_model=UserOut, responses=problems(401, 404))
    def enable_user(name: PathUser, actor: SignedIn) -> Response:
        """Lets an account in again."""
        return answer(plain(desk.accounts.set_disabled(actor, name, False)))

    @routes.put("/users/{name}/password", response_model=UserOut, responses=problems(401, 404))
    def set_password(name: PathUser, body: NewPassword, actor: SignedIn) -> Response:
        """A new password; whoever is signed in with the old one no longer is."""
        return answer(plain(desk.accounts.set_password(actor, name, body.password)))

    @routes.get("/audit", response_model=AuditOut, responses=problems(401))
    def verify_audit(actor: SignedIn) -> Response:
        """Reads everything once: whether any event or row was changed, removed, added or moved."""
        actor.must(AUDIT)
        report = verify(desk.store)
        return answer({**plain(report), "good": report.good})

    @routes.get("/safety/switch", response_model=SwitchOut, responses=problems(401))
    def read_switch(actor: SignedIn) -> Response:
        """Whether drafts are stopped, and why; for whoever is signed in."""
        return answer(plain(_switch(settings).state()))

    @routes.put("/safety/switch", response_model=SwitchOut, responses=problems(401))
    def throw_switch(body: SwitchChange, actor: SignedIn) -> Response:
        """Stops all drafts, or allows them again."""
        actor.must(ADMINISTER)
        switch = _switch(settings)
        with desk.store.writing("drafts switched off" if body.on else "drafts switched on", actor) as writer:
            writer.detail["on"] = body.on
            when = datetime.fromtimestamp(writer.now / 1_000_000, UTC)
            change = switch.switch_on if body.on else switch.switch_off
            state = change(body.reason, actor.id, when)
        return answer(plain(state))

    return routes


def _switch(settings: AppSettings) -> KillSwitch:
    if settings.switch is None:
        raise RefusedError("this desk has no kill switch")
    return settings.switch
