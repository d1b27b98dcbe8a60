"""Which turns keep which labels: the semi-supervised settings of the paper (S-Sup and A-Sup), by dialogue."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vrbot.dialogue.splits import Split
from vrbot.errors import ConfigError, DataError


@dataclass(frozen=True)
class LabelMasks:
    """Per turn and kind, whether a label that exists may be used; bool [turns of the split]."""

    state: NDArray[np.bool_]
    category: NDArray[np.bool_]
    keywords: NDArray[np.bool_]


@dataclass(frozen=True)
class LabelSelection:
    """The sessions whose labels are kept, per kind, in ranked order, and the seed and fractions that chose them."""

    seed: int
    fractions: dict[str, float]
    state: tuple[str, ...]
    category: tuple[str, ...]
    keywords: tuple[str, ...]

    def masks(self, split: Split) -> LabelMasks:
        """The selection for the turns of a split."""
        return LabelMasks(
            state=_turns_of(split, self.state),
            category=_turns_of(split, self.category),
            keywords=_turns_of(split, self.keywords),
        )


def select_labels(
    session_ids: Sequence[str], seed: int, *, state: float = 1.0, action: float = 1.0, category: float | None = None
) -> LabelSelection:
    """Keeps the labels of the given fractions of the sessions; `category` follows `action` unless given.

    One ranking serves every kind and fraction, so a smaller selection lies inside a larger one, and equal
    fractions of state and action labels are the same dialogues.
    """
    category = action if category is None else category
    ranked = sorted(dict.fromkeys(session_ids), key=lambda session: _rank(seed, session))
    return LabelSelection(
        seed=seed,
        fractions={"state": state, "category": category, "keywords": action},
        state=_first(ranked, state, "state"),
        category=_first(ranked, category, "category"),
        keywords=_first(ranked, action, "action"),
    )


def every_label(split: Split) -> LabelMasks:
    """Masks that keep every label there is."""
    kept = np.ones(split.num_turns, dtype=np.bool_)
    return LabelMasks(kept, kept, kept)


def read_selection(path: Path) -> LabelSelection:
    """Reads the selection of labels that a run keeps."""
    fix = "give the labels.json of a run"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(path, None, "file", error.strerror or str(error), "give a file that can be read") from error
    except ValueError as error:
        raise DataError(path, None, "file", f"not JSON: {error}", fix) from error
    if not isinstance(content, dict):
        raise DataError(path, None, "file", "not a JSON object", fix)
    for kind in ("state", "category", "keywords"):
        names = content.get(kind)
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise DataError(path, None, kind, "not a list of session ids", fix)
    seed, fractions = content.get("seed"), content.get("fractions")
    if not isinstance(seed, int) or not isinstance(fractions, dict):
        raise DataError(path, None, "seed, fractions", "missing", fix)
    kept = {kind: tuple(content[kind]) for kind in ("state", "category", "keywords")}
    return LabelSelection(seed=seed, fractions={str(k): float(v) for k, v in fractions.items()}, **kept)


def _rank(seed: int, session: str) -> bytes:
    return hashlib.sha256(f"{seed}\n{session}".encode("utf-8", "surrogatepass")).digest()


def _first(ranked: Sequence[str], fraction: float, kind: str) -> tuple[str, ...]:
    if not 0.0 <= fraction <= 1.0:
        raise ConfigError(f"the fraction of {kind} labels must lie between 0 and 1, got {fraction}")
    count = math.ceil(round(fraction * len(ranked), 9))  # 0.07 * 100 is a little more than 7 in floats
    return tuple(ranked[:count])


def _turns_of(split: Split, sessions: Sequence[str]) -> NDArray[np.bool_]:
    chosen = set(sessions)
    kept = np.array([session in chosen for session in split.session_ids], dtype=np.bool_)
    return np.repeat(kept, split.turns_per_session)
