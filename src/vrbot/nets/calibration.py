"""How fast this machine multiplies matrices, so that speeds measured on different machines can be compared."""

from __future__ import annotations

import time

import torch


def gemm_gflops(size: int = 2048, seconds: float = 1.0) -> float:
    """GFLOP/s of float32 matrix products with the threads torch uses now: the best of several short runs."""
    left, right = torch.randn(size, size), torch.randn(size, size)
    out = torch.empty(size, size)
    torch.mm(left, right, out=out)
    best, begun = float("inf"), time.perf_counter()
    while time.perf_counter() - begun < seconds:
        start = time.perf_counter()
        torch.mm(left, right, out=out)
        best = min(best, time.perf_counter() - start)
    return 2 * size**3 / best / 1e9


def rate(turns: int, seconds: float, gflops: float) -> dict[str, float]:
    """Turns per second, and per 100 GFLOP/s of this machine."""
    per_second = turns / seconds
    return {"turns_per_second": round(per_second, 3), "per_100_gflops": round(100 * per_second / gflops, 3)}
