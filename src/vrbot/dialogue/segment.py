"""Cutting text into words; entity mentions are found first and stay whole."""

from __future__ import annotations

import importlib
import logging
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from vrbot.errors import UsageError

SEGMENTERS = ("rjieba", "jieba", "pkuseg", "spaces")


class Segmenter(Protocol):
    """Cuts text into words, line by line: a newline comes back as a word of its own, and no word crosses it."""

    name: str

    def cut(self, text: str) -> list[str]: ...

    def join(self, words: Iterable[str]) -> str:
        """The words as readable text again."""
        ...


class MentionSpan(Protocol):
    """A place in a text that names one or more entities."""

    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def entities(self) -> tuple[int, ...]: ...


class MentionFinder(Protocol):
    """Finds entity mentions, left to right and never overlapping (`knowledge.linking.Linker`)."""

    def find(self, text: str) -> Sequence[MentionSpan]: ...


@dataclass(frozen=True)
class Token:
    """One word of a text; `entities` is empty for ordinary words."""

    text: str
    entities: tuple[int, ...]


def normalise_space(text: str) -> str:
    """The text with every run of white space as one blank, and none at the ends."""
    return " ".join(text.split())


def segment(text: str, linker: MentionFinder, segmenter: Segmenter) -> list[Token]:
    """The tokens of a text: each mention is one token, the gaps between are cut by the segmenter."""
    text = normalise_space(text)
    tokens: list[Token] = []
    gap_start = 0
    for mention in linker.find(text):
        tokens += _words(segmenter, text[gap_start : mention.start])
        tokens.append(Token(text[mention.start : mention.end], mention.entities))
        gap_start = mention.end
    return tokens + _words(segmenter, text[gap_start:])


def _words(segmenter: Segmenter, gap: str) -> list[Token]:
    return [Token(word, ()) for word in segmenter.cut(gap) if not word.isspace()]


class RustJieba:
    """jieba's dictionary and hidden Markov model, in Rust: the fast default for Chinese."""

    name = "rjieba"

    def __init__(self) -> None:
        self._cut: Any = importlib.import_module("rjieba").cut

    def cut(self, text: str) -> list[str]:
        words: list[str] = self._cut(text)
        return words

    def join(self, words: Iterable[str]) -> str:
        return join_without_spaces(words)


class Jieba:
    """The original jieba (extra `jieba`)."""

    name = "jieba"

    def __init__(self) -> None:
        module = _import_extra("jieba", "jieba")
        module.setLogLevel(logging.WARNING)
        self._tokenizer = module.Tokenizer()

    def cut(self, text: str) -> list[str]:
        words: list[str] = self._tokenizer.lcut(text)
        return words

    def join(self, words: Iterable[str]) -> str:
        return join_without_spaces(words)


class Pkuseg:
    """pkuseg with a model directory of one's own, as the paper used its medicine model (extra `pkuseg`)."""

    name = "pkuseg"

    def __init__(self, model: Path | None) -> None:
        if model is None or not model.is_dir():
            given = "no directory was given" if model is None else f"{model} is not a directory"
            raise UsageError(f"segmenter pkuseg needs a model directory, {given}: use --segmenter-model DIR")
        self._segment = _import_extra("spacy_pkuseg", "pkuseg").pkuseg(str(model))

    def cut(self, text: str) -> list[str]:
        lines = [self._segment.cut(line) for line in text.split("\n")]
        words: list[str] = list(lines[0])
        for line in lines[1:]:
            words += ["\n", *line]
        return words

    def join(self, words: Iterable[str]) -> str:
        return join_without_spaces(words)


class Spaces:
    """Words and punctuation separated: for English and other languages written with spaces."""

    name = "spaces"
    _pattern = re.compile(r"\n|\d+(?:[.,]\d+)+|\w+(?:['’-]\w+)*|[^\w\s]")

    def cut(self, text: str) -> list[str]:
        return self._pattern.findall(text)

    def join(self, words: Iterable[str]) -> str:
        text = " ".join(words)
        text = re.sub(r"\s+([,.;:!?%)\]}])", r"\1", text)
        return re.sub(r"([(\[{$])\s+", r"\1", text)


def open_segmenter(name: str, model: Path | None = None) -> Segmenter:
    """The segmenter of that name; `model` is the directory pkuseg reads its model from."""
    match name:
        case "rjieba":
            return RustJieba()
        case "jieba":
            return Jieba()
        case "pkuseg":
            return Pkuseg(model)
        case "spaces":
            return Spaces()
    raise UsageError(f"unknown segmenter {name!r}: choose one of {', '.join(SEGMENTERS)}")


def join_without_spaces(words: Iterable[str]) -> str:
    """Chinese text from its words; a blank stands only between two words of Latin letters or digits."""
    text = ""
    for word in words:
        if text and word and _is_latin(text[-1]) and _is_latin(word[0]):
            text += " "
        text += word
    return text


def _is_latin(character: str) -> bool:
    return character.isascii() and character.isalnum()


def _import_extra(module: str, extra: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise UsageError(f"segmenter {extra} is not installed: pip install 'vrbot[{extra}]'") from error
