"""The whole dialogue so far, read by a pretrained encoder whose last layers learn.

What the lower layers make of a history never changes: it is computed once and kept while there is room. Only the layers
above it run each time, with gradient, so that learning them costs a fraction of learning the whole encoder.
Letters: N rows, T words, S sub-tokens, F feature size, H size of the result, Q questions.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from vrbot.dialogue.batching import TurnLayout
from vrbot.errors import ConfigError
from vrbot.nets.encoder_folder import EncoderFolder, Pieces, cut_words, load_encoder
from vrbot.nets.pretrained import MOST_POSITIONS, WIDTH_STEP, check_digest, digest_buffer, leave_out, room_in
from vrbot.nets.row_cache import RowCache

QUESTIONS = 4
"""How many things the attention may look for in a history."""
Row = NDArray[np.int64]


class HistoryReader(nn.Module):
    """A vector of all that was said so far, for every turn; what a row gives does not depend on the rows beside it.

    A history is the words of the session's contexts in order, its last `most` sub-tokens (fewer, if the encoder has no
    room). The lower layers' states are kept in float16 and given in that precision, whether just computed or recalled.
    Neither they nor the embeddings are part of what is saved: they are those of the encoder's folder, which `digest`
    tells from others.
    """

    pieces: Tensor
    offsets: Tensor
    digest: Tensor

    def __init__(
        self,
        folder: EncoderFolder,
        pieces: Pieces,
        *,
        learning_layers: int,
        most: int,
        size: int,
        dropout: float,
        learning_rate_factor: float,
        cache_bytes: int,
    ) -> None:
        super().__init__()
        encoder = load_encoder(folder)
        self.lower, self.upper = _cut(encoder, learning_layers, learning_rate_factor, str(folder.path))
        self.begin, self.end, self.padding = pieces.begin, pieces.end, pieces.padding
        self.most, self.size, self.source = min(most, room_in(encoder, self.padding)), size, str(folder.path)
        features: int = encoder.config.hidden_size  # type: ignore[union-attr,assignment]
        self.questions = nn.Linear(features, QUESTIONS)
        self.combine = nn.Linear((QUESTIONS + 2) * features, size)
        self.dropout, self.cache = nn.Dropout(dropout), RowCache(cache_bytes)
        self.register_buffer("pieces", pieces.values, persistent=False)
        self.register_buffer("offsets", pieces.offsets, persistent=False)
        self.register_buffer("digest", digest_buffer(folder.digest()))
        leave_out(self, "lower.", "upper.encoder.embeddings")

    def train(self, mode: bool = True) -> Self:
        super().train(mode)
        self.lower.eval()
        return self

    def forward(self, words: Tensor, lengths: Tensor, layout: TurnLayout) -> Tensor:
        """Contexts [N, T] of the given lengths [N], turn by turn -> what the dialogue up to each comes to [N, H]."""
        rows = self.histories(words, lengths, layout)
        states = self._lower_states(rows)
        order, parts = [], []
        for width, some in _alike(rows):
            given = torch.zeros(len(some), width, states[0].shape[-1])
            for i, row in enumerate(some):
                given[i, : len(rows[row])] = states[row]
            order += some
            parts.append(self._summed_up(self.upper(given, _mask(rows, some, width)), _mask(rows, some, width)))
        if not parts:
            return torch.zeros(0, self.size)
        return torch.cat(parts)[torch.tensor(order).argsort()]

    def histories(self, words: Tensor, lengths: Tensor, layout: TurnLayout) -> list[Row]:
        """The sub-tokens of each row's history, with the encoder's marks; contexts are joined by its end mark."""
        pieces, offsets, values = self.pieces.numpy(), self.offsets.numpy(), words.numpy()
        so_far: dict[int, Row] = {}
        rows = []
        for row, (session, length) in enumerate(zip(layout.session.tolist(), lengths.tolist(), strict=True)):
            said = [pieces[offsets[word] : offsets[word + 1]] for word in values[row, :length]]
            before = [so_far[session], np.array([self.end])] if session in so_far else []
            so_far[session] = np.concatenate([*before, *said, np.zeros(0, np.int64)])[-(self.most - 2) :]
            rows.append(np.concatenate([[self.begin], so_far[session], [self.end]]))
        return rows

    @torch.no_grad()
    def _lower_states(self, rows: Sequence[Row]) -> list[Tensor]:
        """What the frozen layers make of each row [S, F], in float16."""
        keys = [row.tobytes() for row in rows]
        found = {key: self.cache.get(key) for key in dict.fromkeys(keys)}
        missing = {key: i for i, key in enumerate(keys) if found[key] is None}
        places = [*missing.values()]
        for width, some in _alike([rows[i] for i in places]):
            chosen = [places[i] for i in some]
            tokens = torch.full((len(chosen), width), self.padding)
            for i, row in enumerate(chosen):
                tokens[i, : len(rows[row])] = torch.from_numpy(rows[row])
            read = self.lower(input_ids=tokens, attention_mask=_mask(rows, chosen, width).long())
            for i, row in enumerate(chosen):
                kept = read.last_hidden_state[i, : len(rows[row])].half()
                self.cache.put(keys[row], kept)
                found[keys[row]] = kept
        states = [found[key] for key in keys]
        return [state for state in states if state is not None]

    def _summed_up(self, states: Tensor, mask: Tensor) -> Tensor:
        """Answers to some questions, the highest of each feature, and the first position: [N, S, F] -> [N, H]."""
        absent = ~mask.unsqueeze(-1)
        weights = self.questions(states).masked_fill(absent, -torch.inf).softmax(dim=1)  # [N, S, Q]
        answers = torch.bmm(weights.transpose(1, 2), states).flatten(1)
        highest = states.masked_fill(absent, -torch.inf).amax(dim=1)
        told: Tensor = self.combine(self.dropout(torch.cat((answers, states[:, 0], highest), dim=-1)))
        return told

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        check_digest(state_dict.get(f"{prefix}digest"), self.digest, self.source)
        super()._load_from_state_dict(state_dict, prefix, *rest)


class NoHistory(nn.Module):
    """Reads nothing; its vectors have no length."""

    size = 0

    def forward(self, words: Tensor, lengths: Tensor, layout: TurnLayout) -> Tensor:
        return torch.zeros(len(words), 0, device=words.device)


class _Recalled(nn.Module):
    """Stands in the place of the lower layers: gives what they gave, in the form their last one gave it."""

    def __init__(self) -> None:
        super().__init__()
        self.states: Tensor | None = None
        self.in_tuple = False

    def forward(self, hidden: Tensor, *_: Any, **__: Any) -> Any:
        return (self.states,) if self.in_tuple else self.states

    def notice(self, _module: nn.Module, _inputs: Any, output: Any) -> None:
        self.in_tuple = isinstance(output, tuple)


class _UpperLayers(nn.Module):
    """The last layers of an encoder, which go on from given states."""

    def __init__(self, encoder: nn.Module, recalled: _Recalled, learning_rate_factor: float) -> None:
        super().__init__()
        self.encoder, self.learning_rate_factor = encoder, learning_rate_factor
        self._recalled = [recalled]  # in a list: no part of this module, it has no weights

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        """States [N, S, F] where the mask [N, S] holds -> the last layer's."""
        self._recalled[0].states = states
        tokens = torch.zeros_like(mask, dtype=torch.long)  # only their number counts
        read: Tensor = self.encoder(input_ids=tokens, attention_mask=mask.long()).last_hidden_state
        self._recalled[0].states = None
        return read


def _cut(
    encoder: nn.Module, learning_layers: int, learning_rate_factor: float, source: str
) -> tuple[nn.Module, _UpperLayers]:
    """The encoder with all but its last layers, frozen; and those last ones."""
    layers = getattr(getattr(encoder, "encoder", None), "layer", None)
    if not isinstance(layers, nn.ModuleList):
        raise ConfigError(
            f"the layers of {source} cannot be told apart: set pretrained.history=0, or use another encoder"
        )
    if not 1 <= learning_layers < len(layers):
        raise ConfigError(
            f"pretrained.learning_layers must be from 1 to {len(layers) - 1} for {source}, got {learning_layers}"
        )
    lower, recalled = copy.deepcopy(encoder).eval().requires_grad_(False), _Recalled()
    kept = len(layers) - learning_layers
    lower.encoder.layer = lower.encoder.layer[:kept]  # type: ignore[union-attr,index]
    lower.encoder.layer[-1].register_forward_hook(recalled.notice)  # type: ignore[union-attr]
    encoder.encoder.layer = nn.ModuleList([recalled, *layers[kept:]])  # type: ignore[union-attr]
    for name, parameter in encoder.named_parameters():
        if name.startswith("embeddings"):
            parameter.requires_grad_(False)
    return lower, _UpperLayers(encoder, recalled, learning_rate_factor)


def _alike(rows: Sequence[Row]) -> Iterator[tuple[int, list[int]]]:
    """Rows computed together, by the width they are padded to: a multiple of a step, whoever is beside them."""
    by_width: dict[int, list[int]] = {}
    for i, row in enumerate(rows):
        by_width.setdefault(-(-len(row) // WIDTH_STEP) * WIDTH_STEP, []).append(i)
    for width, some in sorted(by_width.items()):
        at_once = max(MOST_POSITIONS // width, 1)
        for begin in range(0, len(some), at_once):
            yield width, some[begin : begin + at_once]


def _mask(rows: Sequence[Row], some: Sequence[int], width: int) -> Tensor:
    return torch.arange(width) < torch.tensor([len(rows[i]) for i in some]).unsqueeze(1)


def open_history_reader(directory: Path | str, words: Sequence[str], **settings: Any) -> HistoryReader:
    """The history reader of the encoder in a folder, for these words; the settings are those of `HistoryReader`."""
    folder = EncoderFolder.open(directory)
    return HistoryReader(folder, cut_words(folder, words), **settings)
