"""Mentions of entities in text."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vrbot.knowledge.linking import Linker, Mention, fold


def found(surfaces: list[str], text: str) -> list[str]:
    linker = Linker({surface: (number,) for number, surface in enumerate(surfaces)})
    return [mention.surface for mention in linker.find(text)]


def is_word_character(character: str) -> bool:
    return (character.isalnum() or character == "_") and character < "\u2e80"


def cuts_a_word(text: str, start: int, end: int) -> bool:
    edges = [edge for edge in (start, end) if 0 < edge < len(text)]
    return any(is_word_character(text[edge - 1]) and is_word_character(text[edge]) for edge in edges)


def slowly_found(surfaces: list[str], text: str) -> list[tuple[int, int]]:
    """The obvious search: at every place the longest surface that fits, then on behind it."""
    folded_text, folded_surfaces = fold(text), {fold(surface) for surface in surfaces}
    spans, start = [], 0
    while start < len(text):
        ends = [
            end
            for end in range(len(text), start, -1)
            if folded_text[start:end] in folded_surfaces and not cuts_a_word(folded_text, start, end)
        ]
        if ends:
            spans.append((start, ends[0]))
        start = ends[0] if ends else start + 1
    return spans


alphabet = st.text(alphabet="aAbB1 -_胃炎肠é", max_size=14)
surface_lists = st.lists(st.text(alphabet="aAbB1 -胃炎肠é", min_size=1, max_size=5), min_size=1, max_size=8)


@given(surface_lists, alphabet)
def test_the_linker_finds_what_the_obvious_search_finds(surfaces: list[str], text: str) -> None:
    mentions = Linker(dict.fromkeys(surfaces, (0,))).find(text)
    assert [(mention.start, mention.end) for mention in mentions] == slowly_found(surfaces, text)


@given(surface_lists, alphabet)
def test_mentions_never_overlap_and_their_places_give_back_the_surface(surfaces: list[str], text: str) -> None:
    ids = {surface: (number,) for number, surface in enumerate(surfaces)}
    behind = 0
    for mention in Linker(ids).find(text):
        assert behind <= mention.start < mention.end <= len(text)
        assert text[mention.start : mention.end] == mention.surface
        meant = {number for surface, (number,) in ids.items() if fold(surface) == fold(mention.surface)}
        assert set(mention.entities) == meant
        behind = mention.end


@pytest.mark.parametrize(
    ("surfaces", "text", "expected"),
    [
        (["ct"], "an active CT scan", ["CT"]),
        (["CT"], "做ct检查", ["ct"]),
        (["ct", "mri"], "active: ct, CT，做mri", ["ct", "CT", "mri"]),
        (["维生素b1"], "维生素B12", []),
        (["胃", "胃炎", "胃炎肠炎"], "胃炎肠", ["胃炎"]),
        (["pain", "pain kill"], "pain killer", ["pain"]),
        (["chest pain", "pain"], "Chest  pain, chest pain", ["pain", "chest pain"]),
        (["咳嗽"], "😀İ咳嗽İ", ["咳嗽"]),
        (["ος", "ΟΔΟΣ"], "οδοσ ΟΔΟΣ", ["οδοσ", "ΟΔΟΣ"]),
        (["咳"], "\ud800咳\udfff", ["咳"]),
        (["咳 嗽"], "\ue000咳 嗽\ue000active咳 嗽", ["咳 嗽", "咳 嗽"]),
    ],
)
def test_mentions_are_found_as_a_reader_would(surfaces: list[str], text: str, expected: list[str]) -> None:
    assert found(surfaces, text) == expected


def test_surfaces_that_differ_in_case_only_mean_the_entities_of_both() -> None:
    assert Linker({"CT": (1,), "ct": (2, 1)}).find("Ct") == [Mention(0, 2, "Ct", (1, 2))]


def test_without_surfaces_or_text_there_is_nothing_to_find() -> None:
    assert Linker({}).find("cough") == []
    assert Linker({"": (0,)}).find("cough") == []
    assert Linker({"cough": (0,)}).find("") == []


def test_folding_keeps_every_character_of_unicode_in_its_place() -> None:
    for code in range(sys.maxunicode + 1):
        assert len(fold(chr(code))) == 1
    everything = "".join(chr(code) for code in range(0x20000))
    assert len(fold(everything)) == len(everything)
