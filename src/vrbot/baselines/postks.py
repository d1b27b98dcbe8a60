"""PostKS (Lian et al. 2019): one piece of knowledge is selected, by the response in training, by the context in use.

A re-implementation from the paper's description on the parts all systems share. Pieces are facts of the subgraph
around the entities mentioned so far; where there are none, and only there, the choice is "none": beside facts the
selection would flee to the one piece that is always the same. The keywords it perceives are the entities of the piece
it chose. The decoder reads the context after its recurrence (as `network.readings = late` does elsewhere) and does not
copy.
Letters: N rows (turns), P pieces, H hidden size.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from vrbot.baselines.knowledge_pieces import PieceEncoder, PieceFinder, Pieces, mentioned_so_far
from vrbot.baselines.turn_losses import batch_loss
from vrbot.config import Config, PostksSettings
from vrbot.decoding.step import StepFunction
from vrbot.dialogue.batching import SessionBatch, TurnInputs, TurnLayout, TurnTargets
from vrbot.dialogue.vocabulary import BOS
from vrbot.model.build_reading import at_policy_rate, build_words
from vrbot.model.contract import BatchLoss, Moment, Perception
from vrbot.model.world import World
from vrbot.nets.attention import AdditiveAttention, Memory
from vrbot.nets.bag_of_words import BagOfWords
from vrbot.nets.encoders import BidirectionalEncoder, Encoded
from vrbot.nets.fused_decoder import FusedDecoder, Informed, InformedState
from vrbot.probability.category import divergence, masked_log_softmax, relaxed_sample


@dataclass(frozen=True, eq=False)
class Consulted:
    """The context as it was read, and the pieces it leads to, with their vectors [N, P, H]."""

    context: Encoded
    pieces: Pieces
    vectors: Tensor


class PieceSelector(nn.Module):
    """A distribution over pieces: a question made of the evidence against each piece's vector."""

    def __init__(self, evidence_size: int, hidden_size: int) -> None:
        super().__init__()
        self.question = nn.Sequential(
            nn.Linear(evidence_size, hidden_size), nn.Tanh(), nn.Linear(hidden_size, hidden_size)
        )

    def forward(self, evidence: Tensor, consulted: Consulted) -> Tensor:
        """Evidence [N, D] -> log probabilities [N, P]; -inf where there is no piece."""
        question = self.question(evidence) / math.sqrt(consulted.vectors.shape[-1])
        scores = torch.bmm(consulted.vectors, question.unsqueeze(-1)).squeeze(-1)
        return masked_log_softmax(scores, consulted.pieces.mask)


class PostKS(nn.Module):
    """Reads the last two utterances, selects a fact, writes the reply."""

    def __init__(
        self,
        words: nn.Embedding,
        encoder: BidirectionalEncoder,
        attention: AdditiveAttention,
        response_encoder: BidirectionalEncoder,
        finder: PieceFinder,
        piece_encoder: PieceEncoder,
        prior: PieceSelector,
        posterior: PieceSelector,
        decoder: FusedDecoder,
        bag_of_words: BagOfWords,
        num_seeds: int,
        dropout: float,
        settings: PostksSettings,
    ) -> None:
        super().__init__()
        self.words, self.encoder, self.attention, self.response_encoder = words, encoder, attention, response_encoder
        self.finder, self.piece_encoder = finder, piece_encoder
        self.prior, self.posterior = prior, posterior
        self.decoder, self.bag_of_words = decoder, bag_of_words
        self.num_seeds, self.settings = num_seeds, settings
        self.dropout = nn.Dropout(dropout)

    def loss(self, batch: SessionBatch, moment: Moment) -> BatchLoss:
        """Bag of words alone while warming up, then with the likelihood and KL(q to p); labels from the beginning."""
        targets = batch.targets
        consulted = self.consult(batch.inputs, batch.layout)
        prior, posterior = self.prior(consulted.context.summary, consulted), self.infer(consulted, targets)
        weights = relaxed_sample(posterior, self.settings.temperature, moment.generator, hard=True)
        given = _informed(batch.inputs, consulted, weights)
        terms = {
            "bag_of_words": self.bag_of_words(given.knowledge, targets.response, targets.response_lengths),
            "kl": divergence(posterior.detach() if self.settings.detach_posterior else posterior, prior),
            "labels": _label_terms((prior, posterior), consulted.pieces, targets),
        }
        loss = terms["bag_of_words"] - terms["labels"]
        if moment.step >= self.settings.warmup_steps:
            terms["reconstruction"] = self.decoder.log_prob(given, targets.response, targets.response_lengths)
            loss = loss + terms["kl"] - terms["reconstruction"]
        return batch_loss(batch, loss, terms)

    @torch.no_grad()
    def perceive(self, inputs: TurnInputs, layout: TurnLayout) -> Perception:
        """The prior's most probable piece; it is both what is known and what is meant to be said."""
        consulted = self.consult(inputs, layout)
        log_probs = self.prior(consulted.context.summary, consulted)
        return _perceived(inputs, consulted, log_probs.argmax(dim=-1))

    @torch.no_grad()
    def imagine(
        self, inputs: TurnInputs, layout: TurnLayout, count: int, generator: torch.Generator
    ) -> Iterator[Perception]:
        """With pieces drawn from the prior."""
        consulted = self.consult(inputs, layout)
        probs = self.prior(consulted.context.summary, consulted).exp()
        for _ in range(count):
            yield _perceived(inputs, consulted, probs.multinomial(1, generator=generator).squeeze(1))

    def begin_reply(self, perception: Perception, rows: Tensor) -> tuple[StepFunction[InformedState], InformedState]:
        return self.decoder.step, self.decoder.initial(perception.conditions.select(rows))

    @torch.no_grad()
    def reply_log_prob(self, perception: Perception, response: Tensor, lengths: Tensor) -> Tensor:
        """Log p(R | context, the prior's most probable piece) [N]."""
        return self.decoder.log_prob(perception.conditions, response, lengths)

    def consult(self, inputs: TurnInputs, layout: TurnLayout) -> Consulted:
        """Everything that is known before the response."""
        read = self.encoder(self.dropout(self.words(inputs.context)), inputs.context_lengths)
        context = Encoded(read.tokens, read.mask, self.attention(read.summary, read.tokens, read.mask))
        pieces = self.finder.find(mentioned_so_far(inputs.mention_entities, layout, self.num_seeds))
        pieces = pieces.to(inputs.context.device)
        return Consulted(context, pieces, self.piece_encoder(pieces))

    def infer(self, consulted: Consulted, targets: TurnTargets) -> Tensor:
        """q(k | context, response) [N, P], as log probabilities."""
        response = self.response_encoder(self.dropout(self.words(targets.response)), targets.response_lengths)
        evidence = torch.cat((consulted.context.summary, response.summary), dim=-1)
        log_probs: Tensor = self.posterior(evidence, consulted)
        return log_probs


def _perceived(inputs: TurnInputs, consulted: Consulted, chosen: Tensor) -> Perception:
    """Turns after the chosen pieces [N]."""
    weights = nn.functional.one_hot(chosen, consulted.vectors.shape[1]).to(consulted.vectors.dtype)
    head, tail = consulted.pieces.entities[torch.arange(len(chosen)), chosen].unbind(dim=-1)
    keywords = torch.stack((head, tail.masked_fill(tail == head, -1)), dim=-1)
    return Perception(state=None, category=None, keywords=keywords, conditions=_informed(inputs, consulted, weights))


def _informed(inputs: TurnInputs, consulted: Consulted, weights: Tensor) -> Informed:
    knowledge = torch.bmm(weights.unsqueeze(1), consulted.vectors).squeeze(1)
    context = consulted.context
    return Informed(context.summary, inputs.context, Memory(context.tokens, context.mask), knowledge)


def _label_terms(networks: tuple[Tensor, ...], pieces: Pieces, targets: TurnTargets) -> Tensor:
    """Log probability by each network that the chosen piece names a labelled entity (or that it is "none", where there
    is nothing else and the label is empty), added up [N]; 0 where keywords are not known or no piece is right."""
    holds = pieces.holding(targets.keywords)
    counts = holds.any(dim=1) & targets.keywords_known
    wrong = ~holds & counts.unsqueeze(1)
    log_probs = [network.masked_fill(wrong, -math.inf).logsumexp(dim=-1) for network in networks]
    return torch.stack(log_probs).sum(dim=0).masked_fill(~counts, 0.0)


def build_postks(config: Config, world: World) -> PostKS:
    """With the sizes every other system has, and the subgraphs VRBot sees."""
    network, policy, settings = config.network, config.policy, config.postks
    size, hidden, dropout = network.embedding_size, network.hidden_size, network.dropout
    words = build_words(config, world)
    return PostKS(
        words,
        BidirectionalEncoder(size, hidden, network.word_dropout),
        AdditiveAttention(hidden, hidden, hidden),
        BidirectionalEncoder(size, hidden),
        PieceFinder(world.graph, policy.hops, policy.subgraph_limit, settings.pieces),
        PieceEncoder(words, world.entity_words, len(world.graph.relations), hidden, dropout),
        at_policy_rate(config, PieceSelector(hidden, hidden)),
        at_policy_rate(config, PieceSelector(2 * hidden, hidden)),
        FusedDecoder(words, hidden, hidden, dropout, BOS),
        BagOfWords(words, hidden, hidden, dropout),
        config.tracker.length,
        dropout,
        settings,
    )
