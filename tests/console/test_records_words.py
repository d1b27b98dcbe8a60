"""Every string of the pages about records is there in both languages, with the same places for values."""

from __future__ import annotations

import re

import pytest

from vrbot.serving.console.words import Table, annotation, audit, card, experiments, rating

PLACE = re.compile(r"\{(\w+)\}")


@pytest.mark.parametrize("table", [annotation.WORDS, rating.WORDS, experiments.WORDS, card.WORDS, audit.WORDS])
def test_both_languages_say_the_same_things(table: Table) -> None:
    assert table["zh"].keys() == table["en"].keys()
    for key, string in table["en"].items():
        assert sorted(PLACE.findall(table["zh"][key])) == sorted(PLACE.findall(string)), key
