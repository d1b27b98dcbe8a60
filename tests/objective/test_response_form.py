"""The category of a response by its form: a weak guess for turns without a label, and for those only."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from tests.model.tiny import batch_of, moment, tiny_config, tiny_model, without_labels
from vrbot.dialogue.batching import SessionBatch, TurnTargets
from vrbot.dialogue.corpus import Corpus
from vrbot.dialogue.session import CATEGORIES
from vrbot.objective.labels import known_latents
from vrbot.objective.response_form import ResponseForm

WORDS = ("<pad>", "多久", "了", "pain?", "pain", "好")
TYPES = ("medicine", "disease", "symptom", "test")
FORM = ResponseForm.of(WORDS, TYPES)


def response(words: list[int], entities: list[int]) -> TurnTargets:
    """One response of these words that names these entities; the rest of the row is padding."""
    nothing, unknown = torch.full((1, 0), -1), torch.zeros(1, dtype=torch.bool)
    return TurnTargets(
        response=torch.tensor([[*words, 0, 0]]),
        response_lengths=torch.tensor([len(words)]),
        response_mentions=torch.tensor([[*entities, -1]]),
        response_mention_positions=torch.tensor([[0] * len(entities) + [-1]]),
        state=nothing,
        state_known=unknown,
        category=torch.tensor([-1]),
        category_known=unknown,
        keywords=nothing,
        keywords_known=unknown,
    )


@pytest.mark.parametrize(
    ("words", "entities", "category"),
    [
        ([1, 2], [], "ask_symptoms"),
        ([3], [0], "ask_symptoms"),
        ([5], [0, 1, 2], "prescribe_medicine"),
        ([5], [2, 1], "diagnosis"),
        ([5], [2], "ask_symptoms"),
        ([5], [3], "chitchat"),
        ([4, 5], [], "chitchat"),
    ],
)
def test_a_question_asks_and_names_speak_for_their_kind(words: list[int], entities: list[int], category: str) -> None:
    assert FORM.categories(response(words, entities)).tolist() == [CATEGORIES.index(category)]


def test_padding_is_not_read() -> None:
    asking_padding = ResponseForm(
        torch.ones(len(WORDS), dtype=torch.bool) & (torch.arange(len(WORDS)) == 0), FORM.spoken_for
    )
    assert asking_padding.categories(response([5], [])).tolist() == [CATEGORIES.index("chitchat")]


def test_labels_are_kept_and_gaps_are_filled(corpus: Corpus) -> None:
    targets = batch_of(corpus).targets
    half = torch.arange(len(targets.category)) % 2 == 0
    targets = dataclasses.replace(targets, category_known=targets.category_known & half)
    known = known_latents(targets, 4, 3, torch.zeros(len(corpus.inventory)), len(CATEGORIES))
    guessed = torch.full_like(targets.category, CATEGORIES.index("chitchat"))
    filled = known.with_categories(guessed)
    assert filled.category_known.all()
    expected = torch.where(known.category_known, targets.category, guessed)
    assert torch.equal(filled.category.argmax(dim=1), expected)
    assert known.category_known.any()


def category_terms(corpus: Corpus, batch: SessionBatch, *, by_form: bool, labelled_only: bool = False) -> float:
    config = tiny_config(objective__categories_by_form=by_form, objective__labelled_turns_only=labelled_only)
    model = tiny_model("vrbot", config, corpus)
    return float(model.loss(batch, moment(stage=2)).terms["labels"])


def test_without_labels_only_the_form_teaches_the_category(corpus: Corpus) -> None:
    batch = without_labels(batch_of(corpus))
    assert category_terms(corpus, batch, by_form=True) < -1e-3
    assert category_terms(corpus, batch, by_form=False) == 0.0
    assert category_terms(corpus, batch, by_form=True, labelled_only=True) == 0.0


def test_the_guess_depends_on_the_response_alone(corpus: Corpus) -> None:
    batch = batch_of(corpus)
    form = ResponseForm.of(corpus.vocabulary.words, corpus.inventory.types)
    unlabelled = without_labels(batch)
    other_inputs = dataclasses.replace(unlabelled.targets, state=torch.full_like(unlabelled.targets.state, -1))
    assert torch.equal(form.categories(batch.targets), form.categories(other_inputs))
