"""How well states and actions are inferred, for the prior and the inference networks alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from vrbot.evaluation.entities import (
    NOT_COUNTED,
    EntitySets,
    macro_entity_scores,
    micro_entity_scores,
    most_frequent_entity,
)
from vrbot.evaluation.pooling import PooledScore, mean_score
from vrbot.evaluation.turns import Latents, ScoredTurn

Network = Literal["prior", "inference"]


def latent_scores(turns: Sequence[ScoredTurn], network: Network) -> dict[str, PooledScore]:
    """State, action and category scores of one kind of network, over turns that have both label and prediction."""
    states = micro_entity_scores([_state_sets(turn, network) for turn in turns])
    new_states = micro_entity_scores([_new_state_sets(turn, network) for turn in turns])
    keyword_sets = [_keyword_sets(turn, network) for turn in turns]
    actions = micro_entity_scores(keyword_sets)
    frequent = most_frequent_keyword(turns)
    categories = [_category_sets(turn, network) for turn in turns]
    return {
        "state_f1": states.f1,
        "action_f1": actions.f1,
        "category_accuracy": mean_score([_accuracy(sets) for sets in categories]),
        "state_precision": states.precision,
        "state_recall": states.recall,
        "state_new_precision": new_states.precision,
        "state_new_recall": new_states.recall,
        "state_new_f1": new_states.f1,
        "action_precision": actions.precision,
        "action_recall": actions.recall,
        "action_f1_without_most_frequent": micro_entity_scores([sets.without(frequent) for sets in keyword_sets]).f1,
        "category_macro_f1": macro_entity_scores(categories).f1,
    }


def most_frequent_keyword(turns: Sequence[ScoredTurn]) -> int | None:
    """The keyword that is labelled in most turns."""
    return most_frequent_entity(turn.gold.keywords or () for turn in turns)


def _prediction(turn: ScoredTurn, network: Network) -> Latents:
    return turn.prior if network == "prior" else turn.inference


def _state_sets(turn: ScoredTurn, network: Network) -> EntitySets:
    return _sets(_prediction(turn, network).state, turn.gold.state)


def _new_state_sets(turn: ScoredTurn, network: Network) -> EntitySets:
    """Only what the labelled state of the turn before did not have, on both sides."""
    if turn.previous_gold_state is None:
        return NOT_COUNTED
    sets, known = _state_sets(turn, network), frozenset(turn.previous_gold_state)
    return EntitySets(sets.predicted - known, sets.gold - known)


def _keyword_sets(turn: ScoredTurn, network: Network) -> EntitySets:
    return _sets(_prediction(turn, network).keywords, turn.gold.keywords)


def _category_sets(turn: ScoredTurn, network: Network) -> EntitySets:
    """A category as a set of one, so that the mean over categories is the mean over entities."""
    predicted, gold = _prediction(turn, network).category, turn.gold.category
    return _sets(None if predicted is None else (predicted,), None if gold is None else (gold,))


def _sets(predicted: tuple[int, ...] | None, gold: tuple[int, ...] | None) -> EntitySets:
    if predicted is None or gold is None:
        return NOT_COUNTED
    return EntitySets(frozenset(predicted), frozenset(gold))


def _accuracy(sets: EntitySets) -> float | None:
    return float(sets.predicted == sets.gold) if sets.gold else None
