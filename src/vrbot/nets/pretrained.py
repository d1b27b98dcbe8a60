"""Words read by a pretrained encoder: every word gets the mean of the states of its own sub-tokens.

Words are cut into sub-tokens once for all, each by itself, and a row is the sub-tokens of its words in order: which
sub-token belongs to which word is known by construction.
Letters: N rows, T words, S sub-tokens, P sub-tokens of all rows, F feature size, D embedding size.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn

from vrbot.dialogue.vocabulary import PAD
from vrbot.errors import ConfigError, IntegrityError
from vrbot.nets.encoder_folder import EncoderFolder, Pieces, cut_words, load_encoder
from vrbot.nets.row_cache import RowCache

MARKS = 2
"""The encoder's own marks before and after the sub-tokens of a row."""
WIDTH_STEP = 16
"""Rows are padded to a multiple of it whoever is beside them, so that a row is computed alike in every batch."""
MOST_POSITIONS = 4096
"""Sub-tokens computed at once, padding included."""
USUAL_LENGTH = 512
"""What an encoder can read that does not say."""


@dataclass(frozen=True, eq=False)
class _Laid:
    """Rows of words as rows of sub-tokens."""

    tokens: Tensor  # [N, S]
    mask: Tensor  # [N, S]
    row: Tensor  # [P] the row of each sub-token that belongs to a word
    column: Tensor  # [P] its place in the row
    word: Tensor  # [P] the place of its word among all N * T


class PretrainedReader(nn.Module):
    """Features of words in their context, with gradient: states averaged over the last layers, then over sub-tokens.

    A row too long for the encoder is cut from the left; words that are cut, and those without sub-tokens (padding,
    begin, end), have features of zero. `digest` tells the encoder's files from others: a model saved with one encoder
    is not loaded with another.
    """

    pieces: Tensor
    offsets: Tensor
    digest: Tensor

    def __init__(
        self, encoder: nn.Module, pieces: Pieces, layers: int, learning_rate_factor: float, source: str, digest: str
    ) -> None:
        super().__init__()
        self.encoder, self.layers, self.source = encoder, layers, source
        self.learning_rate_factor = learning_rate_factor
        self.begin, self.end, self.padding = pieces.begin, pieces.end, pieces.padding
        config: Any = encoder.config
        self.feature_size: int = config.hidden_size
        self.most = room_in(encoder, self.padding)
        self.register_buffer("pieces", pieces.values, persistent=False)
        self.register_buffer("offsets", pieces.offsets, persistent=False)
        self.register_buffer("digest", digest_buffer(digest))

    def forward(self, words: Tensor) -> Tensor:
        """Words [N, T] -> features [N, T, F]; what a row gives does not depend on the rows beside it."""
        counts = self._counts(words)
        widths = (counts.sum(dim=1) + MARKS + WIDTH_STEP - 1).div(WIDTH_STEP, rounding_mode="floor") * WIDTH_STEP
        order, parts = [], []
        for width in widths.unique().tolist():
            rows = (widths == width).nonzero().squeeze(1)
            for some in rows.split(max(MOST_POSITIONS // width, 1)):
                order.append(some)
                parts.append(self._read(words[some], counts[some], min(width, self.most)))
        if not parts:
            return torch.zeros(*words.shape, self.feature_size, device=words.device)
        return torch.cat(parts)[torch.cat(order).argsort()]

    def _counts(self, words: Tensor) -> Tensor:
        """How many sub-tokens of each word are read [N, T]: the last ones of the row that the encoder has room for."""
        counts = self.offsets[words + 1] - self.offsets[words]
        to_the_end = counts.flip(1).cumsum(1).flip(1)
        return torch.where(to_the_end <= self.most - MARKS, counts, 0)

    def _read(self, words: Tensor, counts: Tensor, width: int) -> Tensor:
        laid = self._lay(words, counts, width)
        read = self.encoder(input_ids=laid.tokens, attention_mask=laid.mask.long(), output_hidden_states=True)
        states = torch.stack(read.hidden_states[-self.layers :]).mean(dim=0)  # [N, S, F]
        flat = states.new_zeros(words.numel(), states.shape[-1])
        flat = flat.index_add(0, laid.word, states[laid.row, laid.column]) / counts.flatten().clamp_min(1).unsqueeze(1)
        return flat.view(*words.shape, -1)

    def _lay(self, words: Tensor, counts: Tensor, width: int) -> _Laid:
        """Each row as begin, the sub-tokens of its words, end, padding up to `width`."""
        num_rows, device = len(words), words.device
        flat, lengths = counts.flatten(), counts.sum(dim=1)
        word = torch.arange(len(flat), device=device).repeat_interleave(flat)
        place = torch.arange(len(word), device=device)
        within = place - (flat.cumsum(0) - flat)[word]
        row = word.div(max(words.shape[1], 1), rounding_mode="floor")
        column = place - (lengths.cumsum(0) - lengths)[row] + 1
        tokens = torch.full((num_rows, width), self.padding, device=device)
        tokens[:, 0] = self.begin
        tokens[row, column] = self.pieces[self.offsets[words.flatten()[word]] + within]
        tokens[torch.arange(num_rows, device=device), lengths + 1] = self.end
        mask = torch.arange(width, device=device) < lengths.unsqueeze(1) + MARKS
        return _Laid(tokens, mask, row, column, word)

    def _load_from_state_dict(self, state_dict: Mapping[str, Any], prefix: str, *rest: Any) -> None:
        check_digest(state_dict.get(f"{prefix}digest"), self.digest, self.source)
        super()._load_from_state_dict(state_dict, prefix, *rest)


class FrozenReader(nn.Module):
    """The features of a reader that never learns: no dropout, no gradient, each row computed once while there is room.

    They are given in the precision they are kept in (float16), whether just computed or recalled. The encoder's
    weights are no part of what is saved: they are those of its folder.
    """

    def __init__(self, reader: PretrainedReader, capacity: int) -> None:
        super().__init__()
        self.reader = reader.eval().requires_grad_(False)
        self.feature_size, self.cache = reader.feature_size, RowCache(capacity)
        leave_out(self, "reader.encoder.")

    def train(self, mode: bool = True) -> Self:
        super().train(mode)
        self.reader.eval()
        return self

    @torch.no_grad()
    def forward(self, words: Tensor) -> Tensor:
        """Words [N, T] -> features [N, T, F], without gradient."""
        rows = [*_without_padding(words)]
        keys = [row.tobytes() for row in rows]
        found = {key: self.cache.get(key) for key in dict.fromkeys(keys)}
        missing = {key: i for i, key in enumerate(keys) if found[key] is None}
        if missing:
            computed = self.reader(words[torch.tensor([*missing.values()], device=words.device)]).half().cpu()
            for (key, i), features in zip(missing.items(), computed, strict=True):
                kept = features[: len(rows[i])].clone()
                self.cache.put(key, kept)
                found[key] = kept
        features = torch.zeros(*words.shape, self.feature_size)
        for i, key in enumerate(keys):
            recalled = found[key]
            assert recalled is not None
            features[i, : len(recalled)] = recalled
        return features.to(words.device)


def _without_padding(words: Tensor) -> Iterator[Any]:
    lengths = ((words != PAD) * torch.arange(1, words.shape[1] + 1, device=words.device)).amax(dim=1).tolist()
    values = words.cpu().int().numpy()
    for row, length in zip(values, lengths, strict=True):
        yield row[:length]


def room_in(encoder: nn.Module, padding: int) -> int:
    """How many sub-tokens an encoder reads at once, its marks included."""
    positions: int = getattr(encoder.config, "max_position_embeddings", None) or USUAL_LENGTH
    return positions - padding - 1  # some families count positions from the padding's id on


def leave_out(module: nn.Module, *parts: str) -> None:
    """What belongs to an encoder's folder is neither saved with the module nor missed when it is loaded."""

    def drop(_: nn.Module, state: dict[str, Any], prefix: str, metadata: Any) -> None:
        for name in [name for name in state if name.startswith(tuple(prefix + part for part in parts))]:
            del state[name]

    def forgive(_: nn.Module, incompatible: Any) -> None:
        own = tuple(name for name, _ in module.named_parameters() if name.startswith(parts))
        own += tuple(name for name, _ in module.named_buffers() if name.startswith(parts))
        incompatible.missing_keys[:] = [name for name in incompatible.missing_keys if not name.endswith(own)]

    module.register_state_dict_post_hook(drop)
    module.register_load_state_dict_post_hook(forgive)


def digest_buffer(digest: str) -> Tensor:
    """A SHA-256 in hexadecimal, as a tensor that is saved with a model."""
    return torch.tensor(list(bytes.fromhex(digest)), dtype=torch.uint8)


def check_digest(saved: Tensor | None, own: Tensor, source: str) -> None:
    """Refuses a model that was trained with another encoder than the one in the folder `source`."""
    if saved is not None and not torch.equal(saved.cpu(), own.cpu()):
        theirs, ours = (bytes(digest.tolist()).hex()[:12] for digest in (saved, own))
        raise IntegrityError(
            f"{source} is not the encoder this model was trained with (SHA-256 {ours}..., not {theirs}...): "
            "put that one back"
        )


class ContextualWords(nn.Module):
    """Vectors of words [N, T, D]: the word's own, and what a reader makes of it where it stands."""

    def __init__(self, words: nn.Embedding, reader: PretrainedReader | FrozenReader, dropout: float) -> None:
        super().__init__()
        self.words, self.reader = words, reader
        self.norm = nn.LayerNorm(reader.feature_size)
        self.dropout = nn.Dropout(dropout)
        self.projection = nn.Linear(reader.feature_size, words.embedding_dim)

    def forward(self, words: Tensor) -> Tensor:
        vectors: Tensor = self.words(words) + self.projection(self.dropout(self.norm(self.reader(words))))
        return vectors


def open_reader(
    directory: Path | str,
    words: Sequence[str],
    *,
    layers: int,
    freeze: bool,
    learning_rate_factor: float,
    cache_bytes: int,
) -> PretrainedReader | FrozenReader:
    """The reader of the encoder in a folder, for these words."""
    folder = EncoderFolder.open(directory)
    pieces, encoder = cut_words(folder, words), load_encoder(folder)
    config: Any = encoder.config
    if layers > config.num_hidden_layers:
        raise ConfigError(
            f"pretrained.layers must be at most {config.num_hidden_layers}, the layers of {directory}, got {layers}"
        )
    reader = PretrainedReader(encoder, pieces, layers, learning_rate_factor, str(directory), folder.digest())
    return FrozenReader(reader, cache_bytes) if freeze else reader
