"""Medicines and diseases in a draft that neither the conversation nor the draft's own state and action name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from vrbot.clinic.world import load_world
from vrbot.knowledge.entities import Inventory
from vrbot.knowledge.linking import Linker
from vrbot.safety.medicines import drugs
from vrbot.safety.tables import items, rows_of

CLAIMED_KINDS = ("medicine", "disease")


@dataclass(frozen=True)
class UnsupportedClaim:
    """`draft[start:end]` names a medicine or a disease out of nowhere."""

    kind: str
    surface: str
    start: int
    end: int


class ClaimChecker:
    """Knows which words name medicines and diseases: the tables', the clinic's, and those of an inventory if given."""

    def __init__(self, inventory: Inventory | None = None) -> None:
        meanings: dict[str, set[tuple[str, str]]] = {}
        for surface, meaning in _own_names():
            meanings.setdefault(surface, set()).add(meaning)
        for surface, kind, name in _inventory_names(inventory):
            meanings.setdefault(surface, set()).add((kind, name))
        self._meanings = [frozenset(meaning) for meaning in meanings.values()]
        self._linker = Linker({surface: (number,) for number, surface in enumerate(meanings)})

    def unsupported(self, draft: str, supported: Iterable[str]) -> tuple[UnsupportedClaim, ...]:
        """The claims of the draft that no text of `supported` makes under any name."""
        known = frozenset(meaning for text in supported for _, found in self._named(text) for meaning in found)
        known |= {("medicine", part) for kind, name in known if kind == "medicine" for part in _parts(name)}
        return tuple(
            UnsupportedClaim(sorted(found)[0][0], draft[start:end], start, end)
            for (start, end), found in self._named(draft)
            if not found & known
        )

    def _named(self, text: str) -> list[tuple[tuple[int, int], frozenset[tuple[str, str]]]]:
        found = []
        for mention in self._linker.find(text):
            meaning = frozenset[tuple[str, str]]().union(*(self._meanings[number] for number in mention.entities))
            found.append(((mention.start, mention.end), meaning))
        return found


def unsupported(
    draft: str, supported: Iterable[str], checker: ClaimChecker | None = None
) -> tuple[UnsupportedClaim, ...]:
    """What `draft` claims and `supported` (utterances, names of the state and of the action) does not."""
    return (checker or _own_checker()).unsupported(draft, supported)


@cache
def _own_checker() -> ClaimChecker:
    return ClaimChecker()


def _parts(drug: str) -> tuple[str, ...]:
    return drugs()[drug].parts if drug in drugs() else ()


def _own_names() -> Iterable[tuple[str, tuple[str, str]]]:
    """(surface, (kind, id)); a clinic's medicine that the tables know by one of its names is the tables' medicine."""
    known: dict[str, str] = {}
    for row in rows_of("drugs"):
        for surface in items(row["zh"]) + items(row["en"]):
            known[surface.lower()] = row["drug"]
            yield surface, ("medicine", row["drug"])
    for entity in load_world().entities.values():
        if entity.kind in CLAIMED_KINDS:
            names = [name for code in ("zh", "en") for name in entity.wordings[code].names]
            identifier = next((known[name.lower()] for name in names if name.lower() in known), entity.id)
            yield from ((name, (entity.kind, identifier)) for name in names)


def _inventory_names(inventory: Inventory | None) -> Iterable[tuple[str, str, str]]:
    if inventory is None:
        return
    surfaces: Mapping[str, tuple[int, ...]] = {name: (number,) for number, name in enumerate(inventory.names)}
    for surface, entities in (*surfaces.items(), *inventory.surfaces.items()):
        for entity in entities:
            if inventory.types[entity] in CLAIMED_KINDS:
                yield surface, inventory.types[entity], inventory.names[entity]
