"""HRED told what to speak of: a pretrained encoder predicts the next turn's entities, HRED writes the reply with them.

A pipeline of two parts that share nothing. The predictor reads the dialogue with the pretrained encoder and judges
every entity; it learns from turns whose keywords are labelled, and from no others. HRED (see `hred`) then finds the
entities' words at the end of the patient's last utterance: in training the labelled ones, where there is no label some
drawn from the prediction, in use the predicted ones. It attends to that utterance and copies from it: from the
dialogue's vector alone it does not learn to say what it is told (decision 0021).
Letters: N rows (turns), T context tokens, K entities, E all entities.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from vrbot.baselines.hred import Hred, build_encoder, build_hred
from vrbot.baselines.turn_losses import batch_loss
from vrbot.config import Config
from vrbot.decoding.step import StepFunction
from vrbot.dialogue.batching import NO_ENTITY, SessionBatch, TurnInputs, TurnLayout
from vrbot.dialogue.vocabulary import PAD
from vrbot.model.build_reading import at_policy_rate, build_heard_words, build_history_reader, build_words
from vrbot.model.contract import BatchLoss, Moment, Perception
from vrbot.model.world import World
from vrbot.nets.conditioned_decoder import ToldState
from vrbot.nets.encoders import Encoded
from vrbot.nets.hierarchical import HierarchicalEncoder
from vrbot.nets.pretrained import ContextualWords


class EntityPredictor(nn.Module):
    """Judges every entity for itself: will the physician name it next?"""

    def __init__(
        self,
        words: ContextualWords | nn.Embedding,
        encoder: HierarchicalEncoder,
        history: nn.Module,
        sizes: tuple[int, int],
        log_odds: Tensor,
        dropout: float,
    ) -> None:
        """`history` reads the whole dialogue; `sizes` are those of the encoder and of the history's vector.

        `log_odds` [E]: how often each entity is named at all, where the judgement starts from.
        """
        super().__init__()
        self.words, self.encoder, self.history = words, encoder, history
        self.dropout = nn.Dropout(dropout)
        self.judge = nn.Linear(2 * sizes[0] + sizes[1], len(log_odds))
        with torch.no_grad():
            self.judge.bias.copy_(log_odds)

    def forward(self, inputs: TurnInputs, layout: TurnLayout) -> Tensor:
        """Logits of all entities at each turn [N, E], from the dialogue so far."""
        embedded = self.dropout(self.words(inputs.context))
        read: Encoded = self.encoder(embedded, inputs.context, inputs.context_lengths, layout)
        highest = read.tokens.masked_fill(~read.mask.unsqueeze(-1), -2.0).amax(dim=1)  # two states added are above -2
        told = torch.tanh(self.history(inputs.context, inputs.context_lengths, layout))
        logits: Tensor = self.judge(self.dropout(torch.cat((read.summary, highest, told), dim=-1)))
        return logits


@dataclass(frozen=True, eq=False)
class EntitiesAppended:
    """Contexts with entity words at their ends: words [N, T + K] and lengths [N]."""

    context: Tensor
    lengths: Tensor


def append_entities(context: Tensor, lengths: Tensor, entities: Tensor, entity_words: Tensor) -> EntitiesAppended:
    """Puts the words of the entities [N, K], -1 where there is none, behind the last word of each context [N, T]."""
    there = entities >= 0
    place = lengths.unsqueeze(1) + there.long().cumsum(dim=1) - 1  # [N, K]
    longer = nn.functional.pad(context, (0, entities.shape[1] + 1), value=PAD)  # the last column is a dump
    dump = longer.shape[1] - 1
    spoken = entity_words[entities.clamp_min(0)] if len(entity_words) else torch.zeros_like(entities)
    longer = longer.scatter(1, torch.where(there, place, dump), spoken)
    return EntitiesAppended(longer[:, :-1], lengths + there.sum(dim=1))


class HredBert(nn.Module):
    """The predictor and HRED, trained side by side.

    An entity is named when its logit is above `threshold`, which is calibrated on validation data; at most `most` are,
    the likeliest first.
    """

    threshold: Tensor
    entity_words: Tensor

    def __init__(self, predictor: EntityPredictor, hred: Hred, entity_words: Tensor, most: int) -> None:
        super().__init__()
        self.predictor, self.hred, self.most = predictor, hred, most
        self.register_buffer("entity_words", entity_words.long(), persistent=False)
        self.register_buffer("threshold", torch.zeros(()))

    def loss(self, batch: SessionBatch, moment: Moment) -> BatchLoss:
        """The negative log likelihoods of the labelled entities and of the responses."""
        targets = batch.targets
        logits = self.predictor(batch.inputs, batch.layout)
        guessed = self._likeliest(logits.detach(), _drawn(logits, moment.generator))
        entities = _label_or_else(targets.keywords, targets.keywords_known, guessed)
        inputs = self.appended(batch.inputs, entities)
        position = torch.arange(inputs.context.shape[1], device=inputs.context.device)
        appended = position >= batch.inputs.context_lengths.unsqueeze(1)  # what it is told to name it always reads
        told = self.hred.loss(replace(batch, inputs=inputs), moment, appended)
        named = batch_loss(batch, -keyword_log_prob(logits, targets.keywords) * targets.keywords_known, {})
        return BatchLoss(
            total=told.total + named.total,
            num_turns=told.num_turns,
            terms={**told.terms, "keywords": -named.total.detach()},
            per_session=told.per_session + named.per_session,
        )

    @torch.no_grad()
    def perceive(self, inputs: TurnInputs, layout: TurnLayout) -> Perception:
        return self._told(inputs, layout, self.choose(self.predictor(inputs, layout)))

    @torch.no_grad()
    def imagine(
        self, inputs: TurnInputs, layout: TurnLayout, count: int, generator: torch.Generator
    ) -> Iterator[Perception]:
        """What might be named next, each entity drawn as often as it is probable."""
        logits = self.predictor(inputs, layout)
        for _ in range(count):
            yield self._told(inputs, layout, self._likeliest(logits, _drawn(logits, generator)))

    def _told(self, inputs: TurnInputs, layout: TurnLayout, entities: Tensor) -> Perception:
        told = self.hred.perceive(self.appended(inputs, entities), layout)
        return replace(told, keywords=entities)

    def begin_reply(self, perception: Perception, rows: Tensor) -> tuple[StepFunction[ToldState], ToldState]:
        return self.hred.begin_reply(perception, rows)

    def reply_log_prob(self, perception: Perception, response: Tensor, lengths: Tensor) -> Tensor:
        return self.hred.reply_log_prob(perception, response, lengths)

    def choose(self, logits: Tensor) -> Tensor:
        """The likeliest entities above the threshold [N, K], -1 after the last."""
        return self._likeliest(logits, logits > self.threshold)

    def _likeliest(self, logits: Tensor, named: Tensor) -> Tensor:
        """Of those named [N, E] the likeliest [N, K], -1 after the last."""
        best, entities = torch.where(named, logits, -torch.inf).topk(min(self.most, logits.shape[1]), dim=1)
        return torch.where(best > -torch.inf, entities, NO_ENTITY)

    def appended(self, inputs: TurnInputs, entities: Tensor) -> TurnInputs:
        """The same turns, the words of these entities [N, K] behind what the patient said."""
        longer = append_entities(inputs.context, inputs.context_lengths, entities, self.entity_words)
        return replace(inputs, context=longer.context, context_lengths=longer.lengths)


def _drawn(logits: Tensor, generator: torch.Generator) -> Tensor:
    """Which entities are named [N, E], each by itself, as often as it is probable."""
    return torch.rand(logits.shape, generator=generator).to(logits.device) < logits.detach().sigmoid()


def keyword_log_prob(logits: Tensor, keywords: Tensor) -> Tensor:
    """Log probability [N] of naming exactly these entities [N, K], -1 where there is none."""
    named = torch.zeros(len(logits), logits.shape[1] + 1, device=logits.device)
    named = named.scatter(1, torch.where(keywords >= 0, keywords, logits.shape[1]), 1.0)[:, :-1]
    return -nn.functional.binary_cross_entropy_with_logits(logits, named, reduction="none").sum(dim=1)


def _label_or_else(labels: Tensor, known: Tensor, others: Tensor) -> Tensor:
    """The labels [N, K] where they are known [N], elsewhere the others."""
    width = max(labels.shape[1], others.shape[1])
    labels, others = (
        nn.functional.pad(entities, (0, width - entities.shape[1]), value=NO_ENTITY) for entities in (labels, others)
    )
    return torch.where(known.unsqueeze(1), labels, others)


def build_hred_bert(config: Config, world: World) -> HredBert:
    """With the sizes every other system has."""
    network = config.network
    words = build_heard_words(config, world, build_words(config, world))
    history = build_history_reader(config, world)
    sizes = network.hidden_size, history.size
    predictor = EntityPredictor(words, build_encoder(config), history, sizes, world.log_odds, network.dropout)
    hred = build_hred(config, world, reads=True)
    return HredBert(at_policy_rate(config, predictor), hred, world.entity_words, config.policy.length)
