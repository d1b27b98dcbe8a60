"""Weights, moments and averages come back to the bit; shared weights stay shared; other models are refused."""

from __future__ import annotations

import pytest
import torch

from tests.training.fake import FakeModel
from vrbot.config import TrainingSettings
from vrbot.errors import VRBotError
from vrbot.model.weights import model_from_bytes, model_to_bytes, shared_names, tensors_from_bytes, tensors_to_bytes
from vrbot.training.optimiser import Optimiser, WeightAverage, trainable


def equal_states(first: torch.nn.Module, second: torch.nn.Module) -> bool:
    one, two = first.state_dict(), second.state_dict()
    return one.keys() == two.keys() and all(torch.equal(one[name], two[name]) for name in one)


def test_shared_weights_are_written_once_and_stay_shared() -> None:
    saved, loaded = FakeModel(20, 4), FakeModel(20, 4)
    saved.calibration += 3
    content = model_to_bytes(saved)
    assert "output.weight" not in tensors_from_bytes(content)
    model_from_bytes(loaded, content)
    assert equal_states(saved, loaded)
    assert loaded.output.weight is loaded.embedding.weight
    with torch.no_grad():
        loaded.embedding.weight += 1
    assert torch.equal(loaded.output.weight, loaded.embedding.weight)


def test_equal_but_separate_weights_are_not_taken_for_shared() -> None:
    assert shared_names({"a": torch.ones(2), "b": torch.ones(2), "c": torch.ones(0), "d": torch.ones(0)}) == {}


def test_a_model_that_shares_other_weights_is_refused() -> None:
    separate = FakeModel(20, 4)
    separate.output.weight = torch.nn.Parameter(torch.zeros(20, 4))
    with pytest.raises(VRBotError, match="shares other weights"):
        model_from_bytes(separate, model_to_bytes(FakeModel(20, 4)))


def test_a_model_of_another_size_is_refused() -> None:
    with pytest.raises(VRBotError, match=r"another model.*size mismatch"):
        model_from_bytes(FakeModel(20, 5), model_to_bytes(FakeModel(20, 4)))


def test_averaged_weights_stand_in_for_the_models_own_in_the_bytes() -> None:
    model, loaded = FakeModel(20, 4), FakeModel(20, 4)
    model_from_bytes(loaded, model_to_bytes(model, {"embedding.weight": torch.full((20, 4), 7.0)}))
    assert loaded.embedding.weight.eq(7).all()
    assert loaded.output.weight.eq(7).all()
    assert not model.embedding.weight.eq(7).any()


def one_step(model: FakeModel, optimiser: Optimiser, parameters_used: list[str]) -> None:
    for name, parameter in optimiser.parameters.items():
        parameter.grad = torch.ones_like(parameter) if name in parameters_used else None
    optimiser.step(0.1)


def test_an_optimiser_goes_on_where_the_saved_one_stood() -> None:
    settings = TrainingSettings(weight_decay=0.1)
    first, second = FakeModel(20, 4), FakeModel(20, 4)
    one, two = Optimiser(trainable(first), settings), Optimiser(trainable(second), settings)
    used = [name for name in one.parameters if not name.startswith("second")]
    for _ in range(3):
        one_step(first, one, used)
    assert not any(name.endswith("second.weight") for name in one.tensors())
    model_from_bytes(second, model_to_bytes(first))
    two.load(tensors_from_bytes(tensors_to_bytes(one.tensors())))
    for model, optimiser in ((first, one), (second, two)):
        one_step(model, optimiser, list(optimiser.parameters))
    assert equal_states(first, second)
    assert all(torch.equal(value, two.tensors()[name]) for name, value in one.tensors().items())


def test_moments_of_unknown_parameters_are_refused() -> None:
    optimiser = Optimiser(trainable(FakeModel(20, 4)), TrainingSettings())
    with pytest.raises(VRBotError, match="exp_avg/other"):
        optimiser.load({"exp_avg/other": torch.zeros(1)})


def test_the_average_is_in_the_model_only_inside_the_block_even_after_a_failure() -> None:
    model = FakeModel(20, 4)
    average = WeightAverage(trainable(model), 0.5)
    own = model.hidden.weight.detach().clone()
    average.averages["hidden.weight"].fill_(7.0)
    seen: list[bool] = []

    def validate_and_fail() -> None:
        with average.in_place():
            seen.append(bool(model.hidden.weight.eq(7).all()))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        validate_and_fail()
    assert seen == [True]
    assert torch.equal(model.hidden.weight, own)


def test_the_average_follows_the_weights_and_forgets_where_they_began() -> None:
    model = FakeModel(20, 4)
    average = WeightAverage(trainable(model), 0.9)
    torch.nn.init.constant_(model.hidden.weight, 1.0)
    for step in range(1, 101):
        average.update(step)
    assert torch.allclose(average.averages["hidden.weight"], torch.ones(4, 4), atol=1e-3)
