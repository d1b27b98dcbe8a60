"""The plan of the authors' leak: the same models, honest and told the category of the reply they are to give."""

from __future__ import annotations

from vrbot.experiments.design import Plan, Row
from vrbot.experiments.selections import ToldCategory

TOLD = ToldCategory()


def category_leak_plan() -> Plan:
    """Each model without and with the leak, and no labels otherwise; told rows are never tested, nor tested against."""
    honest = (Row("seq2seq", "seq2seq"), Row("vrbot", "vrbot", role="ours"))
    told = tuple(Row(f"{row.name}-{TOLD.key}", row.model, group=TOLD.key, part=TOLD) for row in honest)
    return Plan(
        "category-leak",
        "What the authors' test-time category leak is worth (rows told-category have it: they are not comparable to "
        "honest ones and no result of ours)",
        "beyond the paper",
        (*honest, *told),
        "a prepared corpus with category labels in all splits",
        needs_labels=("category",),
    )
