"""A simulated annotator: which labels an order of dialogues asks for, and how well the auto-labeller does after each.

The annotator knows the labels of the training split and gives them when asked, whole dialogues at a time; no others are
looked at. Two ways of giving them are counted: making every label, or changing what the auto-labeller, as it is in that
round, proposes wrongly, turn by turn: what it proposes goes on from what was corrected. After each round the inference
networks go on learning from all that was given, choose the next dialogues (the first ones without having seen any), and
are measured on the test split, whose labels nobody gave them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, astuple, dataclass
from typing import Any, Literal

import numpy as np

from vrbot.config import Config
from vrbot.dialogue.batching import limits_of
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
class Given:
    """What an annotator has done: dialogues, turns, labels made from nothing, or changed where they were proposed.

    A label is an entity put into a list or taken out of it, or a category. Who makes a state from nothing begins with
    that of the turn before; who changes one, with the proposal. Before anything has been learnt nothing is proposed.
    """

    dialogues: int = 0
    turns: int = 0
    made: int = 0
    changed: int = 0

    def __add__(self, more: Given) -> Given:
        return Given(*(ours + theirs for ours, theirs in zip(astuple(self), astuple(more), strict=True)))


@dataclass(frozen=True)
class Round:
    """After a round: what was given so far, and scores of the inference networks on the test split."""

    given: Given
    scores: dict[str, float | None]
    num_turns: int

    def as_dict(self) -> dict[str, Any]:
        """As plain data; the scores go by the names they have in a scorecard."""
        named = {f"inference_{name}": value for name, value in self.scores.items()}
        return {**asdict(self.given), "scores": {"num_turns": self.num_turns, **named}}


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
    features, labelled, given = turn_features(split), list[int](), Given()
    for count in asking.dialogues:
        asked = next_dialogues(labeller, split, features, labelled, asking, seed)[: count - len(labelled)]
        given, labelled = given + labels_of(labeller if labelled else None, split, asked), labelled + asked
        learner.learn(split, labelled, asking.updates)
        yield measured(labeller, corpus.split(TEST), given)


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


def labels_of(labeller: AutoLabeller | None, split: Split, sessions: Sequence[int]) -> Given:
    """What labelling these sessions takes, before anything is learnt from them; without a labeller all is made."""
    starts = split.session_offsets
    proposed = {} if labeller is None else dict(inferred_latents(labeller, split, sessions, turn_by_turn=True))
    turns = made = changed = 0
    for place in (place for one in sessions for place in range(int(starts[one]), int(starts[one + 1]))):
        gold = gold_latents(split, place)
        before = () if place in starts else gold_latents(split, place - 1).state
        by_hand, proposal = Latents(before, None, ()), proposed.get(place)
        turns += 1
        made += _changes(by_hand, gold)
        changed += _changes(by_hand if proposal is None else proposal, gold)
    return Given(len(sessions), turns, made, changed)


def _changes(begun: Latents, gold: Latents) -> int:
    """How many labels it takes to come from one to the other."""
    category = gold.category is not None and gold.category != begun.category
    return _edits(begun.state, gold.state) + _edits(begun.keywords, gold.keywords) + category


def _edits(begun: Sequence[int] | None, wanted: Sequence[int] | None) -> int:
    """Entities to put in and to take out; none where nothing is labelled."""
    return 0 if wanted is None else len(set(begun or ()) ^ set(wanted))


def inferred_latents(
    labeller: AutoLabeller, split: Split, sessions: Sequence[int], *, turn_by_turn: bool = False
) -> Iterator[tuple[int, Latents]]:
    """What the inference networks hold for the turns of some sessions; they are shown no label, or those of turns
    before."""
    shown = masks_of(split, sessions if turn_by_turn else ())
    for rows in labeller.label(split, sessions, shown, turn_by_turn=turn_by_turn):
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
            yield place, Latents(state, category, keywords) if answered else Latents(state)


def measured(labeller: AutoLabeller, split: Split, given: Given) -> Round:
    """How right the inference networks are about a split."""
    found = [
        ScoredTurn("", place, "", "", (), (), gold=gold_latents(split, place), inference=own)
        for place, own in inferred_latents(labeller, split, range(split.num_sessions))
    ]
    scores = {name: score.value for name, score in latent_scores(found, "inference").items()}
    kept = ("state_f1", "action_f1", "category_accuracy")
    return Round(given, {name: scores[name] for name in kept}, len(found))
