"""The entities the system can name: one index space for graph nodes, labels and mentions."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from vrbot.errors import DataError
from vrbot.knowledge.kinds import TYPES
from vrbot.knowledge.linking import fold
from vrbot.knowledge.tables import checked_name, read_json, read_table, shown, shown_name


@dataclass(frozen=True)
class Inventory:
    """Every entity the system can name; its id is its position, here and in the graph.

    `surfaces` are the forms a text may use, own names included; a form may mean several entities.
    """

    names: tuple[str, ...]
    types: tuple[str, ...]
    surfaces: Mapping[str, tuple[int, ...]]

    def __len__(self) -> int:
        return len(self.names)

    def id_of(self, name: str) -> int | None:
        """The one entity this name means; None where there is none, or more than one."""
        ids = self.ids_of(name)
        return ids[0] if len(ids) == 1 else None

    def ids_of(self, name: str) -> tuple[int, ...]:
        """The entities this name means: as an entity's own name first, then as a surface, then in another case."""
        own = self._position.get(name)
        if own is not None:
            return (own,)
        return self.surfaces.get(name) or self._folded.get(fold(name), ())

    def only(self, kept: Sequence[int]) -> Inventory:
        """These entities alone, in this order; a surface that means none of them is gone."""
        place = {entity: number for number, entity in enumerate(kept)}
        meanings = {form: tuple(place[one] for one in ids if one in place) for form, ids in self.surfaces.items()}
        return Inventory(
            tuple(self.names[entity] for entity in kept),
            tuple(self.types[entity] for entity in kept),
            {form: ids for form, ids in meanings.items() if ids},
        )

    def save(self, path: str | Path) -> None:
        """Write the inventory as JSON, whole or not at all."""
        content = {"names": self.names, "types": self.types, "surfaces": dict(self.surfaces)}
        unfinished = Path(f"{path}.unfinished")
        unfinished.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
        os.replace(unfinished, path)

    @classmethod
    def load(cls, path: str | Path) -> Inventory:
        """Read an inventory that `save` wrote."""
        source = Path(path)
        content = read_json(source)
        try:
            names, types = tuple(content["names"]), tuple(content["types"])
            surfaces = {form: tuple(ids) for form, ids in content["surfaces"].items()}
            sound = len(names) == len(types) and set(types) <= set(TYPES) and all(isinstance(n, str) for n in names)
            sound = sound and all(0 <= number < len(names) for ids in surfaces.values() for number in ids)
        except (TypeError, KeyError, AttributeError):
            sound = False
        if not sound:
            raise DataError(source, None, "inventory", "is not a saved inventory", "prepare the corpus again")
        return cls(names, types, surfaces)

    @cached_property
    def _position(self) -> dict[str, int]:
        return {name: position for position, name in enumerate(self.names)}

    @cached_property
    def _folded(self) -> dict[str, tuple[int, ...]]:
        folded: dict[str, tuple[int, ...]] = {}
        for form, ids in self.surfaces.items():
            key = fold(form)
            folded[key] = tuple(dict.fromkeys(folded.get(key, ()) + ids))
        for position, name in enumerate(self.names):
            folded.setdefault(fold(name), (position,))
        return folded


@dataclass(frozen=True)
class VocabularyFile:
    """The words of a vocabulary file in the paper's form, and those of them that are entities."""

    words: tuple[str, ...]
    entities: tuple[str, ...]


def read_entities(path: str | Path) -> dict[str, str]:
    """Entity types from a CSV file (entity,type and whatever else); a type outside `TYPES` counts as "other"."""
    source = Path(path)
    types: dict[str, str] = {}
    for line, (entity, kind) in read_table(source, ("entity", "type")):
        name = checked_name(entity, source, line, "entity")
        given = checked_name(kind, source, line, "type").lower()
        types.setdefault(name, given if given in TYPES else "other")
    if not types:
        raise DataError(source, None, "file", "holds no entities", "give at least one entity,type row")
    return types


def read_lexicon(path: str | Path) -> dict[str, tuple[str, ...]]:
    """A JSON object from surface form to the list of entity names it means."""
    source = Path(path)
    rows = read_json(source)
    fix = 'write {"surface": ["entity", ...], ...}'
    if not isinstance(rows, dict):
        raise DataError(source, None, "json", f"{shown(rows)} is not an object", fix)
    lexicon: dict[str, tuple[str, ...]] = {}
    for key, meanings in rows.items():
        surface = checked_name(key, source, None, "surface")
        if not isinstance(meanings, list) or not meanings:
            raise DataError(source, None, shown_name(surface), f"{shown(meanings)} is not a list of entity names", fix)
        names = [checked_name(name, source, None, shown_name(surface)) for name in meanings]
        lexicon[surface] = tuple(dict.fromkeys((*lexicon.get(surface, ()), *names)))
    return lexicon


def read_vocabulary(path: str | Path) -> VocabularyFile:
    """Words and entities from a CSV file in the paper's form (Word,Is_know)."""
    source = Path(path)
    known: dict[str, bool] = {}
    for line, (word, mark) in read_table(source, ("word", "is_know")):
        word, mark = word.strip(), mark.strip()
        if mark not in ("0", "1"):
            raise DataError(source, line, "is_know", f"{shown(mark)} is neither 0 nor 1", "write 1 for an entity")
        if mark == "1":
            checked_name(word, source, line, "word")
        if word:  # tokenisers leave white space and control characters among the words; only entities must be names
            known[word] = known.get(word, False) or mark == "1"
    return VocabularyFile(tuple(known), tuple(word for word, is_entity in known.items() if is_entity))
