"""Bags: what was said, without order, as one vector. Letters: N rows, C characters, M items, H size."""

from __future__ import annotations

import torch
from torch import Tensor, nn

BUCKET_MIXING = (1, 1_000_003, 998_244_353)
"""Odd multipliers that spread 1-, 2- and 3-grams of character ids over the buckets."""


class CharacterBag(nn.Module):
    """Character 1-, 2- and 3-grams, hashed into buckets, each with a learned vector, weighted by rarity.

    `rarity` [buckets] is the inverse document frequency of each bucket in the training texts; the weights of a
    row have length one, as in TF-IDF. In training a share of the n-grams is left out: there are so many that each
    dialogue has some of its own, by which it could be learnt by heart.
    """

    rarity: Tensor

    def __init__(self, rarity: Tensor, size: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.size = size
        self.dropout = nn.Dropout(dropout)
        self.vectors = nn.EmbeddingBag(len(rarity), size, mode="sum")
        nn.init.normal_(self.vectors.weight, std=0.05)
        self.register_buffer("rarity", rarity)

    def forward(self, characters: Tensor) -> Tensor:
        """Character ids [N, C], 0 where there is none -> [N, H]."""
        buckets, exists = ngram_buckets(characters, len(self.rarity))
        weights = self.rarity[buckets] * exists
        weights = weights / weights.square().sum(dim=1, keepdim=True).sqrt().clamp_min(1e-6)
        bag: Tensor = self.vectors(buckets, per_sample_weights=self.dropout(weights))
        return bag


def ngram_buckets(characters: Tensor, num_buckets: int) -> tuple[Tensor, Tensor]:
    """Buckets of all 1-, 2- and 3-grams [N, 3C], and which of them exist."""
    padded = nn.functional.pad(characters, (0, 2))
    first, second, third = characters, padded[:, 1:-1], padded[:, 2:]
    mixed = [
        first * BUCKET_MIXING[0],
        first * BUCKET_MIXING[1] + second * 7919,
        first * BUCKET_MIXING[2] + second * 104_729 + third * 31,
    ]
    exists = [first > 0, second > 0, third > 0]
    return torch.cat(mixed, dim=1).remainder(num_buckets), torch.cat(exists, dim=1)


class EntityBag(nn.Module):
    """Entities mentioned, told apart by who mentioned them."""

    def __init__(self, num_entities: int, size: int) -> None:
        super().__init__()
        self.size = size
        self.vectors = nn.EmbeddingBag(2 * num_entities + 1, size, mode="sum", padding_idx=2 * num_entities)
        nn.init.normal_(self.vectors.weight, std=0.1)
        self.num_entities = num_entities

    def forward(self, entities: Tensor, by_patient: Tensor) -> Tensor:
        """Entity ids [N, M], -1 where there is none, and whether the patient said it [N, M] -> [N, H]."""
        if entities.shape[1] == 0:
            return self.vectors.weight.new_zeros(len(entities), self.vectors.embedding_dim)
        ids = torch.where(entities >= 0, entities + self.num_entities * by_patient, 2 * self.num_entities)
        bag: Tensor = self.vectors(ids)
        return bag
