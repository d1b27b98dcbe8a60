"""`vrbot train`: from a prepared corpus to a trained model that can be stopped and resumed at any moment."""

from __future__ import annotations

import importlib
import os
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from vrbot.cli.printing import note, say
from vrbot.config import parse_assignments, recipe
from vrbot.errors import UsageError
from vrbot.training.description import LabelFractions, RunPlan
from vrbot.training.observe import Lines, Observer, TerminalBar
from vrbot.training.runs import Parts, RunOutcome, open_run, train_run

MODELS = "vrbot.baselines.catalogue:build_model"
VALIDATION = "vrbot.evaluation.validation:build_validation"
CHOICE = "vrbot.evaluation.validation:choose_decoding"
"""`module:name` of what builds a model, judges it and chooses how it searches; looked up when training starts."""

MEASURE = "merit"
INTERRUPTED = 130


def train(
    out: Annotated[Path, typer.Option(help="The folder of the run.")],
    model: Annotated[str | None, typer.Option(help="Which model; see `vrbot models`.")] = None,
    corpus: Annotated[Path | None, typer.Option(help="The prepared corpus.")] = None,
    recipe: Annotated[str | None, typer.Option(help="small (for one CPU, the default) or paper.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="A setting as key=value, such as training.max_epochs=3; repeatable."),
    ] = None,
    state_labels: Annotated[float | None, typer.Option(help="Share of dialogues with state labels [1].")] = None,
    action_labels: Annotated[float | None, typer.Option(help="Share with action labels [1].")] = None,
    category_labels: Annotated[float | None, typer.Option(help="Share with category labels [as action].")] = None,
    seed: Annotated[int | None, typer.Option(help="The same seed gives the same weights [1].")] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="Threads of each process.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in the folder.")] = False,
) -> None:
    """Train a model; stop it with Ctrl-C whenever you like, and go on with --resume as if nothing had happened.

    A resumed run needs no other options; those given must be what the run was started with. On several processes:
    torchrun --nproc-per-node 2 --no-python vrbot train, with training.shards a multiple of them.

    \b
    Example:
        vrbot train --model vrbot --corpus corpora/clinic --out runs/first --set training.max_epochs=3
        vrbot train --out runs/first --resume
    """
    labels = {"state": state_labels, "action": action_labels, "category": category_labels}
    plan = _plan(out, resume, model, corpus, recipe, settings or [], labels, seed)
    again = f"vrbot train --out {shlex.quote(str(out))} --resume"
    is_first = os.environ.get("RANK", "0") == "0"
    if is_first and os.environ.get("OMP_WAIT_POLICY", "").upper() != "PASSIVE" and threads != 1:
        note("hint: OMP_WAIT_POLICY=PASSIVE in the environment keeps waiting threads from slowing each other down")
    parts = Parts(
        build=_lookup(MODELS),
        validation=_lookup(VALIDATION),
        choose=_lookup(CHOICE),
        measure=MEASURE,
        observers=_observers(),
        on_stop_wish=lambda: note("stopping after this step; once more stops at once"),
    )
    outcome = train_run(out, plan, parts, resume=resume, threads=threads)
    if is_first:
        _say_outcome(outcome, again)
    if outcome.status == "interrupted":
        raise typer.Exit(INTERRUPTED)


def _plan(
    out: Path,
    resume: bool,
    model: str | None,
    corpus: Path | None,
    recipe_name: str | None,
    assignments: list[str],
    labels: dict[str, float | None],
    seed: int | None,
) -> RunPlan:
    """The plan asked for; what a resumed run was not told again it has from its folder."""
    given = {name: share for name, share in labels.items() if share is not None}
    if resume:
        former = open_run(out).plan
        base = former.config if recipe_name is None else recipe(recipe_name)
        return RunPlan(
            model or former.model,
            corpus or former.corpus,
            base.with_settings(parse_assignments(assignments)),
            former.seed if seed is None else seed,
            LabelFractions(**{**vars(former.labels), **given}),
        )
    if model is None or corpus is None:
        raise UsageError("a new run needs --model and --corpus (or --resume, to go on with one)")
    config = recipe(recipe_name or "small").with_settings(parse_assignments(assignments))
    return RunPlan(model, corpus, config, 1 if seed is None else seed, LabelFractions(**given))


def _lookup(target: str) -> Any:
    module_name, _, name = target.partition(":")
    return getattr(importlib.import_module(module_name), name)


def _observers() -> list[Observer]:
    """A bar and lines on a terminal, lines elsewhere."""
    if not sys.stderr.isatty():
        return [Lines(note)]
    from rich.console import Console

    console = Console(stderr=True)
    return [Lines(lambda text: console.print(text, highlight=False, markup=False)), TerminalBar(console)]


def _say_outcome(outcome: RunOutcome, again: str) -> None:
    progress = outcome.progress
    if outcome.status == "interrupted":
        note(f"stopped after step {progress.step}; everything is saved, go on with: {again}")
        return
    said = "was finished before" if outcome.status == "already finished" else "is finished"
    say(f"{outcome.folder} {said} after step {progress.step}: {progress.finished}")
    if progress.best_score is not None:
        say(f"best model: step {progress.best_step}, score {progress.best_score:.4g}")
