"""Distributions, divergences and relaxed samples; nothing of dialogue."""

from vrbot.probability.annealing import Constant, Exponential, Linear, Schedule, free_bits
from vrbot.probability.category import divergence, masked_log_softmax, relaxed_sample, straight_through
from vrbot.probability.gaussian import DiagonalGaussian
from vrbot.probability.span import SpanDistribution

__all__ = [
    "Constant",
    "DiagonalGaussian",
    "Exponential",
    "Linear",
    "Schedule",
    "SpanDistribution",
    "divergence",
    "free_bits",
    "masked_log_softmax",
    "relaxed_sample",
    "straight_through",
]
