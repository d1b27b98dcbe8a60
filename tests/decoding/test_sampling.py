from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare
from torch import Tensor

from tests.decoding.tables import END, START, Problem, TableDecoder, log_prob_of, problems
from vrbot.decoding import Decoded, greedy, sampling
from vrbot.errors import ConfigError

quick = settings(max_examples=60, deadline=None)


def draw(problem: Problem, tables: Tensor | None = None, seed: int = 1, **settings: Any) -> Decoded:
    tables = problem.tables() if tables is None else tables
    decoder, generator = TableDecoder(problem.num_states), torch.Generator().manual_seed(seed)
    state = decoder.start(tables)
    return sampling(decoder, state, len(tables), START, END, problem.max_length, generator=generator, **settings)


def follow(problem: Problem, tables: Tensor) -> Decoded:
    decoder = TableDecoder(problem.num_states)
    return greedy(decoder, decoder.start(tables), len(tables), START, END, problem.max_length)


def same(left: Decoded, right: Decoded) -> bool:
    return torch.equal(left.tokens, right.tokens) and torch.equal(left.scores, right.scores)


@quick
@given(problems(max_length=7, max_vocabulary=6))
def test_sampling_from_the_single_best_token_is_greedy(problem: Problem):
    assert same(draw(problem, top_k=1), follow(problem, problem.tables()))
    assert same(draw(problem, top_p=1e-9), follow(problem, problem.tables()))


@quick
@given(problems(max_length=7, max_vocabulary=6))
def test_sampling_becomes_greedy_as_the_temperature_falls(problem: Problem):
    # Ties are broken by a hair, in favour of the lower id, as greedy breaks them.
    tables = problem.tables() - torch.arange(problem.vocabulary) * 1e-3
    assert same(draw(problem, tables, temperature=1e-30), follow(problem, tables))
    assert same(draw(problem, tables, temperature=1e-30, top_p=0.9), follow(problem, tables))


@quick
@given(problems(max_length=6, max_vocabulary=6), st.integers(1, 3))
def test_the_same_generator_draws_the_same_sequences_with_the_models_own_scores(problem: Problem, num_samples: int):
    first, second = (draw(problem, num_samples=num_samples) for _ in range(2))
    assert same(first, second)
    for item, table in enumerate(problem.tables()):
        for place in range(num_samples):
            if first.scores[item, place] == -math.inf:
                assert first.lengths[item, place] == 0
                continue
            tokens = first.tokens[item, place, : first.lengths[item, place]].tolist()
            written = tokens + [END] * bool(first.finished[item, place])
            assert first.scores[item, place].item() == pytest.approx(log_prob_of(table, written), abs=1e-5)


@quick
@given(problems(max_items=6, max_length=6, max_vocabulary=6))
def test_what_an_item_draws_does_not_depend_on_its_neighbours(problem: Problem):
    tables = problem.tables()
    changed = tables.clone()
    changed[:-1] = tables[:-1].flip(-1)
    left, right = draw(problem, tables), draw(problem, changed)
    assert left.lengths[-1] == right.lengths[-1]
    assert torch.equal(left.tokens[-1, 0, : left.lengths[-1, 0]], right.tokens[-1, 0, : right.lengths[-1, 0]])


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [0.4, 0.0, 0.3, 0.2, 0.1]),
        ({"temperature": 0.5}, [0.16 / 0.3, 0.0, 0.09 / 0.3, 0.04 / 0.3, 0.01 / 0.3]),
        ({"top_k": 2}, [4 / 7, 0.0, 3 / 7, 0.0, 0.0]),
        ({"top_p": 0.6}, [4 / 7, 0.0, 3 / 7, 0.0, 0.0]),
        ({"top_k": 3, "top_p": 0.99}, [4 / 9, 0.0, 3 / 9, 2 / 9, 0.0]),
    ],
)
def test_tokens_fall_as_often_as_the_cut_and_tempered_probabilities_say(options: dict[str, Any], expected: list[float]):
    draws = 20_000
    problem = Problem(draws, 5, 1, 0.0, 0, num_states=1)
    table = torch.tensor([0.4, 0.0, 0.3, 0.2, 0.1]).log().expand(draws, 1, 5)
    decoded = draw(problem, table, **options)
    counts = torch.bincount(decoded.tokens.flatten(), minlength=5).numpy()
    present = [i for i, share in enumerate(expected) if share > 0]
    assert counts[present].sum() == draws
    assert chisquare(counts[present], [expected[i] * draws for i in present]).pvalue > 1e-3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": 0.0}, "temperature must be above 0, got 0.0; use greedy"),
        ({"top_k": 0}, "top_k must be at least 1, got 0"),
        ({"top_p": 1.5}, "top_p must be above 0 and at most 1, got 1.5"),
        ({"num_samples": 0}, "num_samples must be at least 1, got 0"),
    ],
)
def test_settings_that_cannot_be_are_refused(options: dict[str, Any], message: str):
    with pytest.raises(ConfigError, match=message):
        draw(Problem(1, 3, 3, 0.0, 0), **options)
