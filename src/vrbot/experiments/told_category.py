"""The authors' leak as data: a corpus in which the patient's words give away the category of the reply to come.

Their code appends the labelled category of the response being generated to what the encoder reads, in training and at
test. No model here can be told a label in use; so that the worth of the leak can be measured all the same, this corpus
has it in the dialogues: what the patient says ends with a word that stands for the labelled category. Replies, labels,
entities and graph are those of the source. Nothing found on it compares with what an honest system finds.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vrbot.dialogue.canonical import session_to_line
from vrbot.dialogue.corpus import SPLITS, Corpus, write_knowledge, write_split
from vrbot.dialogue.manifest import write_manifest
from vrbot.dialogue.preparation_report import count_split
from vrbot.dialogue.ragged import Offsets, offsets_of
from vrbot.dialogue.session import CATEGORIES, Session, Turn
from vrbot.dialogue.sources import Place
from vrbot.dialogue.splits import EncodedTexts, Split
from vrbot.dialogue.vocabulary import CharacterVocabulary, code_points
from vrbot.errors import UsageError
from vrbot.files import sync_folder

MARKERS: Mapping[str, str] = {category: chr(0x10FFFA + number) for number, category in enumerate(CATEGORIES)}
"""The word that gives a category away: one character of the last private area, which every segmenter leaves alone."""


@dataclass(frozen=True)
class _Alphabet:
    """The ids that write the markers, by category: as words, as characters, and the blank before them."""

    words: NDArray[np.int32]
    characters: NDArray[np.int32]
    blank: NDArray[np.int32]


def write_told_corpus(corpus: Corpus, out: Path) -> None:
    """Writes the corpus with the leak at `out`, whole or not at all; UsageError where a split has no categories."""
    _check_labels(corpus)
    _refuse_markers(corpus, (*corpus.vocabulary.words, *corpus.inventory.surfaces))
    words = (*corpus.vocabulary.words, *MARKERS.values())
    characters = CharacterVocabulary(corpus.characters.characters + "".join(MARKERS.values()))
    alphabet = _Alphabet(
        words=np.arange(len(corpus.vocabulary), len(words), dtype=np.int32),
        characters=characters.ids(code_points("".join(MARKERS.values()))),
        blank=characters.ids(code_points(" ")),
    )
    with TemporaryDirectory(dir=out.parent, prefix=".draft-") as name:
        draft = Path(name) / out.name
        draft.mkdir()
        write_knowledge(draft, corpus.inventory, corpus.graph, words, characters)
        counts = {split: _write_split(corpus, split, draft, alphabet) for split in SPLITS}
        write_manifest(draft, _settings(corpus), {**corpus.manifest.counts, "splits": counts})
        os.replace(draft, out)
    sync_folder(out.parent)


def told_session(session: Session) -> Session:
    """The session as the corpus with the leak has it."""
    return replace(session, turns=tuple(_told_turn(turn) for turn in session.turns))


def _told_turn(turn: Turn) -> Turn:
    if turn.action is None or turn.action.category is None:
        return turn
    marker = MARKERS[turn.action.category]
    return replace(turn, patient=f"{turn.patient} {marker}" if turn.patient else marker)


def _write_split(corpus: Corpus, name: str, draft: Path, alphabet: _Alphabet) -> dict[str, Any]:
    source, sessions, path = corpus.split(name), corpus.sessions(name), draft / name
    _refuse_markers(corpus, (turn.patient + turn.physician for session in sessions for turn in session.turns))
    split = replace(source, texts=_told_texts(source, alphabet))
    told = enumerate(map(told_session, sessions), start=1)
    write_split(path, split, [f"{session_to_line(one, Place(path, number))}\n".encode() for number, one in told])
    return asdict(count_split(split))


def _told_texts(split: Split, alphabet: _Alphabet) -> EncodedTexts:
    """What reading the told sessions would give, without reading them again: nothing else can change."""
    texts = split.texts
    turns = np.flatnonzero(split.labels.category >= 0)
    category, patient = split.labels.category[turns], 2 * turns
    tokens, ends = _append(texts.tokens, texts.utterance_offsets, patient, alphabet.words[category])
    spoken = patient[np.diff(texts.character_offsets)[patient] > 0]  # a blank stands between words and marker
    blanks = alphabet.blank.repeat(len(spoken))
    characters, character_ends = _append(texts.characters, texts.character_offsets, spoken, blanks)
    characters, character_ends = _append(characters, character_ends, patient, alphabet.characters[category])
    return replace(
        texts, tokens=tokens, utterance_offsets=ends, characters=characters, character_offsets=character_ends
    )


def _append(
    values: NDArray[np.int32], offsets: Offsets, rows: NDArray[np.int64], last: NDArray[np.int32]
) -> tuple[NDArray[np.int32], Offsets]:
    """Values and offsets when each of these rows has one value more at its end."""
    counts = np.diff(offsets)
    counts[rows] += 1
    return np.insert(values, offsets[rows + 1], last), offsets_of(counts)


def _check_labels(corpus: Corpus) -> None:
    for split in SPLITS:
        if not np.any(corpus.split(split).labels.category >= 0):
            raise UsageError(
                f"the {split} dialogues of {corpus.directory} have no category labels, so there is none to be told: "
                "use a corpus whose actions have categories in all splits (the clinic's have, `vrbot simulate`)"
            )


def _refuse_markers(corpus: Corpus, texts: Iterable[str]) -> None:
    found = set(MARKERS.values()).intersection("".join(texts))
    if found:
        raise UsageError(
            f"{corpus.directory} holds the character U+{ord(min(found)):X}, which is to stand for a category and must "
            "occur nowhere else: take it out of the dialogues and names"
        )


def _settings(corpus: Corpus) -> dict[str, Any]:
    """Those of the source, and in plain sight that this corpus tells."""
    _, model = corpus.segmenter_settings
    own = {"segmenter_model": None if model is None else str(model.resolve()), "told_category": dict(MARKERS)}
    return {**corpus.manifest.settings, **own}
