"""The folder of a run: what it is, its latest full state, its best model. Tensors and JSON only.

config.yaml labels.json run.json manifest.json   what the run is; never changed
state/       model, optimiser, averages, progress: the latest, to resume from
best/        the model that validated best, with its scores
metrics.csv  tensorboard/
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from vrbot.errors import UsageError
from vrbot.model.weights import model_from_bytes, model_to_bytes, tensors_from_bytes, tensors_to_bytes
from vrbot.sealed import is_sealed, read_sealed, recover, write_sealed
from vrbot.training.optimiser import Optimiser, WeightAverage
from vrbot.training.progress import Progress

MODEL, OPTIMISER, AVERAGE = "model.safetensors", "optimiser.safetensors", "average.safetensors"
PROGRESS, SCORES = "progress.json", "scores.json"
CHOICES = "choices"
"""Under this name stands, beside the scores of a best model, what was chosen for it when training was over."""


class RunFolder:
    """One run on disk."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.state, self.best = self.path / "state", self.path / "best"
        self.metrics, self.tensorboard = self.path / "metrics.csv", self.path / "tensorboard"

    @property
    def exists(self) -> bool:
        return is_sealed(self.path)

    def create(self, description: Mapping[str, bytes]) -> None:
        """Makes the folder with the files that say what the run is; all of them, or no folder."""
        if self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir())):
            raise UsageError(f"{self.path} is there and is not a run: give --out a new folder")
        write_sealed(self.path, description)

    def description(self) -> dict[str, bytes]:
        """The files `create` was given."""
        if not self.exists:
            raise UsageError(f"{self.path} is not a run: give the folder `vrbot train --out` wrote")
        return read_sealed(self.path)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keeps a second trainer out, and tidies what a killed one left; a killed process holds no lock."""
        with (self.path / ".lock").open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UsageError(f"{self.path} is being trained by another process: wait for it, or stop it") from None
            recover(self.state)
            recover(self.best)
            for draft in self.path.glob(f".{self.metrics.name}.*.tmp"):
                draft.unlink()
            yield

    def save_state(
        self, model: torch.nn.Module, optimiser: Optimiser, average: WeightAverage, progress: Progress
    ) -> None:
        """The latest full state, in place of the one before."""
        files = {
            MODEL: model_to_bytes(model),
            OPTIMISER: tensors_to_bytes(optimiser.tensors()),
            AVERAGE: tensors_to_bytes(average.averages),
            PROGRESS: _json_bytes(progress.as_dict()),
        }
        write_sealed(self.state, files)

    def load_state(self, model: torch.nn.Module, optimiser: Optimiser, average: WeightAverage) -> Progress:
        """Puts the saved state into model, optimiser and average."""
        files = read_sealed(self.state)
        model_from_bytes(model, files[MODEL])
        optimiser.load(tensors_from_bytes(files[OPTIMISER]))
        average.load(tensors_from_bytes(files[AVERAGE]))
        return Progress.from_dict(json.loads(files[PROGRESS]))

    def progress(self) -> Progress | None:
        """Where the run stands on disk; None before its first checkpoint."""
        if not is_sealed(self.state):
            return None
        return Progress.from_dict(json.loads(read_sealed(self.state)[PROGRESS]))

    def save_best(self, model: torch.nn.Module, averages: Mapping[str, Tensor], scores: Mapping[str, Any]) -> None:
        """The best model so far; averaged weights, where there are any, stand in for its own."""
        write_sealed(self.best, {MODEL: model_to_bytes(model, averages), SCORES: _json_bytes(scores)})

    def add_to_best(self, choices: Mapping[str, Any]) -> None:
        """Writes down, beside the scores of the best model, what was chosen for it."""
        files = read_sealed(self.best)
        write_sealed(self.best, {**files, SCORES: _json_bytes({**json.loads(files[SCORES]), **choices})})

    def load_best(self, model: torch.nn.Module) -> dict[str, Any]:
        """Puts the best weights (and buffers) into a model of the same build; gives the scores they had."""
        if not is_sealed(self.best):
            raise UsageError(f"{self.path} has no best model yet: train until its first validation")
        files = read_sealed(self.best)
        model_from_bytes(model, files[MODEL])
        scores: dict[str, Any] = json.loads(files[SCORES])
        return scores


def _json_bytes(content: Mapping[str, Any]) -> bytes:
    return (json.dumps(content, ensure_ascii=False, indent=1, sort_keys=True) + "\n").encode()
