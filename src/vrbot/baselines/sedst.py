"""SEDST: the state span is never sampled but flows on as distributions, from position to position and to the reply.

Networks, sizes and biases are those of VRBot without an action. Fed back is the expected embedding; the reply attends
to the state read by its expectations and copies from its distributions. Known states are fed and shown as they are.
Letters: N rows (turns), L span positions, E entities, V words, J slots to copy from.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from vrbot.baselines.span_chain import empty_spans, loss_of_turns, named_entities, spans_before
from vrbot.config import Config, SedstSettings
from vrbot.dialogue.batching import SessionBatch, TurnInputs, TurnLayout, TurnTargets
from vrbot.model.build import Assembly, build_generator, build_vrbot
from vrbot.model.contract import BatchLoss, Moment, Perception
from vrbot.model.keyword_scores import SpanScores
from vrbot.model.policy_network import Action
from vrbot.model.response_generator import Conditions, DecoderState, ResponseGenerator
from vrbot.model.spans import Clamp, Span, WrittenSpan, one_hot_choice, span_of
from vrbot.model.vrbot import Heard, VRBot
from vrbot.model.world import World
from vrbot.nets.copying import add_copies, rule_out
from vrbot.nets.encoders import Encoded
from vrbot.probability.span import SpanDistribution


def expected(log_probs: Tensor) -> Tensor:
    """The distribution itself as weights: what they embed to is the expectation."""
    return log_probs.exp()


def shown(span: Span) -> Span:
    """What the reply reads and copies from: of each position that names something, the distribution of its name."""
    named = span.weights[..., :-1]
    named = named / named.sum(dim=-1, keepdim=True).clamp_min(1e-6)  # the likeliest of E+1 symbols is never that rare
    nothing = torch.zeros_like(span.weights[..., -1:])
    empty = torch.cat((torch.zeros_like(named), nothing + 1.0), dim=-1)
    return Span(torch.where(span.mask.unsqueeze(-1), torch.cat((named, nothing), dim=-1), empty))


@dataclass(frozen=True, eq=False)
class FlowDecoderState:
    """A decoder's state, and the distributions [items, L, E] its state slots hold."""

    decoder: DecoderState
    names: Tensor

    def select(self, rows: Tensor, items: Tensor | None) -> FlowDecoderState:
        return FlowDecoderState(self.decoder.select(rows, items), self.names if items is None else self.names[items])


class Sedst(nn.Module):
    """Prior and posterior copy-flows over the networks of VRBot; the reply is always given the prior's."""

    def __init__(self, networks: VRBot, reader_of_context: ResponseGenerator | None, settings: SedstSettings) -> None:
        """`reader_of_context` writes the context again from the posterior's state: for data without labels."""
        super().__init__()
        self.networks, self.reader_of_context, self.settings = networks, reader_of_context, settings

    def loss(self, batch: SessionBatch, moment: Moment) -> BatchLoss:
        """Labelled: log p(S), log q(S), log p(R | S). Unlabelled: log p(R | p's flow) less w KL(q, held || p)."""
        networks, targets = self.networks, batch.targets
        heard = networks.hear(batch.inputs, batch.layout)
        known = Clamp(targets.state_known, span_of(targets.state, networks.state_length, networks.table.num_entities))
        prior = self.flow(heard, batch.layout, known)
        posterior, divergence = self.posterior(heard, spans_before(prior.span, batch.layout), targets, known)
        given = self._conditions(heard, prior.span)
        categories = networks.category_vectors(given.action)
        reply = networks.generator.log_prob(given, categories, targets.response, targets.response_lengths)
        labels = SpanScores(prior.log_probs).log_prob(known.span) + SpanScores(posterior.log_probs).log_prob(known.span)
        gains = {"reconstruction": reply, "labels": labels.masked_fill(~known.rows, 0.0)}
        if self.reader_of_context is not None:
            gains["context"] = self._context_again(self.reader_of_context, batch.inputs, given, posterior.span)
        return loss_of_turns(
            batch, gains, {"kl_state": self.settings.kl_weight * divergence.masked_fill(known.rows, 0.0)}
        )

    def flow(self, heard: Heard, layout: TurnLayout, known: Clamp | None = None) -> WrittenSpan:
        """The prior's states along each session; a turn builds on the one before, without gradient between turns."""
        networks, sizes = self.networks, layout.turn_sizes
        previous = networks.first_state(layout.num_sessions, heard.words.device)
        clamps = [None] * len(sizes) if known is None else known.split(sizes)
        written: list[WrittenSpan] = []
        turns = zip(heard.context.summary.split(sizes), heard.mentions.split(sizes), clamps, strict=True)
        for summary, mentioned, clamp in turns:
            previous = Span(previous.weights[: len(summary)].detach())
            read, mentions = networks.recall(previous, mentioned, heard.table)
            written.append(
                networks.prior_tracker.write(  # type: ignore[operator]
                    (summary, read.summary), networks.state_length, mentions, heard.table, expected, clamp
                )
            )
            previous = written[-1].span
        spans = Span(torch.cat([each.span.weights for each in written]))
        return WrittenSpan(torch.cat([each.log_probs for each in written]), spans)

    def posterior(self, heard: Heard, previous: Span, targets: TurnTargets, known: Clamp) -> tuple[WrittenSpan, Tensor]:
        """q's states of all turns at once, and KL(q || p) [N] with p fed what q wrote; q is held fixed in it."""
        networks = self.networks
        read, mentions = networks.recall(Span(previous.weights.detach()), heard.mentions, heard.table)
        evidence = (heard.context.summary, read.summary)
        said = networks.hear_response(targets).encoded.summary
        written: WrittenSpan = networks.inference_tracker.write(  # type: ignore[operator]
            (*evidence, said), networks.state_length, mentions, heard.table, expected, known
        )
        held = Span(written.span.weights.detach())
        prior = networks.prior_tracker.score_along(evidence, held, mentions, heard.table)  # type: ignore[operator]
        return written, SpanDistribution(written.log_probs).detach().kl(SpanDistribution(prior))

    def _conditions(self, heard: Heard, state: Span) -> Conditions:
        networks = self.networks
        no_action = networks.prior_policy.write(  # type: ignore[operator]
            networks.policy_evidence(heard, state), networks.action_length, one_hot_choice, one_hot_choice
        ).action
        return networks.conditions(heard, shown(state), no_action)

    def _context_again(
        self, generator: ResponseGenerator, inputs: TurnInputs, given: Conditions, state: Span
    ) -> Tensor:
        """Log probability of the context's words, read from the posterior's state and nothing else [N]."""
        names = shown(state)
        read = self.networks.state_reader(names, self.networks.table())
        nothing = Encoded(given.context.tokens[:, :0], given.context.mask[:, :0], torch.zeros_like(read.summary))
        action = Action(
            torch.zeros_like(given.action.category), empty_spans(read.summary, 0, names.weights.shape[2] - 1)
        )
        alone = Conditions(given.context_words[:, :0], nothing, names, read, action, nothing)
        categories = self.networks.category_vectors(action)
        return generator.log_prob(alone, categories, inputs.context, inputs.context_lengths)

    @torch.no_grad()
    def perceive(self, inputs: TurnInputs, layout: TurnLayout) -> Perception:
        """The prior's flow; shown as a state is the likeliest symbol of each position."""
        heard = self.networks.hear(inputs, layout)
        state = self.flow(heard, layout).span
        return Perception(named_entities(state), None, None, self._conditions(heard, state))

    def begin_reply(self, perception: Perception, rows: Tensor) -> tuple[FlowStep, FlowDecoderState]:
        begun = self.networks.begin_reply(perception, rows)[1]
        names = perception.conditions.state.weights[rows][..., :-1]
        return FlowStep(self.networks.generator, perception.conditions.context_words.shape[1]), FlowDecoderState(
            begun, names
        )

    @torch.no_grad()
    def reply_log_prob(self, perception: Perception, response: Tensor, lengths: Tensor) -> Tensor:
        return self.networks.reply_log_prob(perception, response, lengths)


@dataclass(frozen=True, eq=False)
class FlowStep:
    """The generator's step when a state slot holds not one name but a distribution of names."""

    generator: ResponseGenerator
    num_context_slots: int

    @torch.no_grad()
    def __call__(self, tokens: Tensor, state: FlowDecoderState) -> tuple[Tensor, FlowDecoderState]:
        """Log probabilities of the next word [rows, V]."""
        generator, memory = self.generator, state.decoder.memory
        items, slots = len(memory.copy_mask), self.num_context_slots
        advanced = generator.cell.advance(state.decoder.hidden, generator.words(tokens), memory.readings)
        output = advanced.output.unflatten(0, (items, -1))
        generation = nn.functional.linear(generator.output(output), generator.words.weight, generator.output_bias)
        scores = torch.bmm(generator.copy_query(output), memory.copy_vectors.transpose(1, 2))
        scores = rule_out(scores, memory.copy_mask.unsqueeze(1))
        logits = add_copies(generation, scores[..., :slots], memory.copy_words[:, :slots])
        logits = self._add_names(logits, scores[..., slots : slots + state.names.shape[1]], state.names)
        log_probs = logits.log_softmax(dim=-1)
        return log_probs.flatten(0, 1), FlowDecoderState(
            DecoderState(advanced.hidden, state.decoder.named, memory), state.names
        )

    def _add_names(self, logits: Tensor, scores: Tensor, names: Tensor) -> Tensor:
        """Each slot's mass [items, Q, L] shared out among the words of the names it may hold."""
        top = scores.amax(dim=-1, keepdim=True)
        top = torch.where(top.isfinite(), top, 0.0)
        copied = torch.bmm((scores - top).exp(), names).log() + top  # [items, Q, E]
        words = self.generator.entity_words
        return logits.index_copy(-1, words, torch.logaddexp(logits[..., words], copied))


def build_sedst(config: Config, world: World) -> Sedst:
    """With the sizes every other system has."""
    networks = build_vrbot(config, world, Assembly(action=False), _no_objective)
    again = (
        build_generator(config, world, networks.generator.words, obeys=False)
        if config.sedst.reconstruct_context
        else None
    )
    return Sedst(networks, again, config.sedst)


def _no_objective(model: VRBot, batch: SessionBatch, moment: Moment) -> BatchLoss:
    raise TypeError("the networks of SEDST have no objective of their own; use Sedst.loss()")
