"""Name -> system: VRBot, its ablations and the baselines, with what each needs and can use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from torch import nn

from vrbot.baselines.seq2seq import build_seq2seq
from vrbot.config import Config
from vrbot.dialogue.corpus import Corpus
from vrbot.errors import UsageError
from vrbot.model.build import Assembly, World, build_vrbot, keyword_order, world_of
from vrbot.objective.variational import VariationalObjective

Builder = Callable[[Config, World], nn.Module]


@dataclass(frozen=True)
class Entry:
    """A system: its idea in a sentence, the labels it can use, and how to build it."""

    idea: str
    labels: tuple[str, ...]
    build: Builder


def _vrbot(assembly: Assembly, changes: Mapping[str, object] | None = None) -> Builder:
    def build(config: Config, world: World) -> nn.Module:
        config = config.with_settings(changes or {})
        return build_vrbot(
            config,
            world,
            assembly,
            VariationalObjective(config.objective, keyword_order(config, world), assembly.labels),
        )

    return build


STATE_AND_ACTION = ("state", "category", "keywords")

CATALOGUE: Mapping[str, Entry] = {
    "vrbot": Entry(
        "latent patient state and physician action, reasoned over conversation and graph",
        STATE_AND_ACTION,
        _vrbot(Assembly()),
    ),
    "vrbot-un": Entry(
        "VRBot trained on labelled turns only",
        STATE_AND_ACTION,
        _vrbot(Assembly(), {"objective.labelled_turns_only": True}),
    ),
    "vrbot-no-state": Entry(
        "VRBot without a state; the graph is entered by the context's entities",
        ("category", "keywords"),
        _vrbot(Assembly(state=False)),
    ),
    "vrbot-no-action": Entry("VRBot without an action", ("state",), _vrbot(Assembly(action=False))),
    "vrbot-no-graph": Entry(
        "VRBot without the graph-reasoning detector", STATE_AND_ACTION, _vrbot(Assembly(graph=False))
    ),
    "vrbot-no-context": Entry(
        "VRBot without the context-reasoning detector",
        STATE_AND_ACTION,
        _vrbot(Assembly(context=False), {"objective.kl_floor": -12.0}),
    ),
    "vrbot-joint": Entry(
        "VRBot without two-stage inference: one joint bound",
        STATE_AND_ACTION,
        _vrbot(Assembly(), {"objective.bound": "joint"}),
    ),
    "seq2seq": Entry("sequence to sequence with attention and copying over the last two utterances", (), build_seq2seq),
}


def build_model(name: str, config: Config, corpus: Corpus) -> nn.Module:
    """The system of this name, with fresh weights, for the corpus's vocabulary and graph."""
    if name not in CATALOGUE:
        raise UsageError(f"{name!r} is not a model; known: {', '.join(CATALOGUE)}")
    return CATALOGUE[name].build(config, world_of(corpus))
