"""Vocabularies: every entity has a word, frequent words come next, specials are never words of a text."""

from __future__ import annotations

import numpy as np
import pytest

from vrbot.dialogue.vocabulary import (
    CHARACTER_UNK,
    NUM_CHARACTER_SPECIALS,
    SPECIALS,
    UNK,
    CharacterVocabulary,
    Vocabulary,
    build_characters,
    build_vocabulary,
    code_points,
    listed_vocabulary,
)
from vrbot.errors import UsageError

COUNTS = {"the": 9, "The": 2, "cough": 5, "rare": 1, "b": 3, "a": 3}


def test_a_vocabulary_has_every_entity_name_and_then_the_most_frequent_words() -> None:
    assert build_vocabulary(COUNTS, ["CT", "cough"]) == (*SPECIALS, "CT", "cough", "the", "a", "b")


def test_the_size_limits_the_frequent_words_and_never_the_entities() -> None:
    assert build_vocabulary(COUNTS, ["CT", "cough"], size=8) == (*SPECIALS, "CT", "cough", "the")
    with pytest.raises(UsageError, match="at least 8"):
        build_vocabulary(COUNTS, ["CT", "cough"], size=7)


def test_a_listed_vocabulary_keeps_the_order_of_the_list_and_adds_missing_names() -> None:
    assert listed_vocabulary(["的", "咳嗽"], ["发烧", "咳嗽"]) == (*SPECIALS, "的", "咳嗽", "发烧")


def test_words_match_exactly_or_else_in_lower_case() -> None:
    vocabulary = Vocabulary([*SPECIALS, "CT", "ct", "fever"])
    assert [vocabulary.id_of(word) for word in ("CT", "ct", "Ct", "FEVER", "cold")] == [5, 6, 5, 7, UNK]


def test_a_special_written_in_a_text_is_an_unknown_word() -> None:
    assert Vocabulary([*SPECIALS, "a"]).id_of("<eos>") == UNK


def test_the_word_of_an_entity_means_that_entity() -> None:
    surfaces = {"CT": (0,), "fever": (1,), "hot head": (1, 2), "headache": (2,), "ct": (3,)}
    vocabulary = Vocabulary(
        [*SPECIALS, "CT", "fever", "headache", "hot head", "scan"], ["CT", "fever", "headache", "scan"], surfaces
    )
    assert vocabulary.entity_word.tolist() == [5, 6, 7, 9]
    assert vocabulary.word_entities == {5: (0, 3), 6: (1,), 8: (1, 2), 7: (2,)}


def test_a_vocabulary_without_the_word_of_an_entity_is_refused() -> None:
    with pytest.raises(UsageError, match="fever"):
        Vocabulary([*SPECIALS, "CT"], ["CT", "fever"])


def test_a_vocabulary_without_the_specials_is_refused() -> None:
    with pytest.raises(UsageError, match="begins with"):
        Vocabulary(["a", "b"])


def test_characters_that_occur_once_are_unknown() -> None:
    characters = build_characters(code_points("咳咳嗽 a a"))
    assert characters.characters == " a咳"
    assert len(characters) == 6
    ids = characters.ids(code_points(" a咳嗽\U0001f600"))
    assert ids.tolist() == [*range(NUM_CHARACTER_SPECIALS, 6), CHARACTER_UNK, CHARACTER_UNK]
    assert ids.dtype == np.int32


def test_an_empty_character_vocabulary_knows_nothing() -> None:
    assert CharacterVocabulary("").ids(code_points("ab")).tolist() == [CHARACTER_UNK, CHARACTER_UNK]


def test_characters_out_of_order_are_refused() -> None:
    with pytest.raises(UsageError, match="code order"):
        CharacterVocabulary("ba")
