"""The turns of a split as they were recorded: what every system's answers are held against."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from vrbot.dialogue.corpus import Corpus
from vrbot.dialogue.encoding import PieceKind, TextEncoder, read_pieces
from vrbot.dialogue.splits import Split
from vrbot.dialogue.vocabulary import Vocabulary
from vrbot.evaluation.embeddings import EntityVectors, entity_vectors, wanted_words
from vrbot.evaluation.turns import Latents
from vrbot.evaluation.vectors import WordVectors, train_word_vectors
from vrbot.evaluation.word2vec import read_word2vec


@dataclass(frozen=True)
class ReadText:
    """A text's words as the corpus writes them, and the entities it names."""

    words: tuple[str, ...]
    entities: frozenset[int]


@dataclass(frozen=True)
class RecordedTurn:
    """A turn with a recorded reply; `place` is its number among all turns of the split.

    `context` holds the entities said in the dialogue before the reply.
    """

    place: int
    session_id: str
    turn: int
    reference: str
    read: ReadText
    gold: Latents
    previous_gold_state: tuple[int, ...] | None
    context: frozenset[int]


def read_texts(encoder: TextEncoder, texts: Sequence[str]) -> list[ReadText]:
    """Replies and references alike: mentions by the linker, words by the segmenter, spelt as the vocabulary does.

    A word the vocabulary lacks stays as it is, so that two unknown words are not taken for the same.
    """
    pieces = read_pieces(texts, encoder.linker, encoder.segmenter)
    spelt = [_spelt(kind, encoder.vocabulary) for kind in pieces.kinds]
    named = [() if isinstance(kind, str) else kind[1] for kind in pieces.kinds]
    ids, offsets = pieces.ids.tolist(), pieces.offsets.tolist()
    found = []
    for start, stop in itertools.pairwise(offsets):
        kinds = ids[start:stop]
        words = tuple(word for kind in kinds for word in spelt[kind])
        found.append(ReadText(words, frozenset(entity for kind in kinds for entity in named[kind])))
    return found


def _spelt(kind: PieceKind, vocabulary: Vocabulary) -> tuple[str, ...]:
    if isinstance(kind, str):
        known = vocabulary.find(kind)
        return (kind.lower() if known is None else vocabulary.words[known],)
    return tuple(vocabulary.words[word] for word in vocabulary.spell_mention(*kind))


def recorded_turns(corpus: Corpus, split_name: str, sessions: Iterable[int] | None = None) -> list[RecordedTurn]:
    """Every turn of a split that has a reply, in corpus order; with `sessions` (indices) of those dialogues only."""
    split = corpus.split(split_name)
    chosen = range(split.num_sessions) if sessions is None else sorted(sessions)
    places: list[tuple[int, int, int, str]] = []
    for session in chosen:
        first = int(split.session_offsets[session])
        answers = [turn.physician for turn in corpus.session(split_name, session).turns]
        places += [(session, first + turn, turn, answer) for turn, answer in enumerate(answers) if answer.strip()]
    read = read_texts(corpus.encoder, [answer for *_, answer in places])
    return [
        RecordedTurn(
            place=place,
            session_id=split.session_ids[session],
            turn=turn,
            reference=answer,
            read=text,
            gold=gold_latents(split, place),
            previous_gold_state=() if turn == 0 else gold_latents(split, place - 1).state,
            context=_entities_before(split, place - turn, place),
        )
        for (session, place, turn, answer), text in zip(places, read, strict=True)
    ]


def gold_latents(split: Split, place: int) -> Latents:
    """The labels of a turn of the split; None where there is none."""
    labels = split.labels
    state = labels.state_entities[labels.state_offsets[place] : labels.state_offsets[place + 1]]
    keywords = labels.keyword_entities[labels.keyword_offsets[place] : labels.keyword_offsets[place + 1]]
    category = int(labels.category[place])
    return Latents(
        tuple(state.tolist()) if labels.state_known[place] else None,
        category if category >= 0 else None,
        tuple(keywords.tolist()) if labels.keywords_known[place] else None,
    )


def _entities_before(split: Split, first: int, place: int) -> frozenset[int]:
    offsets = split.texts.mention_offsets
    said = split.texts.mention_entities[offsets[2 * first] : offsets[2 * place + 1]]
    return frozenset(np.unique(said).tolist())


def corpus_vectors(corpus: Corpus, words: WordVectors | None = None) -> EntityVectors:
    """Vectors of the corpus's entities: from these word vectors, or from ones trained on its training split."""
    if words is None:
        texts = [
            text
            for session in corpus.sessions("train")
            for turn in session.turns
            for text in (turn.patient, turn.physician)
        ]
        words = train_word_vectors(read.words for read in read_texts(corpus.encoder, texts))
    return entity_vectors(corpus.inventory.names, words)


def vectors_from_file(corpus: Corpus, path: Path | str) -> EntityVectors:
    """Vectors of the corpus's entities from a word2vec file."""
    names = corpus.inventory.names
    return entity_vectors(names, read_word2vec(path, wanted_words(names)))
