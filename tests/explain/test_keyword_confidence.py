"""Laws of the confidence in keywords: a scale undoes a distortion, keeps the order, and is chosen on held-out data."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logit

from tests.agent.conftest import MakeAgent
from tests.explain.test_confidence import EASY
from tests.explain.test_evidence import evidence_of
from vrbot.dialogue.batching import limits_of
from vrbot.dialogue.corpus import Corpus
from vrbot.errors import DataError, UsageError
from vrbot.explain.abstention import Guard, fit_guard
from vrbot.explain.confidence import Floats
from vrbot.explain.explainer import Explainer
from vrbot.explain.keyword_confidence import (
    FITS,
    JudgedKeywords,
    KeywordScale,
    fit_keyword_scale,
    judged_keywords,
    measure_keyword_confidence,
)


def drawn(num_keywords: int, seed: int, slope: float = 1.0, shift: float = 0.0) -> JudgedKeywords:
    """Keywords that are right as often as σ(slope · logit p + shift) says."""
    generator = np.random.default_rng(seed)
    probability = expit(generator.normal(-1.0, 1.5, num_keywords))
    right = generator.random(num_keywords) < expit(slope * logit(probability) + shift)
    return JudgedKeywords(probability, right, np.arange(num_keywords) // 3)


@pytest.mark.parametrize(("slope", "shift"), [(1.0, 0.0), (0.5, -1.0), (2.0, 0.5)])
def test_a_scale_undoes_over_and_underconfidence(slope: float, shift: float) -> None:
    judged, fresh = drawn(6_000, 1, slope, shift), drawn(6_000, 2, slope, shift)
    scale = fit_keyword_scale(judged)
    found = measure_keyword_confidence(fresh, scale)
    assert found.after.error < 0.03
    assert found.before.error > 0.08 or (slope, shift) == (1.0, 0.0)
    assert found.num_keywords == 6_000
    assert found.precision == pytest.approx(fresh.right.mean())


def test_the_form_follows_the_data() -> None:
    assert fit_keyword_scale(drawn(6_000, 3, 0.5)).form == "temperature"
    assert fit_keyword_scale(drawn(6_000, 3, 1.0, -2.0)).form == "platt"
    plain = drawn(6_000, 3)
    stepped = replace(plain, right=np.random.default_rng(4).random(6_000) < np.where(plain.probability > 0.3, 0.9, 0.1))
    assert fit_keyword_scale(stepped).form == "isotonic"


@pytest.mark.parametrize("form", FITS)
@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=2, max_size=40))
@settings(max_examples=25, deadline=None)
def test_no_scale_turns_the_order_of_keywords_around(form: str, answers: list[tuple[float, bool]]) -> None:
    probability, right = np.array([p for p, _ in answers]), np.array([r for _, r in answers])
    scale = FITS[form](JudgedKeywords(probability, right, np.arange(len(right))))  # type: ignore[index]
    grid: Floats = np.linspace(0, 1, 50)
    found = scale.apply(grid)
    assert (np.diff(found) >= -1e-12).all()
    assert ((found >= 0) & (found <= 1)).all()


def test_without_labelled_keywords_there_is_no_scale() -> None:
    with pytest.raises(UsageError, match="labelled keywords"):
        fit_keyword_scale(JudgedKeywords(np.zeros(0), np.zeros(0, bool), np.zeros(0, np.int64)))


@pytest.mark.parametrize("form", ["small", "span"])
def test_every_keyword_named_in_a_labelled_turn_is_judged_by_its_own_probability(
    form: str, make_agent: MakeAgent, corpus: Corpus
) -> None:
    explainer = Explainer(make_agent(form=form))
    explainer.model.none_offset.fill_(-3.0)
    split, limits = corpus.split("test"), limits_of(explainer.agent.config.network)
    judged = judged_keywords(explainer.model, split, limits)
    batch = explainer.agent.hear([("我咳嗽三天了", "")])
    perception = explainer.model.perceive(batch.inputs, batch.layout)
    shown = explainer.respond([("我咳嗽三天了", "")]).keywords
    explainer.model.none_offset.fill_(0.0)
    assert perception.keywords is not None
    assert shown
    first = judged.probability[: len(shown)]
    assert first == pytest.approx([keyword.probability for keyword in shown], abs=1e-5)
    assert set(judged.dialogue.tolist()) <= set(range(split.num_sessions))
    assert ((judged.probability > 0) & (judged.probability <= 1)).all()


def test_a_guard_keeps_the_scale_and_gives_every_keyword_its_confidence(
    make_agent: MakeAgent, corpus: Corpus, tmp_path: Path
) -> None:
    explainer = Explainer(make_agent())
    explainer.model.none_offset.fill_(-3.0)
    try:
        guard = fit_guard(explainer.model, corpus.split("valid"), limits_of(explainer.agent.config.network))
        guard.save(tmp_path / "guard.json")
        again = Guard.load(tmp_path / "guard.json")
        assert again.keywords == guard.keywords is not None
        sure = evidence_of(Explainer(explainer.agent, again).respond([("我咳嗽三天了", "")]))
    finally:
        explainer.model.none_offset.fill_(0.0)
    assert sure.keywords
    for keyword in sure.keywords:
        assert keyword.confidence == pytest.approx(float(guard.keywords.apply(np.array([keyword.probability]))[0]))
    unsure = evidence_of(Explainer(make_agent(), EASY).respond([("我咳嗽三天了", "")]))
    assert all(keyword.confidence is None for keyword in unsure.keywords or ())


@pytest.mark.parametrize(
    "scale",
    ['{"form": "cubic"}', '{"form": "isotonic", "slope": 1, "shift": 0, "knots": [0.1], "levels": []}', "[]", "3"],
)
def test_a_guard_with_a_broken_scale_is_refused(scale: str, tmp_path: Path) -> None:
    limits = '"temperature": 1, "unknown_words": 1, "strangeness": 1, "confidence": 0'
    (tmp_path / "guard.json").write_text(f'{{{limits}, "keywords": {scale}}}', encoding="utf-8")
    with pytest.raises(DataError, match="write it again"):
        Guard.load(tmp_path / "guard.json")


def test_a_scale_is_the_same_after_it_was_plain_values() -> None:
    scale = KeywordScale("isotonic", 1.0, 0.0, (0.1, 0.5), (0.2, 0.6))
    assert KeywordScale.from_dict(vars(scale)) == scale
    assert scale.apply(np.array([0.0, 0.3, 0.9])) == pytest.approx([0.2, 0.4, 0.6])
