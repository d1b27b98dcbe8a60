"""What labelled turns teach about the words around a mention."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from tests.model.tiny import batch_of, entity_id, tiny_config, tiny_vrbot, with_targets, without_labels
from vrbot.dialogue.batching import SessionBatch
from vrbot.dialogue.corpus import Corpus
from vrbot.model.surroundings import Surroundings
from vrbot.objective import mention_reader
from vrbot.objective.mention_reader import SOFTNESS, teach_surroundings


@pytest.fixture
def surroundings(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> Surroundings:
    """Untaught ones, which conclude from few mentions."""
    monkeypatch.setattr(mention_reader, "FEWEST", 4)
    return Surroundings(len(corpus.vocabulary), len(corpus.inventory), 2)


def new_mentions(surroundings: Surroundings, batch: SessionBatch) -> tuple[list[list[int]], list[bool]]:
    """Cues of every mention that the labelled state of the turn before does not hold, and whether this one's does."""
    cues, labels = [], []
    states = [[entity for entity in row if entity >= 0] for row in batch.targets.state.tolist()]
    row_of = {(int(s), int(t)): row for row, (s, t) in enumerate(zip(batch.session, batch.turn, strict=True))}
    found = surroundings.cues(batch.inputs)
    for (session, turn), row in row_of.items():
        before = states[row_of[session, turn - 1]] if turn else []
        for mention, entity in enumerate(batch.inputs.mention_entities[row].tolist()):
            if entity >= 0 and entity not in before and batch.targets.state_known[row]:
                cues.append([cue for cue in found[row, mention].tolist() if cue >= 0])
                labels.append(entity in states[row])
    return cues, labels


@pytest.mark.parametrize("held", [(), ("头痛", "发烧")])
def test_what_cues_are_worth_is_logistic_regression_on_what_is_new(
    held: tuple[str, ...], corpus: Corpus, surroundings: Surroundings
) -> None:
    """As the labels have it, or as if the same were true of every turn."""
    batch = batch_of(corpus)
    if held:
        ids = torch.tensor([entity_id(corpus, name) for name in held])
        batch = with_targets(batch, state=ids.expand(len(batch.turn), -1))
        assert (batch.inputs.mention_entities[batch.turn > 0].unsqueeze(2) == ids).any()
    cues, labels = new_mentions(surroundings, batch)
    counts = np.zeros((len(cues), surroundings.num_cues))
    for row, each in enumerate(cues):
        np.add.at(counts[row], each, 1.0)
    assert len(set(labels)) == 2
    oracle = LogisticRegression(C=SOFTNESS, max_iter=1000).fit(counts, labels)
    teach_surroundings(surroundings, [batch])
    support = [float(surroundings.worth[each].sum()) for each in cues]
    assert support == pytest.approx(oracle.decision_function(counts).tolist(), abs=1e-2)


def test_turns_without_a_label_teach_nothing(corpus: Corpus, surroundings: Surroundings) -> None:
    batch = batch_of(corpus)
    teach_surroundings(surroundings, [without_labels(batch)])
    assert not surroundings.worth.any()
    half = torch.arange(len(batch.turn)) % 2 == 0
    teach_surroundings(surroundings, [without_labels(batch, half)])
    taught = surroundings.worth.clone()
    assert taught.any()
    changed = with_targets(batch, state=torch.where(half.unsqueeze(1), -1, batch.targets.state))
    teach_surroundings(surroundings, [without_labels(changed, half)])
    assert torch.equal(surroundings.worth, taught)


def test_few_mentions_and_mentions_of_one_kind_teach_nothing_and_what_was_learnt_before_is_gone(
    corpus: Corpus, surroundings: Surroundings, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = batch_of(corpus)
    nowhere = with_targets(batch, state=torch.full_like(batch.targets.state, -1))
    for batches, fewest in (([nowhere], 4), ([batch], 10_000), ([], 4)):
        surroundings.worth.fill_(1.0)
        monkeypatch.setattr(mention_reader, "FEWEST", fewest)
        teach_surroundings(surroundings, batches)
        assert not surroundings.worth.any()


def test_the_objective_teaches_its_model_where_the_settings_ask_for_it(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mention_reader, "FEWEST", 4)
    for asked in (True, False):
        model = tiny_vrbot(tiny_config(objective__labels_teach_reading=asked), corpus)
        assert model.surroundings is not None
        model.objective.study(model, lambda: [batch_of(corpus)])  # type: ignore[attr-defined]
        assert bool(model.surroundings.worth.any()) is asked
