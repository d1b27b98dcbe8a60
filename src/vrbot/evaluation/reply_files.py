"""Every turn's reply, state, action and scores as JSON lines: what `--replies` writes and `compare` reads.

Entities stand by name, so that a person can read the file and no corpus is needed to read it back.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vrbot.dialogue.session import CATEGORIES
from vrbot.errors import DataError
from vrbot.evaluation.pooling import PooledScore
from vrbot.evaluation.scorecard import Options, Resources, measure
from vrbot.evaluation.significance import unit_values
from vrbot.evaluation.turns import Evidence, Latents, ScoredTurn
from vrbot.files import atomic_write

TURN_SCORES = (
    "bleu_2",
    "rouge_2",
    "micro_precision",
    "micro_recall",
    "micro_f1",
    "state_f1",
    "action_f1",
    "perplexity",
)
_FIX = "give a file that `vrbot evaluate --replies` wrote"


def write_replies(path: Path | str, turns: Sequence[ScoredTurn], names: Sequence[str]) -> None:
    """One line for each turn, whole or not at all."""
    found = measure(turns, Options(), Resources())
    scores = {name: turn_values(found[name], len(turns)) for name in TURN_SCORES}
    with atomic_write(path) as file:
        for number, turn in enumerate(turns):
            line = turn_to_dict(turn, names)
            line["scores"] = {name: values[number] for name, values in scores.items()}
            file.write(json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n")


def turn_values(score: PooledScore, num_turns: int) -> list[float | None]:
    """The score of each turn by itself; None where it does not apply."""
    values = unit_values(score, np.arange(num_turns)).tolist() if num_turns else []
    return [round(value, 6) if math.isfinite(value) else None for value in values]


def turn_to_dict(turn: ScoredTurn, names: Sequence[str]) -> dict[str, Any]:
    """Plain data, entities by name; `state`, `category` and `keywords` are the prior networks'."""

    def named(entities: Iterable[int] | None) -> list[str] | None:
        return None if entities is None else [names[entity] for entity in entities]

    def latents(found: Latents) -> dict[str, Any]:
        category = None if found.category is None else CATEGORIES[found.category]
        return {"state": named(found.state), "category": category, "keywords": named(found.keywords)}

    evidence = turn.evidence
    return {
        "session": turn.session_id,
        "turn": turn.turn,
        "reply": turn.reply,
        "reference": turn.reference,
        **latents(turn.prior),
        "inference": latents(turn.inference),
        "gold": latents(turn.gold),
        "previous_gold_state": named(turn.previous_gold_state),
        "reply_words": list(turn.reply_words),
        "reference_words": list(turn.reference_words),
        "reply_entities": named(sorted(turn.reply_entities)),
        "reference_entities": named(sorted(turn.reference_entities)),
        "context": None if evidence is None else named(sorted(evidence.context)),
        "reached": None if evidence is None else named(sorted(evidence.reached)),
        "log_prob": _finite(turn.log_prob),
        "num_log_prob_tokens": turn.num_log_prob_tokens,
        "action_log_prob": _finite(turn.action_log_prob),
    }


def _finite(log_prob: float | None) -> float | None:
    return log_prob if log_prob is None or math.isfinite(log_prob) else None


def read_replies(path: Path | str, numbers: dict[str, int]) -> list[ScoredTurn]:
    """The turns of a file; `numbers` gives entities their ids, and new names are added to it."""
    path = Path(path)
    turns = []
    try:
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                turns.append(_turn_of_line(line, numbers, path, number))
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(path, None, "file", f"cannot be read ({error})", _FIX) from error
    return turns


def _turn_of_line(line: str, numbers: dict[str, int], path: Path, number: int) -> ScoredTurn:
    try:
        return turn_from_dict(json.loads(line), numbers)
    except KeyError as error:
        raise DataError(path, number, str(error.args[0]), "is missing", _FIX) from error
    except (TypeError, ValueError, AttributeError) as error:
        raise DataError(path, number, "turn", f"is not a turn with a reply ({error})", _FIX) from error


def turn_from_dict(content: Mapping[str, Any], numbers: dict[str, int]) -> ScoredTurn:
    """The reverse of `turn_to_dict`."""

    def ids(names: list[str] | None) -> tuple[int, ...] | None:
        return None if names is None else tuple(numbers.setdefault(name, len(numbers)) for name in names)

    def id_set(names: list[str] | None) -> frozenset[int]:
        return frozenset(ids(names) or ())

    def latents(found: Mapping[str, Any]) -> Latents:
        category = None if found["category"] is None else CATEGORIES.index(found["category"])
        return Latents(ids(found["state"]), category, ids(found["keywords"]))

    explained = content["context"] is not None and content["reached"] is not None
    return ScoredTurn(
        session_id=content["session"],
        turn=content["turn"],
        reply=content["reply"],
        reference=content["reference"],
        reply_words=tuple(content["reply_words"]),
        reference_words=tuple(content["reference_words"]),
        reply_entities=id_set(content["reply_entities"]),
        reference_entities=id_set(content["reference_entities"]),
        gold=latents(content["gold"]),
        previous_gold_state=ids(content["previous_gold_state"]),
        prior=latents(content),
        inference=latents(content["inference"]),
        evidence=Evidence(id_set(content["context"]), id_set(content["reached"])) if explained else None,
        log_prob=content["log_prob"],
        num_log_prob_tokens=content["num_log_prob_tokens"],
        action_log_prob=content.get("action_log_prob"),  # files of before it was measured have none
    )
