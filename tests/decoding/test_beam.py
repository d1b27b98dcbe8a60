from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tests.decoding.reference import reference_beam
from tests.decoding.tables import (
    END,
    START,
    Problem,
    TableDecoder,
    TableState,
    every_sequence,
    log_prob_of,
    problems,
    visible,
)
from vrbot.decoding import Decoded, beam, greedy, in_turn, no_repeat_ngram
from vrbot.errors import ConfigError, VRBotError

quick = settings(max_examples=80, deadline=None)
penalties = st.sampled_from([0.0, 0.6, 1.0, -0.5])
rewards = st.sampled_from([0.0, 0.5, 3.0])


def search(problem: Problem, tables: Tensor | None = None, **settings: Any) -> Decoded:
    tables = problem.tables() if tables is None else tables
    decoder = TableDecoder(problem.num_states)
    return beam(decoder, decoder.start(tables), len(tables), START, END, problem.max_length, **settings)


def sequences(decoded: Decoded, item: int) -> list[tuple[int, ...]]:
    """The token tuples of the filled places of one item, best first."""
    return [
        tuple(tokens[:length].tolist())
        for tokens, length, score in zip(decoded.tokens[item], decoded.lengths[item], decoded.scores[item], strict=True)
        if score > -math.inf
    ]


def assert_same(left: Decoded, right: Decoded) -> None:
    assert torch.equal(left.lengths, right.lengths)
    assert torch.equal(left.scores, right.scores)
    assert torch.equal(left.finished, right.finished)
    longest = int(left.lengths.max())
    assert torch.equal(left.tokens[..., :longest], right.tokens[..., :longest])


@quick
@given(problems(), penalties, rewards, st.integers(0, 2))
def test_a_beam_wide_enough_finds_the_best_of_all_sequences(
    problem: Problem, penalty: float, reward: float, min_length: int
):
    everything = every_sequence(problem.vocabulary, problem.max_length, min_length)
    tables = problem.tables()
    width = len(everything) + 3
    how: dict[str, Any] = {"length_penalty": penalty, "word_reward": reward, "min_length": min_length}
    decoded = search(problem, width=width, num_results=3, **how)

    def score(table: Tensor, tokens: tuple[int, ...]) -> float:
        less = table - reward * (torch.arange(table.size(1)) == END)  # the end is no word; rounded as in the search
        return float((log_prob_of(less, tokens) + reward * len(tokens)) / len(tokens) ** penalty)

    for item, table in enumerate(tables):
        scored = [(score(table, tokens), visible(tokens)) for tokens in everything]
        possible = [pair for pair in scored if pair[0] > -math.inf]
        best = sorted(possible, key=lambda pair: (-pair[0], pair[1]))[:3]
        assert sequences(decoded, item) == [tokens for _, tokens in best]
        torch.testing.assert_close(decoded.scores[item, : len(best)], torch.tensor([score for score, _ in best]))


@quick
@given(problems(max_length=7, max_vocabulary=6), penalties, rewards, st.integers(1, 5), st.data())
def test_stopping_early_changes_no_result(
    problem: Problem, penalty: float, reward: float, width: int, data: st.DataObject
):
    num_results = data.draw(st.integers(1, width))
    decoded = search(problem, width=width, length_penalty=penalty, word_reward=reward, num_results=num_results)
    for item, table in enumerate(problem.tables()):
        expected = reference_beam(table, problem.max_length, width, penalty, reward)[:num_results]
        assert sequences(decoded, item) == [tokens for _, tokens in expected]
        assert decoded.scores[item, : len(expected)].tolist() == pytest.approx([score for score, _ in expected])


@quick
@given(problems(max_length=7, max_vocabulary=6), penalties)
def test_a_beam_of_one_is_greedy(problem: Problem, penalty: float):
    decoder = TableDecoder(problem.num_states)
    expected = greedy(decoder, decoder.start(problem.tables()), problem.items, START, END, problem.max_length)
    decoded = search(problem, width=1, length_penalty=penalty)
    assert torch.equal(decoded.tokens, expected.tokens)
    assert torch.equal(decoded.lengths, expected.lengths)
    assert torch.equal(decoded.finished, expected.finished)


@quick
@given(problems(max_items=6, max_length=7, max_vocabulary=6), penalties)
def test_an_item_is_decoded_the_same_alone_and_among_neighbours(problem: Problem, penalty: float):
    together = search(problem, width=3, length_penalty=penalty, num_results=3)
    for item, table in enumerate(problem.tables()):
        alone = search(problem, table.unsqueeze(0), width=3, length_penalty=penalty, num_results=3)
        among = Decoded(
            together.tokens[item : item + 1],
            together.lengths[item : item + 1],
            together.scores[item : item + 1],
            together.finished[item : item + 1],
        )
        assert_same(alone, among)


@quick
@given(problems(max_length=6, max_vocabulary=6))
def test_results_are_padded_distinct_and_in_order(problem: Problem):
    decoded = search(problem, width=4, num_results=4, pad=99)
    positions = torch.arange(decoded.tokens.size(-1))
    assert torch.equal(decoded.tokens == 99, positions >= decoded.lengths.unsqueeze(-1))
    assert (decoded.tokens != END).all()
    assert (decoded.scores.diff(dim=1).nan_to_num(nan=0.0) <= 0).all()
    for item in range(problem.items):
        found = sequences(decoded, item)
        assert len(set(found)) == len(found)


def ends_after(steps: int, vocabulary: int = 6) -> Tensor:
    """A table for `CountingDecoder`: END is certain after `steps` tokens."""
    table = torch.full((20, vocabulary), -math.inf)
    table[:, 2:] = -math.log(vocabulary - 2)
    table[steps] = -math.inf
    table[steps, END] = 0.0
    return table


class CountingDecoder(TableDecoder):
    """Its table is indexed by the length of the prefix."""

    def __call__(self, tokens: Tensor, state: TableState) -> tuple[Tensor, TableState]:
        self.calls.append(len(tokens))
        rows_per_item = len(tokens) // len(state.tables)
        items = [row // rows_per_item for row in range(len(tokens))]
        lengths = [len(prefix) for prefix in state.prefixes]
        prefixes = tuple((*prefix, 0) for prefix in state.prefixes)
        return state.tables[items, lengths], TableState(prefixes, state.tables)


@pytest.mark.parametrize("penalty", [0.0, 1.0])
def test_the_search_stops_when_every_item_is_done_and_drops_items_on_the_way(penalty: float):
    decoder = CountingDecoder(20)
    tables = torch.stack([ends_after(steps) for steps in (1, 2, 2, 6)])
    decoded = beam(decoder, decoder.start(tables), 4, START, END, 19, width=5, length_penalty=penalty)
    assert decoded.lengths.squeeze(1).tolist() == [1, 2, 2, 6]
    assert decoder.calls == [4, 20, 15, 5, 5, 5, 5]
    single = CountingDecoder(20)
    greedy(single, single.start(tables), 4, START, END, 19)
    assert single.calls == [4, 4, 3, 1, 1, 1, 1]


def test_the_bound_stops_a_search_whose_living_hypotheses_cannot_win():
    table = torch.tensor([-8.0, math.log(0.9), -9.0, -10.0]).expand(20, 4).unsqueeze(0)
    decoder = CountingDecoder(20)
    decoded = beam(decoder, decoder.start(table), 1, START, END, 19, width=3)
    assert decoded.lengths.item() == 0
    assert decoder.calls == [1]
    patient = CountingDecoder(20)
    beam(patient, patient.start(table), 1, START, END, 19, width=3, num_results=3)
    assert len(patient.calls) > 1


def test_a_search_goes_on_while_length_normalisation_can_still_turn_the_tables():
    table = torch.full((20, 4), -math.inf)
    table[0, END], table[0, 2] = math.log(0.75), math.log(0.25)
    table[1:9, 3] = 0.0
    table[9, END] = 0.0
    decoder = CountingDecoder(20)
    decoded = beam(decoder, decoder.start(table.unsqueeze(0)), 1, START, END, 10, width=2, length_penalty=1.0)
    assert decoded.lengths.item() == 9
    assert decoded.scores.item() == pytest.approx(math.log(0.25) / 10)


def test_ties_go_to_the_lower_token_id_whatever_the_batch():
    table = torch.full((1, 20, 500), -math.log(500))
    table[..., END] = -math.inf
    for items in (1, 3):
        decoder = CountingDecoder(20)
        start = decoder.start(table.expand(items, -1, -1))
        decoded = beam(decoder, start, items, START, END, 1, width=4, num_results=4)
        assert decoded.tokens.squeeze(-1).tolist() == [[0, 2, 3, 4]] * items


def test_an_item_for_which_nothing_is_possible_gives_an_empty_result_and_harms_no_other():
    tables = torch.stack([torch.full((20, 6), -math.inf), ends_after(2)])
    for decode in (beam, greedy):
        decoder = CountingDecoder(20)
        decoded = decode(decoder, decoder.start(tables), 2, START, END, 10)
        assert decoded.lengths.tolist() == [[0], [2]]
        assert decoded.scores[0].item() == -math.inf
        assert decoded.finished.tolist() == [[False], [True]]


def test_nan_is_refused_while_a_row_lives_and_ignored_after():
    tables = torch.stack([ends_after(1), ends_after(3), ends_after(3), ends_after(3), ends_after(3)])
    tables[0, 2:] = math.nan
    for decode in (beam, greedy):
        decoder = CountingDecoder(20)
        assert decode(decoder, decoder.start(tables), 5, START, END, 10).lengths.flatten().tolist() == [1, 3, 3, 3, 3]
        broken = CountingDecoder(20)
        with pytest.raises(VRBotError, match="nan"):
            decode(broken, broken.start(torch.full((1, 20, 6), math.nan)), 1, START, END, 10)


def test_an_empty_batch_needs_no_step():
    decoder = CountingDecoder(20)
    decoded = beam(decoder, decoder.start(torch.empty(0, 20, 6)), 0, START, END, 10)
    assert decoded.tokens.shape[:2] == (0, 1)
    assert decoder.calls == []


@quick
@given(problems(max_length=7, max_vocabulary=5), st.integers(1, 3))
def test_no_ngram_comes_twice_when_that_is_forbidden(problem: Problem, size: int):
    decoded = search(problem, width=3, num_results=3, adjust=no_repeat_ngram(size))
    for item in range(problem.items):
        for tokens in sequences(decoded, item):
            ngrams = [tokens[i : i + size] for i in range(len(tokens) - size + 1)]
            assert len(set(ngrams)) == len(ngrams)


def never_start(prefix: Tensor, log_probs: Tensor) -> Tensor:
    return log_probs.index_fill(1, torch.tensor([START]), -math.inf)


@quick
@given(problems(max_length=4, max_vocabulary=4), st.integers(1, 2))
def test_forbidding_repeats_keeps_the_best_of_those_without(problem: Problem, size: int):
    everything = every_sequence(problem.vocabulary, problem.max_length)
    adjust = in_turn(no_repeat_ngram(size), never_start)
    decoded = search(problem, width=len(everything), adjust=adjust)
    for item, table in enumerate(problem.tables()):
        allowed = []
        for tokens in everything:
            ngrams = [tokens[i : i + size] for i in range(len(tokens) - size + 1)]
            if len(set(ngrams)) == len(ngrams) and START not in tokens:
                allowed.append((log_prob_of(table, tokens), visible(tokens)))
        possible = sorted((-score, tokens) for score, tokens in allowed if score > -math.inf)
        assert sequences(decoded, item) == [tokens for _, tokens in possible[:1]]


@pytest.mark.parametrize(("width", "num_results"), [(3, 4), (3, 0), (0, 1)])
def test_more_results_than_places_are_refused(width: int, num_results: int):
    with pytest.raises(ConfigError, match=f"width {width} cannot give {num_results} results"):
        search(Problem(1, 3, 3, 0.0, 0), width=width, num_results=num_results)


def test_an_ngram_of_no_tokens_is_refused():
    with pytest.raises(ConfigError, match="at least 1, got 0"):
        no_repeat_ngram(0)
