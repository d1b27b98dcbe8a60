"""Where each word of a reply came from: generated, or copied from context, state or action (paper, Eq. 16).

Under one normaliser p(w) = (exp g_w + sum of exp c_j over the slots j that hold w) / z, so each term's share of the
word's probability is known exactly. Letters: J slots (context words, state, keywords), L span positions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from vrbot.agent.replies import NOT_WORDS
from vrbot.dialogue.vocabulary import EOS, Vocabulary
from vrbot.explain.evidence import Copy, Slot, WordEvidence
from vrbot.explain.places import ContextPlaces
from vrbot.model.contract import Perception
from vrbot.model.response_generator import DecoderState, ResponseGenerator
from vrbot.model.vrbot import VRBot


@dataclass(frozen=True, eq=False)
class WordShares:
    """Of one word: its log probability, and the shares of generating it and of copying it from each slot [J]."""

    log_prob: float
    generated: float
    copied: Tensor


@torch.no_grad()
def shares_along(model: VRBot, perception: Perception, row: int, words: Sequence[int]) -> list[WordShares]:
    """The shares of each word of a reply to one row, every word after those before it."""
    _, state = model.begin_reply(perception, torch.tensor([row]))
    shares, last = [], model.generator.bos
    for word in words:
        tokens = torch.tensor([last])
        log_probs, following = model.generator.step(tokens, state)
        shares.append(_shares(model.generator, tokens, state, following, word, float(log_probs[0, word])))
        state, last = following, word
    return shares


def _shares(
    generator: ResponseGenerator,
    tokens: Tensor,
    state: DecoderState,
    following: DecoderState,
    word: int,
    log_prob: float,
) -> WordShares:
    memory = state.memory
    readings = memory.left(following.named.unsqueeze(0)) if generator.coverage else memory.readings
    output = generator.cell.advance(state.hidden, generator.words(tokens), readings).output  # [1, H]
    generation = generator.output(output)[0] @ generator.words.weight[word] + generator.output_bias[word]
    scores = memory.copy_vectors[0] @ generator.copy_query(output)[0]  # [J]
    holds = memory.copy_mask[0] & (memory.copy_words[0] == word)
    masses = torch.cat((generation.unsqueeze(0), scores.masked_fill(~holds, -math.inf))).double().softmax(dim=0)
    return WordShares(log_prob, float(masses[0]), masses[1:])


def written_words(words: Sequence[int]) -> list[int]:
    """The word ids of a reply up to its end, without what is no word."""
    end = list(words).index(EOS) if EOS in words else len(words)
    return [word for word in words[:end] if word not in NOT_WORDS]


def word_evidence(
    model: VRBot, perception: Perception, row: int, words: Sequence[int], places: ContextPlaces, vocabulary: Vocabulary
) -> tuple[WordEvidence, ...]:
    """The evidence for every word of a reply."""
    spoken = written_words(words)
    slots = _Slots(len(perception.conditions.context_words[row]), model.state_length, places, vocabulary)
    found = shares_along(model, perception, row, spoken)
    return tuple(
        WordEvidence(
            vocabulary.words[word],
            math.exp(shares.log_prob),
            shares.generated,
            slots.copies(vocabulary.words[word], shares.copied),
        )
        for word, shares in zip(spoken, found, strict=True)
    )


@dataclass(frozen=True, eq=False)
class _Slots:
    """What the slots of one row are: first the context, then the state, then the keywords."""

    context_width: int
    state_length: int
    places: ContextPlaces
    vocabulary: Vocabulary

    def copies(self, word: str, shares: Tensor) -> tuple[Copy, ...]:
        found = [self._copy(slot, word, float(shares[slot])) for slot in shares.nonzero().squeeze(1).tolist()]
        return tuple(sorted(found, key=lambda copy: -copy.share))

    def _copy(self, slot: int, word: str, share: float) -> Copy:
        if slot < self.context_width:
            return Copy("context", word, share, self.places.places[slot])
        source: Slot = "state" if slot < self.context_width + self.state_length else "action"
        return Copy(source, word, share)
