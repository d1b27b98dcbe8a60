"""Dual flow, in the spirit of DFMed (Xu et al. 2023): the entities and the acts of a dialogue as two flows.

A re-implementation of the idea on the parts all systems share. A GRU follows the entities each turn brings, another
the physician's acts, as recognised in the responses heard so far. Each flow attends to the other and to the context's
words. From both, and from graph attention over the subgraph around the entities last named, the next act and the next
entities are predicted, and the generator writes the reply from them. Where keywords are not labelled, the entities of
the response itself are what is to be predicted, and where acts are not, what VRBot's teacher reads off the response.
The loss alone sees either.
Letters: N rows, C categories, E entities, L span positions, H hidden size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from vrbot.baselines.hred import build_encoder
from vrbot.baselines.turn_losses import batch_loss
from vrbot.config import Config, FlowSettings
from vrbot.decoding.step import StepFunction
from vrbot.dialogue.batching import NO_ENTITY, SessionBatch, TurnInputs, TurnLayout, TurnTargets
from vrbot.dialogue.session import CATEGORIES
from vrbot.knowledge.retrieval import SubgraphRetriever
from vrbot.model.action_classifier import ActionClassifier
from vrbot.model.build import CATEGORY_SIZE, build_generator, keyword_order
from vrbot.model.build_reading import at_policy_rate, build_words
from vrbot.model.contract import BatchLoss, Moment, Perception
from vrbot.model.detectors import BilinearNodeScore, ContextDetector, GraphDetector, PolicyEvidence
from vrbot.model.habits import Habits
from vrbot.model.policy_network import Action, PriorEvidence, WrittenAction
from vrbot.model.response_generator import Conditions, DecoderState, ResponseGenerator
from vrbot.model.set_policy import SetPolicy
from vrbot.model.spans import EntityTable, Span, SpanReader, drawn_by, one_hot_choice, span_of
from vrbot.model.subgraphs import SubgraphEncoder
from vrbot.model.world import World
from vrbot.nets.attention import DotAttention, Memory
from vrbot.nets.bags import EntityBag
from vrbot.nets.encoders import Encoded
from vrbot.nets.hierarchical import HierarchicalEncoder
from vrbot.nets.one_hop import latest_entities
from vrbot.nets.turn_memory import TurnMemory, turns_so_far
from vrbot.objective.habit_teacher import teach_habits
from vrbot.objective.labels import in_order_of
from vrbot.objective.response_form import ResponseForm
from vrbot.objective.response_reader import TellsCategories, best_teller
from vrbot.probability.category import chosen_log_prob


@dataclass(frozen=True, eq=False)
class FlowVectors:
    """What the two flows know at each turn [N, H], and the acts recognised in the responses heard: log probs [N, C]."""

    entities: Tensor
    acts: Tensor
    recognised: Tensor


class CrossedFlow(nn.Module):
    """The state of a flow, with what it reads from the other flow's turns so far and from the context's words."""

    def __init__(self, hidden_size: int) -> None:
        super().__init__()
        self.over_other = DotAttention(hidden_size, hidden_size)
        self.over_context = DotAttention(hidden_size, hidden_size)
        self.combine = nn.Linear(4 * hidden_size, hidden_size)

    def forward(self, state: Tensor, other: Memory, context: Encoded) -> Tensor:
        """States [N, H] -> [N, H]."""
        query = state.unsqueeze(1)
        read = self.over_other.read(query, other).squeeze(1)
        words = self.over_context.read(query, Memory(context.tokens, context.mask)).squeeze(1)
        return torch.tanh(self.combine(torch.cat((state, read, words, context.summary), dim=-1)))


class DualFlows(nn.Module):
    """The two flows over the turns of a session; a turn's vectors depend on it and on earlier turns only."""

    def __init__(self, num_entities: int, acts: nn.Embedding, hidden_size: int, dropout: float) -> None:
        super().__init__()
        self.acts = acts
        self.bag = EntityBag(num_entities, hidden_size)
        self.recognise = ActionClassifier((hidden_size,), acts.num_embeddings, dropout)
        self.entity_memory = TurnMemory(hidden_size, hidden_size)
        self.act_memory = TurnMemory(acts.embedding_dim, hidden_size)
        self.entity_flow, self.act_flow = CrossedFlow(hidden_size), CrossedFlow(hidden_size)

    def forward(self, context: Encoded, inputs: TurnInputs, layout: TurnLayout) -> FlowVectors:
        named = self.bag(inputs.mention_entities, inputs.patient_mentions)
        recognised: Tensor = self.recognise(context.summary)
        heard = (layout.turn > 0).unsqueeze(1)  # before the first turn nobody has acted
        entity_states = self.entity_memory(named, layout)
        act_states = self.act_memory(recognised.exp() @ self.acts.weight * heard, layout)
        return FlowVectors(
            self.entity_flow(entity_states, turns_so_far(act_states, layout), context),
            self.act_flow(act_states, turns_so_far(entity_states, layout), context),
            recognised,
        )


@dataclass(frozen=True, eq=False)
class Followed:
    """What was heard up to each turn: words, their vectors, the flows, the entities last named, the entities' table."""

    words: Tensor  # [N, T]
    context: Encoded
    flows: FlowVectors
    latest: Span
    table: Tensor  # [E+1, D]
    foretold: Tensor | None = None  # [N, E]


class DualFlow(nn.Module):
    """Follows entities and acts, predicts the next ones, writes the reply from them.

    `none_offset` is added to the log probability of not naming an entity; like VRBot's it is calibrated on validation
    data, and `hear`, `track`, `policy_evidence` and `decide` are what calibration asks for.
    """

    none_offset: Tensor
    preference: Tensor

    def __init__(
        self,
        words: nn.Embedding,
        table: EntityTable,
        encoder: HierarchicalEncoder,
        flows: DualFlows,
        subgraph_encoder: SubgraphEncoder,
        policy: SetPolicy,
        readers: tuple[SpanReader, SpanReader],
        generator: ResponseGenerator,
        preference: Tensor,
        settings: FlowSettings,
        habits: Habits | None,
        teller: TellsCategories | None,
        *,
        labels_teach_reading: bool,
        latest_length: int,
        action_length: int,
        dropout: float,
    ) -> None:
        super().__init__()
        self.words, self.table, self.encoder, self.flows = words, table, encoder, flows
        self.subgraph_encoder, self.prior_policy, self.generator = subgraph_encoder, policy, generator
        self.latest_reader, self.keyword_reader = readers
        self.habits, self.teller, self.labels_teach_reading = habits, teller, labels_teach_reading
        self.latest_length, self.action_length, self.settings = latest_length, action_length, settings
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("preference", preference, persistent=False)
        self.register_buffer("none_offset", torch.zeros(()))

    def study(self, model: DualFlow, batches: Callable[[], Iterable[SessionBatch]]) -> None:
        """Learns before training what is usually named next, if it is to start from that, and how acts are told."""
        if self.habits is not None:
            teach_habits(self.habits, batches())
        if self.labels_teach_reading and isinstance(self.teller, ResponseForm):
            self.teller = best_teller(self.teller, (batch.targets for batch in batches()))

    def loss(self, batch: SessionBatch, moment: Moment) -> BatchLoss:
        """Negative log likelihoods of the next entities, of next and past acts where known, and of the reply."""
        targets, acts = batch.targets, self._acts(batch.targets)
        heard = self.hear(batch.inputs, batch.layout)
        evidence = self.policy_evidence(heard, heard.latest)
        entities = in_order_of(entity_targets(targets), self.preference)
        known = nn.functional.one_hot(acts.clamp_min(0), len(CATEGORIES)).float()
        category = torch.where((acts >= 0).unsqueeze(1), known, self.prior_policy.classify(evidence).detach().exp())
        action = Action(category, span_of(entities, self.action_length, self.table.num_entities))
        scores = self.prior_policy.score_along(evidence, action)
        everything = span_of(entities, max(entities.shape[1], 1), self.table.num_entities)
        terms = {
            "entities": scores.keywords.log_prob(everything),
            "acts": chosen_log_prob(scores.category, acts.clamp_min(0)) * (acts >= 0),
            "past_acts": past_act_log_prob(heard.flows.recognised, acts, batch.layout),
            "reconstruction_told": self._reply_log_prob(self.conditions(heard, action, guessed=False), targets),
            "reconstruction_guessed": self._reply_log_prob(self._guess(heard, evidence, moment), targets),
        }
        loss = -terms["reconstruction_told"] - terms["reconstruction_guessed"]
        loss = loss - self.settings.entity_weight * terms["entities"]
        loss = loss - self.settings.act_weight * (terms["acts"] + terms["past_acts"])
        return batch_loss(batch, loss, terms)

    @torch.no_grad()
    def perceive(self, inputs: TurnInputs, layout: TurnLayout) -> Perception:
        heard = self.hear(inputs, layout)
        evidence = self.policy_evidence(heard, self.track(heard, layout))
        return self._perceived(heard, self.prior_policy.decide(evidence, self.action_length, self.decide))

    @torch.no_grad()
    def imagine(
        self, inputs: TurnInputs, layout: TurnLayout, count: int, generator: torch.Generator
    ) -> Iterator[Perception]:
        """What might be said next, drawn as often as it is probable."""
        draw, heard = drawn_by(generator), self.hear(inputs, layout)
        evidence = self.policy_evidence(heard, self.track(heard, layout))
        for _ in range(count):
            yield self._perceived(heard, self.prior_policy.write(evidence, self.action_length, draw, draw))

    def _perceived(self, heard: Followed, written: WrittenAction) -> Perception:
        keywords = written.action.keywords
        return Perception(
            state=None,
            category=written.scores.category,
            keywords=torch.where(keywords.mask, keywords.ids, NO_ENTITY),
            conditions=self.conditions(heard, written.action, guessed=True),
        )

    def begin_reply(self, perception: Perception, rows: Tensor) -> tuple[StepFunction[DecoderState], DecoderState]:
        given: Conditions = perception.conditions.select(rows)
        return self.generator.search_step, self.generator.initial(given, self._category_vectors(given.action))

    @torch.no_grad()
    def reply_log_prob(self, perception: Perception, response: Tensor, lengths: Tensor) -> Tensor:
        given: Conditions = perception.conditions
        return self.generator.log_prob(given, self._category_vectors(given.action), response, lengths)

    # The parts, one call each

    def hear(self, inputs: TurnInputs, layout: TurnLayout) -> Followed:
        """Context, flows and the entities last named, at every turn."""
        embedded = self.dropout(self.words(inputs.context))
        context: Encoded = self.encoder(embedded, inputs.context, inputs.context_lengths, layout)
        latest = latest_entities(inputs, self.table.num_entities, self.latest_length, layout)
        span = span_of(latest, self.latest_length, self.table.num_entities)
        foretold = None if self.habits is None else self.habits(inputs, layout)
        return Followed(inputs.context, context, self.flows(context, inputs, layout), span, self.table(), foretold)

    def track(self, heard: Followed, layout: TurnLayout) -> Span:
        """Where the graph is entered: the entities last named."""
        return heard.latest

    def policy_evidence(self, heard: Followed, latest: Span) -> PolicyEvidence:
        """The act flow in the place of the context's summary, the entity flow in that of the state, and the graph."""
        context = heard.context
        acts = Encoded(context.tokens, context.mask, self.dropout(heard.flows.acts))
        entities = Encoded(context.tokens, context.mask, self.dropout(heard.flows.entities))
        graphs = self.subgraph_encoder(latest)
        return PolicyEvidence(acts, entities, heard.table, graphs, foretold=heard.foretold)

    def decide(self, log_probs: Tensor) -> Tensor:
        """Named or not, the last symbol shifted by the calibrated offset; the category is left to itself."""
        shift = torch.zeros(log_probs.shape[-1], device=log_probs.device)
        shift[-1] = self.none_offset
        return one_hot_choice(log_probs + shift)

    def conditions(self, heard: Followed, action: Action, *, guessed: bool) -> Conditions:
        """What the reply is written from; `guessed` where the policy chose the action."""
        latest_read = self.latest_reader(heard.latest, heard.table)
        keywords_read = self.keyword_reader(action.keywords, heard.table)
        guesses = torch.full((len(heard.words),), guessed, device=heard.words.device)
        return Conditions(heard.words, heard.context, heard.latest, latest_read, action, keywords_read, guessed=guesses)

    def _guess(self, heard: Followed, evidence: PolicyEvidence, moment: Moment) -> Conditions:
        """What the generator learns from beside the true action, as VRBot's does.

        Guesses are drawn: the calibrated offset, by which actions are chosen in use, is not known before a validation.
        """
        draw = drawn_by(moment.generator)
        with torch.no_grad():
            guess = self.prior_policy.write(evidence, self.action_length, draw, draw).action
        return self.conditions(heard, guess, guessed=True)

    def _acts(self, targets: TurnTargets) -> Tensor:
        """The act of each response [N]: its label, else what the teacher reads off it, else -1."""
        if self.teller is None:
            return torch.where(targets.category_known, targets.category, -1)
        told = torch.where(targets.response_lengths > 0, self.teller.categories(targets), -1)
        return torch.where(targets.category_known, targets.category, told)

    def _reply_log_prob(self, given: Conditions, targets: TurnTargets) -> Tensor:
        return self.generator.log_prob(
            given, self._category_vectors(given.action), targets.response, targets.response_lengths
        )

    def _category_vectors(self, action: Action) -> Tensor:
        vectors: Tensor = action.category @ self.flows.acts.weight
        return vectors


def entity_targets(targets: TurnTargets) -> Tensor:
    """The entities to predict [N, K], -1 after the end: the labelled keywords, or else those the response names."""
    width = max(targets.keywords.shape[1], targets.response_mentions.shape[1])
    labels, mentions = (
        nn.functional.pad(entities, (0, width - entities.shape[1]), value=NO_ENTITY)
        for entities in (targets.keywords, targets.response_mentions)
    )
    return torch.where(targets.keywords_known.unsqueeze(1), labels, mentions)


def past_act_log_prob(recognised: Tensor, acts: Tensor, layout: TurnLayout) -> Tensor:
    """Log probability of the last turn's act [N], -1 where it is not known, as recognised [N, C]; there it is zero."""
    before = acts[layout.row_before]
    return chosen_log_prob(recognised, before.clamp_min(0)) * ((before >= 0) & (layout.turn > 0))


def build_dual_flow(config: Config, world: World) -> DualFlow:
    """With the sizes every other system has; what serves the prediction alone learns at the policy's rate."""
    network, policy = config.network, config.policy
    size, hidden, dropout = network.embedding_size, network.hidden_size, network.dropout
    words = build_words(config, world)
    acts = nn.Embedding(len(CATEGORIES), CATEGORY_SIZE)
    retriever = SubgraphRetriever(world.graph, policy.hops, policy.subgraph_limit, cache_size=20_000)
    habits = Habits(policy.habits, world.num_entities) if config.flows.habits and policy.habits else None
    encoder, flows = build_encoder(config), DualFlows(world.num_entities, acts, hidden, dropout)
    subgraphs = SubgraphEncoder(retriever, world.num_entities, policy.graph_size, hidden)
    decides = SetPolicy(
        ActionClassifier((hidden, hidden, hidden), len(CATEGORIES), dropout),
        [
            ContextDetector(size, hidden, world.num_entities, dropout, minds_habits=habits is not None),
            GraphDetector(BilinearNodeScore(2 * hidden, hidden, dropout)),
        ],
        PriorEvidence(hidden, with_graph=True),
        acts,
        2 * hidden,
        hidden,
        world.log_odds,
        keyword_order(config, world),
    )
    return DualFlow(
        words,
        EntityTable(words, world.entity_words),
        encoder,
        at_policy_rate(config, flows),
        at_policy_rate(config, subgraphs),
        at_policy_rate(config, decides),
        (SpanReader(size, hidden), SpanReader(size, hidden)),
        build_generator(config, world, words, obeys=True, doubts=config.flows.marks_guesses),
        keyword_order(config, world),
        config.flows,
        habits,
        ResponseForm.of(world.words, world.entity_types) if config.objective.categories_by_form else None,
        labels_teach_reading=config.objective.labels_teach_reading,
        latest_length=config.tracker.length,
        action_length=policy.length,
        dropout=dropout,
    )
