"""One item of a blind study: the conversation before a turn, and what every system made of it under random codes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, TypeVar

import numpy as np

from vrbot.dialogue.session import CATEGORIES, Session
from vrbot.errors import UsageError
from vrbot.evaluation.human_study import Candidate, DrawnTurn, Explanation, Item, Line, Mark, Pair
from vrbot.evaluation.human_systems import Answers, Field
from vrbot.evaluation.turns import ScoredTurn

Conversations = Callable[[str], Session]
"""The dialogue of a name, as it was recorded."""

LETTERS = "bcdfghjkmnpqrstvwxyz"
"""No vowels and no digits: no spreadsheet takes a code for a word, a number or a date."""
CODE_LENGTH = 6
Same = TypeVar("Same", bound=Hashable)


@dataclass(frozen=True, eq=False)
class BlindItem:
    """An item, the turn it shows, and which system has which code in it."""

    item: Item
    turn: DrawnTurn
    reply_codes: Mapping[str, str]
    explanation_codes: Mapping[str, str]
    without_keywords: tuple[str, ...]


class Codes:
    """Random codes, no two alike."""

    def __init__(self, generator: np.random.Generator) -> None:
        self._generator, self._given = generator, set[str]()

    def new(self) -> str:
        """A code that was not given before."""
        while True:
            code = "".join(LETTERS[place] for place in self._generator.integers(len(LETTERS), size=CODE_LENGTH))
            if code not in self._given:
                self._given.add(code)
                return code


def conversation_before(
    turns: Sequence[ScoredTurn], place: int, conversations: Conversations | None
) -> tuple[Line, ...]:
    """What was said before the reply at `place`; refuses a conversation in which the reference does not stand."""
    here = turns[place]
    if conversations is None:
        earlier = [turn for turn in turns if turn.session_id == here.session_id and turn.turn < here.turn]
        return tuple(Line("physician", turn.reference) for turn in earlier)
    session = conversations(here.session_id)
    if here.turn >= len(session.turns) or session.turns[here.turn].physician != here.reference:
        raise UsageError(
            f"turn {here.turn} of dialogue {here.session_id!r} has another reply in the corpus than in the stored "
            "replies: give the corpus that was evaluated"
        )
    lines = []
    for turn in session.turns[: here.turn]:
        lines += [Line("patient", turn.patient), Line("physician", turn.physician)]
    lines.append(Line("patient", session.turns[here.turn].patient))
    return tuple(line for line in lines if line.text.strip())


def blind_item(field: Field, place: int, context: tuple[Line, ...], codes: Codes) -> BlindItem:
    """The turn at `place` with every system's reply and explanation under codes; equal ones share a code."""
    here = field.systems[0].turns[place]
    name = codes.new()
    replies = {system.source.name: system.turns[place].reply.strip() for system in field.systems}
    reply_codes, texts = _code_alike(replies, codes)
    candidates = [Candidate(code, text) for code, text in texts.items()]
    entities = tuple(field.names[entity] for entity in sorted(here.reference_entities))
    spoken = {system.source.name: _explanation(system, place, field.names) for system in field.systems}
    explained = {system: found for system, found in spoken.items() if found is not None and found.keywords}
    explanation_codes, contents = _code_alike(explained, codes)
    silent = [system for system, found in spoken.items() if found is not None and not found.keywords]
    explanations = [_with_marks(code, content, entities) for code, content in contents.items()]
    item = Item(
        item=name,
        context=context,
        candidates=tuple(sorted(candidates, key=lambda one: one.code)),
        explanations=tuple(sorted(explanations, key=lambda one: one.code)),
        pairs=(*_pairs("reply", texts), *_pairs("explanation", contents)),
    )
    drawn = DrawnTurn(here.session_id, here.turn)
    return BlindItem(item, drawn, reply_codes, explanation_codes, tuple(silent) if entities else ())


def _code_alike(contents: Mapping[str, Same], codes: Codes) -> tuple[dict[str, str], dict[str, Same]]:
    """A code for each system, the same for equal contents; and the contents by code."""
    code_of: dict[Same, str] = {}
    for content in contents.values():
        code_of.setdefault(content, codes.new())
    by_system = {system: code_of[content] for system, content in contents.items()}
    return by_system, {code: content for content, code in code_of.items()}


def _explanation(system: Answers, place: int, names: Sequence[str]) -> Explanation | None:
    """Without code and marks, so that equal ones are equal; None if the system has no action."""
    turn = system.turns[place]
    if turn.prior.keywords is None:
        return None
    keywords = tuple(dict.fromkeys(turn.prior.keywords))
    reached = turn.evidence.reached if turn.evidence is not None else frozenset[int]()
    return Explanation(
        code="",
        state=tuple(names[entity] for entity in dict.fromkeys(turn.prior.state or ())),
        category=None if turn.prior.category is None else CATEGORIES[turn.prior.category],
        keywords=tuple(names[entity] for entity in keywords),
        linked=tuple(names[entity] for entity in keywords if entity in reached),
        paths=system.paths[place],
        marks=(),
    )


def _with_marks(code: str, content: Explanation, entities: tuple[str, ...]) -> Explanation:
    keywords = [Mark(f"{code}-k{number}", "keyword", name) for number, name in enumerate(content.keywords, start=1)]
    accounted = [Mark(f"{code}-e{number}", "entity", name) for number, name in enumerate(entities, start=1)]
    shown = (content.state, content.category, content.keywords, content.linked, content.paths)
    return Explanation(code, *shown, (*keywords, *accounted))


def _pairs(about: Literal["reply", "explanation"], codes: Iterable[str]) -> list[Pair]:
    return [Pair(f"{first}-{second}", about, first, second) for first, second in combinations(sorted(codes), 2)]
