"""From a model and a split to scored turns: the one way every system's answers take to a scorecard."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from vrbot.agent.replies import ROWS_AT_ONCE, as_model, search
from vrbot.config import Config, DecodingSettings
from vrbot.dialogue.batching import Limits, SessionBatch, collate, sequential_batches
from vrbot.dialogue.corpus import Corpus
from vrbot.dialogue.encoding import TextEncoder
from vrbot.dialogue.splits import Split
from vrbot.evaluation.likelihood import action_log_probs, response_log_prob
from vrbot.evaluation.posteriors import entity_rows, infer_action, infer_states, named_rows
from vrbot.evaluation.reach import reached_by_paths
from vrbot.evaluation.recorded import RecordedTurn, read_texts, recorded_turns
from vrbot.evaluation.turns import Evidence, Latents, ScoredTurn
from vrbot.model.contract import Perception
from vrbot.model.fixed import MentionTracker, SilentPolicy
from vrbot.model.vrbot import VRBot

WHOLE_RESPONSE = 1_000_000
"""References are never cut for measuring: perplexities of models that train on more or less of them compare."""


@dataclass(frozen=True)
class Answer:
    """What a system has to say about one turn; None where it has no such part."""

    text: str
    prior: Latents = field(default_factory=Latents)
    inference: Latents = field(default_factory=Latents)
    reached: frozenset[int] | None = None
    log_prob: float | None = None
    num_log_prob_tokens: int | None = None
    action_log_prob: float | None = None


@dataclass(frozen=True)
class Measured:
    """The scored turns of a system, and the time it took to write the replies."""

    turns: list[ScoredTurn]
    seconds: float


@dataclass(frozen=True, eq=False)
class PlacedBatch:
    """A batch, and for each row the number of its turn in the split."""

    batch: SessionBatch
    places: tuple[int, ...]


def measure_model(
    model: Any,
    corpus: Corpus,
    split_name: str,
    config: Config,
    decoding: DecodingSettings,
    sessions: Sequence[int] | None = None,
) -> Measured:
    """Every turn with a recorded reply, answered after the real conversation before it; nothing is random.

    `sessions` are indices of dialogues, all if None. States and actions come from the prior networks, and beside them
    from the inference networks where the model has any; the log probability is that of `likelihood`.
    """
    model.eval()
    seconds, answers = 0.0, dict[int, Answer]()
    for placed in placed_batches(corpus.split(split_name), config, sessions):
        begun = time.perf_counter()
        perception = as_model(model).perceive(placed.batch.inputs, placed.batch.layout)
        texts = reply_texts(model, perception, corpus.encoder, decoding)
        seconds += time.perf_counter() - begun
        found = _answers(model, placed.batch, perception, texts)
        answers |= dict(zip(placed.places, found, strict=True))
    recorded = recorded_turns(corpus, split_name, sessions)
    return Measured(score_answers(recorded, answers, corpus.encoder), seconds)


class ReplyTrials:
    """What a model perceives in some dialogues, once, so that replies to them can be tried in several ways."""

    def __init__(self, model: Any, corpus: Corpus, split_name: str, config: Config, sessions: Sequence[int]) -> None:
        model.eval()
        self._model, self._encoder = model, corpus.encoder
        self._perceived = [
            (placed.places, as_model(model).perceive(placed.batch.inputs, placed.batch.layout))
            for placed in placed_batches(corpus.split(split_name), config, sessions)
        ]
        self._recorded = recorded_turns(corpus, split_name, sessions)

    def write(self, decoding: DecodingSettings) -> list[ScoredTurn]:
        """The turns with replies searched for in this way, and nothing else of the model."""
        answers = dict[int, Answer]()
        for places, perception in self._perceived:
            texts = reply_texts(self._model, perception, self._encoder, decoding)
            answers |= dict(zip(places, map(Answer, texts), strict=True))
        return score_answers(self._recorded, answers, self._encoder)


def placed_batches(split: Split, config: Config, sessions: Sequence[int] | None = None) -> Iterator[PlacedBatch]:
    """The dialogues in batches of bounded size, whole references included."""
    wanted = None if sessions is None else np.asarray(sorted(sessions), dtype=np.int64)
    limits = Limits(config.network.max_context, config.network.max_characters, WHOLE_RESPONSE)
    turns_per_session = split.turns_per_session
    for members in sequential_batches(split, batch_size=64, max_rows=256):
        chosen = members if wanted is None else members[np.isin(members, wanted)]
        if not len(chosen):
            continue
        batch = collate(split, chosen, limits=limits)
        order = chosen[np.argsort(-turns_per_session[chosen], kind="stable")]  # as `collate` puts them
        places = split.session_offsets[order][batch.session.numpy()] + batch.turn.numpy()
        yield PlacedBatch(batch, tuple(places.tolist()))


@torch.no_grad()
def reply_texts(model: Any, perception: Perception, encoder: TextEncoder, decoding: DecodingSettings) -> list[str]:
    """The reply to each row that was perceived."""
    num_rows = len(perception.conditions.context_words)
    texts: list[str] = []
    for rows in torch.split(torch.arange(num_rows), ROWS_AT_ONCE):
        decoded = search(as_model(model), perception, rows, decoding)
        found = zip(decoded.tokens[:, 0].tolist(), decoded.lengths[:, 0].tolist(), strict=True)
        texts += [encoder.decode(tokens[:length]) for tokens, length in found]
    return texts


def score_answers(
    recorded: Sequence[RecordedTurn], answers: Mapping[int, Answer], encoder: TextEncoder
) -> list[ScoredTurn]:
    """Answers, by the number of their turn in the split, beside what was recorded."""
    given = [answers[turn.place] for turn in recorded]
    read = read_texts(encoder, [answer.text for answer in given])
    return [
        ScoredTurn(
            session_id=turn.session_id,
            turn=turn.turn,
            reply=answer.text,
            reference=turn.reference,
            reply_words=text.words,
            reference_words=turn.read.words,
            reply_entities=text.entities,
            reference_entities=turn.read.entities,
            gold=turn.gold,
            previous_gold_state=turn.previous_gold_state,
            prior=answer.prior,
            inference=answer.inference,
            evidence=None if answer.reached is None else Evidence(turn.context, answer.reached),
            log_prob=answer.log_prob,
            num_log_prob_tokens=answer.num_log_prob_tokens,
            action_log_prob=answer.action_log_prob,
        )
        for turn, answer, text in zip(recorded, given, read, strict=True)
    ]


def prior_latents(model: Any, perception: Perception) -> list[Latents]:
    """What the prior networks perceived in each row; a part that an ablation replaces by a fixed rule is None."""
    num_rows = len(perception.conditions.context_words)
    nothing: list[None] = [None] * num_rows
    with_state, with_action = has_state(model), has_action(model)
    states = named_rows(perception.state) if perception.state is not None and with_state else nothing
    keywords = named_rows(perception.keywords) if perception.keywords is not None and with_action else nothing
    categories = _categories(perception.category) if perception.category is not None and with_action else nothing
    return [Latents(*parts) for parts in zip(states, categories, keywords, strict=True)]


def inference_latents(model: VRBot, batch: SessionBatch) -> list[Latents]:
    """What the inference networks make of each row."""
    nothing: list[None] = [None] * len(batch.turn)
    with torch.no_grad():
        heard, response = model.hear(batch.inputs, batch.layout), model.hear_response(batch.targets)
        state = infer_states(model, heard, response, batch.layout)
        written = infer_action(model, heard, response, state)
    states = entity_rows(state) if has_state(model) else nothing
    keywords = entity_rows(written.action.keywords) if has_action(model) else nothing
    categories = _categories(written.scores.category) if has_action(model) else nothing
    return [Latents(*parts) for parts in zip(states, categories, keywords, strict=True)]


def has_state(model: Any) -> bool:
    """Whether the model infers a state."""
    return not isinstance(model, VRBot) or not isinstance(model.prior_tracker, MentionTracker)


def has_action(model: Any) -> bool:
    """Whether the model infers an action."""
    return not isinstance(model, VRBot) or not isinstance(model.prior_policy, SilentPolicy)


def _categories(log_probs: Tensor) -> list[int]:
    chosen: list[int] = log_probs.argmax(dim=-1).tolist()
    return chosen


def _answers(model: Any, batch: SessionBatch, perception: Perception, texts: Sequence[str]) -> list[Answer]:
    lengths = batch.targets.response_lengths
    log_probs = response_log_prob(model, batch, perception).tolist()
    nothing: list[float | None] = [None] * len(texts)
    inferred = inference_latents(model, batch) if isinstance(model, VRBot) else [Latents()] * len(texts)
    plans = isinstance(model, VRBot) and has_action(model)
    rows = zip(
        texts,
        prior_latents(model, perception),
        inferred,
        reached_by_paths(model, batch, perception),
        log_probs,
        lengths.tolist(),
        action_log_probs(model, batch) if plans else nothing,
        strict=True,
    )
    return [Answer(*row) for row in rows]
