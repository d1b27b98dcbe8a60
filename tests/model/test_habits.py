"""What is usually named after such words: features by hand, and nothing before it is taught."""

from __future__ import annotations

import math
from collections import Counter

import pytest
import torch

from tests.model.tiny import batch_of, form_habits, tiny_config, tiny_model, tiny_vrbot
from vrbot.dialogue.corpus import Corpus
from vrbot.model.habits import CHARACTER_BITS, Habits, ngram_codes
from vrbot.model.learned import num_learned
from vrbot.model.surroundings import Surroundings


@pytest.fixture
def habits(corpus: Corpus) -> Habits:
    torch.manual_seed(0)
    found = Habits(64, len(corpus.inventory))
    form_habits(found, corpus)
    return found.eval()


def runs(characters: list[int]) -> Counter[int]:
    """Every run of one to three characters of a text, as one number."""
    said = [each for each in characters if each]
    return Counter(
        sum(each << CHARACTER_BITS * place for place, each in enumerate(said[start : start + length]))
        for length in (1, 2, 3)
        for start in range(len(said) - length + 1)
    )


def test_an_ngram_has_one_number_and_no_other_has_it(corpus: Corpus) -> None:
    for row, codes in zip(*(each.tolist() for each in _characters_and_codes(corpus)), strict=True):
        assert Counter(code for code in codes if code) == runs(row)


def test_a_turn_is_told_by_all_that_was_said_until_then(corpus: Corpus, habits: Habits) -> None:
    batch = batch_of(corpus)
    habits.rarity[: len(habits.ngrams)] = torch.rand(len(habits.ngrams)) + 0.5
    found = habits(batch.inputs, batch.layout)
    place = {code: number for number, code in enumerate(habits.ngrams.tolist())}
    heard: dict[int, Counter[int]] = {}
    for row, session in enumerate(batch.session.tolist()):
        heard[session] = heard.get(session, Counter()) + runs(batch.inputs.characters[row].tolist())
        weights = {
            place[code]: (1 + math.log(count)) * float(habits.rarity[place[code]])
            for code, count in heard[session].items()
            if code in place
        }
        length = math.sqrt(sum(weight**2 for weight in weights.values())) or 1.0
        wanted = habits.bias.clone()
        for number, weight in weights.items():
            wanted += weight / length * habits.weights[number]
        torch.testing.assert_close(found[row], wanted, rtol=1e-4, atol=1e-5)


def test_who_was_not_taught_foretells_nothing(corpus: Corpus, habits: Habits) -> None:
    batch = batch_of(corpus)
    assert habits(batch.inputs, batch.layout).any()
    habits.forget()
    assert not habits(batch.inputs, batch.layout).any()


def test_the_policy_follows_its_habits(corpus: Corpus) -> None:
    """What speaks for one entity makes it, and no other, more probable."""
    batch, model = batch_of(corpus), tiny_vrbot(tiny_config(), corpus)
    assert model.habits is not None

    def logits() -> torch.Tensor:
        heard = model.hear(batch.inputs, batch.layout)
        evidence = model.policy_evidence(heard, model.track(heard, batch.layout))
        found: torch.Tensor = model.prior_policy.decide(evidence, 3, model.decide).scores.keywords.logits  # type: ignore[operator]
        return found

    before = logits()
    model.habits.bias[4] += 1.0
    change = logits() - before
    assert (change[:, 4] > 0.1).all()
    torch.testing.assert_close(change[:, [0, 1, 2, 3, 5]], torch.zeros(len(change), 5))


def _characters_and_codes(corpus: Corpus) -> tuple[torch.Tensor, torch.Tensor]:
    characters = batch_of(corpus).inputs.characters
    return characters, ngram_codes(characters)


def test_what_is_fitted_before_training_counts_among_what_is_learnt(corpus: Corpus) -> None:
    config = tiny_config(policy__habits=500)
    model = tiny_vrbot(config, corpus)
    assert isinstance(model.habits, Habits)
    assert isinstance(model.surroundings, Surroundings)
    fitted = model.habits.weights.numel() + model.habits.bias.numel() + model.surroundings.worth.numel()
    assert num_learned(model) == sum(parameter.numel() for parameter in model.parameters()) + fitted
    plain = tiny_model("seq2seq", config, corpus)
    assert isinstance(plain, torch.nn.Module)
    assert num_learned(plain) == sum(parameter.numel() for parameter in plain.parameters())
