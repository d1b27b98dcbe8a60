"""The one way from text to ids, for prepared corpora and for live conversations alike.

Reading cuts texts into *pieces* (words and entity mentions) without a vocabulary; writing gives the pieces their ids.
Only the distinct kinds of pieces are handled one by one, everything else is array work.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from vrbot.dialogue.ragged import offsets_of, places_between
from vrbot.dialogue.segment import MentionFinder, Segmenter, normalise_space
from vrbot.dialogue.splits import EncodedTexts
from vrbot.dialogue.vocabulary import CharacterVocabulary, Vocabulary, code_points

PieceKind = str | tuple[str, tuple[int, ...]]
"""An ordinary word, or a mention with its surface and its entities."""

_SURROGATE = re.compile("[\ud800-\udfff]")
_TEXT_END = -1


@dataclass(frozen=True)
class Pieces:
    """Texts cut into pieces: text i has the pieces `ids[offsets[i]:offsets[i + 1]]`, indices into `kinds`.

    `codes` are its characters (lower case) as code points, in the same way.
    """

    kinds: tuple[PieceKind, ...]
    ids: NDArray[np.int32]
    offsets: NDArray[np.int64]
    codes: NDArray[np.uint32]
    code_offsets: NDArray[np.int64]

    def word_counts(self) -> dict[str, int]:
        """How often each word or mention surface occurs."""
        counts: dict[str, int] = {}
        occurrences = np.bincount(self.ids, minlength=len(self.kinds)).tolist()
        for kind, count in zip(self.kinds, occurrences, strict=True):
            text = kind if isinstance(kind, str) else kind[0]
            counts[text] = counts.get(text, 0) + count
        return counts


def read_pieces(texts: Iterable[str], linker: MentionFinder, segmenter: Segmenter) -> Pieces:
    """Cuts texts into pieces: mentions first, then the gaps between them.

    All texts go through linker and segmenter at once, each as one line; neither looks beyond the end of a line.
    """
    number: defaultdict[PieceKind, int] = defaultdict()
    number.default_factory = number.__len__
    line_end = number["\n"]
    lines = _SURROGATE.sub("\ufffd", "".join([f"{normalise_space(text)}\n" for text in texts]))
    mentions = linker.find(lines)
    starts, ends = [mention.start for mention in mentions], [mention.end for mention in mentions]
    kinds = [(lines[mention.start : mention.end], mention.entities) for mention in mentions]
    text_ends = np.flatnonzero(code_points(lines) == ord("\n"))
    # The gaps are cut as one text, a line end in the place of each mention. What each line end stands for, in order:
    stands_for = np.full(len(text_ends) + len(mentions), _TEXT_END, dtype=np.int32)
    stands_for[np.searchsorted(text_ends, starts) + np.arange(len(mentions))] = [number[kind] for kind in kinds]
    gaps = [lines[start:end] for start, end in zip([0, *ends], [*starts, len(lines)], strict=True)]
    words = segmenter.cut("\n".join(gaps))
    ids = np.fromiter(map(number.__getitem__, words), dtype=np.int32, count=len(words))
    ids[ids == line_end] = stands_for
    return _without_space(tuple(number), ids, code_points(lines.lower()))


def _without_space(kinds: tuple[PieceKind, ...], ids: NDArray[np.int32], codes: NDArray[np.uint32]) -> Pieces:
    """Drops pieces of white space (the line end is one of them) and finds where each text ends."""
    visible = np.array([type(kind) is not str or not kind.isspace() for kind in kinds] + [True])  # -1: a text's end
    ids = ids[visible[ids]]
    ends, code_ends = np.flatnonzero(ids == _TEXT_END), np.flatnonzero(codes == ord("\n"))
    renumbered = (np.cumsum(visible) - 1).astype(np.int32)
    return Pieces(
        kinds=tuple(compress(kinds, visible.tolist())),
        ids=renumbered[ids[ids != _TEXT_END]],
        offsets=_offsets_without(ends),
        codes=codes[codes != ord("\n")],
        code_offsets=_offsets_without(code_ends),
    )


def _offsets_without(ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where rows begin once the marks at their ends are taken out."""
    return np.concatenate([[0], ends - np.arange(len(ends))]).astype(np.int64)


def merge_pieces(parts: Sequence[Pieces]) -> Pieces:
    """The texts of all parts in their order."""
    number: defaultdict[PieceKind, int] = defaultdict()
    number.default_factory = number.__len__
    ids = [np.zeros(0, dtype=np.int32)]
    for part in parts:
        ids.append(np.array([number[kind] for kind in part.kinds], dtype=np.int32)[part.ids])
    return Pieces(
        kinds=tuple(number),
        ids=np.concatenate(ids),
        offsets=offsets_of(np.concatenate([[0], *(np.diff(part.offsets) for part in parts)]))[1:],
        codes=np.concatenate([np.zeros(0, dtype=np.uint32), *(part.codes for part in parts)]),
        code_offsets=offsets_of(np.concatenate([[0], *(np.diff(part.code_offsets) for part in parts)]))[1:],
    )


@dataclass(frozen=True)
class _Spelling:
    """How each kind of piece is written: its word ids, and its mentions with the word they belong to."""

    tokens: NDArray[np.int32]
    token_offsets: NDArray[np.int64]
    mentions: NDArray[np.int32]
    mention_words: NDArray[np.int32]
    mention_offsets: NDArray[np.int64]


def _spell(kinds: Sequence[PieceKind], vocabulary: Vocabulary) -> _Spelling:
    tokens: list[int] = []
    mentions: list[int] = []
    mention_words: list[int] = []
    token_ends, mention_ends = [0], [0]
    for kind in kinds:
        if isinstance(kind, str):
            tokens.append(vocabulary.id_of(kind))
        else:
            surface, entities = kind
            written = vocabulary.spell_mention(surface, entities)
            tokens += written
            mentions += entities
            mention_words += [0] * len(entities) if len(written) == 1 else range(len(entities))
        token_ends.append(len(tokens))
        mention_ends.append(len(mentions))
    return _Spelling(
        tokens=np.array(tokens, dtype=np.int32),
        token_offsets=np.array(token_ends, dtype=np.int64),
        mentions=np.array(mentions, dtype=np.int32),
        mention_words=np.array(mention_words, dtype=np.int32),
        mention_offsets=np.array(mention_ends, dtype=np.int64),
    )


def write_pieces(pieces: Pieces, vocabulary: Vocabulary, characters: CharacterVocabulary) -> EncodedTexts:
    """The pieces as ids of the vocabulary."""
    spelling = _spell(pieces.kinds, vocabulary)
    words = places_between(spelling.token_offsets[pieces.ids], spelling.token_offsets[pieces.ids + 1])
    piece_starts = offsets_of(np.diff(spelling.token_offsets)[pieces.ids])
    mentions = places_between(spelling.mention_offsets[pieces.ids], spelling.mention_offsets[pieces.ids + 1])
    utterance_offsets = piece_starts[pieces.offsets]
    text_of_piece = np.repeat(np.arange(len(pieces.offsets) - 1), np.diff(pieces.offsets))
    positions = piece_starts[mentions.row] + spelling.mention_words[mentions.index]
    mentions_before = offsets_of(np.diff(spelling.mention_offsets)[pieces.ids])
    return EncodedTexts(
        tokens=spelling.tokens[words.index],
        utterance_offsets=utterance_offsets,
        mention_entities=spelling.mentions[mentions.index],
        mention_positions=(positions - utterance_offsets[text_of_piece[mentions.row]]).astype(np.int32),
        mention_offsets=mentions_before[pieces.offsets],
        characters=characters.ids(pieces.codes),
        character_offsets=pieces.code_offsets,
    )


@dataclass(frozen=True)
class TextEncoder:
    """Turns texts into ids: linker and segmenter read them, vocabularies write them."""

    linker: MentionFinder
    segmenter: Segmenter
    vocabulary: Vocabulary
    characters: CharacterVocabulary

    def encode(self, texts: Sequence[str]) -> EncodedTexts:
        return write_pieces(read_pieces(texts, self.linker, self.segmenter), self.vocabulary, self.characters)

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of a reply's word ids: of those that count as written."""
        words = self.vocabulary.words
        return self.segmenter.join(words[token] for token in self.vocabulary.written(tokens))
