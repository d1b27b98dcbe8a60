"""Draws a blind study: dialogues, a turn of each, every system's reply under a random code, shares for raters.

Every item holds all systems, so that systems are compared on the same turns. For each rater the positions of systems
are balanced (each stands equally often in each place, up to what replies in common take away), then items are shuffled.
The random numbers depend on the seed and on the replies, so that the seed alone does not break the blinding.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from vrbot.errors import UsageError
from vrbot.evaluation.human_criteria import CRITERIA, QUESTIONS
from vrbot.evaluation.human_items import BlindItem, Codes, Conversations, blind_item, conversation_before
from vrbot.evaluation.human_shares import assign_raters, share_of
from vrbot.evaluation.human_study import VERSION, Key, Study
from vrbot.evaluation.human_systems import Field
from vrbot.evaluation.turns import ScoredTurn


@dataclass(frozen=True)
class SampleSettings:
    """How much is drawn, and for whom; `judges_per_item` None: every rater judges every item."""

    dialogues: int = 100
    turns_per_dialogue: int = 1
    raters: int = 3
    judges_per_item: int | None = None
    seed: int = 1

    def __post_init__(self) -> None:
        for name in ("dialogues", "turns_per_dialogue", "raters"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.seed < 0:
            raise UsageError(f"seed must be at least 0, got {self.seed}")
        if not 1 <= self.judges <= self.raters:
            raise UsageError(f"judges per item must be between 1 and the {self.raters} raters, got {self.judges}")

    @property
    def judges(self) -> int:
        """How many raters judge each item."""
        return self.raters if self.judges_per_item is None else self.judges_per_item


@dataclass(frozen=True, eq=False)
class Draw:
    """A study and its items unblinded, from which `key_of` makes the key."""

    study: Study
    items: tuple[BlindItem, ...]


def draw_study(field: Field, settings: SampleSettings, conversations: Conversations | None = None) -> Draw:
    """The same replies and settings give the same study; without `conversations` raters see physicians' turns only."""
    generator = _generator(field, settings.seed)
    codes = Codes(generator)
    turns = field.systems[0].turns
    items = []
    for place in choose_turns(turns, settings, generator):
        context = conversation_before(turns, place, conversations)
        items.append(blind_item(field, place, context, codes))
    raters = [f"rater-{number}" for number in range(1, settings.raters + 1)]
    judged = assign_raters(len(items), settings.raters, settings.judges, generator)
    shares = tuple(
        share_of(rater, [item for item, mine in zip(items, judged, strict=True) if number in mine], field, generator)
        for number, rater in enumerate(raters)
    )
    shown = tuple(sorted((blind.item for blind in items), key=lambda item: item.item))
    return Draw(Study(VERSION, CRITERIA, QUESTIONS, shown, shares), tuple(items))


def key_of(draw: Draw, field: Field, seed: int, study_sha256: str) -> Key:
    """Who wrote what in a drawn study."""

    def owners(codes: Iterable[Mapping[str, str]]) -> dict[str, tuple[str, ...]]:
        found = defaultdict[str, list[str]](list)
        for one in codes:
            for system, code in one.items():
                found[code].append(system)
        return {code: tuple(systems) for code, systems in found.items()}

    return Key(
        version=VERSION,
        study_sha256=study_sha256,
        seed=seed,
        systems=tuple(system.source for system in field.systems),
        turns={blind.item.item: blind.turn for blind in draw.items},
        replies=owners(blind.reply_codes for blind in draw.items),
        explanations=owners(blind.explanation_codes for blind in draw.items),
        without_keywords={blind.item.item: blind.without_keywords for blind in draw.items if blind.without_keywords},
    )


def choose_turns(turns: Sequence[ScoredTurn], settings: SampleSettings, generator: np.random.Generator) -> list[int]:
    """Places of turns: dialogues drawn without repetition, and of each so many turns, or all if it has fewer."""
    by_dialogue = defaultdict[str, list[int]](list)
    for place, turn in enumerate(turns):
        by_dialogue[turn.session_id].append(place)
    if settings.dialogues > len(by_dialogue):
        raise UsageError(
            f"{settings.dialogues} dialogues were asked for and the replies are of {len(by_dialogue)}: ask for fewer"
        )
    names = list(by_dialogue)
    chosen = []
    for number in generator.permutation(len(names))[: settings.dialogues].tolist():
        places = by_dialogue[names[number]]
        drawn = generator.permutation(len(places))[: settings.turns_per_dialogue].tolist()
        chosen += [places[one] for one in sorted(drawn)]
    return chosen


def _generator(field: Field, seed: int) -> np.random.Generator:
    replies = hashlib.sha256("".join(system.source.sha256 for system in field.systems).encode()).digest()
    return np.random.default_rng([seed, int.from_bytes(replies, "big")])
