"""The patient state tracker: prior p(S_t | S_{t-1}, context) and inference q(S_t | S_{t-1}, context, R_t).

Both are this one class; the inference tracker has one more evidence vector (paper, section 3.3, Eqs. 7 and 8).
Letters: N rows, Q positions, J mentions to copy from, E entities.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from vrbot.model.context_encoder import Mentions
from vrbot.model.spans import Choose, Clamp, Span, SpanWriter, Written, WrittenSpan
from vrbot.nets.copying import rule_out
from vrbot.nets.symbol_scores import symbol_log_probs


class StateTracker(nn.Module):
    """Writes the state span: generates entities, or copies them from the context and the previous state.

    `generation_bias` is added to every generated entity's logit, `ending_bias` to NONE while something is left to
    copy, and `order_bias` is taken from a mention for each uncopied one before it; in use `caution` is taken from every
    generated entity's logit besides. All zero is the paper's form.
    """

    def __init__(
        self,
        embedding_size: int,
        hidden_size: int,
        evidence_sizes: tuple[int, ...],
        *,
        generation_bias: float = 0.0,
        ending_bias: float = 0.0,
        order_bias: float = 0.0,
        caution: float = 0.0,
    ) -> None:
        super().__init__()
        self.writer = SpanWriter(embedding_size, hidden_size, evidence_sizes)
        self.project = nn.Sequential(
            nn.Linear(hidden_size, hidden_size), nn.Tanh(), nn.Linear(hidden_size, embedding_size)
        )
        self.copy_query = nn.Linear(hidden_size, hidden_size, bias=False)
        self.ending_bias, self.order_bias = ending_bias, order_bias
        self._generation_bias, self._caution = generation_bias, caution

    @property
    def generation_bias(self) -> float:
        return self._generation_bias - (0.0 if self.training else self._caution)

    def score_along(self, evidence: tuple[Tensor, ...], span: Span, mentions: Mentions, table: Tensor) -> Tensor:
        """Log probabilities [N, L, E+1] of every position, given the span's own beginning."""
        initial = self.writer.initial(*evidence)
        return self.writer.score(
            initial, span, table, lambda states, written: self._score(states, written, mentions, table)
        )

    def write(
        self,
        evidence: tuple[Tensor, ...],
        length: int,
        mentions: Mentions,
        table: Tensor,
        choose: Choose,
        clamp: Clamp | None = None,
    ) -> WrittenSpan:
        """A span of the given length, and what it was drawn from."""
        initial = self.writer.initial(*evidence)
        return self.writer.write(
            initial, length, table, lambda states, written: self._score(states, written, mentions, table), choose, clamp
        )

    def parts_along(
        self, evidence: tuple[Tensor, ...], span: Span, mentions: Mentions, table: Tensor
    ) -> tuple[Tensor, Tensor]:
        """What `score_along` puts under one normaliser: logits of generating entities [N, L, E], and scores of copying
        mentions [N, L, J]."""
        states = self.writer.states_along(self.writer.initial(*evidence), span, table)
        copyable = self._copyable(Written.before_each(span), mentions)
        generation = self.project(states) @ table[:-1].T + self.generation_bias
        return generation, self._copy_scores(states, copyable, mentions)

    def _score(self, states: Tensor, written: Written, mentions: Mentions, table: Tensor) -> Tensor:
        copyable = self._copyable(written, mentions)
        generation = self.project(states) @ table.T  # [N, Q, E+1]
        return symbol_log_probs(
            generation,
            self._copy_scores(states, copyable, mentions),
            mentions.entities,
            written.used,
            written.ended,
            bias=self.generation_bias,
            ending=self.ending_bias * copyable.any(dim=-1) if self.ending_bias else None,
        )

    def _copyable(self, written: Written, mentions: Mentions) -> Tensor:
        """Mentions that exist and are not yet in the span [N, Q, J]."""
        index = mentions.entities.unsqueeze(1).expand(-1, written.used.shape[1], -1)
        return ~written.used.gather(-1, index) & mentions.mask.unsqueeze(1)

    def _copy_scores(self, states: Tensor, copyable: Tensor, mentions: Mentions) -> Tensor:
        scores = (
            torch.bmm(self.copy_query(states), mentions.vectors.transpose(1, 2)) / mentions.vectors.shape[-1] ** 0.5
        )
        if self.order_bias:
            scores = scores - self.order_bias * (copyable.cumsum(dim=-1) - copyable.long())
        return rule_out(scores, copyable)
