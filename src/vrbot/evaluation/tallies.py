"""What a system did in each dialogue, as sums: all that tests of significance need, and no word of anybody's.

Replies to other people's dialogues are not ours to publish; tallies are, so that a test can be repeated without them.
Letters: D dialogues, K columns of a score's rows, S runs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from scipy import sparse

from vrbot.errors import IntegrityError, UsageError
from vrbot.evaluation.pooling import PooledScore
from vrbot.evaluation.scorecard import Options, Resources, measure
from vrbot.evaluation.significance import cluster_sums
from vrbot.evaluation.turns import ScoredTurn, dialogue_numbers
from vrbot.files import atomic_write_bytes

SUFFIX = ".tallies.npz"
"""In place of `.jsonl` of the replies."""


@dataclass(frozen=True, eq=False)
class Tallies:
    """Scores whose rows [D, K] are sums over the turns of a dialogue; `turns_sha256` tells turns and references."""

    turns_sha256: str
    num_dialogues: int
    scores: Mapping[str, PooledScore]


def tallies_of(turns: Sequence[ScoredTurn], resources: Resources) -> Tallies:
    """Every pooled score of protocol `vrbot`, dialogue by dialogue."""
    numbers = dialogue_numbers(turns)
    num_dialogues = int(numbers.max(initial=-1)) + 1
    summed: dict[int, sparse.csr_array[Any]] = {}
    scores = {}
    for name, score in measure(turns, Options(), resources).items():
        if id(score.rows) not in summed:  # precision, recall and F1 share theirs
            summed[id(score.rows)] = cluster_sums(score.rows, numbers, num_dialogues)
        scores[name] = PooledScore(summed[id(score.rows)], score.score_of, score.higher_is_better)
    places = json.dumps([[turn.session_id, turn.turn, turn.reference] for turn in turns])
    return Tallies(hashlib.sha256(places.encode()).hexdigest(), num_dialogues, scores)


def stacked(runs: Sequence[Tallies]) -> dict[str, PooledScore]:
    """The scores all runs have, rows [S * D, K], run after run."""
    shared = [name for name in runs[0].scores if all(name in run.scores for run in runs)]
    return {
        name: PooledScore(
            sparse.csr_array(sparse.vstack([run.scores[name].rows for run in runs])), runs[0].scores[name].score_of
        )
        for name in shared
    }


def check_same_tallied(first: Tallies, second: Tallies) -> None:
    """UsageError unless both systems answered the same turns with the same references, in the same order."""
    if first.turns_sha256 != second.turns_sha256:
        raise UsageError("the systems answered other turns, or their references differ: evaluate both on one split")


def write_tallies(path: Path, tallies: Tallies, metrics: Iterable[str]) -> None:
    """Keeps the sums of these metrics, whole numbers as such and others to seven digits."""
    kept = {name: tallies.scores[name].rows for name in metrics if name in tallies.scores}
    places = {key: place for place, key in enumerate(dict.fromkeys(id(rows) for rows in kept.values()))}
    facts = {
        "turns_sha256": tallies.turns_sha256,
        "num_dialogues": tallies.num_dialogues,
        "rows": {name: places[id(rows)] for name, rows in kept.items()},
    }
    arrays: dict[str, Any] = {"facts": np.array(json.dumps(facts))}
    for rows in kept.values():
        place = places[id(rows)]
        arrays |= {f"values_{place}": _small(rows.data), f"columns_{place}": _small(rows.indices)}
        arrays |= {f"starts_{place}": _small(rows.indptr), f"width_{place}": np.array(rows.shape[1])}
    with atomic_write_bytes(path) as file:
        np.savez_compressed(file, **arrays)


def read_tallies(path: Path, resources: Resources) -> Tallies:
    """What `write_tallies` kept; the scores of the sums are computed as today."""
    computed = measure((), Options(), resources)
    try:
        with np.load(path, allow_pickle=False) as stored:
            facts = json.loads(str(stored["facts"]))
            num_dialogues = int(facts["num_dialogues"])
            rows = {place: _rows(stored, place, num_dialogues) for place in set(facts["rows"].values())}
            scores = {
                name: PooledScore(rows[place], computed[name].score_of, computed[name].higher_is_better)
                for name, place in facts["rows"].items()
                if name in computed
            }
            return Tallies(str(facts["turns_sha256"]), num_dialogues, scores)
    except (OSError, ValueError, KeyError, TypeError, BadZipFile) as error:
        raise IntegrityError(f"{path}: cannot be read ({error!r}): remove its folder, and do the run again") from error


def _rows(stored: Mapping[str, Any], place: int, num_dialogues: int) -> sparse.csr_array[Any]:
    parts = (
        np.asarray(stored[f"values_{place}"], dtype=np.float64),
        np.asarray(stored[f"columns_{place}"], dtype=np.int64),
        np.asarray(stored[f"starts_{place}"], dtype=np.int64),
    )
    return sparse.csr_array(parts, shape=(num_dialogues, int(stored[f"width_{place}"])))


def _small(values: Any) -> Any:
    """Whole numbers in as few bytes as hold them all, others in four."""
    found = np.asarray(values)
    if not np.array_equal(found, np.rint(found)):
        return found.astype(np.float32)
    return found.astype(
        np.result_type(*(np.min_scalar_type(int(end)) for end in (found.min(initial=0), found.max(initial=0))))
    )
