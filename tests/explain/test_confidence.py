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
from vrbot.dialogue.batching import limits_of
from vrbot.dialogue.corpus import Corpus
from vrbot.errors import DataError, UsageError
from vrbot.explain.abstention import Guard, fit_guard, signals_of, unexplained_rows
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
from vrbot.explain.steering import Change, perceive

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


def test_who_names_nothing_medical_must_sound_more_familiar(make_agent: MakeAgent) -> None:
    explainer = Explainer(make_agent())
    (strange,) = signals_of(explainer.model, explainer.agent.hear([("你好", "")])).strangeness
    assert "out of domain" in reasons(make_agent, replace(EASY, strangeness_unnamed=float(strange)), "你好")
    lenient = replace(EASY, strangeness_unnamed=float(np.nextafter(strange, np.inf)))
    assert "out of domain" not in reasons(make_agent, lenient, "你好")
    assert "out of domain" in reasons(make_agent, replace(lenient, strangeness=float(strange) / 2), "你好")


def test_a_model_that_knows_no_rarity_abstains_where_nothing_medical_is_named(make_agent: MakeAgent) -> None:
    explainer = Explainer(make_agent("vrbot", "paper"))
    assert signals_of(explainer.model, explainer.agent.hear([("你好", "")])).strangeness.tolist() == [0.0]
    guard = replace(EASY, strangeness=0.0, strangeness_unnamed=0.0)
    found = evidence_of(Explainer(explainer.agent, guard).respond([("你好", "")]))
    assert "out of domain" in (found.abstain or ())


def test_the_limit_for_unnamed_texts_is_the_median_of_first_utterances(make_agent: MakeAgent, corpus: Corpus) -> None:
    explainer = Explainer(make_agent())
    guard = fit_guard(explainer.model, corpus.split("valid"), limits_of(explainer.agent.config.network))
    sessions = [corpus.session("valid", number) for number in range(corpus.split("valid").num_sessions)]
    heard = [explainer.agent.hear([(session.turns[0].patient, "")]) for session in sessions]
    first = [signals_of(explainer.model, batch).strangeness[0] for batch in heard]
    assert guard.strangeness_unnamed == pytest.approx(np.median(first))


def test_a_guard_from_before_that_limit_abstains_wherever_nothing_medical_is_named(tmp_path: Path) -> None:
    limits = '{"temperature": 1, "unknown_words": 1, "strangeness": 9, "confidence": 0, "keywords": null}'
    (tmp_path / "guard.json").write_text(limits, encoding="utf-8")
    assert Guard.load(tmp_path / "guard.json").strangeness_unnamed == 0.0


def test_how_strange_a_patient_sounds_does_not_depend_on_the_physician(make_agent: MakeAgent) -> None:
    explainer = Explainer(make_agent())
    alone = signals_of(explainer.model, explainer.agent.hear([("发烧，没有头痛", "")])).strangeness[0]
    later = explainer.agent.hear([("我咳嗽三天了", "有没有发烧，头痛？"), ("发烧，没有头痛", "")])
    assert signals_of(explainer.model, later).strangeness[1] == pytest.approx(alone)


@pytest.mark.parametrize("form", ["small", "paper"])
def test_all_turns_judged_at_once_are_judged_as_each_alone(form: str, make_agent: MakeAgent, corpus: Corpus) -> None:
    explainer = Explainer(make_agent("vrbot", form, seed=2))
    guard = replace(EASY, unknown_words=0.05, confidence=0.35)
    alone = Explainer(explainer.agent, guard)
    reasons_found: set[str] = set()
    for number in range(4):
        said = [(turn.patient, turn.physician) for turn in corpus.session("test", number).turns]
        batch = explainer.agent.hear(said)
        together = guard.judge_all(explainer.model, batch, explainer.model.perceive(batch.inputs, batch.layout))
        for turn, judgement in enumerate(together):
            found = evidence_of(alone.respond([*said[:turn], (said[turn][0], "")]))
            assert judgement.reasons == found.abstain
            assert judgement.confidence == pytest.approx(found.confidence, abs=1e-6)
            reasons_found.update(judgement.reasons)
    assert reasons_found


def test_keywords_that_nothing_explains_are_unexplained_in_their_row(make_agent: MakeAgent) -> None:
    explainer = Explainer(make_agent())
    inventory, batch = explainer.agent.pretrained.corpus.inventory, explainer.agent.hear([("咳嗽", "")])
    for keyword, unexplained in (("退热贴", True), ("气管炎", False), ("咳嗽", False), ("腹泻", False)):
        change = Change(state=("咳嗽",), keywords=(keyword,))
        perceived = perceive(explainer.model, batch, change, inventory)
        assert unexplained_rows(explainer.model, batch, perceived.perception).tolist() == [unexplained]


def test_keywords_that_nothing_explains_are_a_reason(make_agent: MakeAgent) -> None:
    explainer = Explainer(make_agent(), EASY)
    content = explainer.steer([("咳嗽", "")], {"keywords": ["退热贴"], "state": ["咳嗽"]})
    assert content["evidence"]["abstain"] == ["no path"]
    content = explainer.steer([("咳嗽", "")], {"keywords": ["腹泻"], "state": ["咳嗽"]})
    assert content["evidence"]["abstain"] == [], "no edge leads there, so that it has no path says nothing"
    content = explainer.steer([("咳嗽", "")], {"keywords": ["气管炎"], "state": ["咳嗽"]})
    assert content["evidence"]["abstain"] == []


def test_signals_look_at_the_patient_alone_and_remember_what_was_medical(make_agent: MakeAgent) -> None:
    explainer = Explainer(make_agent())
    turns = [("咳嗽", "zyzzyva"), ("zyzzyva 好", "")]
    signals = signals_of(explainer.model, explainer.agent.hear(turns))
    assert signals.unknown.tolist() == [0.0, 0.5]
    assert signals.medical.tolist() == [True, True]
    assert (signals.strangeness > 0).all()
