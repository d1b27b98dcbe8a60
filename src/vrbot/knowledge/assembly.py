"""Graph, aliases, lexicon and label names brought together in one index space of entities."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vrbot.knowledge.entities import Inventory
from vrbot.knowledge.kinds import infer_types
from vrbot.knowledge.triples import Triple, without_duplicates


@dataclass(frozen=True)
class Knowledge:
    """The inventory, and the graph's triples over its ids: int64 [E, 3] of (head, relation, tail)."""

    inventory: Inventory
    triples: NDArray[np.int64]
    relations: tuple[str, ...]


def assemble_knowledge(
    triples: Sequence[Triple],
    aliases: Mapping[str, str] | None = None,
    lexicon: Mapping[str, tuple[str, ...]] | None = None,
    entities: Mapping[str, str] | None = None,
    vocabulary_entities: Iterable[str] = (),
    trust_aliases: bool = False,
) -> Knowledge:
    """One entity for everything that is one thing.

    Names that labels use (`entities` and what `lexicon` points to) are protected: never renamed, never folded
    into another. A graph name that a protected name is an alias of takes that name; where several protected names
    alias it, each gets its triples. Any other alias is a surface of its target, and folds an entity of its own name.
    A single character is a surface only where it can be trusted: in the labels, the lexicon, or trusted aliases.
    """
    lexicon, entities = lexicon or {}, entities or {}
    protected = tuple(dict.fromkeys((*entities, *(name for names in lexicon.values() for name in names))))
    vocabulary_entities = tuple(vocabulary_entities)
    folding = Folding(aliases or {}, protected, known=(*_names_in(triples), *vocabulary_entities))
    renamed = without_duplicates(_renamed(triples, folding)).triples

    canonical = (name for word in vocabulary_entities for name in folding.canonical(word))
    names = tuple(dict.fromkeys((*protected, *_names_in(renamed), *canonical)))
    types = {**infer_types(renamed), **entities}
    position = {name: number for number, name in enumerate(names)}
    relations = tuple(sorted({triple.relation for triple in renamed}))
    relation_position = {relation: number for number, relation in enumerate(relations)}
    rows = [(position[head], relation_position[relation], position[tail]) for head, relation, tail in renamed]
    surfaces = _surfaces(position, folding, lexicon, frozenset(folding.aliases if trust_aliases else ()))
    return Knowledge(
        Inventory(names, tuple(types.get(name, "other") for name in names), surfaces),
        np.array(rows, dtype=np.int64).reshape(-1, 3),
        relations,
    )


class Folding:
    """Which names stand for which: aliases followed to their end, protected names left alone."""

    def __init__(self, aliases: Mapping[str, str], protected: Iterable[str], known: Iterable[str]) -> None:
        self.protected = frozenset(protected)
        known_names = self.protected.union(known)
        self.aliases = {alias: target for alias, target in aliases.items() if target in known_names and alias != target}
        self._protected_names_of: dict[str, list[str]] = {}
        for alias, target in self.aliases.items():
            end = self._end_of(target)
            if alias in self.protected and end not in self.protected:
                self._protected_names_of.setdefault(end, []).append(alias)

    def canonical(self, name: str) -> tuple[str, ...]:
        """The entity names this name stands for; several only where several protected names alias one graph name."""
        end = self._end_of(name)
        return tuple(self._protected_names_of.get(end, (end,)))

    def _end_of(self, name: str) -> str:
        """Follow aliases to a protected name or one that is no alias; a circle ends at its first name in order."""
        seen: list[str] = []
        while name not in self.protected and name in self.aliases:
            if name in seen:
                return min(seen[seen.index(name) :])
            seen.append(name)
            name = self.aliases[name]
        return name


def _names_in(triples: Iterable[Triple]) -> Iterable[str]:
    return dict.fromkeys(name for triple in triples for name in (triple.head, triple.tail))


def _renamed(triples: Sequence[Triple], folding: Folding) -> Iterable[Triple]:
    """The triples between canonical names; a fact about a thing and itself (two names that were one) goes."""
    canonical = {name: folding.canonical(name) for name in _names_in(triples)}
    for head, relation, tail in triples:
        for new_head in canonical[head]:
            for new_tail in canonical[tail]:
                if new_head != new_tail:
                    yield Triple(new_head, relation, new_tail)


def _surfaces(
    position: Mapping[str, int], folding: Folding, lexicon: Mapping[str, tuple[str, ...]], trusted: frozenset[str]
) -> dict[str, tuple[int, ...]]:
    """What each form means: protected names themselves, then the lexicon, then own names, then aliases."""
    surfaces: dict[str, tuple[int, ...]] = {}
    for name in position:
        if name in folding.protected:
            surfaces[name] = (position[name],)
    for form, names in lexicon.items():
        surfaces.setdefault(form, tuple(position[name] for name in names))
    for name in (*position, *folding.aliases, *folding.aliases.values()):
        meanings = tuple(position[entity] for entity in folding.canonical(name) if entity in position)
        if (len(name) > 1 or name in trusted) and meanings:
            surfaces.setdefault(name, (position[name],) if name in position else meanings)
    return surfaces
