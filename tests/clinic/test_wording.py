"""Laws of how the two languages put findings into words."""

from __future__ import annotations

from random import Random

import pytest

from vrbot.clinic.chinese import Chinese
from vrbot.clinic.english import English
from vrbot.clinic.grammar import Grammar, fill, slots_of
from vrbot.clinic.wording import DIFFICULTIES
from vrbot.clinic.world import load_world

WORLD = load_world()


def test_a_rule_expands_to_one_of_its_alternatives_and_of_those_it_mentions():
    grammar = Grammar({"greeting": ["<word>, [who]!"], "word": ["hello", "good day"]})
    wordings = {grammar.expand("greeting", Random(seed)) for seed in range(20)}
    assert wordings == {"hello, [who]!", "good day, [who]!"}
    assert slots_of("[b] and [a]") == ["b", "a"]
    assert fill("[who]!", {"who": "you"}) == "you!"


def test_a_style_has_its_own_wording_where_there_is_one():
    grammar = Grammar({"ask": ["plain"], "ask.polite": ["please"]})
    assert grammar.expand("ask", Random(1), "polite") == "please"
    assert grammar.expand("ask", Random(1), "terse") == "plain"


@pytest.mark.parametrize(
    ("person", "text"),
    [
        ("I", "I've lost my voice. I keep coughing and I am tired."),
        ("you", "You've lost your voice. You keep coughing and you are tired."),
        ("he", "He's lost his voice. He keeps coughing and he is tired."),
        ("she", "She's lost her voice. She keeps coughing and she is tired."),
    ],
)
def test_english_clauses_follow_the_person(person, text):
    marked = "{I've} lost {my} voice. {I} {keep|keeps} coughing and {I} {am|is} tired."
    assert English().finish(marked, person) == text


@pytest.mark.parametrize("language", [Chinese(), English()], ids=["zh", "en"])
def test_findings_are_told_each_once_and_their_order_is_reported(language):
    findings = [WORLD.entities[one] for one in ("fever", "cough", "chest_pain")]
    for seed in range(50):
        text, order = language.present(findings, DIFFICULTIES["hard"], Random(seed))
        assert sorted(entity.id for entity in order) == ["chest_pain", "cough", "fever"]
        places = [
            min(text.find(name) for name in entity.wordings[language.code].names if name in text)
            for entity in order
            if any(name in text for name in entity.wordings[language.code].names)
        ]
        assert text
        assert len(places) < 2 or places[0] <= places[-1]


@pytest.mark.parametrize("language", [Chinese(), English()], ids=["zh", "en"])
def test_a_slip_of_the_keyboard_changes_little(language):
    text = (
        "嗓子痛，咳嗽，已经三天了，请问怎么办" if language.code == "zh" else "My throat hurts and I have been coughing"
    )
    slips = [language.slip(text, Random(seed)) for seed in range(50)]
    assert sum(slip != text for slip in slips) > 40
    assert all(abs(len(slip) - len(text)) <= 1 for slip in slips)


@pytest.mark.parametrize(
    ("days", "chinese", "english"), [(3, "三天", "three days"), (14, "半个月", None), (60, "两个月", "two months")]
)
def test_durations_are_said_in_the_unit_people_use(days, chinese, english):
    assert Chinese().duration(days, Random(1)) == chinese
    if english is not None:
        assert English().duration(days, Random(1)) == english
