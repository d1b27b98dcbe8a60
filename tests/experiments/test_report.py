"""A report says what was found, by the same arithmetic as by hand, and nothing where nothing was found."""

from __future__ import annotations

import csv
import json
import statistics
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.experiments.invented import (
    PLAN,
    RIGHT,
    fill,
    invented_folder,
    put_result,
    right_until,
    turns_with,
)
from vrbot.dialogue.corpus import Corpus
from vrbot.evaluation.scorecard import Options, Resources, measure
from vrbot.evaluation.significance import BootstrapResult, Comparison, TTestResult, compare_systems, holm
from vrbot.evaluation.turns import dialogue_numbers
from vrbot.experiments.contests import Match, hold_contests, opponent_of, seeds_of_both
from vrbot.experiments.design import Plan, Row
from vrbot.experiments.figures import curve_points
from vrbot.experiments.folder import ExperimentFolder, Job
from vrbot.experiments.published import PUBLISHED, Dataset, Published
from vrbot.experiments.report import Report, as_dict, make_report, write_report
from vrbot.experiments.results import gather, unfairness

T_OF_THREE = 4.302652729911275
"""The 97.5 % quantile of Student's t with two degrees of freedom, from a printed table."""


@pytest.fixture(scope="module")
def folder(clinic: Path, tmp_path_factory: pytest.TempPathFactory) -> ExperimentFolder:
    made = invented_folder(tmp_path_factory.mktemp("invented") / "out", clinic)
    fill(made, clinic)
    return made


@pytest.fixture(scope="module")
def report(folder: ExperimentFolder) -> Report:
    return make_report(folder, PLAN, num_resamples=300)


def recall_in_percent(count: int) -> float:
    """Of 40 turns with an entity each; replies that are not right name another."""
    return 100 * count / 40


def test_means_and_intervals_are_those_of_a_computation_by_hand(report: Report) -> None:
    rows = {row[0].value: row for row in report.corpora[0].tables["replies"].rows}
    place = report.corpora[0].tables["replies"].columns.index("mi-R")
    for name, counts in RIGHT.items():
        values = [recall_in_percent(count) for count in counts]
        half = T_OF_THREE * statistics.stdev(values) / 3**0.5
        cell = rows[name][place]
        assert cell.value == pytest.approx(statistics.mean(values))
        assert (cell.low, cell.high) == pytest.approx((statistics.mean(values) - half, statistics.mean(values) + half))
        assert rows[name][1].value == "3/3"
    assert rows["mine"][place].best
    oracle = rows["mine oracle-gold-action"][place]
    assert oracle.value == pytest.approx(100)
    assert not oracle.best


def test_ours_is_tested_against_the_best_other_system_with_holms_correction(report: Report, clinic: Path) -> None:
    corpus = Corpus.open(clinic)
    tested = {match.comparison.metric: match for match in report.corpora[0].matches}
    assert {match.system for match in tested.values()} == {"mine"}
    assert {tested[metric].opponent for metric in ("micro_f1", "bleu_2")} == {"strong"}
    assert "distinct_1" not in tested

    turns = {row: [turn for count in RIGHT[row] for turn in turns_with(right_until(count))] for row in RIGHT}
    names = Resources(entity_names=corpus.inventory.names)
    strong, mine = (measure(turns[row], Options(), names) for row in ("strong", "mine"))
    found = compare_systems(
        strong,
        mine,
        dialogue_numbers(turns["mine"]),
        np.random.default_rng(1),
        ["micro_f1", "bleu_2"],
        300,
        np.repeat((1, 2, 3), 40),
    )
    for slow in found:
        assert tested[slow.metric].comparison.bootstrap == slow.bootstrap
        assert tested[slow.metric].comparison.t_test == slow.t_test
    plain = [match.comparison.t_test.p_value for match in tested.values()]
    assert [match.comparison.adjusted_p_t_test for match in tested.values()] == pytest.approx(list(holm(plain)))
    assert tested["micro_f1"].marker == "*+"


def test_equal_systems_get_no_marker_and_worse_ones_are_shown_as_worse(clinic: Path, tmp_path: Path) -> None:
    folder, names = invented_folder(tmp_path / "out", clinic), Corpus.open(clinic).inventory.names
    for row, count in {"weak": 4, "strong": 30, "mine": 5}.items():
        put_result(folder, Job("clinic", row, 1), turns_with(right_until(count)), names)
    systems = gather(folder, PLAN, folder.setup(), "clinic")
    resources = Resources(entity_names=names)
    (worse,) = hold_contests(systems, PLAN, ["micro_f1"], resources, num_resamples=300)
    assert (worse.opponent, worse.marker) == ("strong", "!")
    put_result(folder, Job("clinic", "mine", 1), turns_with(right_until(30)), names)
    systems = gather(folder, PLAN, folder.setup(), "clinic")
    (equal,) = hold_contests(systems, PLAN, ["micro_f1"], resources, num_resamples=300)
    assert equal.marker == ""


@pytest.mark.parametrize(
    ("t_test", "over_runs", "marker"),
    [
        (TTestResult(1.0, 0.001, 40), TTestResult(1.0, 0.001, 3), "*+"),
        (TTestResult(1.0, 0.001, 40), TTestResult(1.0, 0.2, 3), "+"),  # another three trainings might not have it
        (TTestResult(1.0, 0.001, 40), TTestResult(1.0, 1.0, 1), "*+"),  # one training: nothing to hold it against
        (TTestResult(-1.0, 0.001, 40), TTestResult(1.0, 0.001, 3), "*"),  # by dialogues it is worse
        (TTestResult(None, 0.001, 0), TTestResult(1.0, 0.001, 3), "*"),
    ],
)
def test_a_mark_needs_the_seeds_and_the_direction_of_its_own_test(
    t_test: TTestResult, over_runs: TTestResult, marker: str
) -> None:
    lead = Comparison("macro_f1", 1.0, 2.0, BootstrapResult(1.0, 0.5, 1.5, 0.001), t_test, over_runs, 0.001, 0.001)
    assert Match("mine", "other", lead).marker == marker
    behind = replace(lead, bootstrap=BootstrapResult(-1.0, -1.5, -0.5, 0.001))
    assert Match("mine", "other", behind).marker == ("!" if "*" in marker else "")


def test_systems_with_other_seeds_are_not_tested_and_sentences_say_whom_and_what(clinic: Path, tmp_path: Path) -> None:
    folder, names = invented_folder(tmp_path / "out", clinic), Corpus.open(clinic).inventory.names
    for row, seed, count in (("strong", 1, 10), ("mine", 1, 30), ("mine", 2, 12)):
        put_result(folder, Job("clinic", row, seed), turns_with(right_until(count)), names)
    report = make_report(folder, PLAN, num_resamples=100)
    assert report.corpora[0].matches == ()
    assert any("means over seeds with 95 % intervals" in note for note in report.corpora[0].tables["replies"].notes)
    put_result(folder, Job("clinic", "strong", 2), turns_with(right_until(9)), names)
    several = make_report(folder, PLAN, num_resamples=100).corpora[0].tables["replies"].notes[-1]
    assert several.startswith("Each against the best trained system of others in each column")
    assert "over dialogues and seeds" in several
    against = make_report(folder, replace(PLAN, against="mine"), num_resamples=100).corpora[0].tables["replies"].notes
    assert against[-1].startswith("Each against mine, where")


def test_of_one_seed_no_interval_and_no_resampled_seeds_are_spoken_of(clinic: Path, tmp_path: Path) -> None:
    folder, names = invented_folder(tmp_path / "out", clinic), Corpus.open(clinic).inventory.names
    for row, count in {"strong": 10, "mine": 30}.items():
        put_result(folder, Job("clinic", row, 1), turns_with(right_until(count)), names)
    notes = make_report(folder, PLAN, num_resamples=100).corpora[0].tables["replies"].notes
    assert not any("means over seeds" in note or "dialogues and seeds" in note for note in notes)
    assert "one seed each" in " ".join(notes)
    assert notes[-1].endswith("of one seed, marks say nothing of another training")


def test_opponents_are_of_the_same_group_or_the_row_the_plan_names(folder: ExperimentFolder) -> None:
    systems = gather(folder, PLAN, folder.setup(), "clinic")
    by_name = {one.name: one for one in systems}
    apart = [replace(one, group="other") if one.name == "strong" else one for one in systems]
    found = opponent_of(by_name["mine"], apart, PLAN, "micro_f1")
    assert found is not None
    assert found.name == "weak"
    against = replace(PLAN, against="mine")
    named = opponent_of(by_name["weak"], systems, against, "micro_f1")
    assert named is by_name["mine"]
    assert opponent_of(by_name["mine"], systems, against, "micro_f1") is None
    assert opponent_of(by_name["weak"], systems, PLAN, "micro_f1") is None


def test_a_trivial_system_is_the_opponent_only_where_no_other_is_trained_for_it(folder: ExperimentFolder) -> None:
    systems = gather(folder, PLAN, folder.setup(), "clinic")
    by_name = {one.name: one for one in systems}
    [trivial] = [one for one in systems if one.role == "reference" and one.values("micro_f1")]
    better = [replace(trivial, runs=by_name["mine"].runs) if one is trivial else one for one in systems]
    found = opponent_of(by_name["mine"], better, PLAN, "micro_f1")
    assert found is not None
    assert found.name == "strong"
    alone = [one for one in better if one.role != "baseline"]
    found = opponent_of(by_name["mine"], alone, PLAN, "micro_f1")
    assert found is not None
    assert found.name == trivial.name


def test_unfinished_runs_are_missing_and_never_filled(clinic: Path, tmp_path: Path) -> None:
    folder, names = invented_folder(tmp_path / "out", clinic), Corpus.open(clinic).inventory.names
    put_result(folder, Job("clinic", "weak", 2), turns_with(right_until(8)), names)
    folder.fail(Job("clinic", "mine", 1), "ValueError: no luck")
    report = make_report(folder, PLAN, num_resamples=100)
    table = report.corpora[0].tables["replies"]
    rows = {row[0].value: row for row in table.rows}
    place = table.columns.index("mi-R")
    assert {name: row[1].value for name, row in rows.items()} == {"weak": "1/3"}
    assert rows["weak"][place].value == pytest.approx(20)
    assert rows["weak"][place].low is None
    assert report.open_ends == [
        "clinic most-frequent-reply: 1 of 1 runs are still to be done",
        "clinic most-frequent-keyword: 1 of 1 runs are still to be done",
        "clinic copy-the-state: 1 of 1 runs are still to be done",
        "clinic retrieval: 1 of 1 runs are still to be done",
        "clinic linear-action: 1 of 1 runs are still to be done",
        "clinic weak: 2 of 3 runs are still to be done",
        "clinic strong: 3 of 3 runs are still to be done",
        "clinic mine seed 1: ValueError: no luck",
        "clinic mine: 2 of 3 runs are still to be done",
    ]
    systems = gather(folder, PLAN, folder.setup(), "clinic")
    assert seeds_of_both(systems[-3], systems[-1]) == ()


def test_runs_that_do_not_share_what_they_must_are_called_not_comparable(clinic: Path, tmp_path: Path) -> None:
    folder, names = invented_folder(tmp_path / "out", clinic), Corpus.open(clinic).inventory.names
    turns = turns_with(right_until(8))
    for row, seed in (("weak", 1), ("weak", 2), ("strong", 1), ("strong", 2)):
        put_result(folder, Job("clinic", row, seed), turns, names)
    assert unfairness(gather(folder, PLAN, folder.setup(), "clinic")) == []
    rich = {"network": {}, "training": {"max_epochs": 99}, "decoding": {}}
    put_result(folder, Job("clinic", "strong", 1), turns, names, config=rich, labels_sha256="more labels")
    faults = unfairness(gather(folder, PLAN, folder.setup(), "clinic"))
    assert faults == [
        "training.max_epochs differs: no such setting in weak, strong (seed 2); 99 in strong (seed 1)",
        "the selection of labels differs: labels of 1 in weak (seed 1); more labels in strong (seed 1)",
    ]
    notes = make_report(folder, PLAN, num_resamples=100).corpora[0].tables["replies"].notes
    assert f"Not comparable: {faults[0]}" in notes


def test_published_figures_stand_beside_runs_on_the_same_dialogues_only(
    folder: ExperimentFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = replace(PLAN, published=("here", "kamed"))
    here = Published(
        "somebody",
        Dataset("here", (10, 1, 1), "spaces"),
        "vrbot",
        {"mine": {"micro_f1": 77.0, "bleu_2": 5.0}},
        {"bleu_2": "by other rules"},
    )
    monkeypatch.setattr("vrbot.experiments.results.PUBLISHED", {**PUBLISHED, "here": here})
    monkeypatch.setattr("vrbot.experiments.report.PUBLISHED", {**PUBLISHED, "here": here})
    table = make_report(folder, plan, num_resamples=100).corpora[0].tables["replies"]
    last = {table.columns[place]: cell.value for place, cell in enumerate(table.rows[-1])}
    assert (last["system"], last["mi-F1"], last["B@2"]) == ("mine (somebody)", 77.0, None)
    assert not any(cell.best for cell in table.rows[-1])
    assert sum("KaMed" in note and "not shown" in note for note in table.notes) == 1
    assert sum("bleu_2 (by other rules)" in note for note in table.notes) == 1


def test_a_report_is_written_as_markdown_latex_csv_and_json(folder: ExperimentFolder, report: Report) -> None:
    out = write_report(folder, report)
    assert {path.name for path in out.iterdir()} == {
        "report.md",
        "report.tex",
        "report.json",
        "clinic-replies.csv",
        "clinic-cost.csv",
        "clinic-runs.csv",
        "clinic-latents.csv",
    } - ({"clinic-latents.csv"} if "latents" not in report.corpora[0].tables else set())
    assert "| mine | 3/3 |" in (out / "report.md").read_text("utf-8")
    assert r"\toprule" in (out / "report.tex").read_text("utf-8")
    found = json.loads((out / "report.json").read_text("utf-8"))
    assert found == json.loads(json.dumps(as_dict(report)))
    with (out / "clinic-replies.csv").open(encoding="utf-8") as file:
        rows = {row["system"]: row for row in csv.DictReader(file)}
    stored = found["corpora"]["clinic"]["systems"]["mine"]["micro_f1"]
    assert float(rows["mine"]["mi-F1"]) == stored["mean"]
    assert float(rows["mine"]["mi-F1 high"]) == stored["high"]
    cost = {row[0].value: row for row in report.corpora[0].tables["cost"].rows}
    assert [cell.value for cell in cost["mine"][2:]] == [40, 1000, 10.0, 5.0, 7.0, 1.0, 0.5]


def test_every_run_is_written_by_itself_and_the_means_of_a_table_are_theirs(
    folder: ExperimentFolder, report: Report
) -> None:
    with (write_report(folder, report) / "clinic-runs.csv").open(encoding="utf-8") as file:
        runs = list(csv.DictReader(file))
    table = report.corpora[0].tables["replies"]
    for row in table.rows:
        found = [float(run["mi-F1"]) for run in runs if run["system"] == row[0].value]
        assert row[table.columns.index("mi-F1")].value == pytest.approx(statistics.mean(found))
        assert f"{len(found)}/{len(found)}" == row[1].value
    assert [(run["seed"], run["commit"]) for run in runs if run["system"] == "mine"] == [
        (seed, "c0ffee") for seed in ("1", "2", "3")
    ]
    assert runs == sorted(runs, key=lambda run: [row[0].value for row in table.rows].index(run["system"]))


def test_the_real_smoke_plan_is_reported(smoked: ExperimentFolder) -> None:
    report = make_report(smoked, num_resamples=100)
    assert report.open_ends == []
    names = [row[0].value for row in report.corpora[0].tables["replies"].rows]
    assert names[-3:] == ["seq2seq", "vrbot", "vrbot oracle-gold-action"]
    assert "retrieval" in names
    assert set(report.corpora[0].tables) == {"replies", "latents", "meddg", "cost"}
    assert not any("Not comparable" in note for note in report.corpora[0].tables["cost"].notes)


def test_curves_are_drawn_through_finished_points_only(clinic: Path, tmp_path: Path) -> None:
    rows = tuple(Row(f"at-{place}", "vrbot", role="ours", curve="line", place=place) for place in (4, 2, 8))
    plan = Plan("curved", "A curve", "none", rows, "", (1, 2), references=False, axis="x", drawn=("micro_recall",))
    folder, names = invented_folder(tmp_path / "out", clinic, plan), Corpus.open(clinic).inventory.names
    empty = make_report(folder, plan, num_resamples=100)
    write_report(folder, empty)
    assert empty.figures == []
    for row, seed, count in (("at-4", 1, 10), ("at-4", 2, 20), ("at-2", 1, 30)):
        put_result(folder, Job("clinic", row, seed), turns_with(right_until(count)), names)
    report = make_report(folder, plan, num_resamples=100)
    points = curve_points(report.corpora[0].systems, "line", "micro_recall")
    assert [(place, mean) for place, mean, *_ in points] == [(2.0, 75.0), (4.0, 37.5)]
    assert points[0][2:] == (None, None)
    write_report(folder, report)
    (picture,) = report.figures
    assert picture.read_bytes().startswith(b"\x89PNG")
