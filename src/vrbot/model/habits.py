"""What is usually named after such words: logistic regressions over the n-grams of all that was said.

A network that reads a few thousand dialogues learns much of them by heart. A regression with a penalty foretells the
next keywords nearly as well and errs elsewhere; the policy starts from it and learns what it misses (decision 0024).
It is taught before training (`objective.habit_teacher`) and learns no more after. While training, a dialogue is told
what a regression says that was taught without it: the policy is to trust it as far as it can be trusted in use.
Letters: N rows (turns), C characters, F n-grams, S of them said, K entities it speaks of, E entities.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from vrbot.dialogue.batching import TurnInputs, TurnLayout

MOST_ENTITIES = 256
"""Only what is named most often has a regression."""

NO_NGRAM = torch.iinfo(torch.int64).max
CHARACTER_BITS = 20
"""A character's number is below 2 to this power, so that three of them fit into one."""


@dataclass(frozen=True, eq=False)
class HabitTable:
    """The regressions: how much each n-gram speaks for each entity, and what holds without any."""

    weights: Tensor  # [F, K]
    bias: Tensor  # [K] against how often the entity is named at all


class Habits(nn.Module):
    """How much more (or less) likely than usual each entity is to be named next; 0 for all until it is taught."""

    ngrams: Tensor
    fitted = ("weights", "bias")
    rarity: Tensor
    entities: Tensor
    weights: Tensor
    bias: Tensor

    def __init__(self, num_ngrams: int, num_entities: int) -> None:
        super().__init__()
        self.num_entities = num_entities
        spoken_of = min(num_entities, MOST_ENTITIES)
        self.register_buffer("ngrams", torch.full((num_ngrams,), NO_NGRAM))  # rising
        self.register_buffer("rarity", torch.zeros(num_ngrams))
        self.register_buffer("entities", torch.zeros(spoken_of, dtype=torch.long))
        self.register_buffer("weights", torch.zeros(num_ngrams, spoken_of))
        self.register_buffer("bias", torch.zeros(spoken_of))
        self.without: Sequence[HabitTable] = ()

    def forget(self) -> None:
        """As if it had never been taught."""
        self.ngrams.fill_(NO_NGRAM)
        for known in (self.rarity, self.entities, self.weights, self.bias):
            known.zero_()
        self.without = ()

    def learn(
        self, ngrams: Tensor, rarity: Tensor, entities: Tensor, table: HabitTable, without: Sequence[HabitTable]
    ) -> None:
        """Takes over regressions over these n-grams (rising) and of these entities, the one that is used and, of each
        part of the dialogues (`part_of`), the one that was taught without it; fewer than there is room for will do."""
        self.forget()
        self.ngrams[: len(ngrams)], self.rarity[: len(ngrams)] = ngrams, rarity
        self.entities[: len(entities)] = entities
        self.weights[: len(ngrams), : len(entities)], self.bias[: len(entities)] = table.weights, table.bias
        device = self.weights.device
        self.without = [HabitTable(each.weights.to(device), each.bias.to(device)) for each in without]

    @torch.no_grad()
    def forward(self, inputs: TurnInputs, layout: TurnLayout) -> Tensor:
        """[N, E], in nats."""
        said, ngrams = self.histories(inputs, layout)
        found = said @ self.weights[ngrams] + self.bias
        if self.training and self.without:
            part = part_of(inputs.characters[: layout.num_sessions], len(self.without))[layout.session]
            for number, table in enumerate(self.without):
                rows = (part == number).nonzero()
                spoken_of = torch.arange(len(table.bias), device=rows.device)
                found[rows, spoken_of] = said[rows.squeeze(1)] @ table.weights[ngrams] + table.bias
        return found.new_zeros(len(found), self.num_entities).index_add(1, self.entities, found)

    def histories(self, inputs: TurnInputs, layout: TurnLayout) -> tuple[Tensor, Tensor]:
        """TF-IDF of the n-grams of all turns so far, rows of length 1 [N, S], and which n-grams these are [S]: those
        that anybody says."""
        codes = ngram_codes(inputs.characters)
        places = torch.searchsorted(self.ngrams, codes).clamp_max(len(self.ngrams) - 1)
        known = (self.ngrams[places] == codes) & (codes > 0)
        ngrams, column = places[known].unique(return_inverse=True)
        row = known.nonzero()[:, 0]
        counts = torch.bincount(row * len(ngrams) + column, minlength=len(codes) * len(ngrams))
        counts = counts.view(len(codes), len(ngrams)).to(self.rarity.dtype)
        heap, heaps = counts[: layout.num_sessions] * 0.0, []
        for turn in counts.split(layout.turn_sizes):
            heap = heap[: len(turn)] + turn
            heaps.append(heap)
        said = torch.cat(heaps) if heaps else counts
        weighted = torch.where(said > 0, 1.0 + said.clamp_min(1.0).log(), 0.0) * self.rarity[ngrams]
        return nn.functional.normalize(weighted, dim=1), ngrams


def ngram_codes(characters: Tensor) -> Tensor:
    """All runs of one, two and three characters, each as one number [N, C] -> [N, 3C]; 0 where there is none."""
    padded = nn.functional.pad(characters, (0, 2))
    first, second, third = characters, padded[:, 1:-1], padded[:, 2:]
    pairs = first + (second << CHARACTER_BITS)
    runs = pairs + (third << 2 * CHARACTER_BITS)
    return torch.cat((first, torch.where(second > 0, pairs, 0), torch.where(third > 0, runs, 0)), dim=1)


def part_of(characters: Tensor, parts: int) -> Tensor:
    """Which part of the dialogues each belongs to, told by the characters of its first turn [B, C] -> [B]."""
    return characters.sum(dim=1) % parts
