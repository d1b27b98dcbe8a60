"""First vectors of words from a pretrained encoder: those of their sub-tokens, averaged and turned to the size asked.

Letters: V words, F feature size, D embedding size.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from vrbot.nets.encoder_folder import EncoderFolder, cut_words, load_encoder


@torch.no_grad()
def begin_with_encoder(words: nn.Embedding, directory: Path | str, spelled: Sequence[str]) -> None:
    """Puts the encoder's vectors in the place of the first ones, on their scale; words without sub-tokens, and the
    directions the encoder does not have, keep what they were."""
    folder = EncoderFolder.open(directory)
    encoder: Any = load_encoder(folder)
    pieces, vectors = cut_words(folder, spelled), encoder.get_input_embeddings().weight  # [sub-tokens, F]
    counts = pieces.offsets.diff()  # [V]
    owner = torch.arange(len(counts)).repeat_interleave(counts)
    means = torch.zeros(len(counts), vectors.shape[1]).index_add(0, owner, vectors[pieces.values])
    known = counts > 0
    turned = principal_parts(means[known] / counts[known].unsqueeze(1), words.embedding_dim)
    scale = words.weight.std() / turned.std().clamp_min(1e-12)
    words.weight[known.nonzero().squeeze(1), : turned.shape[1]] = turned * scale


def principal_parts(vectors: Tensor, size: int) -> Tensor:
    """Vectors [V, F] along their `size` principal directions [V, min(size, F)], strongest first, about their mean."""
    centred = (vectors - vectors.mean(dim=0)).double()
    _, directions = torch.linalg.eigh(centred.T @ centred)
    strongest = directions.flip(1)[:, :size]
    largest = strongest.gather(0, strongest.abs().argmax(dim=0, keepdim=True))  # [1, D]: fixes the sign of each
    turned: Tensor = centred @ (strongest * largest.sign())
    return turned.float()
