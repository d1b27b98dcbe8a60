"""Systems that answer every turn alike, or repeat what was said: the floor of every table."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass

from vrbot.baselines.references.answers import (
    Experience,
    Phrasebook,
    ReferenceAnswer,
    learnt_keywords,
    most_frequent_text,
    reply_entities,
)
from vrbot.dialogue.splits import Split


@dataclass(frozen=True)
class SameAnswer:
    """One answer to everything."""

    same: ReferenceAnswer

    def answer(self, split: Split) -> list[ReferenceAnswer]:
        return [self.same] * split.num_turns


def most_frequent_reply(experience: Experience) -> SameAnswer:
    """The physicians' most frequent sentence, whatever the patient says."""
    text = most_frequent_text(experience.replies)
    named = [
        entities
        for reply, entities in zip(experience.replies, reply_entities(experience.train), strict=True)
        if reply == text
    ]
    return SameAnswer(ReferenceAnswer(text, None, experience.usual_category, named[0] if named else ()))


def most_frequent_keyword(experience: Experience) -> SameAnswer:
    """The keyword most turns have, in the sentence that most often names it and nothing else."""
    counts = Counter(entity for keywords in learnt_keywords(experience.train) for entity in set(keywords))
    keywords = tuple(sorted(counts, key=lambda entity: (-counts[entity], entity))[:1])
    return SameAnswer(ReferenceAnswer(experience.phrases.say(keywords), None, experience.usual_category, keywords))


@dataclass(frozen=True)
class CopyState:
    """The state is every entity said so far; the reply names them all."""

    phrases: Phrasebook
    category: int | None

    def answer(self, split: Split) -> list[ReferenceAnswer]:
        offsets, mentions = split.texts.mention_offsets.tolist(), split.texts.mention_entities
        answers = []
        for start, stop in itertools.pairwise(split.session_offsets.tolist()):
            for turn in range(start, stop):
                said = tuple(dict.fromkeys(mentions[offsets[2 * start] : offsets[2 * turn + 1]].tolist()))
                answers.append(ReferenceAnswer(self.phrases.say(said), said, self.category, said))
        return answers


def copy_the_state(experience: Experience) -> CopyState:
    """Names what has been named."""
    return CopyState(experience.phrases, experience.usual_category)
