"""`vrbot serve`: a model at the physician's desk, over HTTP and in the console."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from vrbot.cli.printing import note


def serve(
    run: Annotated[Path, typer.Argument(help="A run, or a folder with a saved model.")],
    host: Annotated[str, typer.Option(help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Where to listen; 0 takes a free one.")] = 8080,
    database: Annotated[
        str, typer.Option(help="A SQLite file, or postgresql+psycopg://USER@HOST/NAME.")
    ] = "desk.sqlite",
    workers: Annotated[int, typer.Option(min=1, help="Processes; more than one needs --no-console.")] = 1,
    console: Annotated[bool, typer.Option("--console/--no-console", help="Serve the console too.")] = True,
    demo: Annotated[bool, typer.Option("--demo", help="A demonstration without sign-in, on loopback only.")] = False,
    https: Annotated[bool, typer.Option("--https", help="Browsers reach it by https (through a proxy).")] = False,
    corpus: Annotated[Path | None, typer.Option(help="Where the run's corpus is now, if it has moved.")] = None,
    guard: Annotated[Path | None, typer.Option(help="Calibrated confidence, from `vrbot explain --audit`.")] = None,
    witness: Annotated[Path | None, typer.Option(help="The second place of audit heads.")] = None,
    state: Annotated[Path | None, typer.Option(help="Where secret and kill switch are [beside the database].")] = None,
    study: Annotated[Path | None, typer.Option(help="A study of `vrbot humaneval draw`, to be rated.")] = None,
    experiments: Annotated[Path | None, typer.Option(help="Results of `vrbot experiment`, to be shown.")] = None,
    queue: Annotated[int, typer.Option(min=1, help="How many may wait for a draft before others are sent away.")] = 64,
    log_requests: Annotated[bool, typer.Option("--log-requests", help="Log every request, by its route.")] = False,
) -> None:
    """Serve a model: the API under /api/v1 and /v1, and the console; sign-in is on.

    Without any account a one-time code is printed, with which the first administrator is made. Ctrl-C or SIGTERM ends
    it in good order: what is under way is finished, what comes new is told to come back.

    \b
    Example:
        vrbot serve runs/first --database desk.sqlite
        vrbot serve runs/first --database postgresql+psycopg://desk@db/desk --workers 2 --no-console
    """
    from vrbot.safety.switch import KillSwitch
    from vrbot.serving.api.settings import AppSettings
    from vrbot.serving.running import Plan, bound, files_beside, kept_secret, verified, with_setup_code
    from vrbot.serving.running import serve as serve_plan

    secret, switch = files_beside(database, state)
    settings = AppSettings(
        open_demo=demo,
        console=console,
        https=https,
        switch=KillSwitch(switch),
        study=study,
        experiments=experiments,
        queue_length=queue,
        model_name=run.resolve().name,
    )
    plan = Plan(run, database, settings, corpus, guard, witness, host, port, workers, log_requests)
    verified(plan)
    listening = bound(host, port)
    plan = replace(plan, settings=replace(settings, secret=kept_secret(secret)))
    plan = with_setup_code(plan, lambda code: note(f"no account yet: make the first with this code: {code}"))
    where = f"http://{_shown(host)}:{listening.getsockname()[1]}"
    serve_plan(plan, listening, told=lambda: note(f"serving {run} on {where} (Ctrl-C ends it)"))


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host
