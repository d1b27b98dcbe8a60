"""The entity vectors of EA and EG, trained once for all jobs of an experiment on a corpus."""

from __future__ import annotations

import fcntl
from pathlib import Path
from typing import Any, cast

import numpy as np

from vrbot.dialogue.corpus import Corpus
from vrbot.evaluation.embeddings import EntityVectors, Origin
from vrbot.evaluation.recorded import corpus_vectors
from vrbot.files import atomic_write_bytes

FILE = "vectors.npz"


def stored_vectors(corpus: Corpus, folder: Path) -> EntityVectors:
    """The vectors kept in the folder; the first to ask trains them, and the others wait."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / FILE
    with (folder / f".{FILE}.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.is_file():
            _write(path, corpus_vectors(corpus))
    with np.load(path, allow_pickle=False) as stored:
        origins = tuple(cast(Origin, str(origin)) for origin in stored["origins"])
        return EntityVectors(np.asarray(stored["matrix"], dtype=np.float64), origins, str(stored["source"]))


def _write(path: Path, vectors: EntityVectors) -> None:
    arrays: dict[str, Any] = {
        "matrix": vectors.matrix,
        "origins": np.array(vectors.origins, dtype=np.str_),
        "source": np.array(vectors.source),
    }
    with atomic_write_bytes(path) as file:
        np.savez(file, **arrays)
