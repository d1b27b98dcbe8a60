"""Spans of entities, and how a decoder writes or scores one.

Letters: N rows, L span positions, E entities (the symbol E itself is NONE, "nothing more"), D embedding size,
H hidden size. A span ends with its first NONE; what follows is NONE for certain and costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor, nn

from vrbot.nets.encoders import Encoded, SpanEncoder
from vrbot.nets.recurrence import gru_over, gru_step
from vrbot.probability.category import relaxed_sample

Choose = Callable[[Tensor], Tensor]
"""Log probabilities [N, E+1] -> weights [N, E+1] that sum to one: a relaxed sample, or a one-hot choice."""

Score = Callable[[Tensor, "Written"], Tensor]
"""Decoder states [N, Q, H] and what was written before each -> log probabilities [N, Q, E+1]; a span that has ended
goes on with NONE for certain."""


@dataclass(frozen=True, eq=False)
class Span:
    """A span as weights over symbols [N, L, E+1]: one-hot if known, in between if a relaxed sample."""

    weights: Tensor

    @cached_property
    def ids(self) -> Tensor:
        """The symbol that weighs most at each position [N, L]."""
        return self.weights.detach().argmax(dim=-1)

    @cached_property
    def mask(self) -> Tensor:
        """True where a position names an entity [N, L]."""
        return self.ids != self.weights.shape[-1] - 1

    def followed_by(self, other: Span) -> Span:
        """The rows of both."""
        return Span(torch.cat((self.weights, other.weights)))

    def select(self, rows: Tensor | slice) -> Span:
        return Span(self.weights[rows])

    def where(self, other: Span, chosen: Tensor) -> Span:
        """`other` in the chosen rows [N], this span elsewhere."""
        return Span(torch.where(chosen[:, None, None], other.weights, self.weights))


def vectors_of(weights: Tensor, table: Tensor) -> Tensor:
    """The vectors of symbols [E+1, D] added up under weights [..., E+1] -> [..., D].

    Weights that send no gradient back and are all for one symbol are looked up: at thousands of symbols a product, all
    but one of whose terms are zero, is what much of the time would otherwise be spent on.
    """
    if not (weights.requires_grad and torch.is_grad_enabled()):
        most, ids = weights.max(dim=-1)
        if bool((most == 1.0).all()):
            return table[ids]
    return weights @ table


def span_of(entities: Tensor, length: int, num_entities: int) -> Span:
    """The one-hot span of entity ids [N, K], padded with -1; cut or filled with NONE to the length."""
    ids = torch.full((len(entities), length), num_entities, dtype=torch.long, device=entities.device)
    known = entities[:, :length]
    ids[:, : known.shape[1]] = torch.where(known >= 0, known, num_entities)
    return Span(nn.functional.one_hot(ids, num_entities + 1).float())


def one_hot_choice(log_probs: Tensor) -> Tensor:
    """The most probable symbol, as weights."""
    return nn.functional.one_hot(log_probs.argmax(dim=-1), log_probs.shape[-1]).to(log_probs.dtype)


def drawn_by(generator: torch.Generator) -> Choose:
    """A chooser that draws symbols, each as often as it is probable."""
    return lambda log_probs: relaxed_sample(log_probs, 1.0, generator, hard=True)


@dataclass(frozen=True, eq=False)
class Written:
    """What stands before each of Q positions: entities already used [N, Q, E+1], and whether the span has ended."""

    used: Tensor
    ended: Tensor  # [N, Q]

    @classmethod
    def before_each(cls, span: Span) -> Written:
        """For every position of a complete span."""
        before = torch.zeros_like(span.weights, dtype=torch.bool)
        for position in range(1, span.weights.shape[1]):
            before[:, position] = before[:, position - 1]
            before[:, position].scatter_(1, span.ids[:, position - 1, None], value=True)
        ended = before[..., -1].clone()
        before[..., -1] = False
        return cls(before, ended)

    @classmethod
    def nothing(cls, num_rows: int, num_symbols: int, device: torch.device) -> Written:
        return cls(
            torch.zeros(num_rows, 1, num_symbols, dtype=torch.bool, device=device),
            torch.zeros(num_rows, 1, dtype=torch.bool, device=device),
        )

    def after(self, weights: Tensor) -> Written:
        """The situation one position on, when the last position got these weights [N, E+1]."""
        chosen = weights.detach().argmax(dim=-1).view(-1, 1, 1)
        used = self.used.scatter(-1, chosen, value=True)
        used[..., -1] = False
        return Written(used, self.ended | (chosen.squeeze(-1) == weights.shape[-1] - 1))

    def close(self, log_probs: Tensor) -> Tensor:
        """Log probabilities [N, Q, E+1] where an ended span goes on with NONE for certain."""
        nothing_more = torch.full_like(log_probs[:1, :1], -math.inf)
        nothing_more[..., -1] = 0.0
        return torch.where(self.ended.unsqueeze(-1), nothing_more, log_probs)


class EntityTable(nn.Module):
    """Vectors of the span symbols: those of the entities' names among the words, and one for NONE."""

    entity_words: Tensor

    def __init__(self, words: nn.Embedding, entity_words: Tensor) -> None:
        super().__init__()
        self.words = words
        self.none = nn.Parameter(torch.zeros(words.embedding_dim))
        self.register_buffer("entity_words", entity_words.long(), persistent=False)

    @property
    def num_entities(self) -> int:
        return len(self.entity_words)

    def forward(self) -> Tensor:
        """[E+1, D]; gather it once per step and pass it around."""
        return torch.cat((self.words.weight[self.entity_words], self.none.unsqueeze(0)))


class SpanReader(nn.Module):
    """A span as vectors: soft samples are embedded by one matrix product, then read by a GRU."""

    def __init__(self, embedding_size: int, hidden_size: int) -> None:
        super().__init__()
        self.encoder = SpanEncoder(embedding_size, hidden_size)

    def forward(self, span: Span, table: Tensor) -> Encoded:
        read: Encoded = self.encoder(vectors_of(span.weights, table), span.mask)
        return read


class SpanWriter(nn.Module):
    """A GRU that writes spans: each position sees the embedding of the one before it (Eqs. 7, 8, 12, 14)."""

    def __init__(self, embedding_size: int, hidden_size: int, evidence_sizes: tuple[int, ...]) -> None:
        super().__init__()
        self.begin = nn.Linear(sum(evidence_sizes), hidden_size)
        self.start_symbol = nn.Parameter(torch.zeros(embedding_size))
        self.gru = nn.GRU(embedding_size, hidden_size, batch_first=True)

    def initial(self, *evidence: Tensor) -> Tensor:
        """b_{t,0} from the evidence vectors [N, .] -> [N, H]."""
        begun: Tensor = self.begin(torch.cat(evidence, dim=-1))
        return begun

    def states_along(self, initial: Tensor, span: Span, table: Tensor) -> Tensor:
        """Decoder states when fed a given span, in one call -> [N, L, H]."""
        fed = vectors_of(span.weights[:, :-1], table)
        first = self.start_symbol.expand(len(fed), 1, -1)
        return gru_over(self.gru, torch.cat((first, fed), dim=1), initial)

    def score(self, initial: Tensor, span: Span, table: Tensor, score: Score) -> Tensor:
        """Log probabilities [N, L, E+1] of each position given the span's own beginning (teacher forcing)."""
        written = Written.before_each(span)
        return score(self.states_along(initial, span, table), written)

    def write(
        self, initial: Tensor, length: int, table: Tensor, score: Score, choose: Choose, clamp: Clamp | None = None
    ) -> WrittenSpan:
        """Writes a span position by position; rows with a clamp get the given symbols instead of chosen ones.

        In use, where no gradient is wanted, nothing more is computed once every span has ended.
        """
        hidden, fed = initial, self.start_symbol.expand(len(initial), -1)
        written = Written.nothing(len(initial), len(table), table.device)
        log_probs, weights = [], []
        is_clamped = clamp is not None and bool(clamp.rows.any())
        for position in range(length):
            hidden = gru_step(self.gru, fed, hidden)
            step = score(hidden.unsqueeze(1), written)
            chosen = choose(step.squeeze(1))
            if clamp is not None and is_clamped:
                chosen = torch.where(clamp.rows.unsqueeze(-1), clamp.span.weights[:, position], chosen)
            log_probs.append(step)
            weights.append(chosen)
            if position + 1 < length:
                fed, written = vectors_of(chosen, table), written.after(chosen)
                if not torch.is_grad_enabled() and bool(written.ended.all()):
                    ended = written.close(torch.empty_like(step))
                    log_probs += [ended] * (length - position - 1)
                    weights += [ended.squeeze(1).exp()] * (length - position - 1)
                    break
        return WrittenSpan(torch.cat(log_probs, dim=1), Span(torch.stack(weights, dim=1)))


@dataclass(frozen=True, eq=False)
class Clamp:
    """Rows [N] whose span is known, and the spans."""

    rows: Tensor
    span: Span

    def split(self, sizes: list[int]) -> list[Clamp]:
        """Consecutive groups of rows."""
        parts = zip(self.rows.split(sizes), self.span.weights.split(sizes), strict=True)
        return [Clamp(rows, Span(weights)) for rows, weights in parts]


@dataclass(frozen=True, eq=False)
class WrittenSpan:
    """A span and the log probabilities [N, L, E+1] it was drawn from."""

    log_probs: Tensor
    span: Span
