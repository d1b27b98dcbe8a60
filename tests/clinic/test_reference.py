"""Laws of what simple rules can do: neither state nor action can be read off, and both can be learnt."""

from __future__ import annotations

from functools import cache

import pytest

from vrbot.clinic.reference import (
    Ceiling,
    NameFinder,
    category_accuracy_after_previous,
    category_accuracy_by_position,
    keyword_f1,
    likeliest_disease_rule,
    most_frequent_rule,
    next_keyword_rule,
    physician_ceiling,
    stage_rule,
    string_matching_f1,
)
from vrbot.clinic.simulate import SimulationSettings, assign_splits, simulate_sessions
from vrbot.clinic.world import LANGUAGES, load_world
from vrbot.dialogue.session import Session

NUM_DIALOGUES = 400


@cache
def splits(language: str, difficulty: str) -> dict[str, list[Session]]:
    settings = SimulationSettings(NUM_DIALOGUES, 1, language, difficulty)
    return assign_splits(list(simulate_sessions(settings)), settings)


@cache
def ceiling(language: str) -> Ceiling:
    return physician_ceiling(SimulationSettings(150, 1, language))


def held_out(language: str, difficulty: str = "normal") -> list[Session]:
    return splits(language, difficulty)["valid"] + splits(language, difficulty)["test"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_looking_for_names_finds_only_part_of_the_state(language):
    finder = NameFinder(load_world(), language)
    by_patient = string_matching_f1(held_out(language), finder, both_sides=False)
    by_both = string_matching_f1(held_out(language), finder, both_sides=True)
    assert 45 < by_patient < 72
    assert 50 < by_both < 72


@pytest.mark.parametrize("language", LANGUAGES)
def test_harder_settings_hide_more_from_who_looks_for_names(language):
    finder = NameFinder(load_world(), language)
    scores = [
        string_matching_f1(held_out(language, difficulty), finder, both_sides=True)
        for difficulty in ("easy", "normal", "hard")
    ]
    assert scores[0] > scores[1] + 2 > scores[2] + 4
    assert scores[0] < 80


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_rule_of_a_few_lines_comes_near_the_keywords(language):
    world = load_world()
    finder = NameFinder(world, language)
    training = splits(language, "normal")["train"]
    rules = [
        most_frequent_rule(training),
        next_keyword_rule(training, finder),
        likeliest_disease_rule(world, language, finder),
        stage_rule(world, language, finder),
    ]
    best = max(keyword_f1(held_out(language), rule) for rule in rules)
    assert best < 25
    assert ceiling(language).keyword_f1 > best + 25


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_rule_of_a_few_lines_comes_near_the_category(language):
    training = splits(language, "normal")["train"]
    by_position = category_accuracy_by_position(training, held_out(language))
    by_previous = category_accuracy_after_previous(training, held_out(language))
    assert max(by_position, by_previous) < 75
    assert ceiling(language).category_accuracy > 88


@pytest.mark.parametrize("language", LANGUAGES)
def test_replies_and_patients_words_vary(language):
    turns = [turn for session in splits(language, "normal")["train"] for turn in session.turns]
    assert len({turn.physician for turn in turns}) / len(turns) > 0.6
    assert len({turn.patient for turn in turns}) / len(turns) > 0.45
    assert (
        len({session.turns[0].patient for session in splits(language, "normal")["train"]}) > 0.95 * NUM_DIALOGUES * 0.8
    )


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_category_is_frequent(language):
    turns = [turn for session in held_out(language) for turn in session.turns]
    for category in ("ask_symptoms", "diagnosis", "prescribe_medicine", "chitchat"):
        share = sum(turn.action is not None and turn.action.category == category for turn in turns) / len(turns)
        assert 0.1 < share < 0.5
