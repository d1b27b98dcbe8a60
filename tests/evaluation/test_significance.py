"""Bootstrap, t-test, Holm, seeds."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tests.evaluation import slow
from tests.evaluation.invented import as_sets, set_pairs
from vrbot.errors import UsageError
from vrbot.evaluation.entities import EntitySets, macro_entity_scores, micro_entity_scores
from vrbot.evaluation.overlap import bleu_2_score
from vrbot.evaluation.pooling import PooledScore, mean_score
from vrbot.evaluation.side_by_side import Candidate, compare_candidates, values_table
from vrbot.evaluation.significance import (
    compare_systems,
    holm,
    holm_corrected,
    paired_bootstrap,
    paired_t_test,
    summarise_seeds,
    unit_values,
)
from vrbot.evaluation.turns import ScoredTurn

p_values = st.lists(st.floats(0, 1), max_size=8)


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def random_sets(num_turns: int, hit_rate: float, seed: int, num_entities: int = 150) -> list[EntitySets]:
    """Gold sets are the same for every seed above 0; a system of that seed names each with the given rate."""
    gold_source, source = np.random.default_rng(0), np.random.default_rng(seed)
    sets = []
    for _ in range(num_turns):
        gold = frozenset(gold_source.integers(num_entities, size=2).tolist())
        wrong = int(source.integers(num_entities))
        sets.append(EntitySets(frozenset(e if source.random() < hit_rate else wrong for e in gold), gold))
    return sets


def noise(num_turns: int, seed: int, shift: float = 0.0) -> PooledScore:
    return mean_score((np.random.default_rng(seed).standard_normal(num_turns) + shift).tolist())


@given(set_pairs)
def test_identical_systems_have_a_p_value_of_one(pairs: list[tuple[frozenset[int], frozenset[int]]]) -> None:
    score = micro_entity_scores(as_sets(pairs)).f1
    clusters = np.arange(len(pairs)) // 2
    assert paired_bootstrap(score, score, clusters, generator(), 200).p_value == 1.0
    assert paired_t_test(unit_values(score, clusters), unit_values(score, clusters)).p_value == 1.0


def test_p_values_of_equally_good_systems_are_spread_evenly() -> None:
    found = [
        paired_bootstrap(noise(60, 2 * run), noise(60, 2 * run + 1), np.arange(60), generator(run), 500).p_value
        for run in range(300)
    ]
    assert stats.kstest(found, "uniform").statistic < 0.1
    assert 0.01 < np.mean(np.array(found) < 0.05) < 0.11


def test_p_values_do_not_shrink_when_every_turn_is_written_twice_in_its_dialogue() -> None:
    first, second = random_sets(80, 0.3, 1), random_sets(80, 0.45, 2)
    once = (micro_entity_scores(first).f1, micro_entity_scores(second).f1)
    first, second = ([turn for turn in sets for _ in range(2)] for sets in (first, second))
    twice = (micro_entity_scores(first).f1, micro_entity_scores(second).f1)
    by_turn = paired_bootstrap(*once, np.arange(80), generator(), 2000)
    by_dialogue = paired_bootstrap(*twice, np.arange(160) // 2, generator(), 2000)
    assert by_dialogue == by_turn
    assert paired_bootstrap(*twice, np.arange(160), generator(), 2000).p_value < by_turn.p_value


def test_seeds_are_resampled_with_the_dialogues_as_if_turns_were_drawn_one_by_one() -> None:
    """Three runs of two systems over four dialogues of two turns; the mean of the drawn runs' scores is compared."""
    runs, dialogues = np.repeat([4, 7, 9], 8), np.tile(np.repeat(np.arange(4), 2), 3)
    first, second = random_sets(24, 0.3, 1, 5), random_sets(24, 0.6, 2, 5)
    scores = [micro_entity_scores(sets).f1 for sets in (first, second)]
    result = paired_bootstrap(scores[0], scores[1], dialogues, generator(), 80, runs)
    source = generator()
    drawn_dialogues, drawn_runs = source.integers(4, size=(80, 4)), source.integers(3, size=(80, 3))
    differences = []
    for some, others in zip(drawn_dialogues.tolist(), drawn_runs.tolist(), strict=True):
        of_runs = [
            [t for each in some for t in range(24) if dialogues[t] == each and runs[t] == (4, 7, 9)[run]]
            for run in others
        ]
        values = [
            [slow.micro_f1([(s[t].predicted, s[t].gold) for t in turns]) or 0.0 for turns in of_runs]
            for s in (first, second)
        ]
        differences.append(float(np.mean(values[1]) - np.mean(values[0])))
    assert (result.low, result.high) == pytest.approx(tuple(np.quantile(differences, [0.025, 0.975])))


def test_what_is_compared_is_the_mean_of_the_runs_and_not_their_turns_in_one_heap() -> None:
    """One of two runs names an entity, rightly, the other none: their macro-precision is 50, that of the heap 100."""
    gold = frozenset({1})
    rare = [EntitySets(frozenset({1}), gold), EntitySets(frozenset(), gold)]
    half = [EntitySets(frozenset({1}), gold), EntitySets(frozenset({2}), gold)] * 2
    runs, dialogues = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    first = macro_entity_scores([*rare, *[EntitySets(frozenset(), gold)] * 2]).precision
    second = macro_entity_scores(half).precision
    (found,) = compare_systems({"p": first}, {"p": second}, dialogues, generator(), ["p"], 50, runs)
    apart = [
        [macro_entity_scores(sets).precision.value or 0.0 for sets in (whole[:2], whole[2:])]
        for whole in ([*rare, *[EntitySets(frozenset(), gold)] * 2], half)
    ]
    assert (found.first, found.second) == pytest.approx(tuple(np.mean(apart, axis=1)))
    assert found.first != pytest.approx(first.value)
    assert found.bootstrap.difference == pytest.approx(np.mean(apart[1]) - np.mean(apart[0]))
    assert found.over_runs == paired_t_test(*np.array(apart))


def test_a_lead_that_one_of_three_runs_made_is_no_lead() -> None:
    """Over dialogues alone it is certain; another three runs might not have it."""
    dialogues, runs = np.tile(np.arange(50), 3), np.repeat(np.arange(3), 50)
    first = mean_score([0.0] * 150)
    lucky, steady = (mean_score([gain[run] for run in runs.tolist()]) for gain in ((3.0, 0.0, 0.0), (1.0, 1.1, 0.9)))
    assert paired_bootstrap(first, lucky, dialogues, generator(), 1000).p_value < 0.01
    assert paired_bootstrap(first, lucky, dialogues, generator(), 1000, runs).p_value > 0.1
    assert paired_bootstrap(first, steady, dialogues, generator(), 1000, runs).p_value < 0.01


def test_a_clear_difference_is_found_with_its_sign_and_size() -> None:
    result = paired_bootstrap(noise(200, 1), noise(200, 2, shift=1.0), np.arange(200), generator())
    assert result.difference is not None
    assert result.low is not None
    assert result.high is not None
    assert result.p_value < 0.001
    assert 0 < result.low < result.difference < result.high


def test_resampled_scores_are_those_of_turns_drawn_one_by_one() -> None:
    first, second = random_sets(12, 0.3, 1, 5), random_sets(12, 0.6, 2, 5)
    clusters = np.arange(12) // 3
    scores = [macro_entity_scores(sets).f1 for sets in (first, second)]
    result = paired_bootstrap(scores[0], scores[1], clusters, generator(), 100)
    drawn = generator().integers(4, size=(100, 4))
    differences = []
    for row in drawn.tolist():
        turns = [turn for dialogue in row for turn in range(12) if clusters[turn] == dialogue]
        values = [slow.macro([(s[turn].predicted, s[turn].gold) for turn in turns], 1)[2] for s in (first, second)]
        assert values[0] is not None
        assert values[1] is not None
        differences.append(values[1] - values[0])
    observed = result.difference
    assert observed is not None
    far = sum(abs(difference - observed) >= abs(observed) - 1e-12 for difference in differences)
    assert result.p_value == pytest.approx((1 + far) / 101)
    assert (result.low, result.high) == pytest.approx(tuple(np.quantile(differences, [0.025, 0.975])))


def test_the_same_generator_gives_the_same_result_in_one_piece_or_many(monkeypatch: pytest.MonkeyPatch) -> None:
    scores, clusters = (noise(50, 1), noise(50, 2)), np.arange(50)
    whole = paired_bootstrap(*scores, clusters, generator(), 300)
    monkeypatch.setattr("vrbot.evaluation.significance._NUMBERS_AT_ONCE", 350)
    assert paired_bootstrap(*scores, clusters, generator(), 300) == whole


def test_ten_thousand_resamples_of_a_real_sized_split_take_about_a_second() -> None:
    first, second = random_sets(1752, 0.3, 1), random_sets(1752, 0.32, 2)
    clusters = np.arange(1752) // 4
    before = time.process_time()
    for kind in (micro_entity_scores, macro_entity_scores):
        paired_bootstrap(kind(first).f1, kind(second).f1, clusters, generator())
    assert time.process_time() - before < 6  # 0.7 s where it was written; the rest is for slow machines


def test_a_score_that_does_not_apply_shows_nothing() -> None:
    nothing = mean_score([None, None])
    result = paired_bootstrap(nothing, nothing, np.array([0, 1]), generator(), 50)
    assert (result.difference, result.p_value) == (None, 1.0)
    empty = mean_score([])
    assert paired_bootstrap(empty, empty, np.array([], dtype=np.int64), generator(), 50).p_value == 1.0
    assert paired_t_test(np.array([]), np.array([])).num_pairs == 0


def test_the_t_test_of_the_documented_example_is_what_a_hand_computes() -> None:
    result = paired_t_test(np.array([1.0, 1.0, 1.0]), np.array([2.0, 3.0, 4.0]))
    assert result.mean_difference == pytest.approx(2)
    assert result.p_value == pytest.approx(0.0742, abs=5e-5)  # t = 2 / (1 / sqrt 3) = 3.464 with 2 degrees


@given(st.lists(st.tuples(st.floats(-5, 5), st.floats(-5, 5)), min_size=3, max_size=10))
def test_the_t_test_equals_the_library_where_the_library_has_an_answer(pairs: list[tuple[float, float]]) -> None:
    first, second = np.array(pairs).T
    if np.ptp(second - first) < 1e-3:
        return
    expected = stats.ttest_rel(second, first)
    assert paired_t_test(first, second).p_value == pytest.approx(expected.pvalue)


def test_the_t_test_states_its_result_where_nothing_varies() -> None:
    ones = np.ones(4)
    assert paired_t_test(ones, ones).p_value == 1.0
    assert paired_t_test(ones, ones + 1).p_value == 0.0
    assert paired_t_test(ones[:1], ones[:1] + 1).p_value == 1.0
    some = paired_t_test(np.array([math.nan, 1.0, 2.0, 3.0]), np.array([1.0, math.nan, 2.5, 4.0]))
    assert some.num_pairs == 2


def test_a_dialogue_has_the_score_of_its_own_turns() -> None:
    sets = random_sets(6, 0.5, 1, 4)
    values = unit_values(micro_entity_scores(sets).f1, np.array([0, 0, 1, 1, 1, 2]))
    parts = [sets[0:2], sets[2:5], sets[5:6]]
    assert values.tolist() == pytest.approx([micro_entity_scores(part).f1.value for part in parts])


def test_holm_of_the_documented_example_is_what_a_hand_computes() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx((0.03, 0.06, 0.06))


@given(p_values)
def test_holm_equals_its_definition(values: list[float]) -> None:
    assert list(holm(values)) == pytest.approx(slow.holm(values))


@given(p_values)
def test_holm_never_lowers_a_p_value_and_keeps_their_order(values: list[float]) -> None:
    adjusted = holm(values)
    assert all(1 >= after >= before for before, after in zip(values, adjusted, strict=True))
    order = sorted(range(len(values)), key=lambda place: values[place])
    assert [adjusted[place] for place in order] == sorted(adjusted)


def test_the_seeds_of_the_documented_example_are_what_a_hand_computes() -> None:
    summary = summarise_seeds([10, 12, 14])
    assert (summary.mean, summary.standard_deviation, summary.num_seeds) == (12, 2, 3)
    assert (summary.low, summary.high) == pytest.approx((12 - 4.3027 * 2 / 3**0.5, 12 + 4.3027 * 2 / 3**0.5), abs=1e-4)


def test_one_seed_has_no_interval_and_none_is_refused() -> None:
    assert summarise_seeds([7.0]).low is None
    with pytest.raises(UsageError, match="at least one"):
        summarise_seeds([])


def test_systems_are_compared_under_each_metric_and_corrected_over_the_table() -> None:
    words = [("a", "b", "c"), ("b", "c"), ("c", "a")] * 10
    first = {"bleu_2": bleu_2_score([text[1:] for text in words], words), "mean": noise(30, 1)}
    second = {"bleu_2": bleu_2_score(words, words), "mean": noise(30, 2)}
    plain = compare_systems(first, second, np.arange(30) // 3, generator(), ["mean", "bleu_2"], 500)
    assert [comparison.metric for comparison in plain] == ["mean", "bleu_2"]
    assert plain[1].second == pytest.approx(100)
    assert plain[1].bootstrap.p_value < 0.01
    corrected = holm_corrected(plain)
    expected = holm([comparison.bootstrap.p_value for comparison in plain])
    assert tuple(comparison.adjusted_p_bootstrap for comparison in corrected) == expected
    with pytest.raises(UsageError, match="distinct_1"):
        compare_systems(first, second, np.arange(30), generator(), ["distinct_1"], 10)


def test_a_comparison_of_no_metrics_is_refused_and_says_what_there_is() -> None:
    score = {"bleu_2": noise(6, 1)}
    with pytest.raises(UsageError, match="no metrics to compare: name at least one of bleu_2"):
        compare_systems(score, score, np.arange(6), generator(), [])


def test_systems_with_no_metric_in_common_stand_side_by_side_untested() -> None:
    turns = [ScoredTurn("a", number, "", "", (), ()) for number in range(3)]
    applies, does_not = mean_score([1.0, 2.0, 3.0]), mean_score([])
    candidates = [Candidate("one", turns, {"m": applies}), Candidate("two", turns, {"m": does_not})]
    found = compare_candidates(candidates, ["m"], num_resamples=10)
    assert found.contests[0].comparisons == ()
    assert found.values["two"]["m"] is None


def test_the_table_marks_the_best_of_several_and_of_perplexities_the_lower() -> None:
    turns = [ScoredTurn("a", number, "", "", (), ()) for number in range(2)]
    scores = {
        "one": {"perplexity": [0.07, 0.09], "bleu_2": [0.6, 0.4], "state_f1": [0.8, 0.8]},
        "two": {"perplexity": [0.2, 0.3], "bleu_2": [0.1, 0.2], "state_f1": []},
    }
    candidates = [
        Candidate(name, turns, {key: mean_score(values) for key, values in each.items()})
        for name, each in scores.items()
    ]
    found = compare_candidates(candidates, ["perplexity", "bleu_2", "state_f1"], num_resamples=10)
    text = values_table("Replies", found).to_markdown()
    assert "| system | perplexity | B@2 | state\\_f1 |" in text
    assert "| one | **8.00** | **50.00** | 80.00 |" in text
    assert "| two | 25.00 | 15.00 | - |" in text
