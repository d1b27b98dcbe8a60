"""Are explanations true? What is shown is taken away, or left alone, and the model is asked again.

Deletion: without the shown path (or word) the keyword (or word) should be less probable, and fall further than without
another one of the same size. Insertion: with it alone it should be more probable than with nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from vrbot.agent.respond import Conversation
from vrbot.agent.searching import Search
from vrbot.config import DecodingSettings
from vrbot.explain.evidence import Path, Place
from vrbot.explain.explainer import Explainer
from vrbot.explain.keywords import Reasoning
from vrbot.explain.paths import Edges, random_path, with_edges_only
from vrbot.explain.steering import Change, perceive
from vrbot.explain.words import shares_along
from vrbot.knowledge.entities import Inventory
from vrbot.knowledge.retrieval import Subgraph


@dataclass(frozen=True)
class Trial:
    """Probabilities of one keyword or word: as it was, without what is shown, without another, with it alone, with
    nothing; None where there is no other to take away."""

    full: float
    without: float
    without_another: float | None
    alone: float
    nothing: float

    @property
    def deletion_lowers(self) -> bool:
        return self.without < self.full

    @property
    def lowers_more_than_another(self) -> bool | None:
        return None if self.without_another is None else self.without < self.without_another

    @property
    def insertion_raises(self) -> bool:
        return self.alone > self.nothing


def edges_of(subgraph: Subgraph, path: Path, relations: Sequence[str], inventory: Inventory) -> Edges | None:
    """The edges of a shown path in the subgraph; None where one of them is not there."""
    ids = [inventory.id_of(name) for name in path.entities]
    edges = []
    for source, relation, target in zip(ids, path.relations, ids[1:], strict=False):
        if source is None or target is None or relation not in relations:
            return None
        match = (
            (subgraph.nodes[subgraph.sources] == source)
            & (subgraph.nodes[subgraph.targets] == target)
            & (subgraph.relations == relations.index(relation))
        )
        if not match.any():
            return None
        edges.append(int(np.flatnonzero(match)[0]))
    return tuple(edges) if edges else None


@torch.no_grad()
def try_path(reasoning: Reasoning, position: int, path: Edges, random: np.random.Generator) -> Trial:
    """A path to the keyword at a position, beside a random path of the same length that leads elsewhere."""
    subgraph = reasoning.subgraph
    assert subgraph is not None, "a path needs a subgraph"
    hops, num_relations = reasoning.encoder.retriever.hops, reasoning.num_relations
    goal = int(subgraph.nodes[subgraph.targets[path[-1]]])
    other = random_path(subgraph, len(path), goal, hops, num_relations, random)
    tried = [
        subgraph,
        reasoning.without(path),
        with_edges_only(subgraph, path, hops, num_relations),
        with_edges_only(subgraph, (), hops, num_relations),
    ]
    if other is not None:
        tried.append(reasoning.without(other))
    full, without, alone, nothing, *another = reasoning.probabilities(tried)[:, position].tolist()
    return Trial(full, without, another[0] if another else None, alone, nothing)


@torch.no_grad()
def try_word(
    explainer: Explainer,
    conversation: Conversation,
    words: Sequence[int],
    index: int,
    source: Place,
    another: Place | None,
) -> Trial:
    """A word of a reply and the word of the context it was copied from; state and action stay as they were.

    The words are taken out of the text and the conversation is heard anew.
    """
    said = [(patient, physician) for patient, physician in conversation]
    kept = _as_inferred(explainer, said)

    def probability(heard: list[tuple[str, str]]) -> float:
        batch = explainer.agent.hear(heard)
        perceived = perceive(explainer.model, batch, kept, explainer.agent.pretrained.corpus.inventory)
        found = shares_along(explainer.model, perceived.perception, len(batch.turn) - 1, words[: index + 1])
        return float(np.exp(found[index].log_prob))

    return Trial(
        full=probability(said),
        without=probability(_without(said, source)),
        without_another=None if another is None else probability(_without(said, another)),
        alone=probability(_with_only(said, source)),
        nothing=probability(_with_only(said, None)),
    )


def _as_inferred(explainer: Explainer, said: Conversation) -> Change:
    """The model's own state and action of the last turn, as a change; what it does not infer stays out."""
    reply = explainer.agent.respond(said, Search("greedy", DecodingSettings(max_length=1)))
    return Change(
        None if reply.state is None else tuple(entity.name for entity in reply.state),
        reply.category,
        None if reply.keywords is None else tuple(keyword.name for keyword in reply.keywords),
    )


def _without(said: list[tuple[str, str]], place: Place) -> list[tuple[str, str]]:
    """The conversation with a blank in a word's place."""
    return _replaced(said, place, lambda text: f"{text[: place.start]} {text[place.end :]}")


def _with_only(said: list[tuple[str, str]], place: Place | None) -> list[tuple[str, str]]:
    """The last turn's context with one word in it, or none."""
    emptied = [*said]
    if len(said) > 1:
        emptied[-2] = (said[-2][0], "")
    emptied[-1] = ("", said[-1][1])
    if place is None:
        return emptied
    texts = said[place.turn]
    word = texts[0 if place.speaker == "patient" else 1][place.start : place.end]
    return _replaced(emptied, place, lambda text: word)


def _replaced(said: list[tuple[str, str]], place: Place, change: Callable[[str], str]) -> list[tuple[str, str]]:
    patient, physician = said[place.turn]
    changed = (change(patient), physician) if place.speaker == "patient" else (patient, change(physician))
    return [*said[: place.turn], changed, *said[place.turn + 1 :]]
