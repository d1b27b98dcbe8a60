"""Weights as bytes and back (safetensors, never pickle); weights that are shared stay shared."""

from __future__ import annotations

import json
from collections.abc import Mapping

import torch
from safetensors.torch import load as from_safetensors
from safetensors.torch import save as to_safetensors
from torch import Tensor

from vrbot.errors import VRBotError

_SHARED = "shared"


def tensors_to_bytes(tensors: Mapping[str, Tensor]) -> bytes:
    """Tensors of their own, as one safetensors file."""
    return to_safetensors({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()})


def tensors_from_bytes(content: bytes) -> dict[str, Tensor]:
    """The same tensors, in memory of their own (aligned as torch aligns it, on which the last bit can depend)."""
    return {name: tensor.clone() for name, tensor in from_safetensors(content).items()}


def model_to_bytes(model: torch.nn.Module, replaced: Mapping[str, Tensor] | None = None) -> bytes:
    """Parameters and buffers; `replaced` values (by parameter name) stand in for the model's own.

    Of names that share one tensor the first is written; the others are listed beside it.
    """
    state = model.state_dict()
    shared = shared_names(state)
    kept = {name: (replaced or {}).get(name, value) for name, value in state.items() if name not in shared}
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in kept.items()}
    return to_safetensors(tensors, metadata={_SHARED: json.dumps(shared, sort_keys=True)})


def model_from_bytes(model: torch.nn.Module, content: bytes) -> None:
    """Puts saved weights into a model of the same build; what shares a tensor there must share it here."""
    state = model.state_dict()
    saved, shared = tensors_from_bytes(content), _shared_names_of(content)
    if shared != shared_names(state):
        differing = sorted(shared.items() ^ shared_names(state).items())
        raise VRBotError(f"the saved model shares other weights than this one ({differing}): build it as it was")
    try:
        model.load_state_dict({**saved, **{name: saved[first] for name, first in shared.items()}})
    except RuntimeError as error:
        raise VRBotError(
            f"the saved weights are those of another model ({' '.join(str(error).split())}): "
            "a version of vrbot with other parts may have trained it; use that version, or train it again"
        ) from error


def shared_names(state: Mapping[str, Tensor]) -> dict[str, str]:
    """Every further name of a tensor -> its first name."""
    first: dict[tuple[object, ...], str] = {}
    shared: dict[str, str] = {}
    for name, tensor in state.items():
        if tensor.numel() == 0:
            continue
        place = (tensor.device, tensor.data_ptr(), tensor.dtype, tensor.shape, tensor.stride())
        if first.setdefault(place, name) != name:
            shared[name] = first[place]
    return shared


def _shared_names_of(content: bytes) -> dict[str, str]:
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    shared: dict[str, str] = json.loads(header["__metadata__"][_SHARED])
    return shared
