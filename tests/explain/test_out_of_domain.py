"""Laws of the texts that are none of a model's business: enough of them, all different, and none to tune on."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from types import ModuleType

import numpy as np
import pytest
from benchmarks import out_of_domain_en, out_of_domain_zh
from benchmarks.out_of_domain import draw, measure, shares, variants

from tests.agent.conftest import MakeAgent
from tests.explain.test_confidence import EASY
from vrbot.explain.abstention import Judgement
from vrbot.explain.explainer import Explainer


@pytest.mark.parametrize("language", ["zh", "en"])
def test_a_thousand_texts_are_different_and_of_all_kinds_alike(language: str) -> None:
    drawn = draw(language, "reported", 1_000, np.random.default_rng(1))
    assert len(drawn) == len({text for _, text in drawn}) == 1_000
    counts = Counter(kind for kind, _ in drawn)
    assert len(counts) == 13
    assert set(counts.values()) == {76, 77}
    assert drawn == draw(language, "reported", 1_000, np.random.default_rng(1))
    assert drawn != draw(language, "reported", 1_000, np.random.default_rng(2))


@pytest.mark.parametrize("texts", [out_of_domain_zh, out_of_domain_en])
def test_no_text_to_tune_on_is_reported(texts: ModuleType) -> None:
    def every(patterns: dict[str, tuple[str, ...]], foreign: str) -> set[str]:
        return {
            text
            for pattern in chain(*patterns.values(), texts.FOREIGN[foreign])
            for text in [*variants(pattern), pattern]
        }

    assert set(texts.TUNING) == set(texts.REPORTED)
    assert not every(texts.TUNING, "tuning") & every(texts.REPORTED, "reported")


def test_a_pattern_says_each_of_its_choices() -> None:
    assert variants("{a|b} and {c|d}.") == ["a and c.", "a and d.", "b and c.", "b and d."]
    assert variants("as it is") == ["as it is"]


def test_shares_count_every_reason_and_each_text_once() -> None:
    judged = [Judgement(0.9, ()), Judgement(0.2, ("out of domain", "flat action")), Judgement(0.2, ("flat action",))]
    found = shares(judged)
    assert found == {
        "texts": 3,
        "abstain": 0.6667,
        "by_text": 0.3333,
        "flat action": 0.6667,
        "out of domain": 0.3333,
    }


def test_every_text_and_every_test_turn_is_judged(make_agent: MakeAgent) -> None:
    explainer = Explainer(make_agent())
    found = measure(explainer, EASY, [("small_talk", "你好"), ("small_talk", "咳嗽"), ("nonsense", "qqq")])
    assert found["out_of_domain"]["small_talk"]["texts"] == 2
    assert found["out_of_domain"]["nonsense"]["out of domain"] == 1.0
    assert found["out_of_domain"]["all"]["texts"] == 3
    test = explainer.agent.pretrained.corpus.split("test")
    assert found["own_test_turns"]["all"]["texts"] == test.num_turns
    assert found["own_test_turns"]["first"]["texts"] == test.num_sessions
