"""A small phrase grammar: rules with alternatives, expanded at random, with slots left open for the content.

`<rule>` stands for one of the rule's alternatives, `<rule?>` for one of them or nothing; `[slot]` is filled later.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from random import Random

_RULE = re.compile(r"<([a-z_.]+)(\?)?>")
_SLOT = re.compile(r"\[([a-z_]+)\]")


class Grammar:
    """Rules of one language."""

    def __init__(self, rules: Mapping[str, Sequence[str]]) -> None:
        self.rules = rules

    def expand(self, rule: str, rng: Random, style: str = "") -> str:
        """One wording of the rule, that of the style where there is one."""
        styled = f"{rule}.{style}"
        template = rng.choice(self.rules[styled if styled in self.rules else rule])
        return _RULE.sub(lambda match: self._nested(match, rng, style), template)

    def _nested(self, match: re.Match[str], rng: Random, style: str) -> str:
        if match[2] and rng.random() < 0.5:
            return ""
        return self.expand(match[1], rng, style)


def slots_of(template: str) -> list[str]:
    """The slots in order of appearance."""
    return _SLOT.findall(template)


def fill(template: str, content: Mapping[str, str]) -> str:
    """The template with its slots filled."""
    return _SLOT.sub(lambda match: content[match[1]], template)


@cache
def load_grammar(language: str) -> Grammar:
    """The phrases of a language, read once from the file beside this module."""
    text = files("vrbot.clinic").joinpath(f"phrases_{language}.json").read_text(encoding="utf-8")
    return Grammar(json.loads(text))
