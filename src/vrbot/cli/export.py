"""`vrbot export`: the best model of a run in a folder of its own that needs nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from vrbot.cli.printing import say, say_json
from vrbot.errors import UsageError


def export(
    run: Annotated[Path, typer.Argument(help="The folder of a run, or of a saved model.")],
    out: Annotated[Path, typer.Option(help="The folder to write.")],
    int8: Annotated[bool, typer.Option("--int8", help="Search replies by word scores of eight bits.")] = False,
    corpus: Annotated[Path | None, typer.Option(help="Where the run's corpus is now, if it has moved.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a saved model that is there.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was written as JSON.")] = False,
) -> None:
    """Save the best model of a run with its words, graph and settings: a folder to serve, to copy, to give away.

    It replies as the run does, to the last bit. With --int8 it answers faster on one core, and now and then otherwise:
    the weights stay as they are, only the search for words rounds them. Everything is verified when it is loaded.

    \b
    Example:
        vrbot export runs/first --out models/first
        vrbot export runs/first --out models/first-int8 --int8
    """
    from vrbot.agent.pretrained import load_pretrained, save_pretrained
    from vrbot.model.response_generator import ResponseGenerator

    if out.exists() and (not out.is_dir() or any(out.iterdir())) and not overwrite:
        raise UsageError(f"{out} is already there: choose another folder, or replace it with --overwrite")
    pretrained = load_pretrained(run, corpus)
    if int8:
        if not any(isinstance(part, ResponseGenerator) for part in pretrained.model.modules()):
            raise UsageError(f"{pretrained.facts.model} replies in float32 only: leave out --int8")
        pretrained = replace(pretrained, config=pretrained.config.with_settings({"decoding.precision": "int8"}))
    save_pretrained(out, pretrained, overwrite=overwrite)
    size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    facts, precision = pretrained.facts, pretrained.config.decoding.precision
    if as_json:
        say_json(
            {"out": str(out), "model": facts.model, "step": facts.step, "precision": precision, "megabytes": size / 1e6}
        )
    else:
        say(f"{facts.model} of step {facts.step}, {precision}, {size / 1e6:.1f} MB: {out}")
