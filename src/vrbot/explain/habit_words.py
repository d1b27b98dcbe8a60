"""Which words of the conversation usually lead to a keyword: the largest terms of a sum (`model.habits`), exact."""

from __future__ import annotations

import re
from dataclasses import dataclass

import torch
from torch import Tensor

from vrbot.dialogue.batching import SessionBatch
from vrbot.dialogue.vocabulary import NUM_CHARACTER_SPECIALS, CharacterVocabulary
from vrbot.explain.evidence import HabitWord
from vrbot.model.detectors import ContextDetector
from vrbot.model.habits import CHARACTER_BITS, Habits
from vrbot.model.vrbot import VRBot

MOST_WORDS = 3
"""So many are shown of a keyword."""


@dataclass(frozen=True, eq=False)
class HabitTerms:
    """What each n-gram said so far adds to the logits of each entity that habits speak of, in one turn."""

    ngrams: Tensor  # [S] their numbers, see `model.habits.ngram_codes`
    terms: Tensor  # [S, K]
    bias: Tensor  # [K]
    entities: Tensor  # [K]
    characters: CharacterVocabulary
    said: str

    @classmethod
    def of(
        cls, model: VRBot, batch: SessionBatch, row: int, characters: CharacterVocabulary, said: str
    ) -> HabitTerms | None:
        """None where the policy minds no habits; `said` is the conversation's text."""
        habits, policy = model.habits, model.prior_policy
        trust = [each.trust for each in getattr(policy, "detectors", ()) if isinstance(each, ContextDetector)]
        if not isinstance(habits, Habits) or not trust or trust[0] is None:
            return None
        with torch.no_grad():
            heard, ngrams = habits.histories(batch.inputs, batch.layout)
            terms = trust[0] * heard[row].unsqueeze(1) * habits.weights[ngrams]
            bias = trust[0] * habits.bias
            return cls(habits.ngrams[ngrams], terms, bias, habits.entities, characters, said.lower())

    def score(self, entity: int) -> float:
        """All terms of an entity together: what habits add to its logit."""
        columns = self.entities == entity
        return float(self.terms[:, columns].sum() + self.bias[columns].sum())

    def words(self, entity: int) -> tuple[HabitWord, ...]:
        """Those that speak most for an entity and can be read, none that is part of one before it."""
        column = self.terms[:, self.entities == entity].sum(dim=1)
        found: list[HabitWord] = []
        for place in column.argsort(descending=True).tolist():
            text, score = self._text(int(self.ngrams[place])), float(column[place])
            if score <= 0 or len(found) == MOST_WORDS:
                break
            if text and not any(text in word.text or word.text in text for word in found):
                found.append(HabitWord(text, score))
        return tuple(found)

    def _text(self, ngram: int) -> str:
        """An n-gram as it can be read: two or three letters of Chinese, or the word that holds them; else nothing."""
        numbers = [ngram >> CHARACTER_BITS * place & (1 << CHARACTER_BITS) - 1 for place in range(3)]
        known = [number - NUM_CHARACTER_SPECIALS for number in numbers if number]
        text = "" if min(known) < 0 else "".join(self.characters.characters[number] for number in known)
        if len(text) < 2 or not text.isalpha():
            return ""
        word = re.search(rf"[a-z]*{text}[a-z]*", self.said) if text.isascii() else None
        return text if word is None else word.group()
