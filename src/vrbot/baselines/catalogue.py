"""Name -> system: VRBot, its ablations and the baselines, with what each needs and can use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from torch import nn

from vrbot.baselines.ccm import build_ccm
from vrbot.baselines.damd import build_damd
from vrbot.baselines.dual_flow import build_dual_flow
from vrbot.baselines.hred import build_hred
from vrbot.baselines.hred_bert import build_hred_bert
from vrbot.baselines.labes import build_labes
from vrbot.baselines.moss import build_moss
from vrbot.baselines.nkd import build_nkd
from vrbot.baselines.postks import build_postks
from vrbot.baselines.sedst import build_sedst
from vrbot.baselines.seq2seq import build_seq2seq
from vrbot.baselines.transformer import build_transformer
from vrbot.baselines.vhred import build_vhred
from vrbot.config import Config
from vrbot.dialogue.corpus import Corpus
from vrbot.errors import ConfigError, UsageError
from vrbot.model.build import Assembly, build_vrbot, keyword_order
from vrbot.model.build_reading import at_rate
from vrbot.model.world import World, count_context_words, count_response_words, world_of
from vrbot.nets.initial_bias import begin_with_frequencies
from vrbot.objective.response_form import ResponseForm
from vrbot.objective.variational import VariationalObjective

Builder = Callable[[Config, World], nn.Module]


@dataclass(frozen=True)
class Entry:
    """A system: its idea in a sentence, the labels it can use, and how to build it (and from what)."""

    idea: str
    labels: tuple[str, ...]
    build: Builder
    needs_encoder: bool = False  # the folder `pretrained.directory`


def _vrbot(assembly: Assembly, changes: Mapping[str, object] | None = None) -> Builder:
    def build(config: Config, world: World) -> nn.Module:
        config = config.with_settings(changes or {})
        return build_vrbot(
            config,
            world,
            assembly,
            VariationalObjective(
                config.objective,
                keyword_order(config, world),
                assembly.labels,
                ResponseForm.of(world.words, world.entity_types),
            ),
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
    "vrbot-bert": Entry(
        "VRBot whose words are read by a pretrained encoder",
        STATE_AND_ACTION,
        _vrbot(Assembly(pretrained=True)),
        needs_encoder=True,
    ),
    "seq2seq": Entry("sequence to sequence with attention and copying over the last two utterances", (), build_seq2seq),
    "hred": Entry("words to utterances, utterances to a dialogue, the dialogue to a reply", (), build_hred),
    "vhred": Entry("HRED with a Gaussian latent variable for every reply", (), build_vhred),
    "hred-bert": Entry(
        "a pretrained encoder predicts the entities to name next, HRED writes the reply with their words before it",
        ("keywords",),
        build_hred_bert,
        needs_encoder=True,
    ),
    "postks": Entry(
        "one fact around what was mentioned, selected by the response in training and by the context in use",
        ("keywords",),
        build_postks,
    ),
    "transformer": Entry("a Transformer over the last two utterances", (), build_transformer),
    "ccm": Entry(
        "words or tails of one-hop triples, by static and dynamic attention over the graphs of the context's entities",
        (),
        build_ccm,
    ),
    "nkd": Entry(
        "facts of the dialogue's entities, matched and spread over the graph; words or entities, none named twice",
        ("keywords",),
        build_nkd,
    ),
    "dual-flow": Entry(
        "a flow of entities and a flow of acts over the dialogue, each reading the other, predict what is said next",
        ("category", "keywords"),
        build_dual_flow,
    ),
    "sedst": Entry("a state that flows on as distributions, never sampled", ("state",), build_sedst),
    "labes": Entry("a discrete state, sampled, with straight-through gradients", ("state",), build_labes),
    "moss": Entry("chained decoders, each taught by the labels a turn has", STATE_AND_ACTION, build_moss),
    "damd": Entry("chained decoders fed known spans; labelled turns only", STATE_AND_ACTION, build_damd),
}


@dataclass(frozen=True)
class EndpointEntry:
    """A system that is asked over a wire and never trained: its idea in a sentence."""

    idea: str


ENDPOINTS: Mapping[str, EndpointEntry] = {
    "llm": EndpointEntry(
        "any OpenAI-compatible endpoint, given the dialogue so far and, if asked for, VRBot's state, action and paths"
    ),
}


def build_model(name: str, config: Config, corpus: Corpus) -> nn.Module:
    """The system of this name, with fresh weights, for the corpus's vocabulary and graph."""
    if name in ENDPOINTS:
        raise UsageError(
            f"{name!r} is not trained: measure an endpoint with `vrbot evaluate --llm URL --corpus CORPUS`"
        )
    if name not in CATALOGUE:
        raise UsageError(f"{name!r} is not a model; known: {', '.join(CATALOGUE)}")
    strangers = [other for other in config.training.rate_factors if other not in CATALOGUE]
    if strangers:
        raise ConfigError(f"training.rate_factors: {strangers[0]!r} is not a model; known: {', '.join(CATALOGUE)}")
    # States and actions are made of entities; systems that have neither learn from words alone.
    if not corpus.inventory.names and not {"state", "category"}.isdisjoint(CATALOGUE[name].labels):
        raise UsageError(
            f"{corpus.directory} has no entities: prepare it again with --graph, --lexicon or --entities, or train a "
            "model without states and actions (such as hred)"
        )
    model = CATALOGUE[name].build(config, world_of(corpus))
    if config.network.begin_with_frequencies:
        begin_with_frequencies(model, count_response_words(corpus), count_context_words(corpus))
    return at_rate(config.training.rate_factors.get(name, 1.0), model)
