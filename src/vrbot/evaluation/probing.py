"""The chain of numbers a run with latent states and actions is judged by, from the divergences to the replies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from vrbot.config import Config, DecodingSettings
from vrbot.dialogue.batching import SessionBatch
from vrbot.dialogue.corpus import Corpus
from vrbot.evaluation.entities import EntitySets, micro_entity_scores
from vrbot.evaluation.likelihood import perplexity_score
from vrbot.evaluation.measuring import (
    Answer,
    PlacedBatch,
    inference_latents,
    placed_batches,
    prior_latents,
    reply_texts,
    score_answers,
)
from vrbot.evaluation.obedience import exchanged_actions, gold_action, require_actions, under_action
from vrbot.evaluation.posteriors import entity_rows, infer_action
from vrbot.evaluation.recorded import RecordedTurn, read_texts, recorded_turns
from vrbot.evaluation.scorecard import Options, Resources, Value, measure
from vrbot.evaluation.turns import Latents, ScoredTurn
from vrbot.model.contract import Moment, Perception
from vrbot.model.policy_network import Action
from vrbot.model.vrbot import VRBot
from vrbot.objective.variational import VariationalObjective

SEED = 1
AFTER_ALL_ANNEALING = 10**9

LATENT_SCORES = (
    "state_f1",
    "state_new_f1",
    "action_f1",
    "action_f1_without_most_frequent",
    "category_accuracy",
    "category_macro_f1",
)
REPLY_SCORES = ("micro_f1", "micro_f1_without_most_frequent", "bleu_2", "distinct_1", "distinct_2")


@dataclass(frozen=True)
class ProbedTurn:
    """One turn as the probe saw it: three replies, and the reference's log probability under three actions."""

    replies: dict[str, str]  # under "prior", "gold" and "exchanged" actions
    log_probs: dict[str, float]  # under "prior", "inference" and "gold" actions
    num_tokens: int
    given: tuple[int, ...]  # the gold action's keywords as the generator was given them
    exchanged: bool
    prior: Latents
    inference: Latents


def probe(
    model: torch.nn.Module, corpus: Corpus, split_name: str, config: Config, decoding: DecodingSettings
) -> dict[str, Value]:
    """Every number of the chain; divergences in nats for each turn, scores in percent, None where it does not apply."""
    vrbot = require_actions(model, "a probe").eval()
    divergences: dict[str, float] = {}
    probed: dict[int, ProbedTurn] = {}
    for placed in placed_batches(corpus.split(split_name), config):
        for name, total in _divergences(vrbot, placed).items():
            divergences[name] = divergences.get(name, 0.0) + total
        found = _probe_batch(vrbot, placed.batch, corpus, decoding)
        probed |= dict(zip(placed.places, found, strict=True))
    recorded = recorded_turns(corpus, split_name)
    turns = [probed[turn.place] for turn in recorded]
    values: dict[str, Value] = {"num_turns": len(recorded), "none_offset": float(vrbot.none_offset)}
    values |= {name: total / max(len(recorded), 1) for name, total in sorted(divergences.items())}
    scored = _scored(recorded, probed, corpus)
    return {**values, **_activity(scored), **_scores(scored, corpus), **_obedience(recorded, turns, corpus)}


def _divergences(model: VRBot, placed: PlacedBatch) -> dict[str, float]:
    """The terms of the bounds, summed over turns: no labels, no free bits, no warm-up, the final temperature."""
    objective = model.objective
    if not isinstance(objective, VariationalObjective):
        return {}
    plain = {"free_bits_state": 0.0, "free_bits_action": 0.0, "kl_warmup_steps": 0, "split_reconstruction": False}
    bare = VariationalObjective(objective.settings.model_copy(update=plain), objective.preference, ())
    moment = Moment(AFTER_ALL_ANNEALING, 2, torch.Generator().manual_seed(SEED))
    with torch.no_grad():
        terms = bare(model, placed.batch, moment).terms
    return {name: float(total) for name, total in terms.items() if name.startswith(("kl_", "reconstruction"))}


@torch.no_grad()
def _probe_batch(model: VRBot, batch: SessionBatch, corpus: Corpus, decoding: DecodingSettings) -> list[ProbedTurn]:
    targets = batch.targets
    perception = model.perceive(batch.inputs, batch.layout)
    heard, response = model.hear(batch.inputs, batch.layout), model.hear_response(targets)
    own: Action = perception.conditions.action
    inferred = infer_action(model, heard, response, model.track(heard, batch.layout)).action
    gold, exchange = gold_action(model, targets, perception), exchanged_actions(own)

    def replies(action: Action) -> list[str]:
        return reply_texts(model, under_action(model, perception, action), corpus.encoder, decoding)

    def log_probs(seen: Perception) -> list[float]:
        found: Tensor = model.reply_log_prob(seen, targets.response, targets.response_lengths)
        return [float(value) for value in found]

    texts = {"prior": replies(own), "gold": replies(gold), "exchanged": replies(exchange.action)}
    told_of = {"inference": inferred, "gold": gold}
    logs = {"prior": log_probs(perception)}
    logs |= {name: log_probs(under_action(model, perception, action)) for name, action in told_of.items()}
    priors, posteriors, told = (
        prior_latents(model, perception),
        inference_latents(model, batch),
        entity_rows(gold.keywords),
    )
    return [
        ProbedTurn(
            replies={name: found[row] for name, found in texts.items()},
            log_probs={name: found[row] for name, found in logs.items()},
            num_tokens=int(targets.response_lengths[row]),
            given=told[row],
            exchanged=bool(exchange.counted[row]),
            prior=priors[row],
            inference=posteriors[row],
        )
        for row in range(len(batch.turn))
    ]


def _scored(recorded: Sequence[RecordedTurn], probed: dict[int, ProbedTurn], corpus: Corpus) -> list[ScoredTurn]:
    answers = {
        place: Answer(
            turn.replies["prior"],
            turn.prior,
            turn.inference,
            log_prob=turn.log_probs["prior"],
            num_log_prob_tokens=turn.num_tokens,
        )
        for place, turn in probed.items()
    }
    return score_answers(recorded, answers, corpus.encoder)


def _activity(turns: Sequence[ScoredTurn]) -> dict[str, Value]:
    """How many keywords an action names, and how often it names none."""
    values: dict[str, Value] = {}
    readers: dict[str, Callable[[ScoredTurn], Latents]] = {
        "": lambda turn: turn.prior,
        "inference_": lambda turn: turn.inference,
        "gold_": lambda turn: turn.gold,
    }
    for prefix, read in readers.items():
        spans = [span for span in (read(turn).keywords for turn in turns) if span is not None]
        values[f"{prefix}keywords_per_turn"] = float(np.mean([len(span) for span in spans])) if spans else None
        values[f"{prefix}none_share"] = 100 * float(np.mean([not span for span in spans])) if spans else None
    labels = [turn.gold.category for turn in turns if turn.gold.category is not None]
    values["majority_category_share"] = 100 * float(np.bincount(labels).max()) / len(labels) if labels else None
    return values


def _scores(turns: Sequence[ScoredTurn], corpus: Corpus) -> dict[str, Value]:
    names = corpus.inventory.names
    found = measure(turns, Options(), Resources(entity_names=names))
    kept = [*LATENT_SCORES, *(f"inference_{name}" for name in LATENT_SCORES), *REPLY_SCORES]
    return {name: found[name].value for name in kept if name in found}


def _obedience(recorded: Sequence[RecordedTurn], turns: Sequence[ProbedTurn], corpus: Corpus) -> dict[str, Value]:
    """What becomes of the reply when its action is the gold one, or another turn's."""
    said = read_texts(corpus.encoder, [turn.replies["gold"] for turn in turns])
    against_gold = [EntitySets(one.entities, turn.read.entities) for one, turn in zip(said, recorded, strict=True)]
    against_given = [EntitySets(one.entities, frozenset(turn.given)) for one, turn in zip(said, turns, strict=True)]
    changed = [turn.replies["exchanged"] != turn.replies["prior"] for turn in turns if turn.exchanged]
    values: dict[str, Value] = {
        "obedience": micro_entity_scores(against_gold).f1.value,
        "obedience_to_given_keywords": micro_entity_scores(against_given).f1.value,
        "changed_by_another_action": 100 * float(np.mean(changed)) if changed else None,
        "num_exchanged": len(changed),
    }
    for action in ("prior", "inference", "gold"):
        values[f"perplexity_{action}_action"] = perplexity_score(
            [
                replace(_empty_turn(turn), log_prob=seen.log_probs[action], num_log_prob_tokens=seen.num_tokens)
                for turn, seen in zip(recorded, turns, strict=True)
            ]
        ).value
    return values


def _empty_turn(turn: RecordedTurn) -> ScoredTurn:
    return ScoredTurn(turn.session_id, turn.turn, "", turn.reference, (), turn.read.words)
