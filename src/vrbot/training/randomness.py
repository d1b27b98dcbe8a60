"""Where every random number of a run comes from: a seed and a place, so there is no generator state to save."""

from __future__ import annotations

from enum import IntEnum

import numpy as np


class Use(IntEnum):
    """What a derived seed is for; different uses never share a stream."""

    INITIAL_WEIGHTS = 0
    STEP = 1
    VALIDATION_LOSS = 2
    VALIDATION = 3


def derived_seed(seed: int, use: Use, *place: int) -> int:
    """A 64-bit seed for one place of a run, such as (step, shard)."""
    words = np.random.SeedSequence([seed, int(use), *place]).generate_state(2, np.uint32)
    return int(words[0]) << 32 | int(words[1])
