"""Inference networks taught by labels alone: the loss is the networks' own, and it falls."""

from __future__ import annotations

import pytest
import torch

from tests.model.tiny import batch_of, tiny_config, tiny_vrbot, without_labels
from vrbot.dialogue.batching import limits_of
from vrbot.dialogue.corpus import Corpus
from vrbot.explain.autolabel import _chosen, _written_keywords, infer
from vrbot.explain.label_learning import LabelLearner, label_loss
from vrbot.objective.mention_reader import teach_surroundings


@pytest.mark.parametrize("form", ["small", "free"])
def test_the_loss_is_what_the_auto_labeller_says_of_known_labels(form: str, corpus: Corpus) -> None:
    model, batch = tiny_vrbot(tiny_config(form), corpus), batch_of(corpus)
    inferred = infer(model, batch)  # every label is known, so all of them are clamped
    category = inferred.action.scores.category.gather(1, batch.targets.category.unsqueeze(1)).squeeze(1)
    answered = batch.targets.response_lengths > 0
    keywords = _chosen(_written_keywords(inferred.action)).clamp_min(-20.0).sum(dim=1)
    state = _chosen(inferred.state).clamp_min(-20.0).sum(dim=1)
    expected = -(state + (category + keywords) * answered)
    torch.testing.assert_close(label_loss(model, batch), expected, rtol=1e-4, atol=1e-4)


def test_turns_without_labels_cost_nothing(corpus: Corpus) -> None:
    model, batch = tiny_vrbot(tiny_config(), corpus), without_labels(batch_of(corpus))
    assert label_loss(model, batch).tolist() == [0.0] * len(batch.turn)


def test_learning_makes_labels_more_probable_and_the_same_seed_gives_the_same_weights(corpus: Corpus) -> None:
    config = tiny_config(training__learning_rate=1e-2, training__batch_size=3)
    split, batch, losses, weights = corpus.split("train"), batch_of(corpus), [], []
    for _ in range(2):
        model = tiny_vrbot(config, corpus, scale=1.0)
        learner = LabelLearner(model, config.training, limits_of(config.network), seed=3)
        before = float(label_loss(model.eval(), batch).detach().sum())
        learner.learn(split, [0, 1, 2, 3], 15)
        after = float(label_loss(model.eval(), batch).detach().sum())
        assert after < 0.8 * before
        losses.append(after)
        weights.append([parameter.clone() for parameter in model.parameters()])
    assert losses[0] == losses[1]
    assert all(torch.equal(one, other) for one, other in zip(*weights, strict=True))


def test_what_the_words_around_mentions_say_is_learnt_from_the_same_dialogues(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vrbot.objective.mention_reader.FEWEST", 2)
    model, other = (tiny_vrbot(tiny_config(), corpus) for _ in range(2))
    assert model.surroundings is not None
    assert other.surroundings is not None
    split = corpus.split("train")
    config = tiny_config(training__batch_size=2)
    LabelLearner(model, config.training, limits_of(config.network), seed=1).learn(split, [0, 3], updates=0)
    teach_surroundings(other.surroundings, [batch_of(corpus, [0, 3])])
    assert model.surroundings.worth.any()
    torch.testing.assert_close(model.surroundings.worth, other.surroundings.worth)
