"""Which entities a path explains: those that lead on from the conversation in the knowledge an action rests on.

A model that reasons over a subgraph rests on all of it, from the entities it entered it by; a model that selected one
fact rests on that fact alone. A model that names keywords without looking at a graph has no paths.
Letters: N rows (turns).
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from vrbot.baselines.knowledge_pieces import mentioned_so_far
from vrbot.baselines.postks import PostKS
from vrbot.dialogue.batching import SessionBatch
from vrbot.evaluation.explainability import reached_entities
from vrbot.evaluation.posteriors import entity_rows, named_rows
from vrbot.model.contract import Perception
from vrbot.model.fixed import SilentPolicy

NOWHERE = frozenset[int]()


def reached_by_paths(model: Any, batch: SessionBatch, perception: Perception) -> list[frozenset[int]] | list[None]:
    """Per row the entities at the end of a path; None for a model that names no keywords before it writes."""
    num_rows = len(batch.turn)
    if perception.keywords is None or isinstance(getattr(model, "prior_policy", None), SilentPolicy):
        return [None] * num_rows
    if isinstance(model, PostKS):
        seeds = mentioned_so_far(batch.inputs.mention_entities, batch.layout, model.num_seeds)
        return [ends_of_fact(*fact, frozenset(known)) for fact, known in zip(_facts(perception), seeds, strict=True)]
    encoder = getattr(model, "subgraph_encoder", None)
    if encoder is None:
        return [NOWHERE] * num_rows
    entered = [tuple(sorted(set(entities))) for entities in _entered_by(perception)]
    return [reached_entities(subgraph) for subgraph in encoder.retriever.retrieve_many(entered)]


def ends_of_fact(head: int, tail: int, known: frozenset[int]) -> frozenset[int]:
    """The ends of a fact to which it leads from what was said; a fact neither of whose ends was said leads nowhere."""
    if head < 0 or tail < 0:  # no fact, or one of an entity with itself
        return NOWHERE
    return frozenset(end for end, other in ((head, tail), (tail, head)) if other in known)


def _facts(perception: Perception) -> list[tuple[int, int]]:
    """Head and tail of the fact each row selected, -1 where there is none."""
    keywords: Tensor = perception.keywords  # type: ignore[assignment]
    return [(head, tail) for head, tail in keywords.tolist()]


def _entered_by(perception: Perception) -> list[tuple[int, ...]]:
    """The entities by which each row's subgraph was entered: the state, or what stands in its place."""
    if perception.state is not None:
        return named_rows(perception.state)
    return entity_rows(perception.conditions.state)
