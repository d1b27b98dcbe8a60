"""Other names of entities, and a cleaner for alias maps that were made by machine.

The cleaner asks of each row: does the target name something, can the alias name the same kind of thing, and is the
alias a name at all or only a piece of one? Chinese and English compounds carry their kind at the end ("kidney
*stone*", 肾*结石*), so an alias that keeps the end of its target is a looser name for it, while one that loses the end
("kidney") names something else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from math import log
from pathlib import Path

from ahocorasick_rs import AhoCorasick

from vrbot.errors import DataError
from vrbot.knowledge.kinds import CONDITION, MEDICINE, NameModel, broad_kind
from vrbot.knowledge.tables import checked_name, read_json, shown, shown_name

EMPTY_TAILS = frozenset(
    (
        *("症", "病", "征", "征群", "综合征", "综合症", "疾病", "炎症", "感染", "形成", "者", "子"),
        *("检查", "试验", "测定", "检测", "监测", "成像"),
        *("syndrome", "disease", "disorder", "infection", "test"),
    )
)
"""Endings that add nothing to what stands before them: 尿崩 and 尿崩症 are one thing."""

DESCRIBING_ENDINGS = ("性", "型", "样", "状", "期", "时", "色", "的")
"""A Chinese word with such an ending describes ("chronic", "bluish"); it does not name."""

STRONG_ODDS, OVERWHELMING_ODDS = log(30), log(1000)
"""How sure the name model must be: strangers need less evidence to part than names that share characters."""

MANY_HEADS = 5
"""A word that ends this many other names is their general word (口服液, "syndrome"), not the name of one."""

SEVERAL_NAMES = 3
"""So many names with the same piece are no accident."""


@dataclass(frozen=True)
class DroppedAlias:
    """A row the cleaner took out, and why."""

    alias: str
    target: str
    reason: str


@dataclass(frozen=True)
class AliasCleaning:
    """The rows that stay, and those that went."""

    kept: dict[str, str]
    dropped: list[DroppedAlias]


def read_aliases(path: str | Path) -> dict[str, str]:
    """A JSON object from alias to name."""
    source = Path(path)
    rows = read_json(source)
    if not isinstance(rows, dict):
        raise DataError(source, None, "json", f"{shown(rows)} is not an object", 'write {"alias": "name", ...}')
    aliases: dict[str, str] = {}
    for key, value in rows.items():
        alias = checked_name(key, source, None, "alias")
        target = checked_name(value, source, None, shown_name(alias))
        if aliases.setdefault(alias, target) != target:
            raise DataError(
                source, None, shown_name(alias), "is given twice with different names", "keep one of the two"
            )
    return aliases


def clean_aliases(
    aliases: Mapping[str, str], types: Mapping[str, str], *, protected: Set[str] = frozenset(), trusted: bool = False
) -> AliasCleaning:
    """Drop the rows that cannot be right; `types` gives every known entity's type.

    A row whose target is unknown is dropped too, unless its alias is protected (a name that labels use): there it
    is idle, not wrong. Of a `trusted` map, one that people wrote, only rows with an unknown target go.
    """
    judge = _Target(types, protected) if trusted else _Judge(aliases, types, protected)
    kept: dict[str, str] = {}
    dropped: list[DroppedAlias] = []
    for alias, target in aliases.items():
        reason = judge.objection(alias, target)
        if reason is None:
            kept[alias] = target
        else:
            dropped.append(DroppedAlias(alias, target, reason))
    return AliasCleaning(kept, dropped)


class _Target:
    """The one objection to a map that people wrote."""

    def __init__(self, types: Mapping[str, str], protected: Set[str]) -> None:
        self._types, self._protected = types, protected

    def objection(self, alias: str, target: str) -> str | None:
        """Why this row leads nowhere, or None."""
        if target in self._types or target in self._protected or alias in self._protected:
            return None
        return f"the target {target} is not a known entity"


class _Judge:
    """What the cleaner knows while it reads the rows."""

    def __init__(self, aliases: Iterable[str], types: Mapping[str, str], protected: Set[str]) -> None:
        self._types, self._protected, self._target = types, protected, _Target(types, protected)
        self._model = NameModel(types)
        self._containing = _names_containing(set(aliases), types)
        conditions = [name for name, entity_type in types.items() if broad_kind(entity_type) == CONDITION]
        self._condition_ends = {name[-2:] for name in conditions}
        self._inside_conditions = Counter(
            pair for name in conditions for pair in {name[at : at + 2] for at in range(len(name) - 2)}
        )

    def objection(self, alias: str, target: str) -> str | None:
        """Why this row cannot be right, or None."""
        if alias == target or (_letters(alias) and _letters(alias) == _letters(target)):
            return None
        if target not in self._types and target not in self._protected:
            return self._target.objection(alias, target)
        return (
            self._names_nothing(alias, target) or self._other_kind(alias, target) or self._only_a_piece(alias, target)
        )

    def _names_nothing(self, alias: str, target: str) -> str | None:
        if not any(character.isalpha() for character in alias):
            return f"{alias} has no letters"
        if not any(character.isalpha() for character in target):
            return f"the target {target} has no letters"
        keeps_the_head = alias.endswith(target) or _only_adds_an_empty_tail(target, alias)
        if len(target) == 1 and target not in self._protected and not keeps_the_head:
            return f"the target {target} is a single character"
        return None

    def _other_kind(self, alias: str, target: str) -> str | None:
        """Medicine against condition: by given or inferred type, or by the look of the names."""
        if target.endswith(alias) or alias.endswith(target):
            return None  # with the end of the name they share the kind
        alias_kind = broad_kind(self._types.get(alias))
        target_kind = broad_kind(self._types.get(target))
        alias_odds = self._model.medicine_log_odds(alias)
        target_odds = self._model.medicine_log_odds(target)
        enough = OVERWHELMING_ODDS if _shared_characters(alias, target) >= 2 else STRONG_ODDS
        looks = f"{alias} looks like a {'medicine' if alias_odds > 0 else 'condition'}"
        if alias_kind and target_kind and alias_kind != target_kind:
            return f"{alias} is a {alias_kind}, the target {target} a {target_kind}"
        if abs(alias_odds) < enough:
            return None
        if target_kind and not alias_kind and (target_kind == MEDICINE) != (alias_odds > 0):
            return f"{looks}, the target {target} is a {target_kind}"
        if abs(target_odds) >= enough and (target_odds > 0) != (alias_odds > 0):
            return f"{looks}, the target {target} does not"
        return None

    def _only_a_piece(self, alias: str, target: str) -> str | None:
        """A general word, a describing word, or what is left when the end of the target is cut off."""
        if alias in self._types or _only_adds_an_empty_tail(alias, target) or _abbreviates(alias, target):
            return None
        others = [name for name in self._containing.get(alias, ()) if name not in (alias, target)]
        heads = [name for name in others if name.endswith(alias)]
        if len(heads) >= MANY_HEADS:
            return f"{alias} is the general word of {len(heads)} other names ({heads[0]}, ...)"
        if not _shared_characters(alias, target) and len(others) >= SEVERAL_NAMES:
            return f"{alias} is part of {len(others)} other names ({others[0]}, ...) and shares nothing with {target}"
        if broad_kind(self._types.get(target)) == MEDICINE:
            return None  # the end of a medicine's name is often its form (tablet, syrup): leaving it out loses nothing
        if alias in target:
            return None if target.endswith(alias) else f"{alias} is cut off from the end of {target}"
        if alias.endswith(DESCRIBING_ENDINGS):
            return f"{alias} describes, it does not name"
        beginnings = [name for name in others if not _only_adds_an_empty_tail(alias, name)]
        if not heads and len(beginnings) >= 2:
            return f"{alias} is only ever the beginning of a name ({beginnings[0]}, ...)"
        end = alias[-2:]
        if not alias.isascii() and end not in self._condition_ends and self._inside_conditions[end] >= SEVERAL_NAMES:
            return f"{alias} ends in {end}, which is part of many conditions' names but the end of none"
        return None


def _names_containing(aliases: Set[str], names: Iterable[str]) -> dict[str, list[str]]:
    """For each alias the names it is part of, found in one pass over the names."""
    patterns = sorted(aliases)
    automaton = AhoCorasick(patterns)
    containing: dict[str, list[str]] = {}
    for name in names:
        for pattern in dict.fromkeys(match[0] for match in automaton.find_matches_as_indexes(name, overlapping=True)):
            containing.setdefault(patterns[pattern], []).append(name)
    return containing


def _only_adds_an_empty_tail(start: str, name: str) -> bool:
    """Whether the name ends with `start` and an ending that adds nothing (or its abbreviation in Latin letters)."""
    position = name.rfind(start)
    tail = name[position + len(start) :].strip() if position >= 0 else ""
    return tail in EMPTY_TAILS or (tail.isascii() and tail.isalnum() and not start.isascii())


def _abbreviates(alias: str, target: str) -> bool:
    """Whether the alias picks characters from the whole target, in order but not in one piece (流感 of 流行性感冒)."""
    rest = iter(target)
    return alias not in target and all(character in rest for character in alias)


def _letters(name: str) -> str:
    return "".join(character for character in name if character.isalnum())


def _shared_characters(first: str, second: str) -> int:
    return (Counter(first) & Counter(second)).total()
