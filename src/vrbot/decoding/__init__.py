"""Search over a step function; knows no model."""

from vrbot.decoding.adjusting import in_turn, no_repeat_ngram
from vrbot.decoding.beam import beam
from vrbot.decoding.greedy import greedy
from vrbot.decoding.sampling import sampling
from vrbot.decoding.step import Adjust, Decoded, Selectable, StepFunction

__all__ = [
    "Adjust",
    "Decoded",
    "Selectable",
    "StepFunction",
    "beam",
    "greedy",
    "in_turn",
    "no_repeat_ngram",
    "sampling",
]
