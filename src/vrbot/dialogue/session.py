"""A medical dialogue session: what patient and physician said, and the labels there are for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

CATEGORIES = ("ask_symptoms", "diagnosis", "prescribe_medicine", "chitchat")
"""The four kinds of physician action of the paper (section 3.4)."""


@dataclass(frozen=True)
class Action:
    """A physician's action A_t; `None` means "not labelled", an empty tuple "labelled: none"."""

    category: str | None
    keywords: tuple[str, ...] | None


@dataclass(frozen=True)
class Turn:
    """What the patient said (U_t), what the physician answered (R_t), and the labels of this turn.

    `state` lists the entities of the patient's state in order of mention; `None` means "not labelled".
    """

    patient: str
    physician: str
    state: tuple[str, ...] | None = None
    action: Action | None = None


@dataclass(frozen=True)
class Session:
    """One consultation; `extra` carries whatever else its source said (diagnosis, department, ...)."""

    id: str
    turns: tuple[Turn, ...]
    extra: Mapping[str, Any] = field(default_factory=dict)
