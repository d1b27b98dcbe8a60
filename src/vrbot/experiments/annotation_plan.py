"""The plan of the simulated annotator: what an active order of dialogues saves, at sizes for one core."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from vrbot.experiments.asking import Asking
from vrbot.experiments.design import Plan, Row

ORDERS: tuple[Literal["active", "random"], ...] = ("active", "random")
ANNOTATION_SETTINGS: Mapping[str, Any] = {
    "network.embedding_size": 64,
    "network.hidden_size": 64,
    "network.max_context": 60,
    "network.max_characters": 128,
    "network.max_response": 40,
    "training.batch_size": 12,
    "training.learning_rate": 4e-3,
    "training.final_learning_rate": 4e-4,
    "policy.learning_rate_factor": 1.0,
}


def annotation_plan() -> Plan:
    """The same networks, asked labels for in two orders."""
    rows = [Row(order, "vrbot", role="ours", curve=f"{order} order", asking=Asking(order)) for order in ORDERS]
    return Plan(
        "annotation",
        "How many labels an active order of dialogues saves the annotator",
        "beyond the paper",
        tuple(rows),
        "a prepared corpus with 160 training dialogues whose labels people made, or the clinic",
        settings=ANNOTATION_SETTINGS,
        references=False,
        axis="dialogues with labels",
        drawn=("inference_state_f1", "inference_action_f1", "inference_category_accuracy"),
        study="annotation",
        needs_labels=("state", "keywords", "category"),
    )
