"""Blind human evaluation: draw sheets for raters, and score what they filled in."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from vrbot.cli.printing import note, say
from vrbot.cli.score_tables import Format, say_scores
from vrbot.dialogue.corpus import Corpus
from vrbot.dialogue.session import Session
from vrbot.errors import UsageError
from vrbot.evaluation.human_folders import gather_judgements, write_folder
from vrbot.evaluation.human_sample import SampleSettings, draw_study
from vrbot.evaluation.human_scores import HumanScores, score_study
from vrbot.evaluation.human_study import KEY, SHEETS, STUDY, read_key, read_study
from vrbot.evaluation.human_systems import read_field
from vrbot.evaluation.human_tables import human_tables
from vrbot.files import atomic_write

HELP = """Blind human evaluation: draw sheets for raters, and score what they filled in.

\b
Example:
    vrbot humaneval draw seq2seq.jsonl vrbot.jsonl --corpus corpora/clinic --out study --dialogues 100 --raters 3
    vrbot humaneval score study
"""
SETTINGS = {"help_option_names": ["-h", "--help"]}
humaneval = typer.Typer(help=HELP, no_args_is_help=True, context_settings=SETTINGS)


@humaneval.command(context_settings=SETTINGS)
def draw(
    replies: Annotated[list[Path], typer.Argument(help="Two or more files of `vrbot evaluate --replies`.")],
    out: Annotated[Path, typer.Option(help="A new folder for sheets, study and key.")],
    corpus: Annotated[Path | None, typer.Option(help="The corpus evaluated: raters then see the conversation.")] = None,
    dialogues: Annotated[int, typer.Option(min=1, help="How many dialogues to draw.")] = 100,
    turns: Annotated[int, typer.Option(min=1, help="How many turns of each dialogue.")] = 1,
    raters: Annotated[int, typer.Option(min=1, help="How many raters.")] = 3,
    judges: Annotated[int | None, typer.Option(min=1, help="How many of them judge each item [all].")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the draw.")] = 1,
) -> None:
    """Draw a blind, balanced sample and write every rater's sheets; key.json alone says who wrote what.

    \b
    Example:
        vrbot humaneval draw seq2seq.jsonl vrbot.jsonl --corpus corpora/clinic --out study --raters 4 --judges 2
    """
    settings = SampleSettings(dialogues, turns, raters, judges, seed)
    field = read_field(replies)
    drawn = draw_study(field, settings, None if corpus is None else _Recorded(Corpus.open(corpus)))
    write_folder(out, drawn, field, seed)
    if corpus is None:
        note("without --corpus raters see what the physician said before, not the patient")
    if settings.judges < 2:
        note("one judge for each item: no agreement can be computed")
    items, shares = drawn.study.items, drawn.study.shares
    num_replies = sum(len(item.candidates) for item in items)
    say(f"{len(items)} turns of {dialogues} dialogues, {num_replies} different replies of {len(field.systems)} systems")
    say(f"{len(shares)} raters with {min(len(one.pages) for one in shares)} or more items each: {out / SHEETS}")
    say(f"Keep {out / KEY} from the raters; score with: vrbot humaneval score {out}")


@humaneval.command(context_settings=SETTINGS)
def score(
    folder: Annotated[Path, typer.Argument(help="The folder that was drawn.")],
    ratings: Annotated[
        list[Path] | None, typer.Option(help="Filled sheets or console files, or a folder; repeatable [FOLDER/sheets].")
    ] = None,
    key: Annotated[Path | None, typer.Option(help="The key, if it is kept elsewhere [FOLDER/key.json].")] = None,
    form: Annotated[Format, typer.Option("--format", help="How to write the tables.")] = Format.TERMINAL,
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write everything here as JSON.")] = None,
) -> None:
    """Score filled sheets: Flu, KC, EQ with intervals, kappa, wins and losses with tests, human MEP and MER.

    \b
    Example:
        vrbot humaneval score study --format markdown --json human.json
    """
    study = read_study(folder / STUDY)
    unblinded = read_key(key or folder / KEY, folder / STUDY)
    judgements = gather_judgements(study, ratings or [folder / SHEETS])
    if not judgements:
        raise UsageError(f"nothing is filled in yet in {folder / SHEETS}: collect the raters' sheets first")
    found = score_study(study, unblinded, judgements)
    for table in human_tables(found):
        say_scores(table, form)
    if json_file is not None:
        _write_json(json_file, found)


class _Recorded:
    """The dialogues of a corpus by name, whatever split they are in."""

    def __init__(self, corpus: Corpus) -> None:
        self.corpus = corpus
        self.places = {
            name: (split, number)
            for split in corpus.split_names
            for number, name in enumerate(corpus.split(split).session_ids)
        }

    def __call__(self, name: str) -> Session:
        if name not in self.places:
            raise UsageError(f"{self.corpus.directory} has no dialogue {name!r}: give the corpus that was evaluated")
        return self.corpus.session(*self.places[name])


def _write_json(path: Path, found: HumanScores) -> None:
    with atomic_write(path) as file:
        json.dump(asdict(found), file, ensure_ascii=False, indent=2, allow_nan=False)
        file.write("\n")
