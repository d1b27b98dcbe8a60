"""The context encoder: (R_{t-1}, U_t) on top of what came before (paper, section 3.2, Eq. 6).

Every encoder here reads all turns of a batch; a turn's result depends on that turn and earlier ones only.
Letters: N rows (turns), T context tokens, H hidden size. Rows stand turn by turn; see `dialogue.batching`.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from vrbot.dialogue.batching import TurnInputs, TurnLayout
from vrbot.nets.attention import AdditiveAttention
from vrbot.nets.bags import CharacterBag, EntityBag
from vrbot.nets.encoders import BidirectionalEncoder, Encoded, padded

Context = Encoded
"""`tokens` is H_t, `summary` is h^c_t."""


@dataclass(frozen=True, eq=False)
class PolicyReading:
    """The context as the policy networks read it; who has named what so far [N, E, 4] and what is usually named after
    such words [N, E] (`model.habits`), if they look at that."""

    context: Context
    named: Tensor | None = None
    foretold: Tensor | None = None

    def select(self, rows: Tensor) -> PolicyReading:
        kept = (None if told is None else told[rows] for told in (self.named, self.foretold))
        return PolicyReading(self.context.select(rows), *kept)


class CarriedContextEncoder(nn.Module):
    """The paper's: each turn's BiGRU starts from the summary of the turn before, without gradient between turns."""

    def __init__(self, embedding_size: int, hidden_size: int, word_dropout: float = 0.0) -> None:
        super().__init__()
        self.encoder = BidirectionalEncoder(embedding_size, hidden_size, word_dropout)
        self.attention = AdditiveAttention(hidden_size, hidden_size, hidden_size)

    def forward(self, embedded: Tensor, inputs: TurnInputs, layout: TurnLayout) -> Context:
        """Embedded contexts [N, T, D] -> H_t and h^c_t of every turn."""
        carried: Tensor | None = None
        parts: list[Encoded] = []
        sizes = layout.turn_sizes
        for now, lengths in zip(embedded.split(sizes), inputs.context_lengths.split(sizes), strict=True):
            begin = None if carried is None else carried[: len(now)]
            longest = int(lengths.max()) if len(lengths) else 0
            read = self.encoder(now[:, :longest], lengths, begin)
            summary = self.attention(read.summary, read.tokens, read.mask)
            carried = summary.detach()
            parts.append(Encoded(*padded(read, embedded.shape[1]), summary))
        return Encoded(*(torch.cat([getattr(p, name) for p in parts]) for name in ("tokens", "mask", "summary")))


class SessionContextEncoder(nn.Module):
    """All turns are read at once; what was said before reaches a turn's summary in two ways, both with gradient.

    A second GRU runs over the turns' vectors; and bags of characters and of entities (told apart by speaker) add up
    along the session, so that the summary knows the whole history however long it is. In training a share of the
    words (`word_dropout`) is not read.
    """

    def __init__(
        self,
        embedding_size: int,
        hidden_size: int,
        dropout: float,
        characters: CharacterBag,
        entities: EntityBag,
        word_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.encoder = BidirectionalEncoder(embedding_size, hidden_size, word_dropout)
        self.attention = AdditiveAttention(hidden_size, hidden_size, hidden_size)
        self.characters, self.entities = characters, entities
        bags = characters.size + entities.size
        self.session = nn.GRUCell(2 * hidden_size + bags, hidden_size)
        self.combine = nn.Linear(3 * hidden_size + 2 * bags, hidden_size)
        self.dropout = nn.Dropout(dropout)

    def forward(self, embedded: Tensor, inputs: TurnInputs, layout: TurnLayout) -> Context:
        read = self.encoder(embedded, inputs.context_lengths)
        attended = self.attention(read.summary, read.tokens, read.mask)
        highest = read.tokens.masked_fill(~read.mask.unsqueeze(-1), -2.0).amax(dim=1)  # two states added are above -2
        bags = torch.cat(
            (self.characters(inputs.characters), self.entities(inputs.mention_entities, inputs.patient_mentions)),
            dim=-1,
        )
        turn = self.dropout(torch.cat((attended, highest, bags), dim=-1))
        history, heap = self._along_turns(turn, bags, layout)
        summary = torch.tanh(self.combine(torch.cat((turn, history, self.dropout(heap)), dim=-1)))
        return Encoded(read.tokens, read.mask, summary)

    def _along_turns(self, turn: Tensor, bags: Tensor, layout: TurnLayout) -> tuple[Tensor, Tensor]:
        """States of the session GRU [N, H], and the bags of all turns so far added up
        [N, characters.size + entities.size]."""
        memory = turn.new_zeros(layout.num_sessions, self.session.hidden_size)
        heap = torch.zeros_like(bags[: layout.num_sessions])
        states, heaps = [], []
        for now, bag in zip(turn.split(layout.turn_sizes), bags.split(layout.turn_sizes), strict=True):
            memory = self.session(now, memory[: len(now)])
            heap = heap[: len(now)] + bag
            states.append(memory)
            heaps.append(heap)
        return torch.cat(states), torch.cat(heaps)


class HistoryContextEncoder(nn.Module):
    """Another encoder's reading; what a reader of the whole history makes of it is added to its summary.

    At first nothing is added, so that a pretrained reader is not torn apart while all around it is still random.
    """

    def __init__(self, encoder: nn.Module, history: nn.Module, hidden_size: int, history_size: int) -> None:
        super().__init__()
        self.encoder, self.history = encoder, history
        self.addition = nn.Linear(history_size, hidden_size, bias=False)
        nn.init.zeros_(self.addition.weight)

    def forward(self, embedded: Tensor, inputs: TurnInputs, layout: TurnLayout) -> Context:
        read = self.encoder(embedded, inputs, layout)
        told = torch.tanh(self.history(inputs.context, inputs.context_lengths, layout))
        return Encoded(read.tokens, read.mask, read.summary + self.addition(told))


@dataclass(frozen=True, eq=False)
class Mentions:
    """Entities that can be copied: ids [N, M] (0 where there is none), vectors [N, M, H], which exist [N, M]."""

    entities: Tensor
    vectors: Tensor
    mask: Tensor

    def select(self, rows: Tensor | slice) -> Mentions:
        return Mentions(self.entities[rows], self.vectors[rows], self.mask[rows])

    def split(self, sizes: list[int]) -> list[Mentions]:
        """Consecutive groups of rows; one gradient for all of them."""
        parts = zip(self.entities.split(sizes), self.vectors.split(sizes), self.mask.split(sizes), strict=True)
        return [Mentions(*part) for part in parts]

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
            entities.new_zeros(len(entities), 0),
            encoded.tokens.new_zeros(len(entities), 0, encoded.tokens.shape[-1]),
            mask[:, :0],
        )
    num_rows, width, size = encoded.tokens.shape
    places = positions.clamp_min(0) + width * torch.arange(num_rows, device=positions.device).unsqueeze(1)
    # `gather` would keep all tokens for its backward pass.
    vectors = encoded.tokens.flatten(0, 1).index_select(0, places.flatten()).view(*places.shape, size)
    return Mentions(entities.clamp_min(0), vectors, mask)
