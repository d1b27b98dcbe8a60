"""Plans are fair: one budget, one set of labels per seed, and no figure of others beside other data."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from vrbot.baselines.catalogue import CATALOGUE
from vrbot.config import recipe
from vrbot.dialogue.corpus import Corpus
from vrbot.errors import ConfigError, UsageError
from vrbot.experiments.design import SHARED_SECTIONS, Plan, Row, budget
from vrbot.experiments.plans import PLANS, plan_of
from vrbot.experiments.published import KAMED, MEDDG, MEDDIALOG, PUBLISHED, Dataset
from vrbot.experiments.selections import WHOLE

EVERY = pytest.mark.parametrize("plan", PLANS.values(), ids=lambda plan: plan.name)


@EVERY
def test_every_model_of_every_plan_is_in_the_catalogue(plan: Plan) -> None:
    assert {row.model for row in plan.rows} <= set(CATALOGUE)


def test_every_table_and_figure_of_the_paper_with_systems_has_its_plan() -> None:
    sources = {plan.source for plan in PLANS.values()}
    assert sources >= {"Table 2", "Table 3", "Table 4", "Table 5", "Table 6", "Table 7", "Figure 5"}
    assert {row.model for row in PLANS["all-models"].rows} == set(CATALOGUE)


@EVERY
@pytest.mark.parametrize("recipe_name", ["small", "paper"])
def test_all_rows_of_a_plan_have_the_same_sizes_budget_and_search(plan: Plan, recipe_name: str) -> None:
    base = plan.base(recipe(recipe_name), {"training.patience": 7})
    configs = {row.name: plan.config(row, base) for row in plan.rows}
    assert len({budget(configs[row.name], row.part) for row in plan.rows}) <= 1
    for row in plan.rows:
        assert configs[row.name].training.patience == 7
        for section in SHARED_SECTIONS:
            if row.part == WHOLE:
                assert getattr(configs[row.name], section) == getattr(base, section)


@EVERY
@pytest.mark.parametrize("seed", [1, 2])
def test_equal_shares_of_labels_are_the_same_dialogues_and_smaller_ones_lie_inside(plan: Plan, seed: int) -> None:
    sessions = tuple(f"session {number}" for number in range(97))
    chosen = [row.labels.select(sessions, seed) for row in plan.rows]
    for kind in ("state", "category", "keywords"):
        by_size = sorted((getattr(one, kind) for one in chosen), key=len)
        for smaller, larger in itertools.pairwise(by_size):
            assert set(smaller) <= set(larger)


def test_a_row_with_a_budget_of_its_own_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"row rich has its own training\.max_epochs"):
        Row("rich", "vrbot", settings={"training.max_epochs": 99})


def test_what_a_plan_varies_cannot_be_set_for_all() -> None:
    plan = plan_of("span-lengths")
    with pytest.raises(UsageError, match=r"tracker\.length is what plan span-lengths varies"):
        plan.base(recipe("small"), {"tracker.length": 3})
    lengths = {row.name: plan.config(row, plan.base(recipe("small"), {})) for row in plan.rows}
    assert [lengths[f"state-{size}"].tracker.length for size in (4, 6, 8, 10, 12)] == [4, 6, 8, 10, 12]
    assert [lengths[f"action-{size}"].policy.length for size in (1, 2, 3, 4, 5)] == [1, 2, 3, 4, 5]
    assert {lengths[f"state-{size}"].policy.length for size in (4, 12)} == {3}


def test_unknown_plans_and_rows_are_refused_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match="unlabelled, semi-supervised"):
        plan_of("table-2")
    with pytest.raises(UsageError, match="its rows: seq2seq, vrbot"):
        plan_of("smoke").row("gpt")


def test_the_published_rows_of_table_3_are_those_of_the_plan_but_for_the_system_of_a_later_day() -> None:
    plan = plan_of("semi-supervised")
    rows = {row.name for row in plan.rows if row.model != "dual-flow"}
    assert set(PUBLISHED["meddg"].figures) == rows


@pytest.mark.parametrize(
    ("table", "better", "worse", "gains"),
    [
        ("kamed", "vrbot", "postks", {"bleu_2": 14.68, "rouge_2": 36.81, "distinct_1": 61.00, "distinct_2": 67.57}),
        ("meddialog", "vrbot", "postks", {"bleu_2": 21.47, "rouge_2": 14.17, "distinct_1": 31.29, "distinct_2": 43.63}),
        ("meddg", "vrbot-s25-a0", "labes-s25-a0", {"macro_f1": 23.36, "micro_f1": 26.73}),
        ("meddg", "vrbot-s50-a0", "labes-s50-a0", {"macro_f1": 20.11, "micro_f1": 20.38}),
        ("meddg", "vrbot-s50-a50", "vrbot-un-s50-a50", {"macro_f1": 12.37, "micro_f1": 10.36}),
    ],
)
def test_published_figures_have_the_ratios_the_paper_names(
    table: str, better: str, worse: str, gains: dict[str, float]
) -> None:
    rows = PUBLISHED[table].figures
    for metric, gain in gains.items():
        assert 100 * (rows[better][metric] / rows[worse][metric] - 1) == pytest.approx(gain, abs=0.02)


def test_published_figures_belong_only_to_their_own_dialogues_and_words(clinic: Path) -> None:
    corpus = Corpus.open(clinic)
    assert not any(dataset.fits(corpus) for dataset in (KAMED, MEDDIALOG, MEDDG))
    assert Dataset("here", (10, 1, 1), "spaces").fits(corpus)
    assert not Dataset("here", (10, 1, 1), "pkuseg").fits(corpus)
    assert not Dataset("here", (10, 1, 2), "spaces").fits(corpus)
