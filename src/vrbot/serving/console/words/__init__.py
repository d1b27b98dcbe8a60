"""The console's strings: one module per page, each with a table `WORDS` that has the same keys in both languages."""

from __future__ import annotations

from collections.abc import Mapping

LANGUAGES = ("zh", "en")
Table = Mapping[str, Mapping[str, str]]
"""Language -> key -> string; `{name}` in a string is a place for a value."""


class Words:
    """The strings of some tables in one language; of a key in several tables the last one counts."""

    def __init__(self, language: str, *tables: Table) -> None:
        self.language = language
        self._strings = {key: string for table in tables for key, string in table[language].items()}

    def __call__(self, key: str, **values: object) -> str:
        """The string for a key, with its places filled."""
        return self._strings[key].format(**values) if values else self._strings[key]

    def __contains__(self, key: object) -> bool:
        return key in self._strings

    def of(self, key: str) -> str:
        """The string for a key that need not be known: the key itself, where it is not."""
        return self._strings.get(key, key)


def words(language: str, *tables: Table) -> Words:
    """The strings of these tables, on top of those every page has."""
    from vrbot.serving.console.words import shell

    return Words(language, shell.WORDS, *tables)
