"""How fast a model replies with a beam of five: many turns together, and one turn alone."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import torch

from vrbot.agent.replies import limits_of, search
from vrbot.baselines.catalogue import build_model
from vrbot.config import DecodingSettings, recipe
from vrbot.dialogue.batching import SessionBatch, collate
from vrbot.dialogue.corpus import Corpus
from vrbot.model.contract import DialogueModel
from vrbot.nets.calibration import gemm_gflops, rate

TURNS_TOGETHER = 32


def measure_decoding(corpus: Path, recipe_name: str, model: str, steps: int, threads: int | None) -> dict[str, Any]:
    """Turns per second for batches of 32 first turns, and seconds for one alone; replies run to the full length.

    Fresh weights end a reply at random; a fixed length of `max_length` words makes the figure comparable.
    """
    if threads is not None:
        torch.set_num_threads(threads)
    config, data = recipe(recipe_name), Corpus.open(corpus)
    gflops = gemm_gflops()
    torch.manual_seed(0)
    network = build_model(model, config, data).eval()
    contract: DialogueModel = network  # type: ignore[assignment]
    split = data.split("train")
    groups = [list(range(i * TURNS_TOGETHER, (i + 1) * TURNS_TOGETHER)) for i in range(steps + 1)]
    batches = [collate(split, group, limits=limits_of(config.network)) for group in groups]
    together = _seconds(contract, batches, TURNS_TOGETHER, config.decoding)
    alone = _seconds(contract, batches, 1, config.decoding)
    return {
        "gemm_gflops": round(gflops, 1),
        "threads": torch.get_num_threads(),
        "beam": config.decoding.beam,
        "reply_words": config.decoding.max_length,
        "batch32": rate(TURNS_TOGETHER * steps, together, gflops),
        "single": {"seconds_per_turn": round(alone / steps, 4)},
    }


def _seconds(model: DialogueModel, batches: list[SessionBatch], rows: int, decoding: DecodingSettings) -> float:
    """Seconds for the first turns of all batches but the first."""
    begun = 0.0
    for i, batch in enumerate(batches):
        if i == 1:
            begun = time.perf_counter()
        inputs, layout = batch.inputs.rows(0, rows), batch.layout.first_turns(rows)
        perception = model.perceive(inputs, layout)
        search(model, perception, torch.arange(rows), decoding)
    return time.perf_counter() - begun
