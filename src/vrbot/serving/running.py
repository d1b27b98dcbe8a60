"""A desk on a port: from a plan to processes that serve it, each with its own model over one database."""

from __future__ import annotations

import logging
import multiprocessing
import os
import secrets
import signal
import socket
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vrbot.errors import UsageError
from vrbot.safety.switch import KillSwitch
from vrbot.serving.api.settings import AppSettings
from vrbot.serving.database import parse_address, sqlite_file
from vrbot.serving.store import Store

if TYPE_CHECKING:
    from fastapi import FastAPI

    from vrbot.serving.service import Desk

log = logging.getLogger(__name__)

UNCALIBRATED = (
    "confidence is not calibrated and no draft is marked as doubtful: make a guard with "
    "`vrbot explain RUN --audit CORPUS --guard FILE` and serve with --guard FILE"
)
LOOPBACK = ("127.0.0.1", "::1", "localhost")
HEALTH_SECONDS = 30
SHORTEST_SECRET = 32


@dataclass(frozen=True)
class Plan:
    """What is served, from which database, where; can be handed to another process."""

    model: Path
    database: str
    settings: AppSettings
    corpus: Path | None = None
    guard: Path | None = None
    witness: Path | None = None
    host: str = "127.0.0.1"
    port: int = 8080
    workers: int = 1
    log_requests: bool = False

    def __post_init__(self) -> None:
        if self.settings.open_demo and self.host not in LOOPBACK:
            raise UsageError(
                f"a demonstration without sign-in listens on loopback only: --host {LOOPBACK[0]}, not {self.host!r}"
            )
        if self.workers < 1:
            raise UsageError(f"workers must be at least 1, got {self.workers}")
        if self.workers > 1 and self.settings.console:
            raise UsageError("the console needs one worker: serve it by a process of its own over the same database")


def files_beside(database: str, folder: Path | None = None) -> tuple[Path, Path]:
    """Where the secret and the kill switch of a database are kept: beside a SQLite file, else in a folder."""
    path = sqlite_file(parse_address(database))
    name = "vrbot" if path is None else path.name
    place = folder or (Path() if path is None else path.parent)
    return place / f"{name}.secret", place / f"{name}.switch"


def kept_secret(path: Path) -> str:
    """The secret in a file that only its owner can read; made where there is none."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        found = path.read_text(encoding="utf-8").strip()
        if len(found) < SHORTEST_SECRET:
            raise UsageError(
                f"{path} has no secret of {SHORTEST_SECRET} characters: delete it to have one made"
            ) from None
        return found
    except OSError as error:
        raise UsageError(f"{path} cannot be made: {error.strerror}") from None
    made = secrets.token_hex(32)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(made + "\n")
    return made


def verified(plan: Plan) -> None:
    """Says in one line what is wrong with the model or the database, before any port is taken or process started."""
    from vrbot.agent.pretrained import FACTS, RUN, load_pretrained
    from vrbot.model.vrbot import VRBot

    if plan.workers > 1 or not any((plan.model / name).is_file() for name in (FACTS, RUN)):
        found = load_pretrained(plan.model, plan.corpus)  # one process verifies it anyway when it opens the desk
        if plan.guard is None and isinstance(found.model, VRBot):
            log.warning(UNCALIBRATED)
    Store.open(plan.database, create=True, witness=plan.witness).close()


def open_desk(plan: Plan) -> Desk:
    """The desk of a plan; its model is loaded and verified, and nobody has to wait for its rules to be prepared."""
    from vrbot.safety.claims import ClaimChecker
    from vrbot.serving.responder import responder_of
    from vrbot.serving.rules_desk import RulesDesk
    from vrbot.serving.service import Desk

    responder = responder_of(plan.model, plan.corpus, plan.guard)
    if plan.workers == 1 and not getattr(responder, "calibrated", True):
        log.warning(UNCALIBRATED)
    store = Store.open(plan.database, create=True, witness=plan.witness)
    switch = plan.settings.switch or KillSwitch(files_beside(plan.database)[1])
    rules = RulesDesk(switch, ClaimChecker(responder.inventory))
    rules.prepare()
    return Desk(store, rules, responder, demo=plan.settings.open_demo)


def open_app(plan: Plan, prepare: Callable[[Desk], None] = lambda desk: None) -> FastAPI:
    """The app of a plan, in whichever process it is to run; `prepare` has its desk first."""
    from vrbot.serving.app import create_app

    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("vrbot").setLevel(logging.INFO if plan.log_requests else logging.WARNING)
    desk = open_desk(plan)
    prepare(desk)
    return create_app(desk, plan.settings)


def with_setup_code(plan: Plan, told: Callable[[str], None]) -> Plan:
    """The plan with a one-time code for the first administrator, which is told; as it is where there are accounts."""
    from vrbot.serving.accounts import Accounts

    with closing(Store.open(plan.database, create=True, witness=plan.witness)) as store:
        if plan.settings.open_demo or not Accounts(store).are_none():
            return plan
    code = secrets.token_urlsafe(12)
    told(code)
    return replace(plan, settings=replace(plan.settings, setup_code=code))


def bound(host: str, port: int) -> socket.socket:
    """A socket that has the port already, so that nobody waits for a model to hear it is taken."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, protocol)
    except OSError as error:
        raise UsageError(f"{host} is not a name of this machine ({error.strerror}): give --host another") from None
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind(address)
        listening.listen(socket.SOMAXCONN)  # whoever binds second hears of it even if neither serves yet
    except OSError as error:
        listening.close()
        raise UsageError(f"port {port} of {host} cannot be used ({error.strerror}): choose another --port") from None
    listening.set_inheritable(True)
    return listening


def serve(
    plan: Plan,
    listening: socket.socket,
    make: Callable[[Plan], FastAPI] = open_app,
    told: Callable[[], None] = lambda: None,
) -> None:
    """Serves until a signal ends it; what is under way is finished first.

    `make` is called in each process; `told` once nothing that can be seen beforehand stands in the way.
    """
    import uvicorn
    from uvicorn.supervisors import Multiprocess

    alone = make(plan) if plan.workers == 1 else None
    config = uvicorn.Config(
        alone or partial(_in_worker, make, plan),
        factory=alone is None,
        workers=plan.workers,
        log_config=None,
        access_log=False,  # an address may hold a patient's link; the app logs routes
        server_header=False,
        ws_max_size=plan.settings.max_body_bytes,
        timeout_graceful_shutdown=int(plan.settings.drain_seconds) + 1,
        timeout_worker_healthcheck=HEALTH_SECONDS,
        lifespan="on",
    )
    signal.signal(signal.SIGTERM, _nothing_more)  # what uvicorn raises again once it has shut down in good order
    told()
    if alone is not None:
        uvicorn.Server(config).run(sockets=[listening])
    else:
        Multiprocess(config, sockets=[listening]).run()


def _in_worker(make: Callable[[Plan], FastAPI], plan: Plan) -> FastAPI:
    """The app of one of several processes, which shuts down in good order when the one that started it is gone."""
    parent = multiprocessing.parent_process()

    def outlive_nobody() -> None:
        if parent is not None:
            parent.join()
            os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=outlive_nobody, name="parent", daemon=True).start()
    return make(plan)


def _nothing_more(number: int, frame: Any) -> None:
    del number, frame
