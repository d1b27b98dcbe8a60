"""CCM (Zhou et al. 2018): a commonsense conversational model with static and dynamic attention over graphs.

A re-implementation on the parts all systems share. Every entity of the last two utterances brings its one-hop graph.
Static attention gives each graph a vector that joins the word's where the context is read; while a reply is written,
the decoder attends to the graphs, then to the triples inside, and a gate decides between a word of the vocabulary and
the tail of a triple. The gate learns from whether the word to write is a tail at all; no labels are used. Vectors of
entities and relations are learned with the rest, not beforehand.
Letters: N rows, T context tokens, M mentions, G graphs of a row, X triples of a graph, S size of an entity's vector.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from vrbot.baselines.turn_losses import batch_loss
from vrbot.config import Config
from vrbot.decoding.step import StepFunction
from vrbot.dialogue.batching import SessionBatch, TurnInputs, TurnLayout
from vrbot.dialogue.vocabulary import BOS
from vrbot.model.build_reading import build_words
from vrbot.model.contract import BatchLoss, Moment, Perception
from vrbot.model.reply_cells import Advanced, ReadingsLate, read_all
from vrbot.model.world import World
from vrbot.nets.attention import AdditiveAttention, DotAttention, Memory
from vrbot.nets.encoders import BidirectionalEncoder
from vrbot.nets.one_hop import TripleTable, latest_entities
from vrbot.nets.triple_attention import (
    EntityTriples,
    GraphAttention,
    GraphMemory,
    ReadGraphs,
    ReadTriples,
    StaticGraphAttention,
    TripleEncoder,
)
from vrbot.nets.word_or_entity import Sources, WordOrEntity, WriterState


class TriplePointer(nn.Module):
    """Points at tails by the weights that dynamic attention gives their triples."""

    def __init__(self, attention: GraphAttention) -> None:
        super().__init__()
        self.attention = attention

    def forward(self, outputs: Tensor, graphs: GraphMemory, free: Tensor) -> Tensor:
        """[N, Q, H] -> [N, Q, G * X]; what is free are the triples there are, always."""
        return self.attention.triple_log_weights(outputs, graphs)


class GraphReadingsFed(nn.Module):
    """What the last state reads from context, graphs and triples enters the GRU cell together with the last word."""

    def __init__(self, embedding_size: int, hidden_size: int, attentions: nn.ModuleList) -> None:
        super().__init__()
        self.attentions = attentions
        self.cell = nn.GRUCell(embedding_size + len(attentions) * hidden_size, hidden_size)

    def advance(self, hidden: Tensor, word: Tensor, readings: Sequence[Any]) -> Advanced:
        """One step for rows that stand side by side per item; words [rows, D]."""
        read = read_all(self.attentions, hidden, readings)
        hidden = self.cell(torch.cat((word, read), dim=-1), hidden)
        return Advanced(hidden, hidden)

    def along(self, hidden: Tensor, words: Tensor, lengths: Tensor, readings: Sequence[Any]) -> Tensor:
        """Output vectors [N, R, H] along given words [N, R, D]; nobody looks at those after a row's length."""
        states = []
        for word in words.unbind(dim=1):
            hidden = self.advance(hidden, word, readings).hidden
            states.append(hidden)
        return torch.stack(states, dim=1)


class CCM(nn.Module):
    """Reads the last two utterances with the graphs of their entities, writes words and tails of triples."""

    entity_words: Tensor

    def __init__(
        self,
        words: nn.Embedding,
        entity_words: Tensor,
        triples: TripleEncoder,
        static: StaticGraphAttention,
        encoder: BidirectionalEncoder,
        attention: AdditiveAttention,
        writer: WordOrEntity,
        *,
        most_graphs: int,
        gate_weight: float,
        dropout: float,
    ) -> None:
        super().__init__()
        self.words, self.triples, self.static = words, triples, static
        self.encoder, self.attention, self.writer = encoder, attention, writer
        self.project_graph = nn.Linear(static.output_size, encoder.hidden_size)
        self.num_entities, self.most_graphs, self.gate_weight = len(entity_words), most_graphs, gate_weight
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("entity_words", entity_words.long(), persistent=False)

    def loss(self, batch: SessionBatch, moment: Moment) -> BatchLoss:
        """The negative log likelihood of the mixture, and of the gate's right decisions."""
        sources = self.read(batch.inputs)
        terms = self.writer.terms(sources, batch.targets.response, batch.targets.response_lengths)
        loss = -terms.log_prob - self.gate_weight * terms.gate
        return batch_loss(batch, loss, {"reconstruction": terms.log_prob, "gate": terms.gate})

    @torch.no_grad()
    def perceive(self, inputs: TurnInputs, layout: TurnLayout) -> Perception:
        return Perception(state=None, category=None, keywords=None, conditions=self.read(inputs))

    def begin_reply(self, perception: Perception, rows: Tensor) -> tuple[StepFunction[WriterState], WriterState]:
        return self.writer.step, self.writer.initial(perception.conditions.select(rows))

    @torch.no_grad()
    def reply_log_prob(self, perception: Perception, response: Tensor, lengths: Tensor) -> Tensor:
        return self.writer.terms(perception.conditions, response, lengths).log_prob

    def read(self, inputs: TurnInputs) -> Sources:
        """What the reply is written from."""
        around: EntityTriples = self.triples(inputs.mention_entities)
        static = self.static(around)  # [U, 2S]
        embedded = torch.cat((self.words(inputs.context), self.graph_of_words(inputs, around, static)), dim=-1)
        read = self.encoder(self.dropout(embedded), inputs.context_lengths)
        place = around.places(latest_entities(inputs, self.num_entities, self.most_graphs))
        projected = torch.tanh(self.project_graph(static))
        graphs = GraphMemory(projected[place], around.vectors[place], around.mask[place])
        return Sources(
            context_words=inputs.context,
            evidence=self.attention(read.summary, read.tokens, read.mask),
            readings=(Memory(read.tokens, read.mask), graphs, graphs),
            pointed=graphs,
            slot_words=self._words_of(around.tails[place].flatten(1)),
            slot_mask=graphs.triple_mask.flatten(1),
        )

    def graph_of_words(self, inputs: TurnInputs, around: EntityTriples, static: Tensor) -> Tensor:
        """The graph vector of every word of the context [N, T, 2S]: the mean of its entities', or that of no fact."""
        there = (inputs.mention_entities >= 0).unsqueeze(-1)
        vectors = static[around.places(inputs.mention_entities)] * there  # [N, M, 2S]
        index = inputs.mention_positions.clamp_min(0).unsqueeze(-1)
        total = vectors.new_zeros(*inputs.context.shape, vectors.shape[-1])
        total = total.scatter_add(1, index.expand_as(vectors), vectors)
        count = torch.zeros_like(total[..., :1]).scatter_add(1, index, there.to(vectors.dtype))
        return torch.where(count > 0, total / count.clamp_min(1.0), self.static.no_fact)

    def _words_of(self, entities: Tensor) -> Tensor:
        return self.entity_words[entities] if self.num_entities else torch.zeros_like(entities)


def build_ccm(config: Config, world: World) -> CCM:
    """With the sizes every other system has."""
    network, settings = config.network, config.facts
    hidden, words = network.hidden_size, build_words(config, world)
    table = TripleTable(world.graph, world.num_entities, settings.triples, world.preference)
    triples = TripleEncoder(table, len(world.graph.relations), config.policy.graph_size, hidden)
    static, attention = StaticGraphAttention(config.policy.graph_size), GraphAttention(hidden)
    attentions = nn.ModuleList((DotAttention(hidden, hidden), ReadGraphs(attention), ReadTriples(attention)))
    cell: nn.Module
    if network.readings == "fed":
        cell = GraphReadingsFed(network.embedding_size, hidden, attentions)
    else:
        cell = ReadingsLate(network.embedding_size, hidden)
        cell.attentions = attentions
    return CCM(
        words,
        world.entity_words,
        triples,
        static,
        BidirectionalEncoder(network.embedding_size + static.output_size, hidden, network.word_dropout),
        AdditiveAttention(hidden, hidden, hidden),
        WordOrEntity(
            words,
            cell,
            TriplePointer(attention),
            hidden,
            hidden,
            network.dropout,
            BOS,
            once=False,
            squashed_rate_factor=settings.squashed_rate_factor,
        ),
        most_graphs=settings.entities,
        gate_weight=settings.gate_weight,
        dropout=network.dropout,
    )
