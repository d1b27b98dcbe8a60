"""Several processes that train one model: each runs its shards, the gradients are added, the first one writes.

Started by torchrun, which tells every process its place through the environment; without it there is one process.
Results do not depend on the number of processes, to the last bit when `training.shards` is a power of two.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from vrbot.errors import ConfigError, VRBotError
from vrbot.training.gradients import pairwise_sum

Result = TypeVar("Result")
_LONGEST_WAIT = timedelta(days=7)  # the others wait while the first validates; a process that dies is noticed at once


@dataclass(frozen=True)
class Workers:
    """The processes of a run, seen from one of them."""

    rank: int = 0
    size: int = 1
    device: str = "cpu"

    @property
    def is_first(self) -> bool:
        return self.rank == 0

    def own_shards(self, num_shards: int) -> range:
        """The shards this process computes: a block, so that the order of adding stays the same."""
        if num_shards % self.size:
            raise ConfigError(
                f"training.shards = {num_shards} cannot be dealt out to {self.size} processes: "
                f"set training.shards to a multiple of {self.size}, or start torchrun with another --nproc-per-node"
            )
        block = num_shards // self.size
        return range(self.rank * block, (self.rank + 1) * block)

    def gather(self, value: Result) -> list[Result]:
        """What every process has to say, in their order."""
        if self.size == 1:
            return [value]
        values: list[Any] = [None] * self.size
        dist.all_gather_object(values, value)
        return values

    def sum(self, flat: Tensor) -> Tensor:
        """The sum over all processes, added in a fixed order."""
        if self.size == 1:
            return flat
        parts = [torch.empty_like(flat) for _ in range(self.size)]
        dist.all_gather(parts, flat)
        return pairwise_sum(parts)

    def by_the_first(self, work: Callable[[], Result]) -> Result:
        """The result of `work`, which only the first process does; if it fails there, it fails everywhere."""
        if self.size == 1:
            return work()
        if not self.is_first:
            outcome: list[Any] = [None, None]
            dist.broadcast_object_list(outcome, src=0)
            if outcome[1] is not None:
                raise outcome[1]
            result: Result = outcome[0]
            return result
        try:
            outcome = [work(), None]
        except VRBotError as error:
            outcome = [None, error]
        dist.broadcast_object_list(outcome, src=0)
        if outcome[1] is not None:
            raise outcome[1]
        return outcome[0]  # type: ignore[no-any-return]

    def copy_from_first(self, tensors: list[Tensor]) -> None:
        """Gives every process the first one's values, in place."""
        if self.size > 1:
            for tensor in tensors:
                dist.broadcast(tensor, src=0)


@contextmanager
def join_workers(environment: Mapping[str, str] | None = None) -> Iterator[Workers]:
    """The workers torchrun has started, or this process alone."""
    environment = os.environ if environment is None else environment
    size, rank = int(environment.get("WORLD_SIZE", "1")), int(environment.get("RANK", "0"))
    on_gpu = torch.cuda.is_available()
    device = f"cuda:{environment.get('LOCAL_RANK', '0')}" if on_gpu else "cpu"
    if on_gpu:
        torch.cuda.set_device(device)
    if size == 1:
        yield Workers(device=device)
        return
    if environment.get("MASTER_ADDR") in ("localhost", "127.0.0.1") and "lo" in dict(socket.if_nameindex()).values():
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")  # works even where the machine's own name leads nowhere
    dist.init_process_group("nccl" if on_gpu else "gloo", rank=rank, world_size=size, timeout=_LONGEST_WAIT)
    try:
        yield Workers(rank, size, device)
    finally:
        dist.destroy_process_group()
