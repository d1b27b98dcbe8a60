"""Verify the audit log of a desk's database, or replay its drafts with the model that made them.

\b
Example:
    vrbot audit verify desk.sqlite
    vrbot audit replay desk.sqlite runs/vrbot-zh
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from vrbot.cli.printing import counting, say, say_json, say_table
from vrbot.errors import UsageError

audit = typer.Typer(no_args_is_help=True, help=__doc__)

Database = Annotated[str, typer.Argument(help="A SQLite file, or postgresql+psycopg://USER@HOST/NAME.")]
WitnessOption = Annotated[Path | None, typer.Option(help="The second place of heads; PATH.witness for SQLite.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the report as JSON.")]


@audit.command("verify")
def audit_verify(database: Database, witness: WitnessOption = None, as_json: JsonOption = False) -> None:
    """Check that no event and no row was changed, removed, added or moved.

    Not found: what was cut off after the last head the witness has, and the work of somebody who could write to the
    witness too. Keep the witness on another machine.

    \b
    Example:
        vrbot audit verify desk.sqlite --witness safe/desk.witness
    """
    from vrbot.serving.audit import verify
    from vrbot.serving.store import Store

    with closing(Store.open(database, witness=witness)) as store:
        report = verify(store)
    if as_json:
        say_json({**asdict(report), "good": report.good})
    else:
        second = f"{report.witnessed or 0:,} heads witnessed, {report.unwitnessed or 0:,} events since"
        second = "no witness" if report.witnessed is None else second
        say(f"{report.events:,} events, {report.rows:,} rows, {second}, head {report.head.hash}")
        if report.faults:
            say_table(("where", "what"), [(fault.place, fault.problem) for fault in report.faults])
    if not report.good:
        raise typer.Exit(1)


@audit.command("replay")
def audit_replay(
    database: Database,
    model: Annotated[Path, typer.Argument(help="A saved model, or a run: the one that made the drafts.")],
    corpus: Annotated[Path | None, typer.Option(help="Where a run's corpus has moved to.")] = None,
    guard: Annotated[Path | None, typer.Option(help="The --guard they were served with.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the newest drafts.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Compute stored drafts again, as `vrbot serve` made them, and compare them bit for bit.

    Give the model, and the guard if there was one, that they were served with: drafts of others are only counted.

    \b
    Example:
        vrbot audit replay desk.sqlite runs/vrbot-zh --limit 1000
        vrbot audit replay desk.sqlite runs/vrbot-zh --guard guard.json
    """
    from vrbot.serving.replay import replay
    from vrbot.serving.responder import responder_of
    from vrbot.serving.store import Store

    responder = responder_of(model, corpus, guard)
    with closing(Store.open(database)) as store, counting("drafts") as told:
        report = replay(store, responder, limit, told or (lambda count: None))
    if as_json:
        say_json({**asdict(report), "good": report.good})
    else:
        say(f"{report.same:,} the same, {len(report.different):,} different, {report.other_model:,} of another model")
        for key in report.different[:20]:
            say(f"different: draft {key}")
    if not report.good:
        raise typer.Exit(1)
    if not report.same and report.other_model:
        served = str(model) if guard is None else f"{model} with {guard}"
        raise UsageError(f"none of the drafts was made by {served}: name the model and the guard they were served with")
