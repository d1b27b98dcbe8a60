"""Experiments on a page: what is finished, what is not, and curves with their intervals."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.console.invented_results import put_experiment
from vrbot.errors import UsageError
from vrbot.serving.console.experiments_page import curve_options
from vrbot.serving.console.experiments_view import experiment_view, experiments_in


def test_a_folder_of_experiments_and_an_experiment_itself_are_both_shown(tmp_path: Path) -> None:
    put_experiment(tmp_path / "b", "latents")
    put_experiment(tmp_path / "a", "ablations")
    (tmp_path / "notes").mkdir()
    assert [each.name for each in experiments_in(tmp_path)] == ["a", "b"]
    assert [each.title for each in experiments_in(tmp_path / "a")] == ["VRBot with one part taken out"]
    assert experiments_in(tmp_path / "nowhere") == []


def test_a_broken_experiment_is_listed_with_its_problem(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "experiment.json").write_text("{}")
    (found,) = experiments_in(tmp_path)
    assert "is not that of an experiment" in found.problem
    with pytest.raises(UsageError, match="experiment run"):
        experiment_view(tmp_path)


def test_tables_hold_what_is_finished_and_failures_say_why(tmp_path: Path) -> None:
    view = experiment_view(put_experiment(tmp_path / "a", "ablations"))
    (corpus,) = view.corpora
    assert view.runs == (3 * (len(view.plan.rows) - 1), 3 * len(view.plan.rows))
    assert set(corpus.tables) == {"replies", "latents", "cost"}
    assert corpus.panels == ()
    assert len(view.failures) == 1
    assert "out" in view.failures[0]
    (best,) = [row for row in corpus.tables["replies"].rows if any(cell.best for cell in row)]
    assert best[0].value == view.plan.rows[-2].name


def test_curves_have_a_point_for_each_place_and_whiskers_where_there_are_intervals(tmp_path: Path) -> None:
    view = experiment_view(put_experiment(tmp_path / "a", "latents"))
    panels = view.corpora[0].panels
    assert [panel.metric for panel in panels] == ["state F1", "action F1", "category"]
    assert [len(points) for points in panels[0].lines.values()] == [6, 4]
    options = curve_options(panels[0])
    named = [series["name"] for series in options["series"] if series["symbolSize"] == 8]
    assert named == list(panels[0].lines)
    assert len(options["series"]) == 2 + 10
    assert options["tooltip"]["renderMode"] == "richText"
