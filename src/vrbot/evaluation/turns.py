"""What is measured: one record for each turn of a split, in plain data, whatever model wrote the reply."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from vrbot.errors import UsageError

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Latents:
    """A patient's state and a physician's action, as labels or as a network's guess; None: not there at all.

    Entities are ids; order and repetition play no part. An empty tuple means "there is none", and counts.
    """

    state: tuple[int, ...] | None = None
    category: int | None = None
    keywords: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Evidence:
    """What a predicted keyword can be explained by, beside the predicted state.

    `context`: entities said in the dialogue before the reply; `reached`: entities to which a path leads from the state
    in the subgraph the model saw (see `explainability.reached_entities`).
    """

    context: frozenset[int]
    reached: frozenset[int]


@dataclass(frozen=True)
class ScoredTurn:
    """One turn, in corpus order; `reply` is the system's, `reference` the physician's.

    Words are cut by the corpus's segmenter, entities found by its linker with aliases folded, in both texts alike.
    `previous_gold_state` is the labelled state of the turn before, `()` at the first turn of a dialogue.
    `log_prob` is that of the reference under the model, in nats, over `num_log_prob_tokens` tokens; `action_log_prob`
    that of the labelled action.
    """

    session_id: str
    turn: int
    reply: str
    reference: str
    reply_words: tuple[str, ...]
    reference_words: tuple[str, ...]
    reply_entities: frozenset[int] = frozenset()
    reference_entities: frozenset[int] = frozenset()
    gold: Latents = field(default_factory=Latents)
    previous_gold_state: tuple[int, ...] | None = None
    prior: Latents = field(default_factory=Latents)
    inference: Latents = field(default_factory=Latents)
    evidence: Evidence | None = None
    log_prob: float | None = None
    num_log_prob_tokens: int | None = None
    action_log_prob: float | None = None


def dialogue_numbers(turns: Sequence[ScoredTurn]) -> Ints:
    """For each turn the number of its dialogue, [T]: the clusters of a bootstrap over dialogues."""
    numbers: dict[str, int] = {}
    return np.array([numbers.setdefault(turn.session_id, len(numbers)) for turn in turns], dtype=np.int64)


def check_same_turns(first: Sequence[ScoredTurn], second: Sequence[ScoredTurn]) -> None:
    """UsageError unless both systems answered the same turns with the same references, in the same order."""
    if len(first) != len(second):
        raise UsageError(f"one system has {len(first)} turns and the other {len(second)}: evaluate both on one split")
    for one, other in zip(first, second, strict=True):
        if (one.session_id, one.turn, one.reference) != (other.session_id, other.turn, other.reference):
            raise UsageError(
                f"turn {one.turn} of {one.session_id} stands beside turn {other.turn} of {other.session_id}, "
                "or their references differ: evaluate both on one split of one corpus"
            )
