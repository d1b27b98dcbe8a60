"""How fast this machine multiplies matrices, so that speeds measured on different machines can be compared."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager

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


class Stopwatch:
    """Seconds of work, with the machine's speed measured in between, so that both see the same disturbance.

    On a machine that others use too, seconds of the processor tell more than those of the clock; with one thread they
    are what an undisturbed run would take.
    """

    def __init__(self, calibration_seconds: float = 0.2) -> None:
        self._calibration_seconds = calibration_seconds
        self._speeds = [gemm_gflops(seconds=calibration_seconds)]
        self.seconds = self.cpu_seconds = 0.0

    @contextmanager
    def running(self, *, counted: bool = True) -> Iterator[None]:
        """Counts what happens inside, then calibrates; what is not `counted` is a warm-up."""
        begun, cpu_begun = time.perf_counter(), time.process_time()
        yield
        if counted:
            self.seconds += time.perf_counter() - begun
            self.cpu_seconds += time.process_time() - cpu_begun
        self._speeds.append(gemm_gflops(seconds=self._calibration_seconds))

    @property
    def gflops(self) -> float:
        """The middle of all calibrations."""
        return statistics.median(self._speeds)

    def rate(self, turns: int) -> dict[str, float]:
        """`rate`, and turns per second of the processor (all threads)."""
        found = rate(turns, self.seconds, self.gflops)
        return {**found, "turns_per_cpu_second": round(turns / self.cpu_seconds, 3), "gflops": round(self.gflops, 1)}
