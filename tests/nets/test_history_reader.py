"""Laws of the history reader: the encoder's own states, each history by itself, and only the upper layers learn."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

from tests.nets.test_pretrained import WORDS
from tests.nets.tiny_encoder import tiny_encoder, write_tiny_encoder
from vrbot.dialogue.batching import TurnLayout
from vrbot.dialogue.vocabulary import PAD, SEP
from vrbot.errors import ConfigError, IntegrityError
from vrbot.nets.encoder_folder import EncoderFolder, cut_words, load_encoder
from vrbot.nets.history_reader import HistoryReader, open_history_reader

# Two sessions: three turns and one; rows stand turn by turn.
CONTEXTS = torch.tensor(
    [
        [SEP, 5, 6, 8, PAD, PAD],
        [SEP, 12, 7, PAD, PAD, PAD],
        [9, 8, SEP, 7, 10, 5],
        [6, SEP, 8, PAD, PAD, PAD],
    ]
)
LENGTHS = torch.tensor([4, 3, 6, 3])
LAYOUT = TurnLayout(torch.tensor([0, 1, 0, 0]), torch.tensor([0, 0, 1, 2]), (0, 2, 3, 4))


def reader_of(
    directory: Path | None = None, *, layers: int = 1, most: int = 40, cache: int = 1_000_000
) -> HistoryReader:
    torch.manual_seed(0)
    return open_history_reader(
        directory or tiny_encoder(),
        WORDS,
        learning_layers=layers,
        most=40,
        size=6,
        dropout=0.1,
        learning_rate_factor=0.1,
        cache_bytes=cache,
    )


def slowly(reader: HistoryReader, tokens: list[int]) -> Tensor:
    """The whole encoder over one history, then the same sums."""
    encoder = load_encoder(EncoderFolder.open(tiny_encoder())).eval()
    states = encoder(torch.tensor([tokens])).last_hidden_state
    return reader._summed_up(states, torch.ones(1, len(tokens), dtype=torch.bool))[0]


@torch.no_grad()
def test_a_history_is_all_contexts_so_far_as_the_whole_encoder_would_read_them() -> None:
    reader = reader_of().eval()
    pieces = cut_words(EncoderFolder.open(tiny_encoder()), WORDS)

    def cut(row: int) -> list[int]:
        words = CONTEXTS[row, : int(LENGTHS[row])].tolist()
        return [
            piece for word in words for piece in pieces.values[pieces.offsets[word] : pieces.offsets[word + 1]].tolist()
        ]

    end = [pieces.end]
    expected = [cut(0), cut(1), cut(0) + end + cut(2), cut(0) + end + cut(2) + end + cut(3)]
    read = reader(CONTEXTS, LENGTHS, LAYOUT)
    for row, tokens in enumerate(expected):
        kept = [pieces.begin, *tokens[-38:], *end]
        assert reader.histories(CONTEXTS, LENGTHS, LAYOUT)[row].tolist() == kept
        torch.testing.assert_close(read[row], slowly(reader, kept), atol=2e-3, rtol=2e-3)  # float16 in between


@torch.no_grad()
@pytest.mark.parametrize("cache", [0, 1_000_000])
def test_what_a_row_gives_depends_neither_on_its_neighbours_nor_on_what_is_kept(cache: int) -> None:
    reader = reader_of(cache=cache).eval()
    together = reader(CONTEXTS, LENGTHS, LAYOUT)
    assert torch.equal(reader(CONTEXTS, LENGTHS, LAYOUT), together)
    alone = reader(CONTEXTS[1:2], LENGTHS[1:2], LAYOUT.first_turns(1))
    torch.testing.assert_close(alone[0], together[1])


def test_only_the_last_layers_and_the_sums_learn() -> None:
    reader = reader_of().train()
    reader(CONTEXTS, LENGTHS, LAYOUT).sum().backward()
    learning = {name for name, parameter in reader.named_parameters() if parameter.grad is not None}
    assert learning == {name for name, parameter in reader.named_parameters() if parameter.requires_grad}
    assert any(name.startswith("upper.encoder.encoder.layer.1.") for name in learning)
    assert not any(name.startswith(("lower.", "upper.encoder.embeddings")) for name in learning)


@torch.no_grad()
def test_what_is_saved_is_what_learns_and_comes_back(tmp_path: Path) -> None:
    reader, other = reader_of().eval(), reader_of().eval()
    for parameter in reader.parameters():
        if parameter.requires_grad:
            parameter.add_(0.01 * torch.randn_like(parameter))
    saved = reader.state_dict()
    assert not any(name.startswith(("lower.", "upper.encoder.embeddings")) for name in saved)
    other.load_state_dict(saved)
    assert torch.equal(other(CONTEXTS, LENGTHS, LAYOUT), reader(CONTEXTS, LENGTHS, LAYOUT))
    write_tiny_encoder(tmp_path / "another", seed=1)
    with pytest.raises(IntegrityError, match="not the encoder this model was trained with"):
        reader_of(tmp_path / "another").load_state_dict(saved)


def test_no_layer_or_all_layers_cannot_learn() -> None:
    for layers in (0, 2):
        with pytest.raises(ConfigError, match=f"learning_layers must be from 1 to 1 .* got {layers}"):
            reader_of(layers=layers)
