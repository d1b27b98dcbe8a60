"""What labelled turns teach about the category of a response, for the turns that have no label."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from sklearn.feature_extraction import DictVectorizer
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from tests.model.tiny import batch_of, moment, tiny_config, tiny_model, without_labels
from vrbot.config import TrainingSettings
from vrbot.dialogue.batching import TurnTargets
from vrbot.dialogue.corpus import Corpus
from vrbot.dialogue.session import CATEGORIES
from vrbot.dialogue.supervision import LabelMasks, select_labels
from vrbot.objective.response_form import ResponseForm
from vrbot.objective.response_reader import ResponseReader
from vrbot.objective.variational import VariationalObjective
from vrbot.training.loop import Trainer, TrainingData

NUM_WORDS = 12
UNKNOWN = -1


class SaysNothing:
    """Another teller, to whom all responses are alike."""

    def categories(self, targets: TurnTargets) -> Tensor:
        return torch.zeros(len(targets.response), dtype=torch.long)


def turns(responses: Sequence[Sequence[int]], categories: Sequence[int]) -> TurnTargets:
    """Responses of these words; behind their ends stand words that are not theirs."""
    width = max(map(len, responses)) + 2
    empty = torch.full((len(responses), 0), -1)
    category = torch.tensor(categories)
    nothing = torch.zeros(len(responses), dtype=torch.bool)
    return TurnTargets(
        response=torch.tensor([[*words, *[NUM_WORDS - 1] * (width - len(words))] for words in responses]),
        response_lengths=torch.tensor([len(words) for words in responses]),
        response_mentions=empty,
        response_mention_positions=empty,
        state=empty,
        state_known=nothing,
        category=category,
        category_known=category >= 0,
        keywords=empty,
        keywords_known=nothing,
    )


def random_turns(seed: int, count: int = 60, labels: Sequence[int] = (0, 1, 2, 3)) -> TurnTargets:
    """Word 1 + c speaks for category c, among words that say nothing and as often as they like."""
    generator = torch.Generator().manual_seed(seed)
    kinds = [labels[int(each)] for each in torch.randint(len(labels), (count,), generator=generator)]
    noise = torch.randint(5, NUM_WORDS, (count, 3), generator=generator).tolist()
    return turns([[*words, 1 + kind] for words, kind in zip(noise, kinds, strict=True)], kinds)


def taught(*labelled: TurnTargets) -> ResponseReader:
    reader = ResponseReader.taught_by(labelled, SaysNothing(), NUM_WORDS)
    assert reader is not None
    return reader


def test_a_word_that_speaks_for_a_category_is_learnt() -> None:
    fresh = random_turns(seed=2)
    assert torch.equal(taught(random_turns(seed=1)).categories(fresh), fresh.category)


def test_it_says_what_logistic_regression_on_the_words_says() -> None:
    learnt, fresh = random_turns(seed=1, count=25), random_turns(seed=2)

    def bags(given: TurnTargets) -> list[dict[str, float]]:
        rows = zip(given.response.tolist(), given.response_lengths.tolist(), strict=True)
        return [{str(word): 1.0 for word in words[:length]} | {"said": 1.0} for words, length in rows]

    vectors = DictVectorizer()
    oracle = LogisticRegression(max_iter=500).fit(vectors.fit_transform(bags(learnt)), learnt.category.numpy())
    expected = oracle.predict(vectors.transform(bags(fresh)))
    assert taught(learnt).categories(fresh).tolist() == expected.tolist()


def test_how_the_turns_are_batched_does_not_matter() -> None:
    whole, fresh = random_turns(seed=1), random_turns(seed=2)
    parts = taught(whole.rows(0, 20), whole.rows(20, 60))
    assert torch.allclose(parts.weights, taught(whole).weights, atol=1e-5)
    assert torch.equal(parts.categories(fresh), taught(whole).categories(fresh))


def test_what_stands_behind_the_end_of_a_response_is_not_read() -> None:
    learnt, fresh = random_turns(seed=1), random_turns(seed=2)
    misled = dataclasses.replace(learnt, response=learnt.response.clone())
    misled.response[:, -2:] = 1 + (learnt.category.unsqueeze(1) + 1) % 4
    assert torch.equal(taught(misled).weights, taught(learnt).weights)
    fooled = dataclasses.replace(fresh, response=fresh.response.clone())
    fooled.response[:, -2:] = 1
    assert torch.equal(taught(learnt).categories(fooled), fresh.category)


@pytest.mark.parametrize("kinds", [(0, 2), (1, 2, 3)])
def test_a_category_that_no_label_named_is_never_said(kinds: tuple[int, ...]) -> None:
    fresh = random_turns(seed=2)
    reader = taught(random_turns(seed=1, labels=kinds))
    said = reader.categories(fresh)
    assert set(said.tolist()) <= set(kinds)
    lower = dataclasses.replace(reader, bias=reader.bias.clone())
    lower.bias[list(kinds)] -= 100.0  # a constant on the logits of all that were named says nothing
    assert torch.equal(lower.categories(fresh), said)
    rows = torch.isin(fresh.category, torch.tensor(kinds))
    assert torch.equal(said[rows], fresh.category[rows])


def test_labels_of_one_kind_and_turns_without_any_teach_nothing() -> None:
    for labelled in ([], [random_turns(seed=1, labels=(2,))], [turns([[1, 2], [3]], [UNKNOWN, UNKNOWN])]):
        assert ResponseReader.taught_by(labelled, SaysNothing(), NUM_WORDS) is None


def test_turns_without_a_label_or_a_response_are_not_learnt_from() -> None:
    labelled, fresh = random_turns(seed=1), random_turns(seed=2)
    misleading = turns([[1 + (kind + 1) % 4] for kind in range(4)] * 20, [UNKNOWN] * 80)
    unanswered = dataclasses.replace(random_turns(seed=3), response_lengths=torch.zeros(60, dtype=torch.long))
    assert torch.equal(taught(labelled, misleading, unanswered).weights, taught(labelled).weights)
    assert torch.equal(taught(labelled).categories(fresh), fresh.category)


def objective_after(corpus: Corpus, masks: LabelMasks | None, **changes: Any) -> VariationalObjective:
    """The objective of a model that a trainer has taken charge of."""
    model = tiny_model("vrbot", tiny_config(objective__categories_by_form=True, **changes), corpus)
    train = corpus.split("train")
    Trainer(model, TrainingSettings(batch_size=2), TrainingData(train, train, masks, masks), seed=1)
    objective: VariationalObjective = model.objective  # type: ignore[attr-defined]
    return objective


def test_the_trainer_shows_the_labels_that_may_be_seen_and_no_others(corpus: Corpus) -> None:
    ids = corpus.split("train").session_ids
    nothing = select_labels(ids, 1, state=1.0, action=0.0).masks(corpus.split("train"))
    assert isinstance(objective_after(corpus, None).teller, ResponseReader)
    assert isinstance(objective_after(corpus, nothing).teller, ResponseForm)
    assert isinstance(objective_after(corpus, None, objective__labels_teach_reading=False).teller, ResponseForm)


def test_turns_without_a_category_get_the_one_that_was_learnt(corpus: Corpus) -> None:
    model = tiny_model("vrbot", tiny_config(objective__categories_by_form=True), corpus)
    unlabelled = without_labels(batch_of(corpus))
    before = float(model.loss(unlabelled, moment()).terms["labels"])

    class AlwaysTheSame(SaysNothing):
        def categories(self, targets: TurnTargets) -> Tensor:
            return torch.full((len(targets.response),), CATEGORIES.index("diagnosis"))

    model.objective.teller = AlwaysTheSame()  # type: ignore[attr-defined]
    assert float(model.loss(unlabelled, moment()).terms["labels"]) != pytest.approx(before)
