"""What is decided on validation dialogues: which model of a run is the best, and what a word is worth in replies."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import torch

from vrbot.config import Config
from vrbot.dialogue.batching import limits_of
from vrbot.dialogue.corpus import Corpus
from vrbot.evaluation.calibration import calibrate
from vrbot.evaluation.measuring import ReplyTrials, has_action, measure_model
from vrbot.evaluation.scorecard import Options, Resources, measure

Validate = Callable[[torch.nn.Module], Mapping[str, float | None]]

MOST_DIALOGUES = 400
DIALOGUES_TO_CHOOSE_BY, TURNS_TO_CHOOSE_BY = 200, 1000
MERIT = "merit"
NAT_OF_PERPLEXITY = 2.0
"""What a nat of perplexity is worth in points of micro-F1: where those are level within chance, fluency decides."""
WORD_REWARDS = (0.0, 0.5, 1.0, 1.5, 1.75, 2.0, 2.25, 2.5, 2.75, 3.0)
FIRST_REWARDS = (0.5, 1.5, 2.25)
"""The merit may have more than one top: the best of these is climbed from."""
WATCHED = (
    "micro_f1",
    "micro_f1_without_most_frequent",
    "bleu_2",
    "state_f1",
    "action_f1",
    "action_f1_without_most_frequent",
    "category_accuracy",
    "inference_state_f1",
    "inference_action_f1",
    "inference_category_accuracy",
    "perplexity",
)


def build_validation(
    corpus: Corpus, config: Config, *, split_name: str = "valid", most_dialogues: int = MOST_DIALOGUES
) -> Validate:
    """A function of the model: calibrates how readily it says NONE, then scores it.

    Calibration reads the replies of the whole split; scores are of `most_dialogues` of its dialogues, always the same.
    """
    greedy = config.decoding.model_copy(update={"beam": 1, "no_repeat": 0})
    chosen = spread_sample(corpus.split(split_name).num_sessions, most_dialogues)

    def validate(model: torch.nn.Module) -> dict[str, float | None]:
        model.eval()
        if has_action(model):
            calibrate(model, corpus.split(split_name), limits_of(config.network))
        measured = measure_model(model, corpus, split_name, config, greedy, chosen)
        scores = measure(measured.turns, Options(), Resources())
        found = {name: scores[name].value for name in WATCHED}
        found[MERIT] = merit_of(found["micro_f1"], found["perplexity"])
        spans = [turn.prior.keywords for turn in measured.turns if turn.prior.keywords is not None]
        if spans:
            found["keywords_per_turn"] = float(np.mean([len(span) for span in spans]))
            found["none_share"] = 100 * float(np.mean([not span for span in spans]))
        return found

    return validate


def merit_of(micro_f1: float | None, perplexity: float | None) -> float:
    """What the best model of a run is chosen by, for every system alike."""
    nats = math.log(perplexity) if perplexity else 0.0
    return (micro_f1 or 0.0) - NAT_OF_PERPLEXITY * nats


def choose_decoding(model: torch.nn.Module, corpus: Corpus, config: Config) -> dict[str, float]:
    """The settings of a trained model's search that are still open: what a word is worth, unless the settings say it.

    One rule for every system: beside the value chosen, the product of reply micro-F1 and BLEU-2 of replies in a beam to
    some dialogues is no higher; of equal products, as those of a model that names nothing are, BLEU-2 decides.
    """
    if config.decoding.word_reward is not None:
        return {}
    split = corpus.split("valid")
    chosen = dialogues_to_choose_by(split.num_sessions, split.num_turns)
    trials = ReplyTrials(model, corpus, "valid", config, chosen)

    @cache
    def merit(reward: float) -> tuple[float, float]:
        decoding = config.decoding.model_copy(update={"word_reward": reward})
        scores = measure(trials.write(decoding), Options(), Resources())
        micro_f1, bleu_2 = (scores[name].value or 0.0 for name in ("micro_f1", "bleu_2"))
        return micro_f1 * bleu_2, bleu_2

    return {"word_reward": climb(WORD_REWARDS, max(FIRST_REWARDS, key=merit), merit)}


def dialogues_to_choose_by(num_dialogues: int, num_turns: int) -> list[int]:
    """Some dialogues, evenly spread, fewer where they are long: each value tried costs a reply to all their turns."""
    by_turns = TURNS_TO_CHOOSE_BY * num_dialogues // max(num_turns, 1)
    return spread_sample(num_dialogues, max(1, min(DIALOGUES_TO_CHOOSE_BY, by_turns)))


def climb(values: Sequence[float], start: float, merit: Callable[[float], Any]) -> float:
    """Where the merit of the next values along a row is no higher, beginning from one of them."""
    place = values.index(start)
    while True:
        near = [place, *(other for other in (place + 1, place - 1) if 0 <= other < len(values))]
        best = max(near, key=lambda each: merit(values[each]))
        if best == place:
            return values[place]
        place = best


def spread_sample(size: int, count: int) -> list[int]:
    """At most `count` of `size` places, evenly spread."""
    return sorted({int(place) for place in np.linspace(0, size - 1, min(size, count)).round()})
