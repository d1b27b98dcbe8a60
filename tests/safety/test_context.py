"""Whether what is said of a finding is understood."""

from __future__ import annotations

import pytest

from vrbot.safety.context import Context
from vrbot.safety.patterns import compiled, languages_in, readable

ASSERTED, NEGATED, HISTORY, OTHER, HYPOTHETICAL = "asserted", "negated", "history", "other_person", "hypothetical"


@pytest.mark.parametrize(
    ("text", "finding", "status"),
    [
        ("我胸痛", "胸痛", ASSERTED),
        ("没有胸痛", "胸痛", NEGATED),
        ("没有发烧、咳嗽和胸痛", "胸痛", NEGATED),
        ("没有发烧，胸痛", "胸痛", ASSERTED),
        ("没有发烧但是胸痛", "胸痛", ASSERTED),
        ("不是没有胸痛", "胸痛", ASSERTED),
        ("不胸痛", "胸痛", NEGATED),
        ("不吃饭就胸痛", "胸痛", ASSERTED),
        ("胸痛都没有", "胸痛", NEGATED),
        ("三年前胸痛", "胸痛", HISTORY),
        ("三年前手术，现在胸痛", "胸痛", ASSERTED),
        ("以前胸痛，已经好了", "胸痛", HISTORY),
        ("邻居胸痛", "胸痛", OTHER),
        ("邻居让我来问，我胸痛", "胸痛", ASSERTED),
        ("如果胸痛怎么办", "胸痛", HYPOTHETICAL),
        ("会不会胸痛", "胸痛", HYPOTHETICAL),
        ("I have chest pain", "chest pain", ASSERTED),
        ("no chest pain", "chest pain", NEGATED),
        ("not only chest pain", "chest pain", ASSERTED),
        ("no fever but chest pain", "chest pain", ASSERTED),
        ("I don't have any chest pain", "chest pain", NEGATED),
        ("I can't sleep for chest pain", "chest pain", ASSERTED),
        ("chest pain five years ago", "chest pain", HISTORY),
        ("my colleague has chest pain", "chest pain", OTHER),
        ("my colleague is well, I have chest pain", "chest pain", ASSERTED),
        ("what if I get chest pain", "chest pain", HYPOTHETICAL),
        ("it feels as if chest pain begins", "chest pain", ASSERTED),
    ],
)
def test_the_status_of_a_finding(text: str, finding: str, status: str) -> None:
    folded = readable(text)
    start = folded.index(finding)
    assert Context(folded, languages_in(folded)).status(start, start + len(finding)) == status


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("wheez*", "wheezing badly", "wheezing"),
        ("fit", "fitness", None),
        ("stiff neck", "a stiff-neck", "stiff-neck"),
        ("chest~hurt*", "my chest really hurts", "chest really hurts"),
        ("chest~hurt*", "my chest does not hurt", None),
        ("can't breathe", "I cannot breathe", "cannot breathe"),
        ("heat ?stroke", "heatstroke", "heatstroke"),
        ("weeks? old", "six weeks-old", "weeks-old"),
    ],
)
def test_the_pattern_language(pattern: str, text: str, found: str | None) -> None:
    expression = compiled([pattern], "en")
    assert expression is not None
    hit = expression.search(text)
    assert (hit.group() if hit else None) == found
