"""Scorecards side by side: one protocol and one set of conventions to a table, never two."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from vrbot.errors import UsageError
from vrbot.evaluation.meddg import MedDGScorecard
from vrbot.evaluation.scorecard import Scorecard
from vrbot.evaluation.tables import Cell, Table

Card = TypeVar("Card", Scorecard, MedDGScorecard)
"""One type of scorecard or the other: a table of both does not type-check."""

VRBOT_COLUMNS: Mapping[str, str] = {
    "bleu_2": "B@2",
    "rouge_2": "R@2",
    "distinct_1": "D@1",
    "distinct_2": "D@2",
    "macro_precision": "ma-P",
    "macro_recall": "ma-R",
    "macro_f1": "ma-F1",
    "micro_precision": "mi-P",
    "micro_recall": "mi-R",
    "micro_f1": "mi-F1",
    "embedding_average": "EA",
    "embedding_greedy": "EG",
}
"""The paper's columns; other keys of a scorecard stand under their own name."""

MEDDG_COLUMNS: Mapping[str, str] = {
    "character_bleu_1": "B-1",
    "character_bleu_2": "B-2",
    "character_bleu_4": "B-4",
    "character_rouge_1": "R-1",
    "character_rouge_2": "R-2",
    "substring_entity_f1": "E-F1",
}

LOWER_IS_BETTER = frozenset({"perplexity"})


def scorecard_table(title: str, cards: Mapping[str, Card], keys: Sequence[str]) -> Table:
    """A row for each system, the best value of each column in bold, the conventions in the notes."""
    if not cards:
        raise UsageError(f"table {title!r} has no scorecards: give at least one")
    protocols = {card.protocol for card in cards.values()}
    if len(protocols) > 1:
        raise UsageError(f"table {title!r} mixes protocols {', '.join(sorted(protocols))}: make one table for each")
    first = next(iter(cards.values()))
    different = [name for name, card in cards.items() if card.options != first.options]
    if different:
        raise UsageError(f"table {title!r} has other options for {', '.join(different)}: evaluate all with the same")
    headings: dict[str, str] = {**VRBOT_COLUMNS, **MEDDG_COLUMNS}
    rows = _rows({name: card.as_dict() for name, card in cards.items()}, keys)
    notes = (f"Protocol {first.protocol}: {first.options.stated()}",)
    return Table(title, ("system", *(headings.get(key, key) for key in keys)), rows, notes)


def _rows(systems: Mapping[str, Mapping[str, Any]], keys: Sequence[str]) -> tuple[tuple[Cell, ...], ...]:
    best = {key: _best(key, [values[key] for values in systems.values()]) for key in keys}
    return tuple(
        (Cell(name), *(Cell(values[key], best=values[key] is not None and values[key] == best[key]) for key in keys))
        for name, values in systems.items()
    )


def _best(key: str, values: Sequence[object]) -> float | None:
    """The best of at least two numbers; a system alone is not the best of anything."""
    numbers = [float(value) for value in values if isinstance(value, float | int)]
    if len(numbers) < 2:
        return None
    return min(numbers) if key in LOWER_IS_BETTER else max(numbers)
