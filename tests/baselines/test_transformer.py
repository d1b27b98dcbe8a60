"""The Transformer: no word sees a later one, and writing word by word computes nothing twice."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.model.tiny import batch_of, rows_of, tiny_config, tiny_model
from vrbot.baselines.transformer import Transformer, WritingState, whole_history
from vrbot.config import Config
from vrbot.dialogue.batching import SessionBatch
from vrbot.dialogue.corpus import Corpus
from vrbot.dialogue.vocabulary import BOS
from vrbot.errors import ConfigError
from vrbot.nets.transformer import Attention, DecoderLayer, EncoderLayer, position_vectors
from vrbot.nets.word_head import heard_before


def tiny_transformer(corpus: Corpus, **changes: Any) -> Transformer:
    model = tiny_model("transformer", tiny_config(**changes), corpus)
    assert isinstance(model, Transformer)
    return model


def begun(model: Transformer, batch: SessionBatch) -> WritingState:
    rows = torch.arange(len(batch.turn))
    _, state = model.begin_reply(model.perceive(batch.inputs, batch.layout), rows)
    assert isinstance(state, WritingState)
    return state


@torch.no_grad()
def test_word_by_word_equals_all_at_once_at_every_position(corpus: Corpus) -> None:
    model, batch = tiny_transformer(corpus), batch_of(corpus)
    state, response = begun(model, batch), batch.targets.response
    expected = model.head.log_probs(model.decoder.along(model._embedded(heard_before(response, BOS)), state.memory))
    tokens = torch.full((len(response),), BOS)
    for position in range(response.shape[1]):
        log_probs, state = model.step(tokens, state)
        torch.testing.assert_close(log_probs, expected[:, position], atol=1e-4, rtol=1e-4)
        tokens = response[:, position]


@torch.no_grad()
def test_hypotheses_that_change_places_take_their_past_with_them(corpus: Corpus) -> None:
    model, batch = tiny_transformer(corpus), batch_of(corpus)
    state = begun(model, batch)
    num_items = len(batch.turn)
    wide = torch.arange(num_items).repeat_interleave(3)
    log_probs, state = model.step(torch.full((num_items,), BOS), state)
    words = log_probs.topk(3, dim=1).indices.flatten()
    _, state = model.step(words, state.select(wide, None))
    swapped = torch.arange(3 * num_items).view(-1, 3).flip(1)
    kept = torch.arange(0, num_items, 2)
    found, _ = model.step(torch.full((3 * len(kept),), 7), state.select(swapped[kept].flatten(), kept))
    for item, place in ((0, 0), (0, 2), (2, 1), (4, 0)):
        alone = begun(model, batch).select(torch.tensor([item]), torch.tensor([item]))
        for word in (BOS, int(words[3 * item + 2 - place]), 7):
            expected, alone = model.step(torch.tensor([word]), alone)
        torch.testing.assert_close(found[3 * (item // 2) + place], expected[0], atol=1e-4, rtol=1e-4)


@torch.no_grad()
def test_a_step_looks_at_one_new_word_and_never_again_at_the_context(corpus: Corpus) -> None:
    model, batch = tiny_transformer(corpus), batch_of(corpus)
    state, widths = begun(model, batch), []
    projected = [part for name, part in model.decoder.named_modules() if name.endswith("key_value")]
    for part in projected:
        part.register_forward_hook(lambda module, given, result: widths.append(given[0].shape[1]))
    tokens = torch.full((len(batch.turn),), BOS)
    for _ in range(4):
        _, state = model.step(tokens, state)
    assert widths == [1] * (4 * len(model.decoder.layers))


@torch.no_grad()
def test_no_position_sees_a_later_one(corpus: Corpus) -> None:
    model, batch = tiny_transformer(corpus), batch_of(corpus)
    memory = begun(model, batch).memory
    words = heard_before(batch.targets.response, BOS)
    before = model.decoder.along(model._embedded(words), memory)
    for changed in range(1, words.shape[1]):
        other = words.clone()
        other[:, changed] = 8
        after = model.decoder.along(model._embedded(other), memory)
        torch.testing.assert_close(after[:, :changed], before[:, :changed], atol=1e-5, rtol=1e-5)
        moved = words[:, changed] != 8
        assert bool(((after - before)[moved, changed:].abs().amax(dim=-1) > 1e-6).all())


@torch.no_grad()
def test_padding_is_not_read(corpus: Corpus) -> None:
    model, batch = tiny_transformer(corpus), batch_of(corpus)
    longer = dataclasses.replace(
        batch.inputs, context=torch.cat((batch.inputs.context, torch.full((len(batch.turn), 9), 7)), dim=1)
    )
    found, expected = (
        model.reply_log_prob(
            model.perceive(inputs, batch.layout), batch.targets.response, batch.targets.response_lengths
        )
        for inputs in (longer, batch.inputs)
    )
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)


def copied(attention: Attention, theirs: nn.MultiheadAttention) -> None:
    """Our weights into torch's layer."""
    theirs.in_proj_weight.copy_(torch.cat((attention.query.weight, attention.key_value.weight)))
    assert theirs.in_proj_bias is not None
    theirs.in_proj_bias.copy_(torch.cat((attention.query.bias, attention.key_value.bias)))
    theirs.out_proj.load_state_dict(attention.output.state_dict())


@torch.no_grad()
def test_a_layer_is_torchs_own_with_norms_first() -> None:
    torch.manual_seed(0)
    vectors, encoded = torch.randn(2, 5, 8), torch.randn(2, 4, 8)
    mask = torch.tensor([[True] * 5, [True, True, True, False, False]])
    ours, options = EncoderLayer(8, 2, 3, 0.0), {"norm_first": True, "batch_first": True, "activation": "gelu"}
    theirs: Any = nn.TransformerEncoderLayer(8, 2, 24, 0.0, **options)  # type: ignore[arg-type]
    copied(ours.attention, theirs.self_attn)
    theirs.linear1.load_state_dict(ours.feedforward.layers[0].state_dict())
    theirs.linear2.load_state_dict(ours.feedforward.layers[3].state_dict())
    expected = theirs(vectors, src_key_padding_mask=~mask)
    torch.testing.assert_close(ours(vectors, mask)[mask], expected[mask], atol=1e-5, rtol=1e-5)

    writer = DecoderLayer(8, 2, 3, 0.0)
    other: Any = nn.TransformerDecoderLayer(8, 2, 24, 0.0, **options)  # type: ignore[arg-type]
    copied(writer.own, other.self_attn)
    copied(writer.encoded, other.multihead_attn)
    other.linear1.load_state_dict(writer.feedforward.layers[0].state_dict())
    other.linear2.load_state_dict(writer.feedforward.layers[3].state_dict())
    causal = nn.Transformer.generate_square_subsequent_mask(5)
    expected = other(vectors, encoded, tgt_mask=causal, tgt_is_causal=True)
    found = writer.along(vectors, writer.encoded.prepare(encoded), torch.ones(2, 4, dtype=torch.bool))
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


def test_positions_are_the_same_wherever_one_begins_to_count() -> None:
    whole = position_vectors(0, 9, 7, torch.device("cpu"))
    assert whole.shape == (9, 7)
    torch.testing.assert_close(position_vectors(4, 5, 7, torch.device("cpu")), whole[4:])
    assert len(whole.unique(dim=0)) == 9


def test_the_history_is_the_latest_words_of_the_turns_so_far(corpus: Corpus) -> None:
    batch = batch_of(corpus)
    for limit in (1, 7, 1000):
        words, lengths = whole_history(batch.inputs.context, batch.inputs.context_lengths, batch.layout, limit)
        for row, (session, turn) in enumerate(zip(batch.session.tolist(), batch.turn.tolist(), strict=True)):
            said: list[int] = []
            for other in ((batch.session == session) & (batch.turn <= turn)).nonzero().flatten().tolist():
                said += batch.inputs.context[other, : int(batch.inputs.context_lengths[other])].tolist()
            assert words[row, : int(lengths[row])].tolist() == said[-limit:]


@torch.no_grad()
def test_earlier_turns_matter_only_where_the_history_is_read_and_later_ones_never(corpus: Corpus) -> None:
    batch = batch_of(corpus)
    own = rows_of(batch, "cold")

    def costs(model: Transformer, rows: Tensor) -> Tensor:
        context = torch.where(rows.unsqueeze(1) & (batch.inputs.context > 4), 8, batch.inputs.context)
        perception = model.perceive(dataclasses.replace(batch.inputs, context=context), batch.layout)
        return model.reply_log_prob(perception, batch.targets.response, batch.targets.response_lengths)

    for length, reaches in ((0, batch.turn == 1), (40, batch.turn >= 1)):
        model = tiny_transformer(corpus, transformer__history_length=length)
        moved = (costs(model, own & (batch.turn == 1)) - costs(model, torch.zeros_like(own))).abs() > 1e-4
        assert moved.tolist() == (own & reaches).tolist()


def test_it_has_about_as_many_parameters_as_the_recurrent_system(corpus: Corpus) -> None:
    def count(name: str) -> int:
        model: Any = tiny_model(name, Config(), corpus)
        return sum(parameter.numel() for parameter in model.parameters())

    assert 0.75 < count("transformer") / count("seq2seq") < 1.35


def test_heads_that_do_not_divide_the_width_are_refused(corpus: Corpus) -> None:
    with pytest.raises(ConfigError, match=r"transformer\.heads = 5 does not divide network\.hidden_size = 16"):
        tiny_transformer(corpus, transformer__heads=5)
