"""What is shown beside a reply: where its words, its keywords and the entities of the state came from.

All shares of one thing add up to 1. Everything is plain data; `to_dict` gives it for JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Literal

Speaker = Literal["patient", "physician"]
Slot = Literal["context", "state", "action"]
Reason = Literal["state", "context", "path"]


@dataclass(frozen=True)
class Place:
    """A word of the conversation: `text[start:end]` of what the speaker said in a turn (turns count from 0)."""

    speaker: Speaker
    turn: int
    word: int
    start: int
    end: int


@dataclass(frozen=True)
class Copy:
    """The share of a word's probability that one slot gave: a word of the context, or an entity of state or action."""

    source: Slot
    text: str
    share: float
    place: Place | None = None  # of a context word


@dataclass(frozen=True)
class WordEvidence:
    """A word of the reply, how probable it was, and the shares of that: generated, or copied from a slot."""

    text: str
    probability: float
    generated: float
    copies: tuple[Copy, ...]  # largest first

    @property
    def source(self) -> Slot | Literal["generated"]:
        """Where most of the probability came from."""
        totals: dict[Slot | Literal["generated"], float] = {"generated": self.generated}
        for copy in self.copies:
            totals[copy.source] = totals.get(copy.source, 0.0) + copy.share
        return max(totals, key=totals.__getitem__)


@dataclass(frozen=True)
class Path:
    """A path in the subgraph the model saw, from an entity of the state to a keyword.

    `attention` holds for each edge how much it counted at its end in each layer of the graph encoder. `weight` is the
    share of the keyword's vector that came along this path: the attention multiplied along it, summed over the layers
    in which its edges can be walked; all walks to the keyword together have 1. `effect` is how much the keyword's
    probability falls when the path's edges are taken away.
    """

    entities: tuple[str, ...]
    relations: tuple[str, ...]
    attention: tuple[tuple[float, ...], ...]
    weight: float
    effect: float


@dataclass(frozen=True)
class HabitWord:
    """A few characters that were said, and what they add to the logit of a keyword that is usually named after them."""

    text: str
    score: float


@dataclass(frozen=True)
class KeywordEvidence:
    """A keyword of the action and who spoke for it.

    The detectors' scores stand as they are (None: not reached); `base` is the keyword's own log odds where keywords
    are a set, so that base and scores add up to the logit of its probability under the likeliest category. Of what the
    conversation says, `habit_score` is what is usually named after such words (None: the model has no habits), and
    `habit_words` are those it comes from. `probability` counts every category as likely as it was held. `copy_weight`
    is the part of the probability that the graph detector gave, the number in the paper's case study. `explained_by`
    follows the rule of MEP: in the state, said before, or reached by a path. `paths` are those that carry the keyword,
    best first; it has `num_paths` in all. `confidence` is there where an explainer was calibrated: how often a keyword
    of this probability is right.
    """

    name: str
    type: str
    probability: float
    from_conversation: float
    from_graph: float
    base: float | None
    conversation_score: float | None
    graph_score: float | None
    copy_weight: float
    explained_by: tuple[Reason, ...]
    num_paths: int
    paths: tuple[Path, ...]
    confidence: float | None = None
    habit_score: float | None = None
    habit_words: tuple[HabitWord, ...] = ()


@dataclass(frozen=True)
class Mention:
    """A mention of an entity in the context, and its share in the entity's being written into the state."""

    text: str
    share: float
    place: Place


@dataclass(frozen=True)
class StateEvidence:
    """An entity of the state, or one that was dropped from it, and what it was written from.

    `generated` and `remembered` (copied from the state before) and the mentions' shares add up to 1; a dropped entity
    has none of them.
    """

    name: str
    type: str
    status: Literal["new", "kept", "dropped"]
    probability: float | None = None
    generated: float = 0.0
    remembered: float = 0.0
    mentions: tuple[Mention, ...] = ()


@dataclass(frozen=True)
class Evidence:
    """All evidence for one reply; a part the model does not have is None.

    `changed` names what was not inferred but given. `confidence` and `abstain` are there where an explainer was
    calibrated: the calibrated probability that the category is right, and the reasons not to rely on the reply.
    """

    words: tuple[WordEvidence, ...]
    state: tuple[StateEvidence, ...] | None
    keywords: tuple[KeywordEvidence, ...] | None
    changed: tuple[str, ...] = ()
    confidence: float | None = None
    abstain: tuple[str, ...] | None = None

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        content: dict[str, Any] = plain(self)
        for word, evidence in zip(content["words"], self.words, strict=True):
            word["source"] = evidence.source
        return content


def plain(value: Any) -> Any:
    """Dataclasses as dicts and tuples as lists, all the way down."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value
