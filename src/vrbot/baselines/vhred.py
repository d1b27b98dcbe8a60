"""VHRED (Serban et al. 2017): HRED with a Gaussian latent variable for every reply.

A re-implementation from the paper's description. The prior reads the dialogue so far, the posterior the response as
well. With z = the prior's mean the model replies, and `reply_log_prob` is log p(R | context, z = prior mean), the
distribution replies are searched in; perplexity averages over draws of z (`imagine`).
Letters: N rows (turns), Z latent size, R response positions, V words.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from vrbot.baselines.hred import build_decoder, build_encoder
from vrbot.baselines.turn_losses import batch_loss
from vrbot.config import Config, VhredSettings
from vrbot.decoding.step import StepFunction
from vrbot.dialogue.batching import SessionBatch, TurnInputs, TurnLayout, TurnTargets
from vrbot.dialogue.vocabulary import UNK
from vrbot.model.build_reading import build_words
from vrbot.model.contract import BatchLoss, Moment, Perception
from vrbot.model.world import World
from vrbot.nets.attention import Memory
from vrbot.nets.bag_of_words import BagOfWords
from vrbot.nets.conditioned_decoder import ConditionedDecoder, Told, ToldState
from vrbot.nets.encoders import Encoded
from vrbot.nets.hierarchical import HierarchicalEncoder
from vrbot.nets.word_head import heard_before
from vrbot.probability.annealing import Constant, Linear, Schedule
from vrbot.probability.gaussian import DiagonalGaussian

SMALLEST_VARIANCE = 1e-4
"""Keeps a divergence finite when a network is very sure."""

FIRST_SPREAD = -2.25
"""Variances begin at about 0.1, by softplus: fresh noise of unit size would drown what the latent says."""


class GaussianNetwork(nn.Module):
    """Two layers from evidence to a diagonal Gaussian, variances by softplus."""

    def __init__(self, evidence_size: int, hidden_size: int, latent_size: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(evidence_size, hidden_size), nn.Tanh(), nn.Linear(hidden_size, hidden_size), nn.Tanh()
        )
        self.mean = nn.Linear(hidden_size, latent_size)
        self.spread = nn.Linear(hidden_size, latent_size)
        nn.init.constant_(self.spread.bias, FIRST_SPREAD)

    def forward(self, evidence: Tensor) -> DiagonalGaussian:
        """[N, D] -> a Gaussian over [N, Z]."""
        hidden = self.layers(evidence)
        variance = nn.functional.softplus(self.spread(hidden)) + SMALLEST_VARIANCE
        return DiagonalGaussian(self.mean(hidden), variance.log())


class Vhred(nn.Module):
    """Reads all utterances so far, imagines z, writes the reply."""

    def __init__(
        self,
        words: nn.Embedding,
        encoder: HierarchicalEncoder,
        prior: GaussianNetwork,
        posterior: GaussianNetwork,
        decoder: ConditionedDecoder,
        bag_of_words: BagOfWords | None,
        dropout: float,
        settings: VhredSettings,
    ) -> None:
        super().__init__()
        self.words, self.encoder, self.decoder = words, encoder, decoder
        self.prior, self.posterior, self.bag_of_words = prior, posterior, bag_of_words
        self.dropout = nn.Dropout(dropout)
        self.settings = settings
        self.kl_weight = kl_schedule(settings.kl_warmup_steps)

    def loss(self, batch: SessionBatch, moment: Moment) -> BatchLoss:
        """The negative bound, its divergence warmed up, and the bag of words where it has a weight."""
        targets = batch.targets
        context = self._read(batch.inputs, batch.layout)
        prior = self.prior(context.summary)
        posterior = self.infer(context, targets)
        latent = posterior.rsample(moment.generator)
        told = _told(batch.inputs, context, latent)
        heard = self._with_words_dropped(heard_before(targets.response, self.decoder.bos), moment.generator)
        log_probs = self.decoder.log_prob(told, targets.response, targets.response_lengths, heard)
        kl = posterior.kl(prior)
        loss = self.kl_weight.value(moment.step) * kl - log_probs
        terms = {"reconstruction": log_probs, "kl": kl}
        if self.bag_of_words is not None:
            terms["bag_of_words"] = self.bag_of_words(told.condition, targets.response, targets.response_lengths)
            loss = loss + self.settings.bag_of_words_weight * terms["bag_of_words"]
        return batch_loss(batch, loss, terms)

    @torch.no_grad()
    def perceive(self, inputs: TurnInputs, layout: TurnLayout) -> Perception:
        context = self._read(inputs, layout)
        told = _told(inputs, context, self.prior(context.summary).mean)
        return Perception(state=None, category=None, keywords=None, conditions=told)

    @torch.no_grad()
    def imagine(
        self, inputs: TurnInputs, layout: TurnLayout, count: int, generator: torch.Generator
    ) -> Iterator[Perception]:
        """With z drawn from the prior."""
        context = self._read(inputs, layout)
        prior = self.prior(context.summary)
        for _ in range(count):
            yield Perception(None, None, None, conditions=_told(inputs, context, prior.rsample(generator)))

    def begin_reply(self, perception: Perception, rows: Tensor) -> tuple[StepFunction[ToldState], ToldState]:
        return self.decoder.step, self.decoder.initial(perception.conditions.select(rows))

    @torch.no_grad()
    def reply_log_prob(self, perception: Perception, response: Tensor, lengths: Tensor) -> Tensor:
        """Log p(R | context, z = prior mean) [N]."""
        return self.decoder.log_prob(perception.conditions, response, lengths)

    def infer(self, context: Encoded, targets: TurnTargets) -> DiagonalGaussian:
        """q(z | context, R); the response is read as every other utterance is."""
        embedded = self.dropout(self.words(targets.response))
        response = self.encoder.utterances(embedded, targets.response_lengths)
        inferred: DiagonalGaussian = self.posterior(torch.cat((context.summary, response.summary), dim=-1))
        return inferred

    def _read(self, inputs: TurnInputs, layout: TurnLayout) -> Encoded:
        embedded = self.dropout(self.words(inputs.context))
        read: Encoded = self.encoder(embedded, inputs.context, inputs.context_lengths, layout)
        return read

    def _with_words_dropped(self, heard: Tensor, generator: torch.Generator) -> Tensor:
        """In training, a share of the words the decoder hears is made unknown, so that it needs z."""
        if not self.training or not self.settings.word_drop:
            return heard
        dropped = torch.rand(heard.shape, generator=generator, device=generator.device) < self.settings.word_drop
        dropped[:, 0] = False
        return heard.masked_fill(dropped.to(heard.device), UNK)


def kl_schedule(steps: int) -> Schedule:
    """From 0 to 1 along a line; 1 throughout where there are no steps to warm up."""
    return Linear(0.0, 1.0, steps) if steps else Constant(1.0)


def _told(inputs: TurnInputs, context: Encoded, latent: Tensor) -> Told:
    condition = torch.cat((context.summary, latent), dim=-1)
    return Told(condition, inputs.context, Memory(context.tokens, context.mask))


def build_vhred(config: Config, world: World) -> Vhred:
    """HRED's parts, with the latent beside the dialogue's vector."""
    network, settings = config.network, config.vhred
    hidden, latent = network.hidden_size, settings.latent_size
    words = build_words(config, world)
    return Vhred(
        words,
        build_encoder(config),
        GaussianNetwork(hidden, hidden, latent),
        GaussianNetwork(2 * hidden, hidden, latent),
        build_decoder(config, words, hidden + latent),
        BagOfWords(words, hidden + latent, hidden, network.dropout) if settings.bag_of_words_weight else None,
        network.dropout,
        settings,
    )
