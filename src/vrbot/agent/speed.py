"""How fast a model replies with a beam of five: many turns together, and one turn alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from vrbot.agent.replies import search
from vrbot.baselines.catalogue import build_model
from vrbot.config import DecodingSettings, recipe
from vrbot.dialogue.batching import SessionBatch, collate, limits_of
from vrbot.dialogue.corpus import Corpus
from vrbot.errors import ConfigError, UsageError
from vrbot.machine_speed import Stopwatch, gemm_gflops
from vrbot.model.contract import DialogueModel
from vrbot.model.response_generator import ResponseGenerator
from vrbot.nets.prepared import Precision

TURNS_TOGETHER = 32


def measure_decoding(
    corpus: Path, recipe_name: str, model: str, steps: int, threads: int | None, precision: Precision = "float32"
) -> dict[str, Any]:
    """Turns per second for batches of 32 first turns, and seconds for one alone; replies run to the full length.

    Fresh weights end a reply at random; a fixed length of `max_length` words makes the figure comparable.
    """
    if threads is not None:
        torch.set_num_threads(threads)
    config, data = recipe(recipe_name).with_settings({"decoding.precision": precision}), Corpus.open(corpus)
    split, needed = data.split("train"), TURNS_TOGETHER * (steps + 1)
    if split.num_sessions < needed:
        raise UsageError(
            f"{corpus} has {split.num_sessions} training dialogues, and --steps {steps} needs {needed} "
            f"({TURNS_TOGETHER} a step, and as many to warm up): give a larger corpus, or fewer steps"
        )
    torch.manual_seed(0)
    network = build_model(model, config, data).eval()
    if precision != "float32" and not isinstance(getattr(network, "generator", None), ResponseGenerator):
        raise ConfigError(f"{model} replies in float32 only, not in {precision}: leave it out")
    contract: DialogueModel = network  # type: ignore[assignment]
    groups = [list(range(i * TURNS_TOGETHER, (i + 1) * TURNS_TOGETHER)) for i in range(steps + 1)]
    batches = [collate(split, group, limits=limits_of(config.network)) for group in groups]
    together = _time_replies(contract, batches, TURNS_TOGETHER, config.decoding)
    alone = _time_replies(contract, batches, 1, config.decoding)
    return {
        "gemm_gflops": round(gemm_gflops(), 1),
        "threads": torch.get_num_threads(),
        "precision": precision,
        "beam": config.decoding.beam,
        "reply_words": config.decoding.max_length,
        "batch32": together.rate(TURNS_TOGETHER * steps),
        "single": {
            "seconds_per_turn": round(alone.seconds / steps, 4),
            "cpu_seconds_per_turn": round(alone.cpu_seconds / steps, 4),
            "gflops": round(alone.gflops, 1),
        },
    }


def _time_replies(
    model: DialogueModel, batches: list[SessionBatch], rows: int, decoding: DecodingSettings
) -> Stopwatch:
    """Times the first turns of all batches but the first."""
    watch = Stopwatch()
    for i, batch in enumerate(batches):
        inputs, layout = batch.inputs.rows(0, rows), batch.layout.first_turns(rows)
        with watch.running(counted=i > 0):
            perception = model.perceive(inputs, layout)
            search(model, perception, torch.arange(rows), decoding)
    return watch
