"""What an agent answers: the words, and the patient's state and the physician's action behind them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, Protocol


@dataclass(frozen=True)
class StateEntity:
    """An entity of the patient's state; new if the turn before did not have it."""

    name: str
    type: str
    status: Literal["new", "kept"]


@dataclass(frozen=True)
class Keyword:
    """A keyword of the action, how probable the policy held it, and how much each detector spoke for it.

    The shares add up to 1; they are None where a model does not tell its detectors apart.
    """

    name: str
    type: str
    probability: float | None = None
    from_conversation: float | None = None
    from_graph: float | None = None

    @property
    def source(self) -> Literal["conversation", "graph"] | None:
        """The detector with the larger share."""
        if self.from_conversation is None or self.from_graph is None:
            return None
        return "graph" if self.from_graph > self.from_conversation else "conversation"


class ReplyEvidence(Protocol):
    """Where the words and the latents of a reply came from (`explain.evidence.Evidence`)."""

    def to_dict(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class Reply:
    """A reply and what it was written from; a part the model does not have is None.

    `dropped` names what the state of the turn before had and this one has not; `categories` are probabilities.
    `evidence` is there where it was asked for.
    """

    text: str
    state: tuple[StateEntity, ...] | None
    dropped: tuple[str, ...] | None
    categories: Mapping[str, float] | None
    keywords: tuple[Keyword, ...] | None
    evidence: ReplyEvidence | None = None

    @property
    def category(self) -> str | None:
        """The most probable category."""
        return None if self.categories is None else max(self.categories, key=self.categories.__getitem__)

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        content: dict[str, Any] = {
            "text": self.text,
            "state": None if self.state is None else [asdict(entity) for entity in self.state],
            "dropped": None if self.dropped is None else list(self.dropped),
            "category": self.category,
            "categories": None if self.categories is None else dict(self.categories),
            "keywords": None
            if self.keywords is None
            else [{**asdict(keyword), "source": keyword.source} for keyword in self.keywords],
        }
        return content if self.evidence is None else {**content, "evidence": self.evidence.to_dict()}
