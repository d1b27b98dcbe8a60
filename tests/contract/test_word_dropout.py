"""Every system reads its context with word dropout: in training a share of the words is not heard, in use all are."""

from __future__ import annotations

from typing import Any, cast

import pytest
import torch
from torch import Tensor, nn

from tests.model.tiny import MODELS, batch_of, moment, tiny_config, tiny_model
from vrbot.baselines.hred_bert import HredBert
from vrbot.config import recipe
from vrbot.dialogue.batching import SessionBatch
from vrbot.dialogue.corpus import Corpus
from vrbot.dialogue.vocabulary import SEP
from vrbot.model.contract import BatchLoss, DialogueModel, Moment
from vrbot.nets.hierarchical import HierarchicalEncoder

cases = pytest.mark.parametrize(("name", "form"), [(name, form) for form in ("small", "paper") for name in MODELS])


def model_with(share: float, name: str, form: str, corpus: Corpus) -> DialogueModel:
    """The same weights for every share."""
    return tiny_model(name, tiny_config(form, network__word_dropout=share), corpus)


def cost(model: DialogueModel, corpus: Corpus, *, training: bool) -> float:
    module = cast(nn.Module, model)
    module.train(training)
    torch.manual_seed(1)
    return float(model.loss(batch_of(corpus), moment()).total.detach())


@cases
def test_words_that_are_dropped_change_the_loss_in_training_and_never_in_use(
    corpus: Corpus, name: str, form: str
) -> None:
    plain, dropping = (model_with(share, name, form, corpus) for share in (0.0, 0.9))
    assert cost(plain, corpus, training=True) == cost(plain, corpus, training=True)
    assert cost(plain, corpus, training=True) != pytest.approx(cost(dropping, corpus, training=True), rel=1e-6)
    assert cost(plain, corpus, training=False) == cost(dropping, corpus, training=False)


@pytest.mark.parametrize("name", ["vhred", "postks"])
@torch.no_grad()
def test_a_posterior_hears_every_word_of_the_response(corpus: Corpus, name: str) -> None:
    model, batch = cast(Any, model_with(0.9, name, "small", corpus)), batch_of(corpus)
    read = model.consult(batch.inputs, batch.layout) if name == "postks" else model._read(batch.inputs, batch.layout)
    expected = model.infer(read, batch.targets)
    found = model.train().infer(read, batch.targets)
    if name == "vhred":
        found, expected = found.mean, expected.mean
    assert torch.equal(found, expected)


def test_the_words_hred_is_told_to_name_are_never_dropped(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    model, batch = cast(HredBert, model_with(0.9, "hred-bert", "small", corpus)), batch_of(corpus)
    loss = model.hred.loss
    told: list[list[int]] = []

    def watched(batch: SessionBatch, moment: Moment, always: Tensor | None = None) -> BatchLoss:
        assert always is not None
        within = torch.arange(always.shape[1]) < batch.inputs.context_lengths.unsqueeze(1)
        told.extend(row[kept].tolist() for row, kept in zip(batch.inputs.context, always & within, strict=True))
        return loss(batch, moment, always)

    monkeypatch.setattr(model.hred, "loss", watched)
    model.train().loss(batch, moment())
    words = model.entity_words.tolist()
    assert told == [[words[e] for e in row if e >= 0] for row in batch.targets.keywords.tolist()]


@torch.no_grad()
def test_words_that_are_always_read_are_read_as_in_use(corpus: Corpus) -> None:
    batch = batch_of(corpus)
    context, lengths = batch.inputs.context, batch.inputs.context_lengths
    torch.manual_seed(0)
    encoder = HierarchicalEncoder(6, 8, 0.0, SEP, word_dropout=0.9)
    embedded = torch.randn(*context.shape, 6)
    expected = encoder.eval()(embedded, context, lengths, batch.layout)
    encoder.train()
    kept = encoder(embedded, context, lengths, batch.layout, torch.ones_like(context, dtype=torch.bool))
    assert torch.equal(kept.tokens, expected.tokens)
    assert not torch.allclose(encoder(embedded, context, lengths, batch.layout).tokens, expected.tokens)


def test_the_paper_drops_no_words_and_the_small_recipe_does() -> None:
    for name, drops in (("paper", False), ("small", True)):
        network = recipe(name).network
        assert (network.word_dropout > 0, network.ngram_dropout > 0) == (drops, drops)
