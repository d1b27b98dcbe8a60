"""What chained systems share: copy decoders that attend to the encoder and to the decoders before them, and sums.

A chain is state -> action -> response. Each span decoder is the state tracker's copy mechanism behind an attention over
any number of memories; its hidden states are what the next decoder attends to.
Letters: N rows (turns), L span positions, Q positions at once, C categories, E entities, H hidden size.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from vrbot.baselines.turn_losses import batch_loss
from vrbot.config import ChainSettings, Config
from vrbot.decoding.step import StepFunction
from vrbot.dialogue.batching import SessionBatch, TurnInputs, TurnLayout
from vrbot.dialogue.session import CATEGORIES
from vrbot.model.action_classifier import ActionClassifier
from vrbot.model.build import CATEGORY_SIZE, build_tracker
from vrbot.model.build_reading import at_rate
from vrbot.model.context_encoder import Mentions
from vrbot.model.contract import BatchLoss, Perception
from vrbot.model.keyword_scores import SpanScores
from vrbot.model.policy_network import Action, ActionClamp
from vrbot.model.response_generator import Conditions, DecoderState, ResponseGenerator
from vrbot.model.spans import Choose, Clamp, EntityTable, Span, Written, one_hot_choice, span_of
from vrbot.model.state_tracker import StateTracker
from vrbot.model.vrbot import Heard
from vrbot.nets.attention import DotAttention, Memory
from vrbot.nets.encoders import Encoded
from vrbot.objective.labels import KnownLatents
from vrbot.probability.category import chosen_log_prob


@dataclass(frozen=True, eq=False)
class Sources:
    """What a span is written from: vectors to begin with [N, H] each, memories to attend to, entities to copy."""

    evidence: tuple[Tensor, ...]
    memories: tuple[Memory, ...]
    mentions: Mentions
    table: Tensor  # [E+1, D]


@dataclass(frozen=True, eq=False)
class Told:
    """A span as its decoder tells it: log probabilities of each position [N, L, E+1], and its hidden states."""

    log_probs: Tensor
    hidden: Encoded


class ChainDecoder(nn.Module):
    """Writes a span; every position attends to each memory, then generates an entity or copies one."""

    def __init__(self, tracker: StateTracker, num_memories: int, hidden_size: int, dropout: float) -> None:
        """The tracker brings the recurrent writer, the copy mechanism and its biases."""
        super().__init__()
        self.tracker = tracker
        self.attentions = nn.ModuleList(DotAttention(hidden_size, hidden_size) for _ in range(num_memories))
        self.combine = nn.Linear((num_memories + 1) * hidden_size, hidden_size)
        self.dropout = nn.Dropout(dropout)

    @torch.no_grad()
    def write(self, sources: Sources, length: int, clamp: Clamp | None = None, choose: Choose = one_hot_choice) -> Span:
        """The symbols chosen one after the other, or the known ones where the clamp has any."""

        def score(states: Tensor, written: Written) -> Tensor:
            return self._scores(self._attended(states, sources), written, sources)

        writer = self.tracker.writer
        initial = writer.initial(*sources.evidence)
        return writer.write(initial, length, sources.table, score, choose, clamp).span

    def along(self, sources: Sources, span: Span) -> Told:
        """All positions at once when the decoder is fed this span."""
        writer = self.tracker.writer
        states = writer.states_along(writer.initial(*sources.evidence), span, sources.table)
        attended, written = self._attended(states, sources), Written.before_each(span)
        return Told(self._scores(attended, written, sources), _encoded(attended, span.mask))

    def _attended(self, states: Tensor, sources: Sources) -> Tensor:
        read = [
            attention.read(states, memory)  # type: ignore[operator]
            for attention, memory in zip(self.attentions, sources.memories, strict=True)
        ]
        attended: Tensor = self.dropout(torch.tanh(self.combine(torch.cat((states, *read), dim=-1))))
        return attended

    def _scores(self, attended: Tensor, written: Written, sources: Sources) -> Tensor:
        return self.tracker._score(attended, written, sources.mentions, sources.table)


def _encoded(states: Tensor, mask: Tensor) -> Encoded:
    """Hidden states [N, L, H] of the positions that name something; the whole is the state that ends the span."""
    last = mask.sum(dim=1).clamp_max(mask.shape[1] - 1)
    summary = states[torch.arange(len(states), device=states.device), last]
    return Encoded(states * mask.unsqueeze(-1), mask, summary)


@dataclass(frozen=True, eq=False)
class ToldAction:
    """Log probabilities of the category [N, C], and the keywords as told."""

    category: Tensor
    keywords: Told


class ChainedAction(nn.Module):
    """A category, then keywords that begin from it."""

    def __init__(self, classifier: ActionClassifier, categories: nn.Embedding, decoder: ChainDecoder) -> None:
        super().__init__()
        self.classifier, self.categories, self.decoder = classifier, categories, decoder

    @torch.no_grad()
    def write(
        self,
        sources: Sources,
        length: int,
        clamp: ActionClamp | None = None,
        choose: Choose = one_hot_choice,
        choose_category: Choose = one_hot_choice,
    ) -> Action:
        """The category chosen and the keywords chosen after it, or the known parts where the clamp has any."""
        category = choose_category(self.classifier(*sources.evidence))
        if clamp is not None:
            category = torch.where(clamp.category_rows.unsqueeze(-1), clamp.category, category)
        known = None if clamp is None else clamp.keywords
        return Action(category, self.decoder.write(self._begun(sources, category), length, known, choose))

    def along(self, sources: Sources, action: Action) -> ToldAction:
        """How probable the parts of this action are, each given those before it."""
        told = self.decoder.along(self._begun(sources, action.category), action.keywords)
        return ToldAction(self.classifier(*sources.evidence), told)

    def vectors(self, action: Action) -> Tensor:
        """e^{A^c} [N, .] for the response generator."""
        vectors: Tensor = action.category @ self.categories.weight
        return vectors

    def _begun(self, sources: Sources, category: Tensor) -> Sources:
        return replace(sources, evidence=(*sources.evidence, category @ self.categories.weight))


class ChainedReplies(nn.Module):
    """A model whose generator writes from what its chain of decoders has written.

    `none_offset` is added to log p(NONE) of the action's keywords in use; like VRBot's it is calibrated on validation
    data. The state and the loss know nothing of it.
    """

    table: EntityTable
    generator: ResponseGenerator
    action: ChainedAction
    none_offset: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("none_offset", torch.zeros(()))

    def keyword_namer(self, inputs: TurnInputs, layout: TurnLayout) -> Callable[[], Tensor]:
        """A function that names the keywords of every turn [N, L] by the offset of the moment, -1 where there is none;
        what does not depend on the offset is done once."""
        raise NotImplementedError

    def choose_keyword(self, log_probs: Tensor) -> Tensor:
        """The most probable keyword, NONE shifted by the calibrated offset."""
        shift = torch.zeros(log_probs.shape[-1], device=log_probs.device)
        shift[-1] = self.none_offset
        return one_hot_choice(log_probs + shift)

    def begin_reply(self, perception: Perception, rows: Tensor) -> tuple[StepFunction[DecoderState], DecoderState]:
        given: Conditions = perception.conditions.select(rows)
        return self.generator.search_step, self.generator.initial(given, self.action.vectors(given.action))

    @torch.no_grad()
    def reply_log_prob(self, perception: Perception, response: Tensor, lengths: Tensor) -> Tensor:
        return self.log_prob(perception.conditions, response, lengths)

    def log_prob(self, given: Conditions, response: Tensor, lengths: Tensor) -> Tensor:
        return self.generator.log_prob(given, self.action.vectors(given.action), response, lengths)


def heard_rows(heard: Heard, rows: slice) -> Heard:
    """What was heard in these rows only."""
    return Heard(heard.words[rows], heard.context.select(rows), heard.mentions.select(rows), heard.table)


def memory_of(encoded: Encoded) -> Memory:
    return Memory(encoded.tokens, encoded.mask)


def slots_of(span: Span, read: Encoded) -> Mentions:
    """The entities a span names, to be copied."""
    return Mentions(span.ids.clamp_max(span.weights.shape[-1] - 2), read.tokens, span.mask)


def named_entities(span: Span) -> Tensor:
    """Entity ids [N, L], -1 where there is none."""
    return torch.where(span.mask, span.ids, -1)


def empty_spans(like: Tensor, length: int, num_entities: int) -> Span:
    """A span that names nothing for each row of `like`."""
    return span_of(torch.zeros(len(like), 0, dtype=torch.long, device=like.device), length, num_entities)


def spans_before(spans: Span, layout: TurnLayout) -> Span:
    """The span of the turn before each [N, L, E+1]; an empty one before first turns."""
    sizes, weights = layout.turn_sizes, spans.weights
    first = empty_spans(weights[: sizes[0]], weights.shape[1], weights.shape[2] - 1).weights
    later = [part[:size] for part, size in zip(weights.split(sizes)[:-1], sizes[1:], strict=True)]
    return Span(torch.cat((first, *later)))


def label_terms(state: Tensor, action: ToldAction, known: KnownLatents) -> dict[str, Tensor]:
    """Log probability of each kind of label [N], exactly 0 where it is not known."""
    category = chosen_log_prob(action.category, known.category.argmax(dim=-1))
    terms = {
        "state": (SpanScores(state).log_prob(known.state), known.state_known),
        "category": (category, known.category_known),
        "keywords": (SpanScores(action.keywords.log_probs).log_prob(known.keywords), known.keywords_known),
    }
    return {kind: log_prob.masked_fill(~there, 0.0) for kind, (log_prob, there) in terms.items()}


def weights_of(settings: ChainSettings) -> dict[str, float]:
    """What the labels of each kind weigh."""
    return {
        "state": settings.state_weight,
        "category": settings.action_weight,
        "keywords": settings.action_weight,
    }


def loss_of_turns(
    batch: SessionBatch,
    gains: Mapping[str, Tensor],
    costs: Mapping[str, Tensor],
    weights: Mapping[str, float] | None = None,
) -> BatchLoss:
    """Costs less gains (log probabilities) of every turn, [N] each, gains as often as their weight says, else once;
    all of them are logged."""
    terms = [*costs.values(), *(-(weights or {}).get(name, 1.0) * gain for name, gain in gains.items())]
    return batch_loss(batch, torch.stack(terms).sum(dim=0), {**gains, **costs})


def build_state_decoder(config: Config, num_evidence: int, num_memories: int) -> ChainDecoder:
    """A decoder of the state span with the biases of VRBot's tracker."""
    hidden = config.network.hidden_size
    return ChainDecoder(build_tracker(config, (hidden,) * num_evidence), num_memories, hidden, dropout=0.0)


def build_action(config: Config, num_evidence: int, num_memories: int) -> ChainedAction:
    """An action decoder without biases: what is asked for or prescribed is seldom what was mentioned."""
    network, evidence = config.network, (config.network.hidden_size,) * num_evidence
    writer = StateTracker(network.embedding_size, network.hidden_size, (*evidence, CATEGORY_SIZE))
    action = ChainedAction(
        ActionClassifier(evidence, len(CATEGORIES), network.dropout),
        nn.Embedding(len(CATEGORIES), CATEGORY_SIZE),
        ChainDecoder(writer, num_memories, network.hidden_size, network.dropout),
    )
    return at_rate(config.chains.action_rate_factor, action)
