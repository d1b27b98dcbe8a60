"""The trivial systems of `baselines.references` on the same way to a scorecard as every model."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

from vrbot.baselines.references.answers import Experience, Reference, ReferenceAnswer
from vrbot.baselines.references.catalogue import REFERENCES
from vrbot.dialogue.corpus import Corpus
from vrbot.errors import UsageError
from vrbot.evaluation.measuring import Answer, Measured, score_answers
from vrbot.evaluation.recorded import recorded_turns
from vrbot.evaluation.turns import Latents


def measure_references(
    corpus: Corpus, split_name: str, names: Iterable[str] | None = None
) -> Iterator[tuple[str, Measured]]:
    """Each trivial system, learnt on the corpus's training split, over the turns of a split; all by default."""
    chosen = list(REFERENCES if names is None else names)
    unknown = [name for name in chosen if name not in REFERENCES]
    if unknown:
        raise UsageError(f"{unknown[0]!r} is not a trivial reference; known: {', '.join(REFERENCES)}")
    experience = Experience(corpus)
    for name in chosen:
        yield name, measure_reference(REFERENCES[name].learn(experience), corpus, split_name)


def measure_reference(system: Reference, corpus: Corpus, split_name: str) -> Measured:
    """A trivial system over every turn with a recorded reply."""
    begun = time.perf_counter()
    given = system.answer(corpus.split(split_name))
    seconds = time.perf_counter() - begun
    answers = {place: _answer(answer) for place, answer in enumerate(given)}
    return Measured(score_answers(recorded_turns(corpus, split_name), answers, corpus.encoder), seconds)


def _answer(given: ReferenceAnswer) -> Answer:
    return Answer(given.text, prior=Latents(given.state, given.category, given.keywords))
