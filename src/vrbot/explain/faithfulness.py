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
from vrbot.dialogue.batching import collate, limits_of
from vrbot.dialogue.splits import Split, no_labels
from vrbot.explain.evidence import Path, Place
from vrbot.explain.explainer import Explainer
from vrbot.explain.keywords import Reasoning
from vrbot.explain.paths import Edges, random_path, with_edges_only
from vrbot.explain.steering import Change, Perceived, perceive
from vrbot.knowledge.entities import Inventory
from vrbot.knowledge.retrieval import Subgraph
from vrbot.model.contract import Perception
from vrbot.model.policy_network import Action
from vrbot.model.spans import Span


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


@dataclass(frozen=True, eq=False)
class Kept:
    """The state and the action of one turn [1], to write from while the context changes."""

    state: Span
    action: Action

    @classmethod
    def of(cls, perceived: Perceived, row: int) -> Kept:
        rows = torch.tensor([row])
        return cls(perceived.states.select(rows), perceived.perception.conditions.action.select(rows))


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
def try_paths(reasoning: Reasoning, paths: Sequence[tuple[int, Edges]], random: np.random.Generator) -> list[Trial]:
    """Each of some paths to keywords at their positions, beside a random path of the same length that leads elsewhere;
    the policy is asked once for all of them."""
    if not paths:
        return []
    subgraph = reasoning.subgraph
    assert subgraph is not None, "a path needs a subgraph"
    hops, num_relations = reasoning.encoder.retriever.hops, reasoning.num_relations
    tried = [subgraph, with_edges_only(subgraph, (), hops, num_relations)]
    others = []
    for _, path in paths:
        goal = int(subgraph.nodes[subgraph.targets[path[-1]]])
        other = random_path(subgraph, len(path), goal, hops, num_relations, random)
        others.append(other)
        tried += [reasoning.without(path), with_edges_only(subgraph, path, hops, num_relations)]
        tried.append(subgraph if other is None else reasoning.without(other))
    asked = reasoning.probabilities(tried)  # [2 + 3 paths, L]
    trials = []
    for number, ((position, _), other) in enumerate(zip(paths, others, strict=True)):
        full, nothing = asked[:2, position].tolist()
        without, alone, another = asked[2 + 3 * number : 5 + 3 * number, position].tolist()
        trials.append(Trial(full, without, None if other is None else another, alone, nothing))
    return trials


@torch.no_grad()
def try_word(
    explainer: Explainer,
    conversation: Conversation,
    words: Sequence[int],
    index: int,
    source: Place,
    another: Place | None,
    kept: Kept | None = None,
) -> Trial:
    """A word of a reply and the word of the context it was copied from; state and action stay as they were.

    The words are taken out of the text and the conversation is heard anew. `kept` are the state and action where
    somebody has inferred them already.
    """
    said = [*conversation[:-1], (conversation[-1][0], "")]
    if kept is None:
        inventory = explainer.agent.pretrained.corpus.inventory
        perceived = perceive(explainer.model, explainer.agent.hear(said), Change(), inventory)
        kept = Kept.of(perceived, len(said) - 1)
    changed = [said, _without(said, source), _with_only(said, source), _with_only(said, None)]
    if another is not None:
        changed.append(_without(said, another))
    full, without, alone, nothing, *rest = _probabilities(explainer, changed, kept, words[: index + 1])
    return Trial(full, without, rest[0] if rest else None, alone, nothing)


def _probabilities(
    explainer: Explainer, conversations: Sequence[Conversation], kept: Kept, words: Sequence[int]
) -> list[float]:
    """How probable the last word is after those before it, in conversations that have the same number of turns."""
    model, corpus = explainer.model, explainer.agent.pretrained.corpus
    count, num_turns = len(conversations), len(conversations[0])
    together = Split(
        session_ids=tuple(map(str, range(count))),
        session_offsets=np.arange(count + 1, dtype=np.int64) * num_turns,
        texts=corpus.encoder.encode([text for said in conversations for turn in said for text in turn]),
        labels=no_labels(count * num_turns),
    )
    batch = collate(together, range(count), limits=limits_of(explainer.agent.config.network))
    heard = model.hear(batch.inputs, batch.layout)
    everywhere = torch.zeros(len(batch.turn), dtype=torch.long)
    conditions = model.conditions(heard, kept.state.select(everywhere), kept.action.select(everywhere))
    rows = torch.arange(len(batch.turn))[-count:]  # the last turns, in the order of the conversations
    _, state = model.begin_reply(Perception(None, None, None, conditions), rows)
    before = [model.generator.bos, *words[:-1]]
    for word in before:
        log_probs, state = model.generator.step(torch.full((count,), word), state)
    probabilities: list[float] = log_probs[:, words[-1]].double().exp().tolist()
    return probabilities


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
