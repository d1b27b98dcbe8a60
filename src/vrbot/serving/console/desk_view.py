"""What the desk shows of a consultation, worked out from the stored case alone: a reload comes to the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from vrbot.serving.records import Case, Decision, Draft, Message, Turn

SHARE_THAT_COUNTS = 0.05
"""A copied share below this is not shown as a source."""

Spot = tuple[str, int, int, int]
"""Speaker, turn (from 0), start and end of a word of the conversation."""


@dataclass(frozen=True)
class Trail:
    """The drafts of one turn a physician has gone through in what-if, by version; it stands in the page's address."""

    seq: int = 0
    versions: tuple[int, ...] = ()

    @classmethod
    def parse(cls, written: str | None) -> Trail:
        """From `3.1.4` (turn 3, then versions); anything else is no trail."""
        parts = (written or "").split(".")
        if not all(part.isascii() and part.isdigit() and len(part) < 6 for part in parts):
            return cls()
        numbers = [int(part) for part in parts]
        return cls(numbers[0], tuple(numbers[1:]))

    def __str__(self) -> str:
        return ".".join(map(str, (self.seq, *self.versions)))


@dataclass(frozen=True)
class DeskView:
    """One moment of the desk. `turn` is the newest; `current` the draft to decide on; `before` the one beside it."""

    case: Case
    turn: Turn | None
    answer: Message | None
    current: Draft | None
    before: Draft | None
    trail: Trail
    decisions: Mapping[str, Decision] = field(default_factory=dict)

    @property
    def closed(self) -> bool:
        return self.case.consultation.closed_at is not None

    @property
    def needs_draft(self) -> bool:
        """Whether nobody has tried to draft an answer to the newest turn."""
        if self.turn is None or self.answer is not None or self.closed:
            return False
        return not any(draft.turn == self.turn.id for draft in self.case.drafts)

    @property
    def reply(self) -> Mapping[str, Any]:
        """What the model said about the draft shown, or about the one it was made from; empty if it said nothing."""
        drafts = {draft.id: draft for draft in self.case.drafts}
        draft = self.current if self.answer is None else drafts.get(self.answer.draft)
        while draft is not None and draft.reply is None and draft.parent is not None:
            draft = drafts.get(draft.parent)
        if draft is None or draft.reply is None:
            own = [each for each in drafts.values() if self.turn is not None and each.turn == self.turn.id]
            return next((each.reply for each in reversed(own) if each.reply is not None), {})
        return draft.reply


def view_of(case: Case, trail: Trail) -> DeskView:
    """The desk for a case and the trail in the page's address, as far as it still holds."""
    turn = case.turns[-1] if case.turns else None
    decisions = {decision.draft: decision for decision in case.decisions}
    if turn is None:
        return DeskView(case, None, None, None, None, Trail(), decisions)
    answer = next((message for message in case.messages if message.turn == turn.id), None)
    undecided = [draft for draft in case.drafts if draft.turn == turn.id and draft.id not in decisions]
    by_version = {draft.version: draft for draft in undecided}
    kept = trail.versions if trail.seq == turn.seq and all(each in by_version for each in trail.versions) else ()
    if answer is not None:
        return DeskView(case, turn, answer, None, None, Trail(turn.seq), decisions)
    if len(kept) > 1:
        return DeskView(case, turn, None, by_version[kept[-1]], by_version[kept[-2]], Trail(turn.seq, kept), decisions)
    current = _first_choice(undecided)
    versions = () if current is None else (current.version,)
    return DeskView(case, turn, None, current, None, Trail(turn.seq, versions), decisions)


def _first_choice(undecided: Sequence[Draft]) -> Draft | None:
    """The physician's own newest words, else the model's newest draft, else the newest failure."""
    ways = (
        [draft for draft in undecided if draft.origin == "physician"],
        [draft for draft in undecided if draft.origin == "model" and draft.text is not None],
        [draft for draft in undecided if draft.origin == "model"],
    )
    return next((way[-1] for way in ways if way), None)


@dataclass(frozen=True)
class Piece:
    """A stretch of a text, the marks on it, and the words of the conversation that belong to it."""

    text: str
    marks: tuple[str, ...] = ()
    spots: tuple[Spot, ...] = ()
    start: int = 0
    end: int = 0


@dataclass(frozen=True)
class Mark:
    """`text[start:end]` is of a kind; `spot` is the word of the conversation it belongs to or came from, if any."""

    start: int
    end: int
    kind: str
    spot: Spot | None = None


def pieces(text: str, marks: Sequence[Mark]) -> list[Piece]:
    """The text cut where marks begin and end; put together again, the pieces are the text."""
    good = [mark for mark in marks if 0 <= mark.start < mark.end <= len(text)]
    cuts = sorted({0, len(text), *(place for mark in good for place in (mark.start, mark.end))})
    found = []
    for start, end in pairwise(cuts):
        here = [mark for mark in good if mark.start <= start and end <= mark.end]
        kinds = tuple(dict.fromkeys(mark.kind for mark in here))
        spots = tuple(dict.fromkeys(mark.spot for mark in here if mark.spot is not None))
        found.append(Piece(text[start:end], kinds, spots, start, end))
    return found


def source_marks(text: str, words: Sequence[Mapping[str, Any]]) -> list[Mark]:
    """Where the words of a draft stand in its text, each marked by where most of it came from."""
    found, cursor = [], 0
    lowered = text.lower()
    for word in words:
        spoken = str(word.get("text") or "").strip().lower()
        at = lowered.find(spoken, cursor) if spoken and len(lowered) == len(text) else -1
        if at < 0:
            continue
        cursor = at + len(spoken)
        source = word.get("source")
        if source in ("context", "state", "action"):
            places = [copy.get("place") for copy in word.get("copies") or () if copy.get("source") == "context"]
            place = places[0] if places and source == "context" else None
            found.append(Mark(at, cursor, f"from-{source}", None if place is None else spot_of(place)))
    return found


def finding_marks(text: str, findings: Sequence[Mapping[str, Any]]) -> list[Mark]:
    """The words a check speaks of."""
    found = []
    for finding in findings:
        start, end = finding.get("start"), finding.get("end")
        if isinstance(start, int) and isinstance(end, int) and text[start:end] == finding.get("surface"):
            kind = "unsupported" if finding["check"] == "unsupported" else f"check-{finding['level']}"
            found.append(Mark(start, end, kind))
    return found


def spot_of(place: Mapping[str, Any]) -> Spot:
    """A place of the evidence as a key."""
    return (str(place["speaker"]), int(place["turn"]), int(place["start"]), int(place["end"]))


def evidence_of(reply: Mapping[str, Any]) -> Mapping[str, Any]:
    """The evidence of a reply; empty where the model gives none."""
    found = reply.get("evidence")
    return found if isinstance(found, Mapping) else {}


@dataclass(frozen=True)
class Chip:
    """An entity of the state or a keyword, as it is shown."""

    name: str
    type: str
    status: str
    share: float | None = None
    note: str = ""
    spots: tuple[Spot, ...] = ()


def state_chips(reply: Mapping[str, Any]) -> list[Chip]:
    """The state: what is new, what was kept, and what was dropped since the turn before."""
    told = evidence_of(reply).get("state")
    if told is not None:
        return [
            Chip(
                each["name"],
                each["type"],
                each["status"],
                each["probability"],
                spots=tuple(spot_of(m["place"]) for m in each["mentions"] if m["share"] >= SHARE_THAT_COUNTS),
            )
            for each in told
        ]
    chips = [Chip(each["name"], each["type"], each["status"]) for each in _listed(reply.get("state"))]
    return chips + [Chip(str(name), "other", "dropped") for name in reply.get("dropped") or ()]


@dataclass(frozen=True)
class KeywordSplit:
    """The keywords of an action by the detector that spoke for them most."""

    conversation: tuple[Chip, ...]
    graph: tuple[Chip, ...]


def keyword_chips(reply: Mapping[str, Any]) -> KeywordSplit:
    """Keywords from the conversation, and keywords from the graph."""
    sides: dict[str, list[Chip]] = {"conversation": [], "graph": []}
    usual = {each["name"]: _usually_after(each) for each in _listed(evidence_of(reply).get("keywords"))}
    for each in _listed(reply.get("keywords")):
        note = usual.get(each["name"], "")
        chip = Chip(str(each["name"]), str(each.get("type") or "other"), "keyword", each.get("probability"), note)
        sides["graph" if each.get("source") == "graph" else "conversation"].append(chip)
    return KeywordSplit(tuple(sides["conversation"]), tuple(sides["graph"]))


def _usually_after(keyword: Mapping[str, Any]) -> str:
    """The words after which a keyword is usually named, if its evidence has any."""
    words = keyword.get("habit_words")
    return ", ".join(f"“{word['text']}”" for word in words) if isinstance(words, list) else ""


def action_of(reply: Mapping[str, Any]) -> tuple[str | None, tuple[str, ...]]:
    """The category and the names of the keywords."""
    category = reply.get("category")
    names = tuple(str(each["name"]) for each in _listed(reply.get("keywords")))
    return (category if isinstance(category, str) else None), names


def _listed(value: Any) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, Mapping) and "name" in each] if isinstance(value, list) else []
