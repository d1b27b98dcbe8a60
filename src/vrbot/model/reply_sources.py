"""What scoring known responses needs of the conditions they are written under, and in which blocks it is done.

Letters: N rows, M contexts, T context tokens, R response positions, L span positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from vrbot.model.context_encoder import Context
from vrbot.nets.encoders import Encoded

ROWS_AT_ONCE = 96


@dataclass(frozen=True, eq=False)
class ReplySources:
    """What is left of the conditions once the responses to score are known; rows may share a context."""

    context_words: Tensor  # [M, T]
    context: Context
    rows: Tensor  # [N] the context of each row
    state_read: Encoded
    keywords_read: Encoded
    span_words: Tensor  # [N, L] the words of state and keywords
    keywords: Tensor  # [N, .] entity ids
    match: Tensor  # [N, R, L] how far each of them holds each word of the response

    def followed_by(self, other: ReplySources) -> ReplySources:
        """The rows of both; contexts that are the same are kept once."""
        context_words, context, rows = self.context_words, self.context, other.rows
        if self.context is not other.context:
            context_words = torch.cat((self.context_words, other.context_words))
            context, rows = self.context.followed_by(other.context), rows + len(self.context_words)
        return ReplySources(
            context_words,
            context,
            torch.cat((self.rows, rows)),
            self.state_read.followed_by(other.state_read),
            self.keywords_read.followed_by(other.keywords_read),
            torch.cat((self.span_words, other.span_words)),
            torch.cat((self.keywords, other.keywords)),
            torch.cat((self.match, other.match)),
        )

    def select(self, rows: Tensor) -> ReplySources:
        """These rows only; the contexts stay."""
        return self._with(rows, self.context_words, self.context, self.rows[rows])

    def in_blocks(self, blocks: Sequence[Tensor]) -> list[ReplySources]:
        """Blocks of rows, each with contexts of its own, cut to the longest."""
        own = [self.rows[rows] for rows in blocks]
        contexts = self.context.in_blocks(own)
        return [
            self._with(rows, self.context_words[of, : context.mask.shape[1]], context, torch.arange(len(rows)))
            for rows, of, context in zip(blocks, own, contexts, strict=True)
        ]

    def _with(self, rows: Tensor, context_words: Tensor, context: Context, of: Tensor) -> ReplySources:
        reads = self.state_read.select(rows), self.keywords_read.select(rows)
        return ReplySources(
            context_words, context, of, *reads, self.span_words[rows], self.keywords[rows], self.match[rows]
        )


def blocks_of(lengths: Tensor, context_lengths: Tensor) -> list[Tensor]:
    """Rows that have a response, in blocks of similar context lengths; in each the longest response comes first."""
    rows = (lengths > 0).nonzero().squeeze(1)
    if len(rows) > ROWS_AT_ONCE:
        rows = rows[context_lengths[rows].argsort(descending=True, stable=True)]
    count = -(-len(rows) // ROWS_AT_ONCE)
    parts = rows.chunk(count) if count else ()
    return [part[lengths[part].argsort(descending=True, stable=True)] for part in parts]
