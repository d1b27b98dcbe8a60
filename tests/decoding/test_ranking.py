from __future__ import annotations

import math

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from vrbot.decoding.ranking import BLOCK_SIZE, best_choices

sizes = st.sampled_from([1, 2, BLOCK_SIZE, 5 * BLOCK_SIZE, 7 * BLOCK_SIZE + 1, 9 * BLOCK_SIZE - 1, 1000])


@settings(max_examples=200, deadline=None)
@given(
    st.integers(1, 4), sizes, st.integers(1, 8), st.integers(1, 12), st.sampled_from([0.0, 0.9]), st.integers(0, 9999)
)
def test_the_best_choices_are_the_first_of_a_stable_sort(
    rows: int, num_choices: int, count: int, levels: int, holes: float, seed: int
):
    generator = torch.Generator().manual_seed(seed)
    scores = -torch.randint(0, levels, (rows, num_choices), generator=generator).float()
    scores = scores.masked_fill(torch.rand(scores.shape, generator=generator) < holes, -math.inf)
    values, ids = best_choices(scores, count)
    expected = scores.sort(dim=1, descending=True, stable=True)
    count = min(count, num_choices)
    assert torch.equal(values, expected.values[:, :count])
    real = values > -math.inf
    assert torch.equal(ids[real], expected.indices[:, :count][real])
    assert ((ids >= 0) & (ids < num_choices)).all()
