"""Speed of training and decoding on this machine, beside its matrix-product speed in the same run.

\b
Example:
    vrbot bench train --corpus corpora/covid --recipe paper --steps 5
"""

from __future__ import annotations

import enum
import json
import resource
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from vrbot.cli.printing import note, say_json
from vrbot.files import atomic_write

bench = typer.Typer(no_args_is_help=True, help=__doc__)


class Exactness(enum.StrEnum):
    """How exactly replies are computed."""

    FLOAT32 = "float32"
    INT8 = "int8"


CorpusOption = Annotated[Path, typer.Option(help="The prepared corpus.")]
RecipeOption = Annotated[str, typer.Option(help="small or paper.")]
StepsOption = Annotated[int, typer.Option(min=1, help="Steps to time after one to warm up.")]
JsonOption = Annotated[Path | None, typer.Option("--json", help="Also write the figures to this file.")]
ThreadsOption = Annotated[int | None, typer.Option(min=1, help="Threads; all cores if not given.")]


@bench.command("train")
def bench_train(
    corpus: CorpusOption,
    recipe: RecipeOption = "paper",
    model: Annotated[str, typer.Option(help="Which model.")] = "vrbot",
    steps: StepsOption = 5,
    threads: ThreadsOption = None,
    json_file: JsonOption = None,
) -> None:
    """Turns per second of training, in both stages.

    \b
    Example:
        vrbot bench train --corpus corpora/covid --recipe paper --steps 5
    """
    from vrbot.training.speed import measure_training

    _report(measure_training(corpus, recipe, model, steps, threads), json_file)


@bench.command("decode")
def bench_decode(
    corpus: CorpusOption,
    recipe: RecipeOption = "paper",
    model: Annotated[str, typer.Option(help="Which model.")] = "vrbot",
    steps: StepsOption = 3,
    threads: ThreadsOption = None,
    precision: Annotated[Exactness, typer.Option(help="Of the generator's products.")] = Exactness.FLOAT32,
    json_file: JsonOption = None,
) -> None:
    """Turns per second of replying with beam 5: 32 turns together, and one turn alone.

    \b
    Example:
        vrbot bench decode --corpus corpora/covid --recipe paper
    """
    from vrbot.agent.speed import measure_decoding

    _report(measure_decoding(corpus, recipe, model, steps, threads, precision.value), json_file)


def _report(figures: dict[str, Any], json_file: Path | None) -> None:
    figures["peak_rss_mb"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    figures["measured"] = time.strftime("%Y-%m-%d")
    say_json(figures)
    if json_file is not None:
        with atomic_write(json_file) as file:
            file.write(json.dumps(figures, indent=2) + "\n")
        note(f"written to {json_file}")
