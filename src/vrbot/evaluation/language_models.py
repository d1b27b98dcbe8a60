"""A language model behind an endpoint, on the same way to a scorecard as every other system."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from vrbot.baselines.llm.prompts import Hint, Question, Speaker
from vrbot.baselines.llm.system import LanguageModel
from vrbot.dialogue.corpus import Corpus
from vrbot.dialogue.session import Session
from vrbot.evaluation.measuring import Answer, Measured, score_answers
from vrbot.evaluation.recorded import recorded_turns

Conversation = Sequence[tuple[str, str]]
Hinting = Callable[[Conversation], Hint]
"""What another system makes of a conversation; the answer to its last turn is empty."""


def measure_language_model(
    system: LanguageModel,
    corpus: Corpus,
    split_name: str,
    hinting: Hinting | None = None,
    told: Callable[[int], None] | None = None,
) -> Measured:
    """Every turn with a recorded reply, answered after the real conversation before it.

    The time is not measured: it would be the cache's, and the same evaluation should give the same numbers.
    """
    recorded = recorded_turns(corpus, split_name)
    asked = list(_questions(corpus, split_name, {turn.place for turn in recorded}, hinting))
    replies = system.replies([question for _, question in asked], told)
    answers = {place: Answer(text) for (place, _), text in zip(asked, replies, strict=True)}
    return Measured(score_answers(recorded, answers, corpus.encoder), 0.0)


def conversation_before(session: Session, turn: int) -> list[tuple[str, str]]:
    """What was said up to a turn's reply; that reply is empty."""
    before = [(one.patient, one.physician) for one in session.turns[:turn]]
    return [*before, (session.turns[turn].patient, "")]


def question_of(conversation: Conversation, hint: Hint | None = None) -> Question:
    """The conversation utterance by utterance, without the answer to its last turn."""
    speakers: tuple[Speaker, Speaker] = ("patient", "physician")
    said = [(speaker, text) for turn in conversation for speaker, text in zip(speakers, turn, strict=True)]
    return Question(tuple(said[:-1]), hint)


def _questions(
    corpus: Corpus, split_name: str, places: set[int], hinting: Hinting | None
) -> Iterator[tuple[int, Question]]:
    place = -1
    for session in corpus.sessions(split_name):
        for turn in range(len(session.turns)):
            place += 1
            if place in places:
                conversation = conversation_before(session, turn)
                yield place, question_of(conversation, None if hinting is None else hinting(conversation))
