"""Scores of human judges: kappa, means, contests and explained keywords, unblinded by the key alone."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tests.evaluation.invented_study import SYSTEMS, drawn, invented_field, random_judgements
from vrbot.evaluation.human_agreement import cohen_kappa, rater_agreement
from vrbot.evaluation.human_contests import contest, sign_test, wilcoxon_test, with_holm
from vrbot.evaluation.human_ratings import EXPLAINED, PREFERRED, Asked, Judgement
from vrbot.evaluation.human_sample import SampleSettings
from vrbot.evaluation.human_scores import score_study
from vrbot.evaluation.human_study import Key, Study
from vrbot.evaluation.human_tables import human_tables
from vrbot.evaluation.turns import Latents

SCALE = (1, 2, 3, 4, 5)
ONE, TWO = SYSTEMS[:2]
TWO_RATERS = SampleSettings(dialogues=6, raters=2, seed=6)
ratings = st.lists(st.tuples(st.sampled_from(SCALE), st.sampled_from(SCALE)), min_size=1, max_size=30)


def slow_kappa(pairs: Sequence[tuple[int, int]], distance: Callable[[int, int], float]) -> float | None:
    """1 - observed / expected disagreement, the expected one over all pairs of a first and a second answer."""
    observed = sum(distance(*pair) for pair in pairs) / len(pairs)
    chance = sum(distance(one, other) for one, _ in pairs for _, other in pairs) / len(pairs) ** 2
    return None if chance == 0 else 1 - observed / chance


@given(ratings)
def test_kappa_is_what_a_slow_count_gives(pairs: list[tuple[int, int]]) -> None:
    first, second = [one for one, _ in pairs], [two for _, two in pairs]
    plain = slow_kappa(pairs, lambda one, two: float(one != two))
    quadratic = slow_kappa(pairs, lambda one, two: float((one - two) ** 2))
    assert cohen_kappa(first, second, SCALE) == (None if plain is None else pytest.approx(plain, abs=1e-12))
    found = cohen_kappa(first, second, SCALE, quadratic=True)
    assert found == (None if quadratic is None else pytest.approx(quadratic, abs=1e-12))


def test_raters_who_always_say_the_same_have_no_kappa_and_are_left_out_of_the_mean() -> None:
    assert cohen_kappa([3, 3, 3], [3, 3, 3], SCALE) is None
    assert cohen_kappa([3, 3], [4, 4], SCALE) == 0
    assert cohen_kappa([], [], SCALE) is None
    given_answers = {"a": {"x": 3, "y": 3}, "b": {"x": 3, "y": 3}, "c": {"x": 3, "y": 4, "z": 1}}
    found = rater_agreement("Flu", given_answers, SCALE)
    assert [pair.kappa for pair in found.pairs] == [None, 0, 0]
    assert found.kappa == 0
    assert found.agreement == pytest.approx(200 / 3)
    nobody = rater_agreement("Flu", {"a": {"x": 1}, "b": {"y": 1}}, SCALE)
    assert (nobody.pairs, nobody.kappa, nobody.agreement) == ((), None, None)


def test_full_agreement_is_one() -> None:
    assert cohen_kappa([1, 2, 5], [1, 2, 5], SCALE) == pytest.approx(1)
    assert cohen_kappa([1, 2, 5], [1, 2, 5], SCALE, quadratic=True) == pytest.approx(1)


@pytest.fixture(scope="module")
def two_systems() -> tuple[Study, Key]:
    return drawn(invented_field(6, systems=(ONE, TWO)), TWO_RATERS)


def all_judgements(study: Study, answer: Callable[[str, str, str], int | None]) -> list[Judgement]:
    asked = Asked(study)
    questions = [question for share in study.shares for question in asked.questions(share)]
    found = [(question, answer(*question)) for question in questions]
    return [Judgement(*question, given_answer) for question, given_answer in found if given_answer is not None]


def test_means_are_credited_through_the_key_alone(two_systems: tuple[Study, Key]) -> None:
    study, key = two_systems
    stars = {ONE: 4, TWO: 2}

    def rate(rater: str, code: str, asked: str) -> int | None:
        return stars[key.replies[code][0]] + (rater == "rater-2") if asked == "KC" else None

    judgements = all_judgements(study, rate)
    found = score_study(study, key, judgements).ratings
    mean = found[ONE]["KC"]
    assert mean is not None
    assert (mean.mean, mean.low, mean.high, mean.num_judgements, mean.num_dialogues) == (4.5, 4.5, 4.5, 12, 6)
    assert found[ONE]["Flu"] is None
    exchanged = replace(key, replies={code: (TWO if owner == (ONE,) else ONE,) for code, owner in key.replies.items()})
    assert score_study(study, exchanged, judgements).ratings == {ONE: found[TWO], TWO: found[ONE]}


def test_the_unit_of_an_interval_is_the_dialogue() -> None:
    study, key = drawn(invented_field(3), SampleSettings(dialogues=3, turns_per_dialogue=2, raters=2))
    judgements = random_judgements(study, 9, 1.0)
    mean = score_study(study, key, judgements).ratings[ONE]["EQ"]
    assert mean is not None
    by_dialogue: dict[str, list[int]] = {}
    for one in judgements:
        if one.asked == "EQ" and key.replies[one.code] == (ONE,):
            session = key.turns[Asked(study).item_of[one.code].item].session
            by_dialogue.setdefault(session, []).append(one.answer)
    values = [sum(one) / len(one) for one in by_dialogue.values()]
    interval = stats.t.interval(0.95, 2, loc=sum(values) / 3, scale=stats.sem(values))
    assert (mean.low, mean.high) == pytest.approx(interval)
    assert (mean.num_judgements, mean.num_dialogues) == (12, 3)


@settings(max_examples=5, deadline=None)
@given(st.integers(0, 1000), st.randoms(use_true_random=False))
def test_the_order_of_judgements_plays_no_part(seed: int, chance: random.Random) -> None:
    study, key = drawn(invented_field(2), SampleSettings(dialogues=2))
    judgements = random_judgements(study, seed)
    shuffled = list(judgements)
    chance.shuffle(shuffled)
    assert score_study(study, key, judgements) == score_study(study, key, shuffled)


def test_the_system_that_is_always_preferred_wins_everything(two_systems: tuple[Study, Key]) -> None:
    study, key = two_systems
    pairs = Asked(study).pairs

    def prefer(rater: str, code: str, asked: str) -> int | None:
        if asked != PREFERRED or pairs[code].about != "reply":
            return None
        return 1 if key.replies[pairs[code].first] == (ONE,) else -1

    judgements = all_judgements(study, prefer)
    assert {one.answer for one in judgements} == {1, -1}  # its code stands before and behind the other's
    (found,) = score_study(study, key, judgements).contests
    assert (found.first, found.second, found.about) == (ONE, TWO, "reply")
    assert (found.wins, found.ties, found.losses, found.num_dialogues, found.mean_difference) == (12, 0, 0, 6, 1)
    assert found.p_sign == pytest.approx(2 / 2**6)
    assert found.p_wilcoxon < 0.05


def test_replies_in_common_are_rated_alike_and_tie() -> None:
    study, key = drawn(invented_field(6, reply=lambda *_: "嗯"), TWO_RATERS)
    assert sum(len(item.candidates) for item in study.items) == 6
    found = score_study(study, key, random_judgements(study, 3, 1.0))
    assert found.ratings[ONE] == found.ratings[TWO]
    ties = {one.about: (one.wins, one.ties, one.losses, one.p_sign, one.p_wilcoxon) for one in found.contests}
    assert set(ties.values()) == {(0, 12, 0, 1.0, 1.0)}
    assert "reply" not in ties  # nobody was asked to prefer any


def test_a_tie_by_equal_replies_counts_for_raters_who_took_part() -> None:
    def sometimes_alike(system: str, dialogue: int, turn: int) -> str:
        return "嗯" if dialogue < 3 else system[-3:]

    study, key = drawn(invented_field(6, systems=(ONE, TWO), reply=sometimes_alike), TWO_RATERS)
    judgements = all_judgements(study, lambda rater, _, asked: 1 if asked == PREFERRED and rater == "rater-1" else None)
    (found,) = [one for one in score_study(study, key, judgements).contests if one.about == "reply"]
    assert (found.ties, found.num_judgements) == (3, 6)


def test_marks_give_mep_and_mer_of_complete_turns_and_zero_without_keywords() -> None:
    spans = {ONE: (2, 1), TWO: (), SYSTEMS[2]: None}
    field = invented_field(6, latents=lambda system, _: Latents((0,), 1, spans[system]))
    study, key = drawn(field, replace(TWO_RATERS, raters=1))
    marks = Asked(study).marks
    unanswered = next(mark.code for mark in study.items[0].explanations[0].marks if mark.asked == "keyword")

    def explained(rater: str, code: str, asked: str) -> int | None:
        if asked != EXPLAINED or code == unanswered:
            return None
        return int(marks[code].asked == "entity" or code.endswith("-k1"))

    found = score_study(study, key, all_judgements(study, explained)).explanations
    mep, mer = found[ONE]["mep"], found[ONE]["mer"]
    assert mep is not None
    assert mer is not None
    assert (mep.mean, mep.num_judgements) == (50, 5)
    assert (mer.mean, mer.num_judgements) == (100, 6)
    silent = found[TWO]["mer"]
    assert silent is not None
    assert (silent.mean, silent.num_judgements) == (0, 6)
    assert found[TWO]["mep"] is None
    assert found[SYSTEMS[2]] == {"mep": None, "mer": None}


def test_partly_filled_sheets_are_counted(two_systems: tuple[Study, Key]) -> None:
    study, key = two_systems
    code = study.shares[0].pages[0].candidates[0]
    found = score_study(study, key, [Judgement("rater-1", code, "Flu", 4)])
    progress = {(one.rater, one.kind): (one.asked, one.answered) for one in found.progress}
    assert progress["rater-1", "Flu"] == (12, 1)
    assert progress["rater-2", "Flu"] == (12, 0)
    assert progress["rater-1", "reply"] == (6, 0)
    assert found.contests == ()
    (table,) = human_tables(found)
    assert table.notes[0].startswith("1 of ")


def test_tests_of_nothing_are_certain_of_nothing() -> None:
    assert sign_test([]) == sign_test([0, 0]) == 1
    assert wilcoxon_test([]) == wilcoxon_test([0.0, 0.0]) == 1
    assert contest("a", "b", "Flu", []).num_judgements == 0


def test_the_tests_are_those_of_scipy_over_dialogues() -> None:
    differences = [("d1", 1.0), ("d1", 2.0), ("d2", -1.0), ("d3", 3.0), ("d4", 0.0), ("d5", 2.5)]
    found = contest("a", "b", "Flu", differences)
    assert (found.wins, found.ties, found.losses, found.num_dialogues) == (4, 1, 1, 5)
    assert found.p_sign == pytest.approx(stats.binomtest(3, 4).pvalue)
    assert found.p_wilcoxon == pytest.approx(stats.wilcoxon([1.5, -1.0, 3.0, 2.5]).pvalue)


def test_p_values_are_corrected_over_the_whole_table() -> None:
    held = [contest("a", "b", about, [(f"d{n}", 1.0) for n in range(8)]) for about in ("Flu", "KC")]
    corrected = with_holm(held)
    assert [one.adjusted_p_sign for one in corrected] == pytest.approx([2 * held[0].p_sign] * 2)
    assert [one.p_sign for one in corrected] == [one.p_sign for one in held]


def test_tables_show_every_system_question_and_pair() -> None:
    study, key = drawn(invented_field(6, latents=lambda s, _: Latents((SYSTEMS.index(s),), 1, (2,))), TWO_RATERS)
    tables = human_tables(score_study(study, key, random_judgements(study, 2, 1.0)))
    assert [len(table.rows) for table in tables] == [3, 3, 15, 7]
    for table in tables:
        assert all(cell.value is not None for row in table.rows for cell in row)
        assert table.to_latex().count(r"\\") == len(table.rows) + 1
