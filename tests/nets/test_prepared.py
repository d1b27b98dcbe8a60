"""Weights laid out once, and again when they change."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn

from vrbot.nets import prepared
from vrbot.nets.prepared import FEW_ROWS, Prepared, Projection, RoundedProjection, int8_is_possible


def layer() -> nn.Linear:
    torch.manual_seed(0)
    return nn.Linear(24, 40)


def vectors(rows: int) -> Tensor:
    return torch.randn(rows, 24, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("large", [False, True], ids=["small", "large"])
@pytest.mark.parametrize("rows", [1, FEW_ROWS, FEW_ROWS + 1])
def test_a_projection_is_the_linear_layer(rows: int, large: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    linear = layer()
    monkeypatch.setattr(prepared, "WORTH_PACKING", 0 if large else 10**9)
    found = Projection(linear.weight.detach(), linear.bias.detach())(vectors(rows))
    torch.testing.assert_close(found, linear(vectors(rows)).detach())


@pytest.mark.skipif(not int8_is_possible(), reason="no int8 products, or none that are safe")
@pytest.mark.parametrize("num_results", [40, 64 * 40 + 5])
def test_a_rounded_projection_is_exact_where_it_is_large_and_close_elsewhere(num_results: int) -> None:
    torch.manual_seed(0)
    linear = nn.Linear(24, num_results)
    exact = linear(vectors(8)).detach()
    found = RoundedProjection(linear.weight.detach(), linear.bias.detach())(vectors(8))
    largest = exact.topk(8, dim=1).indices
    torch.testing.assert_close(found.gather(1, largest), exact.gather(1, largest))
    assert torch.equal(found.topk(8, dim=1).indices, largest)
    assert float((found - exact).abs().max()) < 0.1 * float(exact.std())


@pytest.mark.skipif(not int8_is_possible(), reason="no int8 products, or none that are safe")
@pytest.mark.parametrize(
    ("tiles", "told", "possible"), [(True, False, False), (True, True, True), (False, False, True)]
)
def test_int8_is_refused_where_tiles_would_be_used(
    tiles: bool, told: bool, possible: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Virtual machines have been met that promise tiles and end the process that uses them."""
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: tiles)
    monkeypatch.delenv("ONEDNN_MAX_CPU_ISA")
    if told:
        monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")
    assert int8_is_possible() is possible


def test_what_is_prepared_is_made_again_exactly_when_a_parameter_changes() -> None:
    calls: list[int] = []

    def make(weight: Tensor) -> Tensor:
        calls.append(1)
        return weight * 2

    linear, prepared = layer(), Prepared(make)
    prepared.of(linear.weight)
    prepared.of(linear.weight)
    assert len(calls) == 1
    with torch.no_grad():
        linear.weight += 1.0
    torch.testing.assert_close(prepared.of(linear.weight), linear.weight.detach() * 2)
    linear.load_state_dict(layer().state_dict())
    torch.testing.assert_close(prepared.of(linear.weight), linear.weight.detach() * 2)
    assert len(calls) == 3


def test_a_copy_is_without_what_was_prepared() -> None:
    linear, prepared = layer(), Prepared(torch.clone)
    prepared.of(linear.weight)
    assert copy.deepcopy(prepared)._made is None
