"""The simulated annotator: what is not asked for is not seen, and savings are what a hand computes."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.experiments.invented import AtOnce
from vrbot.baselines.catalogue import build_model
from vrbot.config import Config, recipe
from vrbot.dialogue.batching import limits_of
from vrbot.dialogue.corpus import Corpus
from vrbot.errors import UsageError
from vrbot.evaluation.measuring import measure_model
from vrbot.evaluation.recorded import gold_latents
from vrbot.evaluation.scorecard import scorecard
from vrbot.evaluation.turns import Latents
from vrbot.experiments.annotation_plan import annotation_plan
from vrbot.experiments.asking import Asking, Given, ask, labels_of, masks_of, measured, next_dialogues
from vrbot.experiments.design import Plan, Row
from vrbot.experiments.folder import ExperimentFolder
from vrbot.experiments.plans import SMOKE_SETTINGS, plan_of
from vrbot.experiments.report import make_report, write_report
from vrbot.experiments.runner import begin, jobs_of, run_experiment
from vrbot.experiments.savings import effort_needed, mean_curve
from vrbot.explain.active_learning import turn_features
from vrbot.explain.autolabel import AutoLabeller
from vrbot.model.vrbot import VRBot

SMALL = Plan(
    "annotation",
    "Labels saved",
    "none",
    tuple(
        dataclasses.replace(row, asking=Asking(row.asking.order, (2, 5), updates=2))
        for row in annotation_plan().rows
        if row.asking is not None
    ),
    "a corpus",
    seeds=(1,),
    settings=SMOKE_SETTINGS,
    references=False,
    axis="dialogues with labels",
    drawn=("inference_state_f1",),
    study="annotation",
)


class SmallAtOnce(AtOnce):
    plan = SMALL


def tiny() -> Config:
    return recipe("small").with_settings(SMOKE_SETTINGS)


def fresh(corpus: Corpus) -> VRBot:
    torch.manual_seed(1)
    model = build_model("vrbot", tiny(), corpus)
    assert isinstance(model, VRBot)
    return model


@pytest.fixture(scope="module")
def asked(clinic: Path, tmp_path_factory: pytest.TempPathFactory) -> ExperimentFolder:
    folder = begin(tmp_path_factory.mktemp("asking") / "out", SMALL, [clinic])
    outcome = run_experiment(folder, jobs_of(SMALL, folder.setup()), launch=SmallAtOnce, pause=0)
    assert len(outcome.finished) == 2
    return folder


def test_the_plan_asks_the_same_networks_in_both_orders() -> None:
    active, random = plan_of("annotation").rows
    assert active.asking is not None
    assert random.asking is not None
    assert dataclasses.replace(active.asking, order="random") == random.asking
    assert (active.model, active.settings) == (random.model, random.settings)


def test_each_round_has_the_dialogues_it_should_and_goes_on_from_the_last(clinic: Path) -> None:
    corpus = Corpus.open(clinic)
    rounds = list(ask(fresh(corpus), corpus, tiny(), Asking("active", (2, 5), updates=1), seed=1))
    again = list(ask(fresh(corpus), corpus, tiny(), Asking("active", (2, 5), updates=1), seed=1))
    assert [one.given.dialogues for one in rounds] == [2, 5]
    assert 0 < rounds[0].given.turns < rounds[1].given.turns
    assert 0 < rounds[0].given.made < rounds[1].given.made
    assert rounds == again
    assert {one.num_turns for one in rounds} == {corpus.split("test").num_turns}
    with pytest.raises(UsageError, match="use a larger corpus"):
        list(ask(fresh(corpus), corpus, tiny(), Asking("random", (11,), updates=1), seed=1))


@pytest.mark.parametrize("order", ["active", "random"])
def test_the_order_does_not_depend_on_labels_nobody_gave(order: str, clinic: Path) -> None:
    corpus = Corpus.open(clinic)
    split, model = corpus.split("train"), fresh(corpus)
    labeller = AutoLabeller(model, limits_of(tiny().network))
    asking = Asking(order, (2, 9), updates=1)  # type: ignore[arg-type]
    found = next_dialogues(labeller, split, turn_features(split), [3, 1], asking, seed=1)
    others = np.ones(split.num_turns, dtype=bool)
    others[np.repeat(np.isin(np.arange(split.num_sessions), [3, 1]), split.turns_per_session)] = False
    labels = split.labels
    changed = dataclasses.replace(
        labels,
        category=np.where(others, -1, labels.category).astype(np.int8),
        state_known=labels.state_known & ~others,
        keywords_known=labels.keywords_known & ~others,
    )
    hidden = dataclasses.replace(split, labels=changed)
    assert next_dialogues(labeller, hidden, turn_features(hidden), [3, 1], asking, seed=1) == found
    assert sorted(found) == [session for session in range(split.num_sessions) if session not in (1, 3)]


def test_the_labeller_is_measured_as_the_inference_networks_of_any_run_are(clinic: Path) -> None:
    corpus, config = Corpus.open(clinic), tiny()
    model = fresh(corpus).eval()
    found = measured(AutoLabeller(model, limits_of(config.network)), corpus.split("test"), Given()).as_dict()["scores"]
    longer = config.with_settings({"network.max_response": 12})
    card = scorecard(measure_model(model, corpus, "test", longer, config.decoding).turns).as_dict()
    assert found["inference_state_f1"] == pytest.approx(card["inference_state_f1"], abs=3.0)  # responses are cut here
    assert found["num_turns"] >= card["num_turns"]


def test_labels_are_counted_as_they_are_made_and_as_they_are_changed(
    clinic: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = Corpus.open(clinic)
    split, labeller = corpus.split("train"), AutoLabeller(fresh(corpus), limits_of(tiny().network))
    sessions = [4, 1]
    places = [turn for one in sessions for turn in range(*split.session_offsets[one : one + 2].tolist())]
    gold = {place: gold_latents(split, place) for place in places}
    firsts = split.session_offsets.tolist()
    kept = {place: set(() if place in firsts else gold[place - 1].state or ()) for place in places}
    made = sum(len(kept[place] ^ set(each.state or ())) + len(each.keywords or ()) + 1 for place, each in gold.items())
    total = sum(len(each.state or ()) + len(each.keywords or ()) + 1 for each in gold.values())

    def changed(proposals: dict[int, Latents]) -> int:
        monkeypatch.setattr("vrbot.experiments.asking.inferred_latents", lambda *_, **__: iter(proposals.items()))
        found = labels_of(labeller, split, sessions)
        assert (found.dialogues, found.turns, found.made) == (2, len(places), made)
        return found.changed

    assert changed(gold) == 0
    assert changed({place: Latents((), None, ()) for place in places}) == total
    wrong = dataclasses.replace(gold[places[0]], category=(gold[places[0]].category or 0) ^ 1)
    assert changed({**gold, places[0]: wrong}) == 1
    invented = dataclasses.replace(gold[places[0]], keywords=(*(gold[places[0]].keywords or ()), 10**6))
    assert changed({**gold, places[0]: invented}) == 1
    unaided = labels_of(None, split, sessions)
    assert (unaided.made, unaided.changed) == (made, made)


def test_masks_show_the_labels_of_the_sessions_given_and_no_other(clinic: Path) -> None:
    split = Corpus.open(clinic).split("train")
    masks = masks_of(split, [1])
    own = slice(int(split.session_offsets[1]), int(split.session_offsets[2]))
    assert masks.state[own].all()
    assert masks.state.sum() == masks.keywords.sum() == split.turns_per_session[1]


def test_a_report_has_a_point_for_each_round_and_says_what_was_saved(asked: ExperimentFolder) -> None:
    report = make_report(asked, SMALL)
    (corpus,) = report.corpora
    assert [one.name for one in corpus.systems] == ["active-2", "active-5", "random-2", "random-5"]
    assert [one.row.place for one in corpus.systems if one.row is not None] == [2, 5, 2, 5]
    assert set(corpus.tables) >= {"latents", "savings", "cost"}
    assert len(corpus.tables["savings"].rows) == 6
    assert report.open_ends == []
    assert len(mean_curve(corpus.systems, "random", "inference_state_f1", "changed")) == 2
    write_report(asked, report)
    assert len(report.figures) == 1


def test_the_effort_needed_lies_between_rounds_on_a_logarithmic_scale() -> None:
    curve = [(10.0, 50.0), (40.0, 60.0), (160.0, 60.0)]
    assert effort_needed(curve, 50.0) == 10.0
    assert effort_needed(curve, 40.0) == 10.0
    assert effort_needed(curve, 55.0) == pytest.approx(math.sqrt(10.0 * 40.0))
    assert effort_needed(curve, 60.0) == pytest.approx(40.0)
    assert effort_needed(curve, 61.0) is None
    assert effort_needed([], 1.0) is None


def test_a_row_without_inference_networks_fails_with_the_reason(clinic: Path, tmp_path: Path) -> None:
    row = Row("wrong", "seq2seq", asking=Asking("random", (2,), updates=1))
    plan = dataclasses.replace(SMALL, rows=(row,))
    folder = begin(tmp_path / "out", plan, [clinic])

    class WrongAtOnce(AtOnce):
        pass

    WrongAtOnce.plan = plan
    outcome = run_experiment(folder, jobs_of(plan, folder.setup()), launch=WrongAtOnce, pause=0)
    assert "no inference networks" in (folder.failure(outcome.failed[0]) or "")
