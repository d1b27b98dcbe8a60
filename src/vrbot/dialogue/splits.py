"""A split of a corpus as flat arrays: the form in which models read dialogues."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class EncodedTexts:
    """Texts as ids, end to end; text i has the tokens `utterance_offsets[i]:utterance_offsets[i + 1]`, and so on.

    A token that names two entities gives two mentions; `mention_positions` count tokens from the text's beginning.
    """

    tokens: NDArray[np.int32]
    utterance_offsets: NDArray[np.int64]
    mention_entities: NDArray[np.int32]
    mention_positions: NDArray[np.int32]
    mention_offsets: NDArray[np.int64]
    characters: NDArray[np.int32]
    character_offsets: NDArray[np.int64]


@dataclass(frozen=True)
class Labels:
    """What is labelled of each turn; `*_known` tells "labelled: none" from "not labelled", as category -1 does."""

    state_entities: NDArray[np.int32]
    state_offsets: NDArray[np.int64]
    state_known: NDArray[np.bool_]
    category: NDArray[np.int8]
    keyword_entities: NDArray[np.int32]
    keyword_offsets: NDArray[np.int64]
    keywords_known: NDArray[np.bool_]


@dataclass(frozen=True)
class Split:
    """Sessions in order: text 2i is what the patient said in turn i, text 2i + 1 what the physician answered.

    Session s has the turns `session_offsets[s]:session_offsets[s + 1]`.
    """

    session_ids: tuple[str, ...]
    session_offsets: NDArray[np.int64]
    texts: EncodedTexts
    labels: Labels

    @property
    def num_sessions(self) -> int:
        return len(self.session_ids)

    @property
    def num_turns(self) -> int:
        return len(self.labels.category)

    @property
    def turns_per_session(self) -> NDArray[np.int64]:
        return np.diff(self.session_offsets)

    @property
    def tokens_per_session(self) -> NDArray[np.int64]:
        """How many tokens the texts of each session have, int64 [S]."""
        return np.diff(self.texts.utterance_offsets[2 * self.session_offsets])

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Every array by its name on disk."""
        return {"session_offsets": self.session_offsets, **vars(self.texts), **vars(self.labels)}


def no_labels(num_turns: int) -> Labels:
    """Labels of turns for which nothing is labelled."""
    return Labels(
        state_entities=np.zeros(0, dtype=np.int32),
        state_offsets=np.zeros(num_turns + 1, dtype=np.int64),
        state_known=np.zeros(num_turns, dtype=np.bool_),
        category=np.full(num_turns, -1, dtype=np.int8),
        keyword_entities=np.zeros(0, dtype=np.int32),
        keyword_offsets=np.zeros(num_turns + 1, dtype=np.int64),
        keywords_known=np.zeros(num_turns, dtype=np.bool_),
    )
