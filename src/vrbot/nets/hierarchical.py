"""A dialogue as utterances of words: each utterance is read by itself, then the utterances in the order they came.

Letters: N rows (turns), T context tokens, W words of the longest utterance, B sessions, G utterances of the longest
session, H hidden size. Rows stand turn by turn, and each holds the physician's last response and the patient's
utterance; see `dialogue.batching`.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from vrbot.dialogue.batching import TurnLayout
from vrbot.nets.encoders import BidirectionalEncoder, Encoded


@dataclass(frozen=True, eq=False)
class Halves:
    """Where the two utterances of each context lie: the response up to the separator, the patient's words after it."""

    separator: Tensor  # [N], -1 where the cut took it away and only words of the patient are left
    lengths: Tensor  # [N], of both with the separator

    @property
    def utterance_lengths(self) -> Tensor:
        """Words of the response and of the patient's utterance [N, 2]."""
        return torch.stack((self.separator.clamp_min(0), self.lengths - self.separator - 1), dim=1)

    def places(self) -> Tensor:
        """The position in the context of each word of the two utterances [N, 2, W]; clamped after their ends."""
        width = max(int(self.utterance_lengths.max()), 1) if len(self.lengths) else 1
        within = torch.arange(width, device=self.lengths.device)
        start = torch.stack((torch.zeros_like(self.separator), self.separator + 1), dim=1)
        return (start.unsqueeze(-1) + within).clamp_max((self.lengths - 1).clamp_min(0)[:, None, None])


def halves_of(context: Tensor, lengths: Tensor, separator: int) -> Halves:
    """Finds the separator in contexts [N, T]; there is one at most."""
    is_separator = context == separator
    position = torch.where(is_separator.any(dim=1), is_separator.long().argmax(dim=1), -1)
    return Halves(position, lengths)


class HierarchicalEncoder(nn.Module):
    """A BiGRU over the words of each utterance, a GRU over the utterances of the session up to the turn.

    `tokens` are the words of the turn's own two utterances, in the places of its context (none at the separator);
    `summary` is the state of the upper GRU after the patient's utterance, with gradient through all that came before.
    In training a share of the context's words (`word_dropout`) is not read.
    """

    def __init__(
        self, embedding_size: int, hidden_size: int, dropout: float, separator: int, word_dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.utterances = BidirectionalEncoder(embedding_size, hidden_size)
        self.session = nn.GRU(hidden_size, hidden_size, batch_first=True)
        self.dropout, self.word_dropout = nn.Dropout(dropout), nn.Dropout1d(word_dropout)
        self.separator = separator

    def forward(
        self, embedded: Tensor, context: Tensor, lengths: Tensor, layout: TurnLayout, always: Tensor | None = None
    ) -> Encoded:
        """Embedded contexts [N, T, D] and their words [N, T] -> vectors of the words, of the dialogue so far.

        Words that are `always` [N, T] read are never dropped.
        """
        kept = self.word_dropout(embedded)
        embedded = kept if always is None else torch.where(always.unsqueeze(-1), embedded, kept)
        halves = halves_of(context, lengths, self.separator)
        places, sizes = halves.places(), halves.utterance_lengths  # [N, 2, W], [N, 2]
        index = places.flatten(1).unsqueeze(-1).expand(-1, -1, embedded.shape[-1])
        words = embedded.gather(1, index).view(2 * len(context), places.shape[-1], embedded.shape[-1])
        read = self.utterances(words, sizes.flatten())
        vectors = self.dropout(read.summary).view(len(context), 2, -1)
        return Encoded(*_in_place(read.tokens, halves, context), self.along_session(vectors, sizes > 0, layout))

    def along_session(self, vectors: Tensor, said: Tensor, layout: TurnLayout) -> Tensor:
        """The state after each turn [N, H], from the vectors of its two utterances [N, 2, H]; those not said [N, 2]
        are passed over, so that a session with a gap is the session without it."""
        num_utterances = 2 * len(layout.turn_sizes)
        column = 2 * layout.turn.unsqueeze(1) + torch.arange(2, device=layout.turn.device)  # [N, 2]
        row = layout.session.unsqueeze(1).expand_as(column)
        there = torch.zeros(layout.num_sessions, num_utterances, dtype=torch.long, device=vectors.device)
        there[row, column] = said.long()
        count = there.cumsum(dim=1)[row, column]  # [N, 2] utterances up to and with this one
        moved = vectors.new_zeros(layout.num_sessions, num_utterances + 1, vectors.shape[-1])  # the last is a dump
        target = torch.where(said, count - 1, num_utterances)
        moved = moved.index_put((row, target), vectors * said.unsqueeze(-1))
        states, _ = self.session(moved[:, :-1])
        before = nn.functional.pad(states, (0, 0, 1, 0))  # nothing said: zeros
        return before[layout.session, count[:, 1]]


def _in_place(tokens: Tensor, halves: Halves, context: Tensor) -> tuple[Tensor, Tensor]:
    """The vectors of the words [2N, W, H] at their positions in the context [N, T, H], and which there are [N, T]."""
    position = torch.arange(context.shape[1], device=context.device).expand_as(context)
    separator, width = halves.separator.unsqueeze(1), tokens.shape[1]
    mask = (position < halves.lengths.unsqueeze(1)) & (position != separator)
    by_patient = position > separator
    place = torch.where(by_patient, width + position - separator - 1, position)
    side_by_side = tokens.reshape(len(context), 2 * width, tokens.shape[-1])
    index = place.masked_fill(~mask, 0).unsqueeze(-1).expand(-1, -1, tokens.shape[-1])
    return side_by_side.gather(1, index) * mask.unsqueeze(-1), mask
