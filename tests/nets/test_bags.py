"""Bags of character n-grams and entities."""

from __future__ import annotations

import torch

from vrbot.nets.bags import CharacterBag, EntityBag, ngram_buckets

TEXT = torch.tensor([[5, 6, 7, 0, 0], [5, 0, 0, 0, 0], [0, 0, 0, 0, 0]])


def test_a_text_of_n_characters_has_n_single_n_minus_1_double_and_n_minus_2_triple_grams() -> None:
    _, exists = ngram_buckets(TEXT, 1000)
    assert exists.sum(dim=1).tolist() == [3 + 2 + 1, 1, 0]


def test_padding_changes_no_bag() -> None:
    torch.manual_seed(0)
    bag = CharacterBag(torch.rand(50) + 0.5, 4)
    wide = torch.nn.functional.pad(TEXT, (0, 4))
    torch.testing.assert_close(bag(wide), bag(TEXT))
    assert not bag(TEXT)[2].any()


def test_the_same_gram_falls_into_the_same_bucket_wherever_it_stands() -> None:
    torch.manual_seed(0)
    bag = CharacterBag(torch.ones(1 << 16), 4)
    there = torch.tensor([[5, 6, 2, 8, 9]])
    buckets, exists = ngram_buckets(there, 1 << 16)
    again, also = ngram_buckets(torch.tensor([[8, 9, 2, 5, 6]]), 1 << 16)
    assert len(set(buckets[exists].tolist()) & set(again[also].tolist())) >= 5 + 2
    torch.testing.assert_close(bag(torch.tensor([[5]])), bag.vectors.weight[torch.tensor([5])])


def test_entities_are_told_apart_by_speaker_and_order_does_not_matter() -> None:
    torch.manual_seed(0)
    bag = EntityBag(6, 4)
    entities, patient = torch.tensor([[1, 4, -1]]), torch.tensor([[True, False, False]])
    torch.testing.assert_close(bag(entities, patient), bag(entities[:, [1, 2, 0]], patient[:, [1, 2, 0]]))
    assert not torch.allclose(bag(entities, patient), bag(entities, ~patient))
    assert not bag(torch.tensor([[-1, -1]]), torch.tensor([[True, False]])).any()
    assert bag(torch.zeros(2, 0, dtype=torch.long), torch.zeros(2, 0, dtype=torch.bool)).shape == (2, 4)
