"""The global knowledge graph G^global: a directed labelled multigraph in compressed rows, mapped from disk."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vrbot.errors import IntegrityError
from vrbot.knowledge.triples import Triple, read_triples

__all__ = ["Graph", "Triple", "read_triples"]

FORMAT = 1
_ARRAYS: Mapping[str, type[np.signedinteger[Any]]] = {
    "offsets": np.int64,
    "targets": np.int32,
    "relation_ids": np.int16,
    "relation_counts": np.int64,
}


class Graph:
    """Out-edges of node i are `targets[offsets[i]:offsets[i + 1]]`, sorted by target, then by relation.

    offsets int64 [N + 1], targets int32 [E], relation_ids int16 [E]; parallel relations between two nodes are
    edges of their own. `relation_counts` int64 [R] says how often each relation occurs.
    """

    def __init__(
        self,
        offsets: NDArray[np.int64],
        targets: NDArray[np.int32],
        relation_ids: NDArray[np.int16],
        relations: tuple[str, ...],
        relation_counts: NDArray[np.int64] | None = None,
    ) -> None:
        self.offsets, self.targets, self.relation_ids, self.relations = offsets, targets, relation_ids, relations
        if relation_counts is None:
            relation_counts = np.bincount(relation_ids, minlength=len(relations)).astype(np.int64)
        self.relation_counts = relation_counts

    @property
    def num_nodes(self) -> int:
        return len(self.offsets) - 1

    @property
    def num_edges(self) -> int:
        return len(self.targets)

    @classmethod
    def from_triples(
        cls,
        triples: Iterable[tuple[int, int, int]] | NDArray[np.integer[Any]],
        num_nodes: int,
        relations: Iterable[str],
    ) -> Graph:
        """Build from (head, relation, tail) ids; a repeated triple counts once."""
        names = tuple(relations)
        rows = np.asarray(triples if isinstance(triples, np.ndarray) else list(triples), dtype=np.int64).reshape(-1, 3)
        for column, size, what in ((0, num_nodes, "head"), (1, len(names), "relation"), (2, num_nodes, "tail")):
            outside = (rows[:, column] < 0) | (rows[:, column] >= size)
            if outside.any():
                raise ValueError(f"triple {tuple(rows[outside][0])} has a {what} outside 0..{size - 1}")
        if num_nodes > np.iinfo(np.int32).max or len(names) > np.iinfo(np.int16).max:
            raise ValueError(f"{num_nodes} nodes and {len(names)} relations are more than the arrays can number")
        heads, relation_ids, tails = rows.T
        order = np.lexsort((relation_ids, tails, heads))
        heads, relation_ids, tails = heads[order], relation_ids[order], tails[order]
        new = np.ones(len(rows), dtype=bool)
        new[1:] = (np.diff(heads) != 0) | (np.diff(tails) != 0) | (np.diff(relation_ids) != 0)
        offsets = np.zeros(num_nodes + 1, dtype=np.int64)
        np.cumsum(np.bincount(heads[new], minlength=num_nodes), out=offsets[1:])
        return cls(offsets, tails[new].astype(np.int32), relation_ids[new].astype(np.int16), names)

    def only(self, kept: Sequence[int]) -> Graph:
        """The edges between these nodes, which get their places as numbers; relations stay."""
        place = np.full(self.num_nodes, -1, dtype=np.int64)
        place[list(kept)] = np.arange(len(kept))
        heads = np.repeat(place, np.diff(self.offsets))
        triples = np.stack((heads, self.relation_ids.astype(np.int64), place[self.targets]), axis=1)
        return Graph.from_triples(triples[(triples >= 0).all(axis=1)], len(kept), self.relations)

    def save(self, directory: str | Path) -> None:
        """Write the arrays, then the manifest that vouches for them."""
        folder = Path(directory)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "manifest.json").unlink(missing_ok=True)  # no manifest may vouch for half-written arrays
        files = {}
        for name, dtype in _ARRAYS.items():
            path = folder / f"{name}.npy"
            np.save(path, np.ascontiguousarray(getattr(self, name), dtype=dtype))
            files[path.name] = {"bytes": path.stat().st_size, "sha256": _digest(path)}
        manifest = {
            "format": FORMAT,
            "num_nodes": self.num_nodes,
            "num_edges": self.num_edges,
            "relations": self.relations,
            "files": files,
        }
        text = json.dumps(manifest, ensure_ascii=False, indent=1)
        (folder / "manifest.json").write_text(text, encoding="utf-8")

    @classmethod
    def open(cls, directory: str | Path, verify: bool = False) -> Graph:
        """Map a saved graph into memory; sizes are always checked, every byte and id only with `verify`."""
        folder = Path(directory)
        manifest = _read_manifest(folder)
        try:
            for name, facts in manifest["files"].items():
                _check_file(folder / name, facts, verify)
            arrays = {name: np.asarray(np.load(folder / f"{name}.npy", mmap_mode="r")) for name in _ARRAYS}
            graph = cls(**arrays, relations=tuple(manifest["relations"]))
            sound = all(arrays[name].dtype == dtype and arrays[name].ndim == 1 for name, dtype in _ARRAYS.items())
            sound = sound and graph._has_the_shape(manifest["num_nodes"], manifest["num_edges"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise IntegrityError(f"{folder}: the graph cannot be opened ({error}): prepare the corpus again") from None
        if not sound or (verify and not graph._has_sound_ids()):
            raise IntegrityError(f"{folder}: the graph's arrays do not fit each other: prepare the corpus again")
        return graph

    def _has_the_shape(self, num_nodes: int, num_edges: int) -> bool:
        same_sizes = self.num_nodes == num_nodes and self.num_edges == num_edges == len(self.relation_ids)
        return same_sizes and self.offsets[0] == 0 and self.offsets[-1] == num_edges

    def _has_sound_ids(self) -> bool:
        rising = bool((np.diff(self.offsets) >= 0).all())
        targets_exist = self.num_edges == 0 or (self.targets.min() >= 0 and self.targets.max() < self.num_nodes)
        no_negative = self.num_edges == 0 or self.relation_ids.min() >= 0
        counts = np.bincount(self.relation_ids, minlength=len(self.relations)) if no_negative else np.zeros(0)
        return rising and bool(targets_exist) and np.array_equal(counts, self.relation_counts)


def _read_manifest(folder: Path) -> dict[str, Any]:
    try:
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise IntegrityError(f"{folder}: no readable graph manifest ({error}): prepare the corpus again") from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise IntegrityError(f"{folder}: the graph is not in format {FORMAT}: prepare the corpus again")
    return manifest


def _check_file(path: Path, facts: Mapping[str, Any], verify: bool) -> None:
    if path.stat().st_size != facts["bytes"]:
        raise ValueError(f"{path.name} has {path.stat().st_size} bytes instead of {facts['bytes']}")
    if verify and _digest(path) != facts["sha256"]:
        raise ValueError(f"{path.name} is not the file that was saved")


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
