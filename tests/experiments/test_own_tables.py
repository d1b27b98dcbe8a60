"""Our own tables: every one can be run, and its corpus is always the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.real_data import REPOSITORY
from vrbot.config import recipe
from vrbot.dialogue.corpus import Corpus
from vrbot.errors import UsageError
from vrbot.experiments.own_corpora import BUILDERS, KEPT, own_corpus, own_encoder
from vrbot.experiments.own_tables import TABLES, OwnTable, tables_of
from vrbot.experiments.plans import PLANS, plan_of


@pytest.fixture(scope="module")
def small_clinic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return own_corpus("clinic", None, tmp_path_factory.mktemp("corpora"))


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_every_table_is_of_a_plan_with_its_rows_its_settings_and_a_corpus(table: OwnTable) -> None:
    plan = plan_of(table.plan)
    base = plan.base(recipe("small"), table.settings)
    for row in [plan.row(name) for name in table.rows] or plan.rows:
        plan.config(row, base)
    assert table.corpus in BUILDERS
    assert table.name.startswith(table.plan.removeprefix("labelled-"))
    assert table.corpus == "clinic" or not plan.study, "a study shows text of the dialogues, and only these are ours"


def test_every_plan_of_the_paper_is_one_of_our_tables_but_those_for_people_and_the_plan_for_everything() -> None:
    for_people, covered_by_others = {"human"}, {"ablations", "explainability", "annotation", "all-models", "smoke"}
    assert set(PLANS) - {table.plan for table in TABLES} == for_people | covered_by_others


def test_the_small_clinic_is_the_same_wherever_it_is_made(small_clinic: Path, tmp_path: Path) -> None:
    first, again = Corpus.open(small_clinic), Corpus.open(own_corpus("clinic", None, tmp_path))
    assert first.fingerprint == again.fingerprint
    assert {split: first.split(split).num_sessions for split in KEPT} == KEPT


def test_a_corpus_that_is_there_is_kept(small_clinic: Path) -> None:
    before = {file: file.stat().st_mtime_ns for file in small_clinic.rglob("*")}
    assert own_corpus("clinic", None, small_clinic.parent) == small_clinic
    assert {file: file.stat().st_mtime_ns for file in small_clinic.rglob("*")} == before


@pytest.mark.parametrize("name", sorted(set(BUILDERS) - {"clinic"}))
def test_without_the_real_dialogues_one_line_says_how_to_name_their_folder(name: str, tmp_path: Path) -> None:
    for data in (None, tmp_path):
        with pytest.raises(UsageError, match="--data"):
            own_corpus(name, data, tmp_path / "corpora")
    assert not (tmp_path / "corpora" / name).exists()


def test_a_table_of_some_rows_runs_those_and_the_references(small_clinic: Path, tmp_path: Path) -> None:
    table = OwnTable("two", "semi-supervised", "clinic", rows=("vrbot-s25-a25", "moss-s25-a25"), seeds=(4, 7))
    folder, jobs = table.begin(small_clinic, tmp_path)
    assert folder.path == tmp_path / "two"
    rows = [(job.row, job.seed) for job in jobs]
    pairs = [(row, seed) for seed in (4, 7) for row in ("vrbot-s25-a25", "moss-s25-a25")]
    assert rows == [("references", 0), *pairs]
    _, all_of_them = OwnTable("all", "transfer", "clinic").begin(small_clinic, tmp_path)
    assert len(all_of_them) == 4 * 3


def test_rows_that_read_with_a_pretrained_encoder_wait_for_one(small_clinic: Path, tmp_path: Path) -> None:
    table = OwnTable("two", "semi-supervised", "clinic", rows=("hred-bert-s0-a25", "moss-s25-a25"), seeds=(1,))
    assert own_encoder(None) is None
    assert own_encoder(tmp_path) is None
    _, jobs = table.begin(small_clinic, tmp_path, own_encoder(tmp_path))
    assert [job.row for job in jobs] == ["references", "moss-s25-a25"]
    (tmp_path / "encoder").mkdir()
    folder, jobs = table.begin(small_clinic, tmp_path, own_encoder(tmp_path))
    assert [job.row for job in jobs] == ["references", "hred-bert-s0-a25", "moss-s25-a25"]
    assert folder.setup().encoder == str(tmp_path / "encoder")


def test_a_name_that_is_no_table_is_refused_with_those_that_are() -> None:
    assert [table.name for table in tables_of(["transfer-clinic", "ablations-clinic"])] == [
        "ablations-clinic",
        "transfer-clinic",
    ]
    assert tables_of([]) == list(TABLES)
    with pytest.raises(UsageError, match="'table-9' is none of our tables; known: unlabelled-meddg"):
        tables_of(["table-9"])


def test_folders_of_results_that_a_table_makes_are_those_that_are_committed() -> None:
    """A table that was never run has no folder yet; a folder of a table must hold its plan's report."""
    for table in TABLES:
        report = REPOSITORY / "docs" / "results" / table.name / "report.md"
        if report.parent.exists():
            assert f"Plan `{table.plan}`" in report.read_text("utf-8"), report
