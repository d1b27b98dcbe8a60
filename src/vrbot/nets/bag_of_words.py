"""Which words a reply holds, in no order, told from one vector: a term that makes a latent useful.

Letters: N rows, R response positions, V words.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from vrbot.nets.word_head import WordHead, real_positions


class BagOfWords(nn.Module):
    """One distribution over words for a whole reply; the words' vectors are the input's own."""

    def __init__(self, words: nn.Embedding, input_size: int, hidden_size: int, dropout: float) -> None:
        super().__init__()
        self.layer = nn.Linear(input_size, hidden_size)
        self.head = WordHead(words, hidden_size, dropout)

    def forward(self, vectors: Tensor, response: Tensor, lengths: Tensor) -> Tensor:
        """What the words of each response cost beyond the least possible [N], in nats: - sum_i log p(w_i) less the
        same under the response's own word frequencies, a constant, so that 0 is perfection. No response costs 0."""
        log_probs = self.head.log_probs(torch.tanh(self.layer(vectors)))  # [N, V]
        row, position = real_positions(response, lengths)
        own = response.unsqueeze(1) == response.unsqueeze(2)  # [N, R, R]
        real = torch.arange(response.shape[1], device=response.device) < lengths.unsqueeze(1)
        times = (own & real.unsqueeze(1)).sum(dim=2)  # [N, R] how often each word is in its response
        least = (times[row, position] / lengths[row]).log()
        cost = least - log_probs[row, response[row, position]]
        return torch.zeros(len(lengths), device=vectors.device).index_add(0, row, cost)
