"""What-if: the last turn with another state or action, all else inferred as the model would have from there on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import Tensor

from vrbot.dialogue.batching import SessionBatch
from vrbot.dialogue.session import CATEGORIES
from vrbot.errors import UsageError
from vrbot.knowledge.entities import Inventory
from vrbot.model.contract import Perception
from vrbot.model.policy_network import ActionClamp, PolicyNetwork, WrittenAction
from vrbot.model.set_policy import SetPolicy
from vrbot.model.spans import Choose, Clamp, Span, one_hot_choice, span_of
from vrbot.model.state_tracker import StateTracker
from vrbot.model.vrbot import Heard, VRBot


@dataclass(frozen=True)
class Change:
    """What is given instead of inferred, by name; None: as the model infers it.

    The state keeps its order. Keywords are ordered as the policy would order them where they are a set, else as given.
    """

    state: tuple[str, ...] | None = None
    category: str | None = None
    keywords: tuple[str, ...] | None = None

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Change:
        """From plain values, such as a request holds; UsageError says what is wrong with them."""
        known = [field.name for field in fields(cls)]
        if unknown := [name for name in content if name not in known]:
            raise UsageError(f"{unknown[0]!r} cannot be changed: choose among {', '.join(known)}")
        category = content.get("category")
        if category is not None and category not in CATEGORIES:
            raise UsageError(f"{category!r} is not a category: choose one of {', '.join(CATEGORIES)}")
        return cls(_names(content, "state"), category, _names(content, "keywords"))

    @property
    def changed(self) -> tuple[str, ...]:
        """The names of the parts that are given."""
        return tuple(field.name for field in fields(self) if getattr(self, field.name) is not None)


@dataclass(frozen=True, eq=False)
class Perceived:
    """What a model heard, the states it wrote along the session, and what it makes of each turn."""

    heard: Heard
    states: Span
    perception: Perception


@torch.no_grad()
def perceive(model: VRBot, batch: SessionBatch, change: Change, inventory: Inventory) -> Perceived:
    """`VRBot.perceive` of one session, with the change in its last turn.

    Every step is the one the model takes itself, so that the result has the bits it would have had if the networks
    had inferred what is given here.
    """
    _check(model, change)
    heard = model.hear(batch.inputs, batch.layout)
    states = model.track(heard, batch.layout)
    if change.state is not None:
        wanted = _ids(change.state, inventory, model.state_length, "state")
        states = _with_last_row(states, span_of(wanted, model.state_length, model.table.num_entities))
    written = _act(model, heard, states, change, inventory)
    category = written.scores.category
    if change.category is not None:
        category = category.clone()
        category[-1] = written.action.category[-1].log()  # what is given is certain
    perception = Perception(
        state=_entity_ids(states),
        category=category,
        keywords=_entity_ids(written.action.keywords),
        conditions=model.conditions(heard, states, written.action),
    )
    return Perceived(heard, states, perception)


def _act(model: VRBot, heard: Heard, states: Span, change: Change, inventory: Inventory) -> WrittenAction:
    evidence = model.policy_evidence(heard, states)
    policy: Any = model.prior_policy
    wanted = None if change.keywords is None else _ids(change.keywords, inventory, model.action_length, "keywords")
    choose: Choose = model.decide
    if wanted is not None and isinstance(policy, SetPolicy):
        choose, wanted = _NamingTheseLast(model, wanted[0]), None
    if change.category is None and wanted is None:
        decided: WrittenAction = policy.decide(evidence, model.action_length, choose)
        return decided
    clamp = _clamp(model, len(heard.words), change.category, wanted)
    written: WrittenAction = policy.write(evidence, model.action_length, one_hot_choice, choose, clamp)
    return written


@dataclass(frozen=True, eq=False)
class _NamingTheseLast:
    """A choice between named and not named [N, E, 2] that names exactly these entities [K] in the last row."""

    model: VRBot
    entities: Tensor

    def __call__(self, log_probs: Tensor) -> Tensor:
        chosen = self.model.decide(log_probs)
        chosen[-1, :, 0], chosen[-1, :, 1] = 0.0, 1.0
        chosen[-1, self.entities, 0], chosen[-1, self.entities, 1] = 1.0, 0.0
        return chosen


def _clamp(model: VRBot, num_rows: int, category: str | None, keywords: Tensor | None) -> ActionClamp:
    """The last row's category and keywords [1, K], where they are given."""
    last = torch.arange(num_rows) == num_rows - 1
    wanted = torch.tensor(0 if category is None else CATEGORIES.index(category))
    categories = torch.nn.functional.one_hot(wanted, len(CATEGORIES)).float().expand(num_rows, -1)
    ids = torch.full((1, 0), -1) if keywords is None else keywords
    span = span_of(ids.expand(num_rows, -1), model.action_length, model.table.num_entities)
    nothing = torch.zeros_like(last)
    return ActionClamp(
        nothing if category is None else last, categories, Clamp(nothing if keywords is None else last, span)
    )


def _with_last_row(states: Span, given: Span) -> Span:
    return Span(torch.cat((states.weights[:-1], given.weights)))


def _entity_ids(span: Span) -> Tensor:
    return torch.where(span.mask, span.ids, -1)


def _ids(names: Sequence[str], inventory: Inventory, room: int, what: str) -> Tensor:
    """The ids [1, K] of entities; each once, and no more than there is room for."""
    ids: list[int] = []
    for name in names:
        entity = inventory.id_of(name)
        if entity is None:
            raise UsageError(f"{name!r} in the {what} is no entity of this model: use a name of its inventory")
        ids.append(entity)
    distinct = list(dict.fromkeys(ids))
    if len(distinct) > room:
        raise UsageError(f"the {what} has room for {room} entities, got {len(distinct)}: leave some out")
    return torch.tensor([distinct], dtype=torch.long).view(1, -1)


def _check(model: VRBot, change: Change) -> None:
    if change.state is not None and not isinstance(model.prior_tracker, StateTracker):
        raise UsageError("this model has no state that could be changed")
    acts = isinstance(model.prior_policy, PolicyNetwork | SetPolicy)
    if not acts and (change.category is not None or change.keywords is not None):
        raise UsageError("this model has no action that could be changed")


def _names(content: Mapping[str, Any], what: str) -> tuple[str, ...] | None:
    names = content.get(what)
    if names is None:
        return None
    if isinstance(names, str) or not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise UsageError(f"{what} must be a list of names, got {names!r}")
    return tuple(names)
