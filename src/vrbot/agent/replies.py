"""The turns of a split in batches, and the search for a model's replies to them, each after the real conversation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from vrbot.config import DecodingSettings
from vrbot.decoding.adjusting import in_turn, no_repeat_ngram
from vrbot.decoding.beam import beam
from vrbot.decoding.greedy import greedy
from vrbot.decoding.step import Adjust, Decoded
from vrbot.dialogue.batching import Limits, SessionBatch, collate, sequential_batches
from vrbot.dialogue.splits import Split
from vrbot.dialogue.vocabulary import BOS, EOS, PAD, SEP, UNK
from vrbot.model.contract import DialogueModel, Perception

NOT_WORDS = [PAD, UNK, BOS, SEP]
ROWS_AT_ONCE = 64
"""How many replies are searched for together."""


def batches_of(split: Split, limits: Limits, max_rows: int = 256) -> Iterator[SessionBatch]:
    """All sessions of a split, in batches of bounded size."""
    for sessions in sequential_batches(split, batch_size=64, max_rows=max_rows):
        yield collate(split, sessions, limits=limits)


def search(
    model: DialogueModel, perception: Perception, rows: Tensor, decoding: DecodingSettings, num_results: int = 1
) -> Decoded:
    """The best replies for each of these rows; words that are none are never written."""
    step, state = model.begin_reply(perception, rows)
    rules = writing_rules(decoding)
    if decoding.beam == 1:
        return greedy(step, state, len(rows), BOS, EOS, decoding.max_length, adjust=rules)
    return beam(
        step,
        state,
        len(rows),
        BOS,
        EOS,
        decoding.max_length,
        width=decoding.beam,
        word_reward=decoding.word_reward or 0.0,
        length_penalty=decoding.length_penalty,
        num_results=num_results,
        adjust=rules,
    )


def writing_rules(decoding: DecodingSettings) -> Adjust:
    """What may be written next, in any search."""
    return in_turn(_only_words, no_repeat_ngram(decoding.no_repeat)) if decoding.no_repeat else _only_words


def _only_words(prefix: Tensor, log_probs: Tensor) -> Tensor:
    """Nothing but words and the end; the log probabilities are a step's own and are changed where they lie."""
    log_probs[:, NOT_WORDS] = -torch.inf
    return log_probs


def as_model(model: Any) -> DialogueModel:
    """The module seen through its contract."""
    contract: DialogueModel = model
    return contract
