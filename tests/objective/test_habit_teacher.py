"""What responses teach: the regressions of an oracle, and nothing to a dialogue about itself."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from tests.model.tiny import batch_of, with_targets, without_labels
from vrbot.dialogue.batching import SessionBatch
from vrbot.dialogue.corpus import Corpus
from vrbot.model.habits import Habits, part_of
from vrbot.nets import regressions
from vrbot.objective import habit_teacher
from vrbot.objective.habit_teacher import PARTS, teach_habits


@pytest.fixture(autouse=True)
def _few_will_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(habit_teacher, "FEWEST_EXAMPLES", 0)


@pytest.fixture
def habits(corpus: Corpus) -> Habits:
    return Habits(400, len(corpus.inventory))


def told(habits: Habits, batch: SessionBatch, *, training: bool) -> Tensor:
    found: Tensor = habits.train(training)(batch.inputs, batch.layout)
    return found


def named_in(batch: SessionBatch, num_entities: int) -> np.ndarray:
    """The labelled keywords, or what the response names where there are none."""
    rows = []
    for row in range(len(batch.turn)):
        targets = batch.targets
        given = targets.keywords if targets.keywords_known[row] else targets.response_mentions
        rows.append([entity in given[row].tolist() for entity in range(num_entities)])
    return np.array(rows)


@pytest.mark.parametrize("labelled", [True, False])
def test_what_is_foretold_in_use_is_a_regression_on_all_turns(
    labelled: bool, corpus: Corpus, habits: Habits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(regressions, "EPOCHS", 3000)
    batch = batch_of(corpus) if labelled else without_labels(batch_of(corpus))
    teach_habits(habits, [batch])
    features = habits.histories(batch.inputs, batch.layout)[0].numpy()
    heard = (batch.targets.keywords_known | (batch.targets.response_lengths > 0)).numpy()
    wanted, found = named_in(batch, habits.num_entities), told(habits, batch, training=False).numpy()
    judged = 0
    for entity in range(habits.num_entities):
        known = wanted[heard, entity]
        if known.all() or not known.any():
            continue
        oracle = LogisticRegression(C=2.0, tol=1e-8, max_iter=2000).fit(features[heard], known)
        share = (known.sum() + 0.5) / (heard.sum() + 1)
        expected = oracle.decision_function(features[heard]) - np.log(share / (1 - share))
        np.testing.assert_allclose(found[heard, entity], expected, atol=0.03)
        judged += 1
    assert judged >= 5


@pytest.mark.parametrize("session", range(5))
def test_a_dialogue_in_training_is_told_nothing_of_its_own_replies(
    session: int, corpus: Corpus, habits: Habits
) -> None:
    batch = without_labels(batch_of(corpus))
    own = batch.session == session
    other = torch.where(
        own.unsqueeze(1), (batch.targets.response_mentions + 3) % habits.num_entities, batch.targets.response_mentions
    )
    changed = with_targets(batch, response_mentions=other)
    teach_habits(habits, [batch])
    in_training, in_use = told(habits, batch, training=True), told(habits, batch, training=False)
    teach_habits(habits, [changed])
    assert torch.equal(told(habits, batch, training=True)[own], in_training[own])
    assert not torch.equal(told(habits, batch, training=False)[own], in_use[own])
    elsewhere = part_of(batch.inputs.characters[: batch.layout.num_sessions], PARTS)[batch.session]
    assert not torch.equal(
        told(habits, batch, training=True)[elsewhere != elsewhere[own][0]], in_training[elsewhere != elsewhere[own][0]]
    )


def test_turns_without_labels_teach_nothing_where_labels_alone_may(corpus: Corpus, habits: Habits) -> None:
    batch = batch_of(corpus)
    some = batch.session < 3
    batch = with_targets(batch, keywords_known=batch.targets.keywords_known & some)
    emptied = torch.where(some.unsqueeze(1), batch.targets.response_mentions, -1)
    teach_habits(habits, [batch], labelled_only=True)
    found = told(habits, batch, training=False)
    teach_habits(habits, [with_targets(batch, response_mentions=emptied)], labelled_only=True)
    assert torch.equal(told(habits, batch, training=False), found)
    teach_habits(habits, [batch])
    assert not torch.equal(told(habits, batch, training=False), found)


def test_dialogues_may_come_in_any_batches(corpus: Corpus, habits: Habits) -> None:
    whole = batch_of(corpus)
    teach_habits(habits, [whole])
    found = told(habits, whole, training=False)
    teach_habits(habits, [batch_of(corpus, [0, 1]), batch_of(corpus, [2, 3, 4])])
    torch.testing.assert_close(told(habits, whole, training=False), found, rtol=1e-3, atol=1e-3)


def test_nothing_is_concluded_from_too_little(corpus: Corpus, habits: Habits, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = batch_of(corpus)
    teach_habits(habits, [batch])
    monkeypatch.setattr(habit_teacher, "FEWEST_EXAMPLES", 1000)
    teach_habits(habits, [batch])
    assert not told(habits, batch, training=False).any()
    teach_habits(habits, [])
    assert not told(habits, batch, training=True).any()
