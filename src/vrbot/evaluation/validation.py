"""The scores a trainer chooses the best model by: greedy replies to some validation dialogues."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import torch

from vrbot.agent.calibration import calibrate
from vrbot.agent.replies import limits_of
from vrbot.config import Config
from vrbot.dialogue.corpus import Corpus
from vrbot.evaluation.measuring import has_action, measure_model
from vrbot.evaluation.scorecard import Options, Resources, measure

Validate = Callable[[torch.nn.Module], Mapping[str, float | None]]

MOST_DIALOGUES = 400
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
    greedy = config.decoding.model_copy(update={"beam": 1})
    chosen = spread_sample(corpus.split(split_name).num_sessions, most_dialogues)

    def validate(model: torch.nn.Module) -> dict[str, float | None]:
        model.eval()
        if has_action(model):
            calibrate(model, corpus.split(split_name), limits_of(config.network))
        measured = measure_model(model, corpus, split_name, config, greedy, chosen)
        scores = measure(measured.turns, Options(), Resources())
        found = {name: scores[name].value for name in WATCHED}
        spans = [turn.prior.keywords for turn in measured.turns if turn.prior.keywords is not None]
        if spans:
            found["keywords_per_turn"] = float(np.mean([len(span) for span in spans]))
            found["none_share"] = 100 * float(np.mean([not span for span in spans]))
        return found

    return validate


def spread_sample(size: int, count: int) -> list[int]:
    """At most `count` of `size` places, evenly spread."""
    return sorted({int(place) for place in np.linspace(0, size - 1, min(size, count)).round()})
