"""What kind of thing an entity is: from the relations it stands in, or from the way its name is written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from math import log

from vrbot.knowledge.triples import Triple

TYPES = ("disease", "symptom", "medicine", "test", "attribute", "other")

ROLES: Mapping[str, tuple[str | None, str | None]] = {
    "contains_symptom": ("disease", "symptom"),
    "symptom_of": ("symptom", "disease"),
    "to_treat": ("medicine", "disease"),
    "treated_by": ("disease", "medicine"),
    "adverse_reaction": ("medicine", "symptom"),
    "adverse_reaction_of": ("symptom", "medicine"),
    "check_item": ("disease", "test"),
    "checked_for": ("test", "disease"),
    "complication_to": ("disease", "disease"),
    "caused_by": ("disease", None),
    "lead_to": (None, "disease"),
    "related_to": (None, None),
}
"""What each relation says of its head and of its tail."""

CONDITION, MEDICINE = "condition", "medicine"
_BROAD_KINDS = {"disease": CONDITION, "symptom": CONDITION, "medicine": MEDICINE}

FEWEST_NAMES = 100
"""Names of each broad kind that the name model must have seen before it dares a guess."""


def broad_kind(entity_type: str | None) -> str | None:
    """Condition (disease or symptom: graphs mix the two freely) or medicine; None where names tell nothing."""
    return _BROAD_KINDS.get(entity_type or "other")


def infer_types(triples: Iterable[Triple]) -> dict[str, str]:
    """Every name's type by vote of its relations; ties go to the first in `TYPES`, no votes mean "other"."""
    facts = list(triples)
    names = dict.fromkeys(name for fact in facts for name in (fact.head, fact.tail))
    votes: dict[str, Counter[str]] = {name: Counter() for name in names}
    for place in (0, 2):  # as head, as tail: each name and relation is counted before it votes
        for (name, relation), count in Counter((fact[place], fact[1]) for fact in facts).items():
            role = ROLES.get(relation, (None, None))[place // 2]
            if role is not None:
                votes[name][role] += count
    return {name: max(TYPES, key=lambda kind: counts[kind]) if counts else "other" for name, counts in votes.items()}


class NameModel:
    """A naive Bayes reading of names: do these characters look like a medicine or like a condition?

    It learns from names of known type; each distinct run of one to three characters (the end of the name is a
    character too, since names carry their kind at the end) is one witness.
    """

    def __init__(self, types: Mapping[str, str]) -> None:
        self._seen = {CONDITION: Counter[str](), MEDICINE: Counter[str]()}
        self._num_names = Counter[str]()
        for name, entity_type in types.items():
            kind = broad_kind(entity_type)
            if kind is not None:
                self._num_names[kind] += 1
                self._seen[kind].update(_character_runs(name))

    @property
    def is_trained(self) -> bool:
        """Whether there were enough names of both kinds to learn from."""
        return min(self._num_names[CONDITION], self._num_names[MEDICINE]) >= FEWEST_NAMES

    def medicine_log_odds(self, name: str) -> float:
        """Log odds that the name is a medicine's, not a condition's; 0 where nothing is known."""
        if not self.is_trained:
            return 0.0
        odds = 0.0
        for run in _character_runs(name):
            medicines, conditions = self._seen[MEDICINE][run], self._seen[CONDITION][run]
            if medicines + conditions:
                odds += log((medicines + 0.5) / (self._num_names[MEDICINE] + 1))
                odds -= log((conditions + 0.5) / (self._num_names[CONDITION] + 1))
        return odds


def _character_runs(name: str) -> set[str]:
    ended = name + "$"
    runs = {ended[start : start + length] for length in (1, 2, 3) for start in range(len(ended) - length + 1)}
    return runs - {"$"}
