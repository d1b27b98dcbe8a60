"""Where each word of a reply came from: generated, or copied from context, state or action (paper, Eq. 16).

Under one normaliser p(w) = (exp g_w + sum of exp c_j over the slots j that hold w) / z, so each term's share of the
word's probability is known exactly. Letters: R words of the reply, J slots (context words, state, keywords),
L keywords, K meanings of a word, V words, H hidden size.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from vrbot.dialogue.vocabulary import Vocabulary
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
    """The shares of each word of a reply to one row, every word after those before it; all in one pass."""
    if not words:
        return []
    generator = model.generator
    _, start = model.begin_reply(perception, torch.tensor([row]))
    outputs = _outputs_along(generator, start, [generator.bos, *words[:-1]])  # [R, H]
    memory, targets = start.memory, torch.tensor(words).unsqueeze(1)  # [R, 1]
    generation = torch.addmm(generator.output_bias, generator.output(outputs), generator.words.weight.T)  # [R, V]
    copies = generator.copy_query(outputs) @ memory.copy_vectors[0].T
    copies = copies.masked_fill(~memory.copy_mask[0], -math.inf)  # [R, J]
    total = torch.logaddexp(generation.double().logsumexp(dim=1), copies.double().logsumexp(dim=1))
    held = copies.masked_fill(memory.copy_words[0] != targets, -math.inf)
    ways = torch.cat((generation.gather(1, targets), held), dim=1).double()  # [R, 1 + J]
    log_probs, masses = (ways.logsumexp(dim=1) - total).tolist(), ways.softmax(dim=1)
    return [WordShares(log_prob, float(mass[0]), mass[1:]) for log_prob, mass in zip(log_probs, masses, strict=True)]


def _outputs_along(generator: ResponseGenerator, start: DecoderState, before: Sequence[int]) -> Tensor:
    """What the decoder predicts each word from, when it has read these words [R] -> [R, H]."""
    read = torch.tensor([before])
    readings = start.memory.readings
    if generator.coverage:
        meant = generator.meanings[read].unsqueeze(-1) == start.memory.keywords[:, None, None, :]  # [1, R, K, L]
        readings = start.memory.left(meant.any(dim=2).cumsum(dim=1) > 0)
    length = torch.tensor([len(before)])
    return generator.cell.along(start.hidden, generator.words(read), length, readings)[0]


def word_evidence(
    model: VRBot, perception: Perception, row: int, words: Sequence[int], places: ContextPlaces, vocabulary: Vocabulary
) -> tuple[WordEvidence, ...]:
    """The evidence for every word of a reply."""
    spoken = vocabulary.written(words)
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
