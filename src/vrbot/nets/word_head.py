"""The last layer of a decoder: scores of the next word from words that share their vectors with the input.

Letters: N rows, R response positions, P real positions of all rows, V words, H hidden size.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from vrbot.nets.vocabulary_scores import target_and_total

ROWS_AT_ONCE = 96

ScoreBlock = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]
"""Rows [n], their responses [n, R] and lengths [n], longest first -> log probabilities of the real words [P] and the
place among the rows of each of them [P]."""


class WordHead(nn.Module):
    """Outputs of a decoder against the vectors of all words."""

    def __init__(self, words: nn.Embedding, hidden_size: int, dropout: float) -> None:
        super().__init__()
        self.words = words
        self.output = nn.Linear(hidden_size, words.embedding_dim)
        self.bias = nn.Parameter(torch.zeros(words.num_embeddings))
        self.dropout = nn.Dropout(dropout)

    @property
    def word_bias(self) -> nn.Parameter:
        return self.bias

    def logits(self, outputs: Tensor) -> Tensor:
        """[..., H] -> [..., V]."""
        return nn.functional.linear(self.output(self.dropout(outputs)), self.words.weight, self.bias)

    def log_probs(self, outputs: Tensor) -> Tensor:
        """[..., H] -> [..., V], normalised."""
        return self.logits(outputs).log_softmax(dim=-1)

    def target_and_total(self, outputs: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """The logit of each target word and the logsumexp of all words', [P] each, from outputs [P, H]."""
        return target_and_total(self.output(self.dropout(outputs)), self.words.weight, self.bias, target)

    def target_log_prob(self, outputs: Tensor, target: Tensor) -> Tensor:
        """Log probability of each target word [P] from outputs [P, H]."""
        logit, total = self.target_and_total(outputs, target)
        return logit - total


def score_in_blocks(score: ScoreBlock, response: Tensor, lengths: Tensor) -> Tensor:
    """Log probability of every row's response [N], in nats; a row without one gives 0.

    Rows are taken longest first, a block at a time, so that little padding is computed.
    """
    order = lengths.argsort(descending=True, stable=True)[: int((lengths > 0).sum())]
    total = torch.zeros(len(lengths), device=response.device)
    for rows in order.split(ROWS_AT_ONCE) if len(order) else ():
        per_word, place = score(rows, response[rows, : int(lengths[rows[0]])], lengths[rows])
        total = total.index_add(0, rows[place], per_word)
    return total


def heard_before(response: Tensor, bos: int) -> Tensor:
    """What a decoder has heard before each word of a response [N, R]: the start, then the words themselves."""
    return torch.cat((torch.full_like(response[:, :1], bos), response[:, :-1]), dim=1)


def real_positions(response: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Row and position of every real word, [P] each."""
    there = torch.arange(response.shape[1], device=response.device) < lengths.unsqueeze(1)
    row, position = there.nonzero(as_tuple=True)
    return row, position
