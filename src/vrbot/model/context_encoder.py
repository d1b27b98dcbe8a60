"""The context encoder: (R_{t-1}, U_t) on top of what came before (paper, section 3.2, Eq. 6).

Letters: N rows (turns), T context tokens, H hidden size. Rows stand turn by turn; see `dialogue.batching`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn

from vrbot.dialogue.batching import TurnInputs, TurnLayout
from vrbot.nets.attention import AdditiveAttention
from vrbot.nets.encoders import BidirectionalEncoder, Encoded

Context = Encoded
"""`tokens` is H_t, `summary` is h^c_t."""


class ContextEncoder(Protocol):
    """Reads all turns of a batch; a turn's result depends on that turn and earlier ones only."""

    def __call__(self, embedded: Tensor, inputs: TurnInputs, layout: TurnLayout) -> Context: ...


class CarriedContextEncoder(nn.Module):
    """The paper's: each turn's BiGRU starts from the summary of the turn before, without gradient between turns."""

    def __init__(self, embedding_size: int, hidden_size: int) -> None:
        super().__init__()
        self.encoder = BidirectionalEncoder(embedding_size, hidden_size)
        self.attention = AdditiveAttention(hidden_size, hidden_size, hidden_size)

    def forward(self, embedded: Tensor, inputs: TurnInputs, layout: TurnLayout) -> Context:
        """Embedded contexts [N, T, D] -> H_t and h^c_t of every turn."""
        carried: Tensor | None = None
        parts: list[Encoded] = []
        for start, stop in layout.turns():
            begin = None if carried is None else carried[: stop - start]
            read = self.encoder(embedded[start:stop], inputs.context_lengths[start:stop], begin)
            summary = self.attention(read.summary, read.tokens, read.mask)
            carried = summary.detach()
            parts.append(Encoded(read.tokens, read.mask, summary))
        return Encoded(*(torch.cat([getattr(p, name) for p in parts]) for name in ("tokens", "mask", "summary")))


class SessionContextEncoder(nn.Module):
    """All turns are read at once; a second GRU over the turns' summaries carries the whole history, with gradient.

    The two utterances are told apart by a learned speaker vector.
    """

    def __init__(self, embedding_size: int, hidden_size: int, dropout: float) -> None:
        super().__init__()
        self.encoder = BidirectionalEncoder(embedding_size, hidden_size)
        self.attention = AdditiveAttention(hidden_size, hidden_size, hidden_size)
        self.session = nn.GRUCell(2 * hidden_size, hidden_size)
        self.combine = nn.Linear(3 * hidden_size, hidden_size)
        self.dropout = nn.Dropout(dropout)

    def forward(self, embedded: Tensor, inputs: TurnInputs, layout: TurnLayout) -> Context:
        read = self.encoder(embedded, inputs.context_lengths)
        attended = self.attention(read.summary, read.tokens, read.mask)
        highest = read.tokens.masked_fill(~read.mask.unsqueeze(-1), -1.0).amax(dim=1)
        turn = self.dropout(torch.cat((attended, highest), dim=-1))  # [N, 2H]
        history = self._along_turns(turn, layout)
        summary = torch.tanh(self.combine(torch.cat((turn, history), dim=-1)))
        return Encoded(read.tokens, read.mask, summary)

    def _along_turns(self, turn: Tensor, layout: TurnLayout) -> Tensor:
        memory = turn.new_zeros(layout.num_sessions, self.session.hidden_size)
        states = []
        for start, stop in layout.turns():
            memory = self.session(turn[start:stop], memory[: stop - start])
            states.append(memory)
        return torch.cat(states)


@dataclass(frozen=True, eq=False)
class Mentions:
    """Entities that can be copied: ids [N, M] (0 where there is none), vectors [N, M, H], which exist [N, M]."""

    entities: Tensor
    vectors: Tensor
    mask: Tensor

    def select(self, rows: Tensor | slice) -> Mentions:
        return Mentions(self.entities[rows], self.vectors[rows], self.mask[rows])

    def and_also(self, other: Mentions) -> Mentions:
        """Both, this one's first."""
        return Mentions(
            torch.cat((self.entities, other.entities), dim=1),
            torch.cat((self.vectors, other.vectors), dim=1),
            torch.cat((self.mask, other.mask), dim=1),
        )


def mentions_in(encoded: Encoded, entities: Tensor, positions: Tensor) -> Mentions:
    """Mentions with ids and token positions [N, M], -1 where there is none, and the vectors of their tokens."""
    mask = entities >= 0
    if entities.shape[1] == 0 or encoded.tokens.shape[1] == 0:
        return Mentions(
            entities.new_zeros(len(entities), 0), encoded.tokens.new_zeros(len(entities), 0, encoded.tokens.shape[-1]), mask[:, :0]
        )
    index = positions.clamp_min(0).unsqueeze(-1).expand(-1, -1, encoded.tokens.shape[-1])
    return Mentions(entities.clamp_min(0), encoded.tokens.gather(1, index), mask)
