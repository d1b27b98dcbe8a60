"""Every setting of the objective does what it says."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.model.tiny import MODELS, batch_of, moment, tiny_config, tiny_model, tiny_vrbot, without_labels
from tests.objective.watched import terms_of, watched_vrbot
from vrbot.dialogue.batching import SessionBatch
from vrbot.dialogue.corpus import Corpus
from vrbot.model.contract import Moment
from vrbot.model.vrbot import VRBot
from vrbot.probability.category import relaxed_sample

DIVERGENCES = ("kl_state", "kl_category", "kl_keywords")


def terms_under(corpus: Corpus, at: Moment, batch: SessionBatch | None = None, **settings: Any) -> dict[str, Tensor]:
    """Terms of the unlabelled batch (or of another) with these settings of the objective."""
    model = watched_vrbot(tiny_config(**{f"objective__{name}": value for name, value in settings.items()}), corpus)
    return terms_of(model, without_labels(batch_of(corpus)) if batch is None else batch, at)


def gradient_norm(model: VRBot, network: str) -> float:
    found = [parameter.grad for parameter in getattr(model, network).parameters() if parameter.grad is not None]
    return float(sum(gradient.square().sum() for gradient in found))


@torch.no_grad()
def test_warm_up_raises_the_divergences_in_a_straight_line_and_leaves_the_rest(corpus: Corpus) -> None:
    full = terms_under(corpus, moment(step=40))
    for step, share in ((0, 0.1), (4, 0.5), (9, 1.0), (40, 1.0)):
        warm = terms_under(corpus, moment(step=step), kl_warmup_steps=10, temperature_start=0.3)
        full = terms_under(corpus, moment(step=step), temperature_start=0.3)
        for name in DIVERGENCES:
            torch.testing.assert_close(warm[name], full[name] * share)
        torch.testing.assert_close(warm["reconstruction_state"], full["reconstruction_state"])


def test_below_the_free_bits_a_divergence_costs_the_floor_and_moves_nothing(corpus: Corpus) -> None:
    plain = terms_under(corpus, moment())
    middle = float(plain["kl_state"].detach().median())
    floored = terms_under(corpus, moment(), free_bits_state=middle, free_bits_action=0.0)
    torch.testing.assert_close(floored["kl_state"], plain["kl_state"].clamp_min(middle))
    torch.testing.assert_close(floored["kl_keywords"], plain["kl_keywords"])
    action = terms_under(corpus, moment(), free_bits_action=1e6)
    assert bool((action["kl_keywords"] == 1e6).all())
    torch.testing.assert_close(action["kl_state"], plain["kl_state"])
    model = watched_vrbot(tiny_config(objective__free_bits_state=1e6), corpus)
    terms_of(model, without_labels(batch_of(corpus)), moment())["kl_state"].sum().backward()
    assert gradient_norm(model, "prior_tracker") == 0.0


@pytest.mark.parametrize("labelled", [True, False])
@torch.no_grad()
def test_the_weight_of_the_policy_counts_its_word_on_actions_so_many_times(corpus: Corpus, labelled: bool) -> None:
    batch = batch_of(corpus) if labelled else without_labels(batch_of(corpus))

    def total(weight: float) -> float:
        return float(tiny_vrbot(tiny_config(objective__policy_weight=weight), corpus).loss(batch, moment()).total)

    once, twice, five = total(1.0), total(2.0), total(5.0)
    assert twice > once
    assert five - once == pytest.approx(4 * (twice - once), rel=1e-4)


@torch.no_grad()
def test_state_labels_count_so_many_times_and_nothing_else_does(corpus: Corpus) -> None:
    def total(weight: float, labelled: bool) -> float:
        batch = batch_of(corpus) if labelled else without_labels(batch_of(corpus))
        model = tiny_vrbot(tiny_config(objective__state_label_weight=weight), corpus)
        return float(model.loss(batch, moment()).total)

    once, twice, five = (total(weight, labelled=True) for weight in (1.0, 2.0, 5.0))
    assert twice > once
    assert five - once == pytest.approx(4 * (twice - once), rel=1e-4)
    assert total(5.0, labelled=False) == total(1.0, labelled=False)


@torch.no_grad()
def test_the_loss_is_the_weighted_sum_of_its_bounds_and_labels(corpus: Corpus) -> None:
    batch = batch_of(corpus)

    def total(state: float, action: float, supervised: float) -> float:
        config = tiny_config(
            objective__state_bound_weight=state,
            objective__action_bound_weight=action,
            objective__supervised_weight=supervised,
        )
        return float(tiny_vrbot(config, corpus).loss(batch, moment()).total)

    alone = [total(1, 0, 0), total(0, 1, 0), total(0, 0, 1)]
    assert all(part > 0 for part in alone)
    assert total(0.5, 2.0, 3.0) == pytest.approx(0.5 * alone[0] + 2.0 * alone[1] + 3.0 * alone[2], rel=1e-5)


@torch.no_grad()
def test_the_floor_keeps_a_divergence_finite_where_the_prior_rules_something_out(corpus: Corpus) -> None:
    """Without the context detector, the prior policy cannot name what the subgraph does not hold."""
    batch = without_labels(batch_of(corpus))
    bounded = watched_vrbot(tiny_config("free"), corpus, name="vrbot-no-context")
    assert bool(terms_of(bounded, batch, moment())["kl_keywords"].isfinite().all())
    assert isinstance(bounded.objective.settings.kl_floor, float)  # type: ignore[attr-defined]
    bounded.objective.settings = bounded.objective.settings.model_copy(update={"kl_floor": None})  # type: ignore[attr-defined]
    assert bool((terms_of(bounded, batch, moment())["kl_keywords"] == math.inf).any())
    tight = terms_under(corpus, moment(), kl_floor=-1.0)
    torch.testing.assert_close(tight["kl_state"], terms_under(corpus, moment())["kl_state"])  # it rules nothing out


@pytest.mark.parametrize(("step", "temperature"), [(0, 3.0), (50, math.sqrt(0.3)), (100, 0.1), (10**6, 0.1)])
@pytest.mark.parametrize("hard", [True, False])
@torch.no_grad()
def test_every_draw_uses_the_temperature_of_the_step(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch, step: int, temperature: float, hard: bool
) -> None:
    seen: list[tuple[float, bool]] = []

    def watched(log_probs: Tensor, at: float, generator: torch.Generator, *, hard: bool = False) -> Tensor:
        seen.append((at, hard))
        return relaxed_sample(log_probs, at, generator, hard=hard)

    monkeypatch.setattr("vrbot.objective.variational.relaxed_sample", watched)
    config = tiny_config(
        objective__temperature_start=3.0,
        objective__temperature_end=0.1,
        objective__temperature_steps=100,
        objective__straight_through=hard,
    )
    tiny_vrbot(config, corpus).loss(batch_of(corpus), moment(step=step))
    assert seen
    assert {straight for _, straight in seen} == {hard}
    assert [at for at, _ in seen] == pytest.approx([temperature] * len(seen))


@torch.no_grad()
def test_the_first_stage_leaves_out_the_action_bound_and_the_second_adds_it(corpus: Corpus) -> None:
    batch = without_labels(batch_of(corpus))
    model = watched_vrbot(tiny_config(), corpus)
    first, second = terms_of(model, batch, moment(stage=1)), terms_of(model, batch, moment(stage=2))
    assert set(first) == {"kl_state", "reconstruction_state", "labels"}
    assert set(second) - set(first) == {"kl_category", "kl_keywords", "reconstruction_action"}
    for name in first:
        torch.testing.assert_close(first[name], second[name])


@pytest.mark.parametrize(("weight", "times"), [(1.0, (2.0, 2.0)), (0.25, (5.0, 1.25))])
@torch.no_grad()
def test_splitting_the_reconstruction_decodes_every_turn_once_and_counts_it_for_both_bounds(
    corpus: Corpus, weight: float, times: tuple[float, float]
) -> None:
    batch = without_labels(batch_of(corpus))
    whole = terms_under(corpus, moment(), batch, state_bound_weight=weight)
    split = terms_under(corpus, moment(), batch, split_reconstruction=True, state_bound_weight=weight)
    names = ("reconstruction_state", "reconstruction_action")
    chosen = torch.stack([split[name] != 0 for name in names])
    assert torch.equal(chosen.sum(dim=0) == 1, batch.targets.response_lengths > 0)
    assert bool(chosen.any(dim=1).all())
    for name, rows, counted in zip(names, chosen, times, strict=True):
        torch.testing.assert_close(split[name][rows], counted * whole[name][rows], atol=1e-4, rtol=1e-4)
    for name in DIVERGENCES:
        torch.testing.assert_close(split[name], whole[name])


@pytest.mark.parametrize("name", MODELS)
def test_the_same_seed_gives_the_same_loss_and_gradients_to_the_last_bit(corpus: Corpus, name: str) -> None:
    results = []
    for _ in range(2):
        model = tiny_model(name, tiny_config(objective__split_reconstruction=True), corpus)
        loss = model.loss(batch_of(corpus), moment(5))
        loss.total.backward()
        results.append([loss.total.detach()] + [p.grad for p in model.parameters() if p.grad is not None])  # type: ignore[attr-defined]
    assert all(torch.equal(mine, theirs) for mine, theirs in zip(*results, strict=True))


@torch.no_grad()
def test_another_seed_gives_another_loss(corpus: Corpus) -> None:
    model, batch = tiny_vrbot(tiny_config("paper"), corpus), without_labels(batch_of(corpus))
    assert float(model.loss(batch, moment(5)).total) != float(model.loss(batch, moment(6)).total)


@pytest.mark.parametrize("name", [name for name in MODELS if name.startswith("vrbot")])
@torch.no_grad()
def test_with_choices_that_need_no_luck_a_session_costs_the_same_alone_and_in_company(
    corpus: Corpus, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def likeliest(log_probs: Tensor, *_: Any, **__: Any) -> Tensor:
        return torch.nn.functional.one_hot(log_probs.argmax(dim=-1), log_probs.shape[-1]).float()

    monkeypatch.setattr("vrbot.objective.variational.relaxed_sample", likeliest)
    model, batch = tiny_vrbot(tiny_config(), corpus, name=name), batch_of(corpus)
    together = dict(zip(batch.session_ids, model.loss(batch, moment()).per_session.tolist(), strict=True))
    for session in range(len(batch.session_ids)):
        alone = batch_of(corpus, [session])
        cost = float(model.loss(alone, moment()).total)
        assert cost == pytest.approx(together[alone.session_ids[0]], rel=1e-4, abs=1e-3)


@torch.no_grad()
def test_the_entities_of_a_response_serve_as_keyword_labels_for_as_long_as_the_settings_say(corpus: Corpus) -> None:
    batch = without_labels(batch_of(corpus))
    during = terms_under(corpus, moment(step=9), batch, pseudo_label_steps=10)
    after = terms_under(corpus, moment(step=10), batch, pseudo_label_steps=10)
    names_something = (batch.targets.response_mentions >= 0).any(dim=1)
    assert bool(names_something.any())
    assert bool((during["labels"][names_something] < 0).all())
    assert bool((after["labels"] == 0).all())
