"""NKD (Liu et al. 2018): neural knowledge diffusion. Re-implemented from the published description only.

A hierarchical encoder reads the dialogue. The facts are the triples that begin at an entity of the dialogue; each is
matched with the dialogue by a relevance score, and the best matched spread to the neighbours of their tails. The
decoder reads words, facts and neighbours; a gate decides between a word of the vocabulary and an entity, and a tracker
keeps what the reply has named, so that no entity is pointed at twice. Labels of the action's keywords, where known,
say which facts are relevant.
Letters: N rows, G entities of a row, X triples of an entity, F = G * X facts, K facts that spread, Y neighbours of
each, H hidden size.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from vrbot.baselines.hred import build_encoder
from vrbot.baselines.turn_losses import batch_loss
from vrbot.config import Config
from vrbot.decoding.step import StepFunction
from vrbot.dialogue.batching import SessionBatch, TurnInputs, TurnLayout
from vrbot.dialogue.vocabulary import BOS
from vrbot.model.build_reading import build_words
from vrbot.model.contract import BatchLoss, Moment, Perception
from vrbot.model.reply_cells import ReadingsFed, ReadingsLate
from vrbot.model.world import World
from vrbot.nets.attention import Memory
from vrbot.nets.encoders import Encoded
from vrbot.nets.hierarchical import HierarchicalEncoder
from vrbot.nets.one_hop import TripleTable, latest_entities
from vrbot.nets.triple_attention import EntityTriples, TripleEncoder
from vrbot.nets.word_or_entity import PointedSlots, SlotPointer, Sources, WordOrEntity, WriterState

RELEVANT_AT_FIRST = -3.0
"""Log odds of a fact's relevance before anything is learned; few facts are."""


@dataclass(frozen=True, eq=False)
class Matched:
    """The facts of each row and how relevant they are to the dialogue."""

    vectors: Tensor  # [N, F, H]
    tails: Tensor  # [N, F]
    mask: Tensor  # [N, F]
    logits: Tensor  # [N, F]


@dataclass(frozen=True, eq=False)
class Diffused:
    """Entities that the best matched facts lead on to."""

    entities: Tensor  # [N, K * Y]
    vectors: Tensor  # [N, K * Y, H]
    mask: Tensor  # [N, K * Y]
    scores: Tensor  # [N, K * Y], log relevance of the fact each came from, and its own likeness to the dialogue


class FactMatcher(nn.Module):
    """Log odds of relevance: each fact's own, and its likeness to the dialogue."""

    def __init__(self, hidden_size: int) -> None:
        super().__init__()
        self.query = nn.Linear(hidden_size, hidden_size)
        self.own = nn.Linear(hidden_size, 1)
        nn.init.constant_(self.own.bias, RELEVANT_AT_FIRST)

    def forward(self, dialogue: Tensor, facts: Tensor) -> Tensor:
        """Dialogues [N, H] and facts [N, F, H] -> [N, F]."""
        likeness = torch.bmm(facts, self.query(dialogue).unsqueeze(2)).squeeze(2)
        logits: Tensor = likeness / facts.shape[-1] ** 0.5 + self.own(facts).squeeze(2)
        return logits


class Diffusion(nn.Module):
    """From the tails of the best matched facts one step on: their neighbours in the graph, and nothing else."""

    def __init__(self, triples: TripleEncoder, graph_size: int, hidden_size: int, spreading: int, reach: int) -> None:
        super().__init__()
        self.triples, self.spreading, self.reach = triples, spreading, reach
        self.of_entity = nn.Linear(graph_size, hidden_size)
        self.of_source = nn.Linear(hidden_size, hidden_size, bias=False)
        self.query = nn.Linear(hidden_size, hidden_size)

    def forward(self, dialogue: Tensor, facts: Matched) -> Diffused:
        known = facts.logits.detach().masked_fill(~facts.mask, -torch.inf)
        best, place = known.topk(min(self.spreading, known.shape[1]), dim=1)  # [N, K]
        sources = torch.where(best > -torch.inf, facts.tails.gather(1, place), -1)
        around = self.triples.table.around(sources)
        entities, mask = around.tails[..., : self.reach], around.mask[..., : self.reach]  # [N, K, Y]
        from_facts = facts.vectors.gather(1, place.unsqueeze(2).expand(-1, -1, facts.vectors.shape[-1]))
        vectors = torch.tanh(
            self.of_entity(self.triples.entities(entities)) + self.of_source(from_facts).unsqueeze(2)
        ).flatten(1, 2)
        likeness = torch.bmm(vectors, self.query(dialogue).unsqueeze(2)).squeeze(2) / vectors.shape[-1] ** 0.5
        relevance = nn.functional.logsigmoid(facts.logits.gather(1, place)).unsqueeze(2).expand_as(mask).flatten(1)
        return Diffused(entities.flatten(1), vectors, mask.flatten(1), relevance + likeness)


class NKD(nn.Module):
    """Reads the dialogue, matches facts and lets them spread, writes words and entities."""

    entity_words: Tensor

    def __init__(
        self,
        words: nn.Embedding,
        entity_words: Tensor,
        encoder: HierarchicalEncoder,
        triples: TripleEncoder,
        matcher: FactMatcher,
        diffusion: Diffusion,
        writer: WordOrEntity,
        *,
        most_entities: int,
        gate_weight: float,
        relevance_weight: float,
        dropout: float,
    ) -> None:
        super().__init__()
        self.words, self.encoder, self.triples = words, encoder, triples
        self.matcher, self.diffusion, self.writer = matcher, diffusion, writer
        self.num_entities, self.most_entities = len(entity_words), most_entities
        self.gate_weight, self.relevance_weight = gate_weight, relevance_weight
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("entity_words", entity_words.long(), persistent=False)

    def loss(self, batch: SessionBatch, moment: Moment) -> BatchLoss:
        """The negative log likelihood of the replies, of the gate's decisions, and of the labelled relevance."""
        targets = batch.targets
        dialogue, facts = self.match(batch.inputs, batch.layout)
        terms = self.writer.terms(
            self.sources(batch.inputs, dialogue, facts), targets.response, targets.response_lengths
        )
        relevance = relevance_log_prob(facts, targets.keywords, targets.keywords_known)
        loss = -terms.log_prob - self.gate_weight * terms.gate - self.relevance_weight * relevance
        logged = {"reconstruction": terms.log_prob, "gate": terms.gate, "relevance": relevance}
        return batch_loss(batch, loss, logged)

    @torch.no_grad()
    def perceive(self, inputs: TurnInputs, layout: TurnLayout) -> Perception:
        return Perception(None, None, None, conditions=self.sources(inputs, *self.match(inputs, layout)))

    def begin_reply(self, perception: Perception, rows: Tensor) -> tuple[StepFunction[WriterState], WriterState]:
        return self.writer.step, self.writer.initial(perception.conditions.select(rows))

    @torch.no_grad()
    def reply_log_prob(self, perception: Perception, response: Tensor, lengths: Tensor) -> Tensor:
        return self.writer.terms(perception.conditions, response, lengths).log_prob

    def match(self, inputs: TurnInputs, layout: TurnLayout) -> tuple[Encoded, Matched]:
        """The dialogue up to each turn, and the facts around the entities it last named."""
        embedded = self.dropout(self.words(inputs.context))
        dialogue: Encoded = self.encoder(embedded, inputs.context, inputs.context_lengths, layout)
        latest = latest_entities(inputs, self.num_entities, self.most_entities, layout)
        around: EntityTriples = self.triples(latest)
        place = around.places(latest)
        vectors = around.vectors[place].flatten(1, 2)  # [N, F, H]
        logits = self.matcher(dialogue.summary, vectors)
        return dialogue, Matched(vectors, around.tails[place].flatten(1), around.mask[place].flatten(1), logits)

    def sources(self, inputs: TurnInputs, dialogue: Encoded, facts: Matched) -> Sources:
        """What the reply is written from: a fact is read as far as it is relevant."""
        spread = self.diffusion(dialogue.summary, facts)
        relevance = (facts.logits.sigmoid() * facts.mask).unsqueeze(-1)
        nearness = (spread.scores.sigmoid() * spread.mask).unsqueeze(-1)
        fact_values, spread_values = facts.vectors * relevance, spread.vectors * nearness
        entities = torch.cat((facts.tails, spread.entities), dim=1)
        evidence = (dialogue.summary, _gathered(fact_values, relevance), _gathered(spread_values, nearness))
        return Sources(
            context_words=inputs.context,
            evidence=torch.cat(evidence, dim=-1),
            readings=(
                Memory(dialogue.tokens, dialogue.mask),
                Memory(fact_values, facts.mask),
                Memory(spread_values, spread.mask),
            ),
            pointed=PointedSlots(
                torch.cat((facts.vectors, spread.vectors), dim=1),
                torch.cat((nn.functional.logsigmoid(facts.logits), spread.scores), dim=1),
            ),
            slot_words=self.entity_words[entities] if self.num_entities else torch.zeros_like(entities),
            slot_mask=torch.cat((facts.mask, spread.mask), dim=1),
        )


def _gathered(values: Tensor, shares: Tensor) -> Tensor:
    """Values [N, F, H] already weighted by shares [N, F, 1] -> their sum, a mean where the shares add up to more than
    one: around a dialogue of a large graph stand more than a hundred facts."""
    return values.sum(dim=1) / shares.sum(dim=1).clamp_min(1.0)


def relevance_log_prob(facts: Matched, keywords: Tensor, known: Tensor) -> Tensor:
    """Log probability of the facts' relevance [N]: those are relevant whose tail is a keyword [N, K] of the action.

    Zero where the keywords are not known [N].
    """
    relevant = (facts.tails.unsqueeze(2) == keywords.unsqueeze(1)).any(dim=2)
    log_prob = nn.functional.logsigmoid(torch.where(relevant, facts.logits, -facts.logits))
    return torch.where(facts.mask & known.unsqueeze(1), log_prob, 0.0).sum(dim=1)


def build_nkd(config: Config, world: World) -> NKD:
    """With the sizes every other system has."""
    network, settings = config.network, config.facts
    size, hidden, words = config.policy.graph_size, network.hidden_size, build_words(config, world)
    table = TripleTable(world.graph, world.num_entities, settings.triples, world.preference)
    triples = TripleEncoder(table, len(world.graph.relations), size, hidden)
    cell = (ReadingsFed if network.readings == "fed" else ReadingsLate)(network.embedding_size, hidden)
    return NKD(
        words,
        world.entity_words,
        build_encoder(config),
        triples,
        FactMatcher(hidden),
        Diffusion(triples, size, hidden, settings.spreading, settings.neighbours),
        WordOrEntity(
            words,
            cell,
            SlotPointer(hidden),
            3 * hidden,
            hidden,
            network.dropout,
            BOS,
            once=True,
            squashed_rate_factor=settings.squashed_rate_factor,
        ),
        most_entities=settings.entities,
        gate_weight=settings.gate_weight,
        relevance_weight=settings.relevance_weight,
        dropout=network.dropout,
    )
