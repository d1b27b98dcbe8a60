"""Laws of confidence: a temperature undoes a temperature, and a guard says no for a reason."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.agent.conftest import MakeAgent
from tests.explain.test_evidence import evidence_of
from vrbot.agent.replies import limits_of
from vrbot.dialogue.corpus import Corpus
from vrbot.errors import DataError, UsageError
from vrbot.explain.abstention import Guard, fit_guard, signals_of
from vrbot.explain.confidence import (
    Bin,
    Judged,
    fit_temperature,
    judged_turns,
    measure_confidence,
    reliability,
    risk_coverage,
    tempered,
)
from vrbot.explain.explainer import Explainer

EASY = Guard(temperature=1.0, unknown_words=1.0, strangeness=1e9, confidence=0.0)


def drawn(num_turns: int, seed: int) -> Judged:
    """Turns whose labels are drawn from the very distribution the model gives."""
    generator = torch.Generator().manual_seed(seed)
    log_probs = (torch.randn(num_turns, 4, generator=generator) * 2).log_softmax(dim=1)
    return Judged(log_probs, torch.multinomial(log_probs.exp(), 1, generator=generator).squeeze(1))


@pytest.mark.parametrize("factor", [0.25, 1.0, 3.0])
def test_the_temperature_undoes_over_and_underconfidence(factor: float) -> None:
    judged = drawn(20_000, seed=1)
    distorted = Judged((judged.log_probs * factor).log_softmax(dim=1), judged.gold)
    assert fit_temperature(distorted) == pytest.approx(factor, rel=0.08)
    measured = measure_confidence(distorted, fit_temperature(distorted))
    assert measured.after.error < 0.02
    assert measured.before.error > 0.05 or factor == 1.0
    assert measured.num_turns == 20_000


@given(st.floats(0.1, 10.0), st.integers(0, 100))
def test_a_temperature_never_changes_the_most_probable_category(temperature: float, seed: int) -> None:
    judged = drawn(20, seed)
    warm = tempered(judged.log_probs, temperature)
    assert torch.equal(warm.argmax(dim=1), judged.log_probs.argmax(dim=1))
    torch.testing.assert_close(warm.exp().sum(dim=1), torch.ones(20))


def test_reliability_by_hand() -> None:
    confidence, right = np.array([0.95, 0.91, 0.1, 1.0]), np.array([True, False, False, True])
    found = reliability(confidence, right, num_bins=2)
    assert found.bins == (Bin(1, 0.1, 0.0), Bin(3, pytest.approx(2.86 / 3), pytest.approx(2 / 3)))  # type: ignore[arg-type]
    assert found.error == pytest.approx((0.1 + (2.86 - 2)) / 4)


def test_risk_coverage_by_hand() -> None:
    found = risk_coverage(np.array([0.9, 0.8, 0.8, 0.1]), np.array([True, False, True, False]))
    assert found.coverage == (0.25, 0.75, 1.0)
    assert found.risk == pytest.approx((0.0, 1 / 3, 0.5))
    assert found.area == pytest.approx((0 + 2 / 3 + 0.5) / 4)
    assert found.best_area == pytest.approx((0 + 0 + 1 / 3 + 0.5) / 4)


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=30))
def test_no_order_has_less_risk_than_the_best_one_and_all_end_at_the_same(answers: list[tuple[float, bool]]) -> None:
    confidence, right = np.array([c for c, _ in answers]), np.array([r for _, r in answers])
    found = risk_coverage(confidence, right)
    assert found.area >= found.best_area - 1e-12
    assert found.coverage[-1] == 1.0
    assert found.risk[-1] == pytest.approx(1 - right.mean())
    assert 0.0 <= reliability(confidence, right).error <= 1.0


def test_confidence_without_labels_is_refused() -> None:
    with pytest.raises(UsageError, match="labelled category"):
        fit_temperature(Judged(torch.zeros(0, 4), torch.zeros(0, dtype=torch.long)))


def test_a_guard_is_fitted_kept_and_read_again(make_agent: MakeAgent, corpus: Corpus, tmp_path: Path) -> None:
    explainer = Explainer(make_agent())
    limits = limits_of(explainer.agent.config.network)
    guard = fit_guard(explainer.model, corpus.split("valid"), limits)
    guard.save(tmp_path / "guard.json")
    assert Guard.load(tmp_path / "guard.json") == guard
    judged = judged_turns(explainer.model, corpus.split("valid"), limits)
    assert len(judged.gold) == corpus.split("valid").num_turns
    assert guard.temperature == pytest.approx(fit_temperature(judged))


@pytest.mark.parametrize("content", [None, "{", '{"temperature": 1}', "[]"])
def test_a_file_that_is_no_guard_is_refused(content: str | None, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "guard.json").write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match="write it again"):
        Guard.load(tmp_path / "guard.json")


def reasons(make_agent: MakeAgent, guard: Guard, text: str) -> tuple[str, ...]:
    found = evidence_of(Explainer(make_agent(), guard).respond([(text, "")]))
    assert found.confidence is not None
    assert 0.0 < found.confidence <= 1.0
    assert found.abstain is not None
    return found.abstain


def test_each_reason_has_its_cause(make_agent: MakeAgent) -> None:
    assert "unknown words" not in reasons(make_agent, EASY, "咳嗽")
    assert "unknown words" in reasons(make_agent, replace(EASY, unknown_words=0.1), "zyzzyva qwrtps 咳嗽")
    assert "out of domain" in reasons(make_agent, EASY, "你好")
    assert "out of domain" not in reasons(make_agent, EASY, "咳嗽")
    assert "out of domain" in reasons(make_agent, replace(EASY, strangeness=0.0), "咳嗽")
    assert "flat action" in reasons(make_agent, replace(EASY, confidence=1.1), "咳嗽")
    assert "flat action" not in reasons(make_agent, EASY, "咳嗽")


def test_keywords_that_nothing_explains_are_a_reason(make_agent: MakeAgent) -> None:
    explainer = Explainer(make_agent(), EASY)
    content = explainer.steer([("咳嗽", "")], {"keywords": ["腹泻"], "state": ["咳嗽"]})
    assert content["evidence"]["abstain"] == ["no path"]
    content = explainer.steer([("咳嗽", "")], {"keywords": ["气管炎"], "state": ["咳嗽"]})
    assert content["evidence"]["abstain"] == []


def test_signals_look_at_the_patient_alone_and_remember_what_was_medical(make_agent: MakeAgent) -> None:
    explainer = Explainer(make_agent())
    turns = [("咳嗽", "zyzzyva"), ("zyzzyva 好", "")]
    signals = signals_of(explainer.model, explainer.agent.hear(turns))
    assert signals.unknown.tolist() == [0.0, 0.5]
    assert signals.medical.tolist() == [True, True]
    assert (signals.strangeness > 0).all()
