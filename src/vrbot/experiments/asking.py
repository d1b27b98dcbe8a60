"""A simulated annotator: which labels an order of dialogues asks for, and how well the auto-labeller does after each.

The annotator knows the labels of the training split and gives them when asked, whole dialogues at a time; no others are
looked at. After each round the inference networks go on learning from all that was given, choose the next dialogues
(the first ones without having seen any), and are measured on the test split, whose labels nobody gave them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from vrbot.agent.replies import limits_of
from vrbot.config import Config
from vrbot.dialogue.corpus import Corpus
from vrbot.dialogue.splits import Split
from vrbot.dialogue.supervision import LabelMasks
from vrbot.errors import UsageError
from vrbot.evaluation.latents import latent_scores
from vrbot.evaluation.posteriors import entity_rows
from vrbot.evaluation.recorded import gold_latents
from vrbot.evaluation.turns import Latents, ScoredTurn
from vrbot.explain.active_learning import TurnFeatures, active_order, random_order, turn_features
from vrbot.explain.autolabel import AutoLabeller
from vrbot.explain.label_learning import LabelLearner
from vrbot.model.vrbot import VRBot

TRAIN, TEST = "train", "test"


@dataclass(frozen=True)
class Asking:
    """In which order labels are asked for, how many dialogues have them after each round, and how long is learnt."""

    order: Literal["active", "random"]
    dialogues: tuple[int, ...] = (10, 20, 40, 80, 160)
    updates: int = 120


@dataclass(frozen=True)
class Round:
    """After a round: dialogues and turns with labels, and scores of the inference networks on the test split."""

    dialogues: int
    turns: int
    scores: dict[str, float | None]
    num_turns: int

    def as_dict(self) -> dict[str, Any]:
        """As plain data; the scores go by the names they have in a scorecard."""
        named = {f"inference_{name}": value for name, value in self.scores.items()}
        return {"dialogues": self.dialogues, "turns": self.turns, "scores": {"num_turns": self.num_turns, **named}}


def ask(model: VRBot, corpus: Corpus, config: Config, asking: Asking, seed: int) -> Iterator[Round]:
    """The rounds, one after the other; the model learns in place."""
    split, limits = corpus.split(TRAIN), limits_of(config.network)
    if asking.dialogues[0] < 1 or asking.dialogues[-1] > split.num_sessions:
        raise UsageError(
            f"labels for {asking.dialogues[-1]} dialogues are to be asked for and {corpus.directory} has "
            f"{split.num_sessions} to train on: use a larger corpus"
        )
    labeller = AutoLabeller(model, limits)
    learner = LabelLearner(model, config.training, limits, seed)
    features, labelled = turn_features(split), list[int]()
    for count in asking.dialogues:
        wanted = count - len(labelled)
        labelled += next_dialogues(labeller, split, features, labelled, asking, seed)[:wanted]
        learner.learn(split, labelled, asking.updates)
        yield measured(labeller, corpus.split(TEST), labelled, int(split.turns_per_session[labelled].sum()))


def next_dialogues(
    labeller: AutoLabeller, split: Split, features: TurnFeatures, labelled: Sequence[int], asking: Asking, seed: int
) -> list[int]:
    """What has no labels yet, in the order asked for; labels that were not given are not looked at."""
    if asking.order == "random":
        return random_order(split.session_ids, labelled, seed=seed)
    unsure = np.ones(split.num_turns)
    if labelled:
        unsure = labeller.uncertainty(split, masks_of(split, labelled))
    return active_order(features, split.session_ids, unsure, labelled, seed=seed, count=asking.dialogues[-1])


def masks_of(split: Split, labelled: Sequence[int]) -> LabelMasks:
    """Every label of these sessions, and no other."""
    given = np.zeros(split.num_sessions, dtype=np.bool_)
    given[list(labelled)] = True
    turns = np.repeat(given, split.turns_per_session)
    return LabelMasks(turns, turns, turns)


def measured(labeller: AutoLabeller, split: Split, labelled: Sequence[int], turns: int) -> Round:
    """What the inference networks hold for a split of which they are shown no label."""
    found: list[ScoredTurn] = []
    for rows in labeller.label(split, range(split.num_sessions), masks_of(split, ())):
        inferred = rows.inferred
        parts = zip(
            rows.turns.tolist(),
            entity_rows(inferred.state.span),
            inferred.action.scores.category.argmax(dim=1).tolist(),
            entity_rows(inferred.action.action.keywords),
            inferred.answered.tolist(),
            strict=True,
        )
        for place, state, category, keywords, answered in parts:
            own = Latents(state, category, keywords) if answered else Latents(state)
            found.append(ScoredTurn("", place, "", "", (), (), gold=gold_latents(split, place), inference=own))
    scores = {name: score.value for name, score in latent_scores(found, "inference").items()}
    kept = ("state_f1", "action_f1", "category_accuracy")
    return Round(len(labelled), turns, {name: scores[name] for name in kept}, len(found))
