"""What people look at is drawn from the same replies, blindly, and not before all of them are there."""

from __future__ import annotations

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
    assert case_table([replace(one, runs=()) for one in systems], corpus, "A case") is None


def test_plans_with_people_in_them_get_their_sheets_and_their_case(
    smoked: ExperimentFolder, clinic: Path, tmp_path: Path
) -> None:
    report = make_report(smoked, replace(SMOKE, study="case"), num_resamples=100)
    assert "case" in report.corpora[0].tables
    sheets = smoked.path / "clinic" / "sheets"
    write_report(smoked, replace(report, plan=replace(SMOKE, study="human")))
    assert (sheets / STUDY).is_file()
