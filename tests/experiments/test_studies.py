"""What people look at is drawn from the same replies, blindly, and not before all of them are there."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from tests.experiments.conftest import SMOKE
from vrbot.dialogue.corpus import Corpus
from vrbot.evaluation.human_study import KEY, STUDY, read_key
from vrbot.experiments.folder import ExperimentFolder
from vrbot.experiments.report import make_report, write_report
from vrbot.experiments.results import gather
from vrbot.experiments.studies import case_table, draw_sheets


def test_sheets_are_drawn_once_for_all_trained_systems(smoked: ExperimentFolder, clinic: Path, tmp_path: Path) -> None:
    corpus, systems = Corpus.open(clinic), gather(smoked, SMOKE, smoked.setup(), "clinic")
    unfinished = [replace(one, runs=()) if one.name == "vrbot" else one for one in systems]
    assert not draw_sheets(tmp_path / "sheets", unfinished, corpus)
    assert draw_sheets(tmp_path / "sheets", systems, corpus)
    key = read_key(tmp_path / "sheets" / KEY, tmp_path / "sheets" / STUDY)
    assert [one.name for one in key.systems] == ["seq2seq", "vrbot"]
    before = (tmp_path / "sheets" / STUDY).read_bytes()
    assert not draw_sheets(tmp_path / "sheets", systems, corpus)
    assert (tmp_path / "sheets" / STUDY).read_bytes() == before


def test_a_case_shows_the_conversation_and_every_systems_reply(smoked: ExperimentFolder, clinic: Path) -> None:
    corpus, systems = Corpus.open(clinic), gather(smoked, SMOKE, smoked.setup(), "clinic")
    table = case_table(systems, corpus, "A case")
    assert table is not None
    said = [str(row[0].value) for row in table.rows]
    assert said[:2] == ["U1", "R1"]
    assert said.index("physician") == said.index("seq2seq: reply") - 3  # the labelled state and action between
    assert {"seq2seq: reply", "vrbot: state", "vrbot: action", "vrbot: reply"} <= set(said)
    assert "seq2seq: why" not in said
    assert case_table([replace(one, runs=()) for one in systems], corpus, "A case") is None


def test_the_case_says_what_the_states_and_keywords_of_the_kept_replies_rest_on(
    smoked: ExperimentFolder, clinic: Path
) -> None:
    corpus, systems = Corpus.open(clinic), gather(smoked, SMOKE, smoked.setup(), "clinic")
    table = case_table(systems, corpus, "A case")
    assert table is not None
    rows = [(str(who.value), str(what.value)) for who, what in table.rows]
    decided = dict(rows)
    why = [line for who, line in rows if who == "vrbot: why"]
    state = {found[1] for line in why if (found := re.match(r"  [+ ] (.+) \((?:new|kept)\)", line))}
    assert state == set(filter(None, decided["vrbot: state"].split(", ")))
    start = next(number for number, line in enumerate(why) if line.startswith("keywords:"))
    named = {found[1] for line in why[start:] if (found := re.match(r"  (\S.*?) [\d.]+%", line))}
    assert named == set(decided["vrbot: action"].split(", ")[1:])


def test_a_case_whose_model_was_not_kept_goes_without_reasons(
    smoked: ExperimentFolder, clinic: Path, tmp_path: Path
) -> None:
    corpus, systems = Corpus.open(clinic), gather(smoked, SMOKE, smoked.setup(), "clinic")
    moved = []
    for one in systems:
        found = [run for run in one.runs if run.replies is not None]
        for number, run in enumerate(found):
            assert run.replies is not None
            copy = tmp_path / one.name / str(number) / "replies.jsonl"
            copy.parent.mkdir(parents=True)
            copy.write_bytes(run.replies.read_bytes())
            found[number] = replace(run, replies=copy)
        moved.append(replace(one, runs=tuple(found)))
    with_reasons, without = case_table(systems, corpus, "A case"), case_table(moved, corpus, "A case")
    assert with_reasons is not None
    assert without is not None
    assert without.rows == tuple(row for row in with_reasons.rows if row[0].value != "vrbot: why")


def test_plans_with_people_in_them_get_their_sheets_and_their_case(
    smoked: ExperimentFolder, clinic: Path, tmp_path: Path
) -> None:
    report = make_report(smoked, replace(SMOKE, study="case"), num_resamples=100)
    assert "case" in report.corpora[0].tables
    sheets = smoked.path / "clinic" / "sheets"
    write_report(smoked, replace(report, plan=replace(SMOKE, study="human")))
    assert (sheets / STUDY).is_file()
