"""The paper's tables and figures: run a plan, report what was found, list the plans, make our own tables again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vrbot.cli.printing import note, say, say_json, say_table
from vrbot.errors import UsageError

if TYPE_CHECKING:
    from vrbot.experiments.design import Plan
    from vrbot.experiments.folder import ExperimentFolder, Job
    from vrbot.experiments.runner import Event

HELP = """The paper's tables and figures: run a plan, report what was found, list the plans.

\b
Example:
    vrbot experiment list
    vrbot experiment run ablations --corpus corpora/clinic --out results/ablations --jobs 2
    vrbot experiment report results/ablations
    vrbot experiment tables --data data --jobs 2
"""
SETTINGS = {"help_option_names": ["-h", "--help"]}
INTERRUPTED, FAILED = 130, 1
experiment = typer.Typer(help=HELP, no_args_is_help=True, context_settings=SETTINGS)


@experiment.command(context_settings=SETTINGS)
def run(
    plan: Annotated[str, typer.Argument(help="Which plan; see `vrbot experiment list`.")],
    corpus: Annotated[list[Path] | None, typer.Option(help="A prepared corpus; repeatable.")] = None,
    out: Annotated[Path | None, typer.Option(help="The folder of the experiment [runs/experiments/PLAN].")] = None,
    jobs: Annotated[int, typer.Option(min=1, help="How many runs side by side, one thread each.")] = 1,
    only: Annotated[list[str] | None, typer.Option(help="Only this row, or `references`; repeatable.")] = None,
    seeds: Annotated[str | None, typer.Option(help="Such as 1,2,3 [the plan's].")] = None,
    recipe: Annotated[str, typer.Option(help="small (for one CPU) or paper.")] = "small",
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="A setting for every model alike, as key=value; repeatable.")
    ] = None,
) -> None:
    """Run a plan: train, measure and keep the replies of every row and seed. Calling it again does what is left.

    \b
    Example:
        vrbot experiment run unlabelled --corpus corpora/meddg --out results/unlabelled --jobs 2 --seeds 1,2,3
        vrbot experiment run smoke
    """
    from vrbot.config import parse_assignments
    from vrbot.experiments.folder import REFERENCES
    from vrbot.experiments.plans import plan_of
    from vrbot.experiments.runner import begin, jobs_of
    from vrbot.experiments.smoke import smoke_corpus

    chosen, wanted = plan_of(plan), _seeds(seeds)
    place = out or Path("runs") / "experiments" / plan
    corpora = list(corpus or [])
    if plan == "smoke" and not corpora:
        corpora = [smoke_corpus(place.with_name(f"{place.name}-corpus"))]
    changes = parse_assignments(settings or [])
    for name in only or ():
        if name != REFERENCES:
            chosen.row(name)  # a wrong one is refused before anything is begun
    folder = begin(place, chosen, corpora, seeds=wanted, recipe_name=recipe, settings=changes)
    code = _do(folder, jobs_of(chosen, folder.setup(), only or (), wanted), jobs)
    if code:
        raise typer.Exit(code)


@experiment.command(context_settings=SETTINGS)
def tables(
    names: Annotated[list[str] | None, typer.Argument(help="Which of our tables [all, in order].")] = None,
    data: Annotated[
        Path | None, typer.Option(envvar="VRBOT_DATA", help="The folder with the real dialogues and graphs.")
    ] = None,
    out: Annotated[Path, typer.Option(help="The folder of corpora and experiments.")] = Path("runs") / "tables",
    jobs: Annotated[int, typer.Option(min=0, help="How many runs side by side, one thread each; 0 runs nothing.")] = 1,
    only: Annotated[list[str] | None, typer.Option(help="Only this row, or `references`; repeatable.")] = None,
    seeds: Annotated[str | None, typer.Option(help="Such as 1,2 [all of the table's].")] = None,
    publish: Annotated[Path | None, typer.Option(help="Copy each report to this folder [nowhere].")] = None,
    go_on_from: Annotated[
        Path | None, typer.Option(help="Take runs published in this folder for finished ones [none].")
    ] = None,
) -> None:
    """Make our own tables again, from the dialogues to the report. Calling it again does what is left.

    The small clinic is simulated. The tables of real dialogues need their files and are left out without them.

    \b
    Example:
        vrbot experiment tables --data data --jobs 2 --publish docs/results
        vrbot experiment tables ablations-clinic transfer-clinic --jobs 2
        vrbot experiment tables unlabelled-meddg --data data --only seq2seq --only vrbot --seeds 1
        vrbot experiment tables --data data --go-on-from docs/results --jobs 0 --publish docs/results
    """
    from vrbot.experiments.own_corpora import own_corpus, own_encoder
    from vrbot.experiments.own_tables import check_rows, check_seeds, part_of, tables_of
    from vrbot.experiments.publishing import publish as publish_report
    from vrbot.experiments.publishing import take_over
    from vrbot.experiments.report import make_report, write_report

    chosen, rows, some_seeds = tables_of(names or []), only or (), _seeds(seeds) or ()
    check_rows(chosen, rows)
    check_seeds(chosen, some_seeds)
    codes = []
    for table in chosen:
        try:
            corpus = own_corpus(table.corpus, data, out / "corpora")
        except UsageError as error:
            note(f"{table.name} is left out: {error}")
            codes.append(FAILED if names else 0)  # whoever asks for it by name expects it
            continue
        folder, todo = table.begin(corpus, out, own_encoder(data))
        if go_on_from is not None:
            note(f"{len(take_over(folder, todo, go_on_from))} runs of {table.name} are taken from {go_on_from}")
        now = part_of(todo, rows, some_seeds)
        if not now:
            note(f"{table.name} has nothing to run of what was asked for (rows that read with an encoder need one)")
        codes.append(_do(folder, now, jobs) if now and jobs else 0)
        if any(folder.result(job) is not None for job in todo):
            try:
                found = publish_report(folder, publish) if publish else write_report(folder, make_report(folder))
                say(f"report: {found}")
            except UsageError as error:
                note(f"not published: {error}")
                codes.append(FAILED)
        if INTERRUPTED in codes:
            break
    if any(codes):
        raise typer.Exit(max(codes))


def _do(folder: ExperimentFolder, todo: list[Job], side_by_side: int) -> int:
    """Does the jobs of one experiment, says what became of them, and gives an exit code."""
    from vrbot.experiments.runner import run_experiment

    outcome = run_experiment(folder, todo, side_by_side=side_by_side, on_event=_Progress())
    say(f"{len(outcome.skipped) + len(outcome.finished)} of {len(todo)} jobs are finished: {folder.path}")
    if outcome.interrupted:
        note(f"{len(outcome.interrupted)} jobs were interrupted or not begun; the same command goes on with them")
        return INTERRUPTED
    if outcome.failed:
        note(f"{len(outcome.failed)} jobs failed; the same command tries them again")
        return FAILED
    return 0


@experiment.command(context_settings=SETTINGS)
def report(
    folder: Annotated[Path, typer.Argument(help="The folder of an experiment.")],
    resamples: Annotated[int, typer.Option(min=100, help="Resamples of the bootstrap.")] = 10_000,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Report what is finished: tables (Markdown, LaTeX, CSV), tests, figures; what is not finished is shown as missing.

    \b
    Example:
        vrbot experiment report results/unlabelled
    """
    from vrbot.experiments.folder import ExperimentFolder
    from vrbot.experiments.report import as_dict, make_report, write_report

    opened = ExperimentFolder(folder)
    found = make_report(opened, num_resamples=resamples)
    written = write_report(opened, found)
    if as_json:
        say_json(as_dict(found))
        return
    say(found.markdown())
    note(f"written to {written}")


@experiment.command(context_settings=SETTINGS)
def readme(
    document: Annotated[Path, typer.Argument(help="A Markdown file with the lines <!-- results: FOLDER -->.")],
) -> None:
    """Write the short tables of a document anew, from the report folders that its marks name.

    \b
    Example:
        vrbot experiment readme README.md
    """
    from vrbot.experiments.readme import write_tables

    changed = write_tables(document)
    say(f"{document} {'has new tables' if changed else 'had these tables already'}")


@experiment.command("list", context_settings=SETTINGS)
def list_plans(as_json: Annotated[bool, typer.Option("--json", help="Print the list as JSON.")] = False) -> None:
    """List the plans: what each shows, how many runs it takes, what its corpus needs.

    \b
    Example:
        vrbot experiment list
    """
    from vrbot.experiments.plans import PLANS

    if as_json:
        say_json([_summary(plan) for plan in PLANS.values()])
        return
    rows = [
        (one.name, one.source, len(one.rows), len(one.rows) * len(one.seeds), one.title, one.needs)
        for one in PLANS.values()
    ]
    say_table(("plan", "paper", "rows", "runs", "what it shows", "what it needs"), rows)


class _Progress:
    """A line for everything that happens to a job."""

    def __call__(self, event: Event) -> None:
        left = "" if event.seconds_left is None else f"; about {duration(event.seconds_left)} left"
        error = "" if event.error is None else f": {event.error}"
        note(f"[{event.done}/{event.total}] {event.job} {event.kind}{error}{left}")


def duration(seconds: float) -> str:
    """Such as 45 s, 12 min, 3 h 20 min."""
    minutes = round(seconds / 60)
    if seconds < 90:
        return f"{round(seconds)} s"
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


def _summary(plan: Plan) -> dict[str, Any]:
    return {
        "name": plan.name,
        "source": plan.source,
        "title": plan.title,
        "rows": [row.name for row in plan.rows],
        "seeds": plan.seeds,
        "needs": plan.needs,
    }


def _seeds(text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    try:
        found = tuple(dict.fromkeys(int(part) for part in text.split(",")))
    except ValueError:
        raise UsageError(f"--seeds takes numbers with commas between them, such as 1,2,3, got {text!r}") from None
    if min(found) < 0:
        raise UsageError(f"a seed must be 0 or more, got {min(found)}")
    return found
