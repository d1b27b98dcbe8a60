"""How fast a model trains: full steps (forward, backward, clipping, update) on real batches of a corpus."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import nn

from vrbot.baselines.catalogue import build_model
from vrbot.config import Config, recipe
from vrbot.dialogue.batching import SessionBatch, bucketed_batches, collate, limits_of
from vrbot.dialogue.corpus import Corpus
from vrbot.dialogue.supervision import select_labels
from vrbot.errors import UsageError
from vrbot.machine_speed import Stopwatch, gemm_gflops
from vrbot.model.contract import DialogueModel, Moment


def measure_training(corpus: Path, recipe_name: str, model: str, steps: int, threads: int | None) -> dict[str, Any]:
    """GEMM speed, and turns per second in stage 1 and stage 2 without labels."""
    if threads is not None:
        torch.set_num_threads(threads)
    config, data = recipe(recipe_name), Corpus.open(corpus)
    batches = _batches(config, data, steps + 1)
    torch.manual_seed(0)
    network = build_model(model, config, data)
    figures: dict[str, Any] = {
        "gemm_gflops": round(gemm_gflops(), 1),
        "threads": torch.get_num_threads(),
        "words": len(data.vocabulary),
        "entities": len(data.inventory.names),
        "parameters": sum(parameter.numel() for parameter in network.parameters()),
    }
    for stage in (1, 2):
        figures[f"stage{stage}"] = _time_steps(network, config, batches, stage)
    return figures


def _batches(config: Config, corpus: Corpus, count: int) -> list[SessionBatch]:
    split = corpus.split("train")
    masks = select_labels(split.session_ids, 0, state=0.0, action=0.0).masks(split)
    limits = limits_of(config.network)
    chosen = bucketed_batches(split, config.training.batch_size, seed=0, max_rows=config.training.max_rows)
    if len(chosen) < 2:
        raise UsageError(
            f"{corpus.directory} has {split.num_sessions} training dialogues, and a batch to warm up and one to time "
            f"need {config.training.batch_size + 1}: give a larger corpus"
        )
    return [collate(split, sessions, masks, limits) for sessions in chosen[:count]]


def _time_steps(network: nn.Module, config: Config, batches: list[SessionBatch], stage: int) -> dict[str, float]:
    """The rate of all batches but the first."""
    optimiser = torch.optim.AdamW(network.parameters(), lr=config.training.learning_rate, fused=True)
    contract: DialogueModel = network  # type: ignore[assignment]
    turns, watch = 0, Stopwatch()
    for step, batch in enumerate(batches):
        with watch.running(counted=step > 0):
            loss = contract.loss(batch, Moment(step, stage, torch.Generator().manual_seed(step)))
            torch.autograd.backward(loss.total / loss.num_turns)
            nn.utils.clip_grad_norm_(network.parameters(), config.training.gradient_clip)
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)
        turns += loss.num_turns if step else 0
    return watch.rate(turns)
