"""Replies under an action that is given to the generator: does the reply do what the action says?

Letters: N rows (turns), C categories, K entities of a label.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from vrbot.config import Config, DecodingSettings
from vrbot.dialogue.batching import TurnTargets
from vrbot.dialogue.corpus import Corpus
from vrbot.errors import UsageError
from vrbot.evaluation.measuring import Answer, Measured, has_action, placed_batches, reply_texts, score_answers
from vrbot.evaluation.posteriors import entity_rows
from vrbot.evaluation.recorded import recorded_turns
from vrbot.evaluation.turns import Latents
from vrbot.model.contract import Perception
from vrbot.model.policy_network import Action
from vrbot.model.response_generator import Conditions
from vrbot.model.spans import span_of
from vrbot.model.vrbot import VRBot
from vrbot.objective.labels import in_order_of

ORACLE = "oracle-gold-action"
"""Not a system: it is told what the physician did, and shows how far the generator alone could get."""


def require_actions(model: object, use: str) -> VRBot:
    """The model as a VRBot with actions, or a UsageError."""
    if not isinstance(model, VRBot) or not has_action(model):
        raise UsageError(f"{use} needs a model that infers actions: vrbot, or one of its variants that has them")
    return model


def measure_oracle(
    model: VRBot, corpus: Corpus, split_name: str, config: Config, decoding: DecodingSettings
) -> Measured:
    """VRBot's generator with its own state and the gold action: an upper bound, no system."""
    model = require_actions(model, "the oracle").eval()
    answers: dict[int, Answer] = {}
    for placed in placed_batches(corpus.split(split_name), config):
        perception = model.perceive(placed.batch.inputs, placed.batch.layout)
        action = gold_action(model, placed.batch.targets, perception)
        texts = reply_texts(model, under_action(model, perception, action), corpus.encoder, decoding)
        rows = zip(texts, action.category.argmax(dim=-1).tolist(), entity_rows(action.keywords), strict=True)
        told = [Answer(text, prior=Latents(None, category, named)) for text, category, named in rows]
        answers |= dict(zip(placed.places, told, strict=True))
    return Measured(score_answers(recorded_turns(corpus, split_name), answers, corpus.encoder), 0.0)


def under_action(model: VRBot, perception: Perception, action: Action) -> Perception:
    """The same perception with an action behind the reply that it is told."""
    given: Conditions = perception.conditions
    read = model.keyword_reader(action.keywords, model.table())
    return replace(perception, conditions=replace(given, action=action, keywords_read=read, guessed=None))


def gold_action(model: VRBot, targets: TurnTargets, perception: Perception) -> Action:
    """The labelled action; where keywords have no label, what the recorded reply names, and where the category has
    none, the prior's own."""
    given: Conditions = perception.conditions
    num_entities = model.table.num_entities
    keywords = _either(targets.keywords_known, targets.keywords, targets.response_mentions)
    preference: Tensor = getattr(model.objective, "preference", torch.zeros(num_entities))
    ordered = in_order_of(keywords, preference)
    category = torch.nn.functional.one_hot(targets.category.clamp_min(0), given.action.category.shape[1]).float()
    return Action(
        torch.where(targets.category_known.unsqueeze(1), category, given.action.category),
        span_of(ordered, model.action_length, num_entities),
    )


def _either(known: Tensor, labelled: Tensor, said: Tensor) -> Tensor:
    """The rows of one where known, else of the other, [N, K] padded with -1."""
    width = max(labelled.shape[1], said.shape[1])
    wide = [torch.nn.functional.pad(part, (0, width - part.shape[1]), value=-1) for part in (labelled, said)]
    return torch.where(known.unsqueeze(1), wide[0], wide[1])


@dataclass(frozen=True, eq=False)
class Exchange:
    """Actions handed on to other turns; `counted` [N] is true where the action got is another than the own one."""

    action: Action
    counted: Tensor


def exchanged_actions(action: Action) -> Exchange:
    """Each row gets the action of the next row (in a circle) that names other keywords; its own if there is none."""
    named = [frozenset(row) for row in entity_rows(action.keywords)]
    num_rows = len(named)
    donors = []
    for row, own in enumerate(named):
        others = ((row + step) % num_rows for step in range(1, num_rows))
        donors.append(next((other for other in others if named[other] != own), row))
    chosen = torch.tensor(donors, dtype=torch.long)
    return Exchange(action.select(chosen), chosen != torch.arange(num_rows))
