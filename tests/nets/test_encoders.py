"""Recurrent encoders: padding is as if it were not there."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from vrbot.nets.encoders import BidirectionalEncoder, SpanEncoder

SIZE, HIDDEN = 3, 4
LENGTHS = torch.tensor([5, 2, 0, 1, 4])


def inputs() -> Tensor:
    return torch.randn(len(LENGTHS), 5, SIZE, generator=torch.Generator().manual_seed(0))


def encoder(word_dropout: float = 0.0) -> BidirectionalEncoder:
    torch.manual_seed(1)
    return BidirectionalEncoder(SIZE, HIDDEN, word_dropout)


def test_both_directions_added_are_those_of_two_recurrent_nets_over_each_row_alone() -> None:
    encode, rows = encoder(), inputs()
    encoded = encode(rows, LENGTHS)
    for row, length in enumerate(LENGTHS.tolist()):
        if length == 0:
            continue
        onward, _ = encode.onward(rows[row : row + 1, :length])
        backward, _ = encode.backward_looking(rows[row : row + 1, :length].flip(1))
        torch.testing.assert_close(encoded.tokens[row, :length], (onward + backward.flip(1))[0])
        torch.testing.assert_close(encoded.summary[row], onward[0, -1] + backward[0, -1])


def test_it_equals_a_bidirectional_net_over_packed_sequences() -> None:
    encode, rows = encoder(), inputs()
    reference = nn.GRU(SIZE, HIDDEN, batch_first=True, bidirectional=True)
    for name, tensor in encode.onward.named_parameters():
        getattr(reference, name).data.copy_(tensor.data)
    for name, tensor in encode.backward_looking.named_parameters():
        getattr(reference, f"{name}_reverse").data.copy_(tensor.data)
    kept, start = LENGTHS > 0, torch.randn(len(LENGTHS), HIDDEN, generator=torch.Generator().manual_seed(2))
    packed = nn.utils.rnn.pack_padded_sequence(rows[kept], LENGTHS[kept], batch_first=True, enforce_sorted=False)
    states, _ = nn.utils.rnn.pad_packed_sequence(
        reference(packed, start[kept].expand(2, -1, -1).contiguous())[0], batch_first=True
    )
    expected = states[..., :HIDDEN] + states[..., HIDDEN:]
    torch.testing.assert_close(encode(rows, LENGTHS, start).tokens[kept], expected)


def test_neither_the_content_nor_the_amount_of_padding_matters() -> None:
    encode, rows = encoder(), inputs()
    there = torch.arange(5)[None, :] < LENGTHS[:, None]
    noisy = torch.where(there.unsqueeze(-1), rows, torch.full_like(rows, 9.0))
    wider = torch.cat((noisy, torch.ones(len(rows), 3, SIZE)), dim=1)
    expected = encode(rows, LENGTHS)
    for found in (encode(noisy, LENGTHS), encode(wider, LENGTHS)):
        torch.testing.assert_close(found.tokens[:, :5], expected.tokens)
        torch.testing.assert_close(found.summary, expected.summary)
        assert not found.tokens[:, 5:].any()


def test_in_training_a_share_of_the_inputs_is_not_read_and_the_others_are_louder_and_in_use_all_are() -> None:
    plain, dropping, rows = encoder(), encoder(0.5), inputs()
    torch.manual_seed(2)
    heard = nn.Dropout1d(0.5)(rows)
    silent = (heard == 0).all(dim=-1)
    assert silent.any()
    assert not silent.all()
    torch.testing.assert_close(heard[~silent], 2 * rows[~silent])
    torch.manual_seed(2)
    torch.testing.assert_close(dropping(rows, LENGTHS).tokens, plain(heard, LENGTHS).tokens)
    assert torch.equal(dropping.eval()(rows, LENGTHS).tokens, plain(rows, LENGTHS).tokens)


def test_an_empty_row_gives_zeros_also_when_all_are_empty() -> None:
    encode = encoder()
    assert not encode(inputs(), LENGTHS).summary[2].any()
    nothing = encode(torch.zeros(2, 0, SIZE), torch.zeros(2, dtype=torch.long))
    assert nothing.tokens.shape == (2, 0, HIDDEN)
    assert not nothing.summary.any()


def test_absent_positions_of_a_span_leave_no_trace() -> None:
    torch.manual_seed(0)
    encode, span = SpanEncoder(SIZE, HIDDEN), inputs()
    mask = torch.arange(5)[None, :] < LENGTHS[:, None]
    other = torch.where(mask.unsqueeze(-1), span, torch.full_like(span, -3.0))
    found, expected = encode(other, mask), encode(span, mask)
    torch.testing.assert_close(found.tokens, expected.tokens)
    torch.testing.assert_close(found.summary, expected.summary)
    assert not expected.summary[2].any()
    torch.testing.assert_close(expected.summary[0], expected.tokens[0, -1])


def test_blocks_of_rows_are_cut_to_their_longest_and_send_their_gradients_to_the_rows() -> None:
    encoded = encoder()(inputs(), LENGTHS)
    blocks = [torch.tensor([0, 3]), torch.tensor([3, 1]), torch.tensor([2])]
    parts = encoded.in_blocks(blocks)
    assert [part.tokens.shape[1] for part in parts] == [5, 2, 0]
    for rows, part in zip(blocks, parts, strict=True):
        torch.testing.assert_close(part.tokens, encoded.tokens[rows, : part.tokens.shape[1]])
        torch.testing.assert_close(part.summary, encoded.summary[rows])
        assert torch.equal(part.mask, encoded.mask[rows, : part.mask.shape[1]])
    total = sum(((i + 1) * part.tokens.sum() for i, part in enumerate(parts)), torch.zeros(()))
    gradient = torch.autograd.grad(total, encoded.tokens)[0]
    assert gradient[:, :, 0].sum(dim=1).tolist() == [5.0, 4.0, 0.0, 5.0 + 4.0, 0.0]
