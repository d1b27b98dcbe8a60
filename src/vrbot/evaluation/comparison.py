"""Columns of tables that set systems side by side: those of one protocol or of the other, never of both."""

from __future__ import annotations

from collections.abc import Mapping

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

LOWER_IS_BETTER = frozenset({"action_nats", "perplexity"})
