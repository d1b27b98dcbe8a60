"""The context encoder: what a turn knows comes from itself and from earlier turns of its own session."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from tests.model.tiny import batch_of, rows_of, tiny_config, tiny_vrbot
from vrbot.dialogue.batching import TurnInputs
from vrbot.dialogue.corpus import Corpus

MEMORIES = ("carried", "session")


def padded(inputs: TurnInputs, width: int) -> TurnInputs:
    """The same inputs with more padding everywhere."""
    pad = torch.nn.functional.pad
    return TurnInputs(
        context=pad(inputs.context, (0, width)),
        context_lengths=inputs.context_lengths,
        mention_entities=pad(inputs.mention_entities, (0, width), value=-1),
        mention_positions=pad(inputs.mention_positions, (0, width), value=-1),
        patient_mentions=pad(inputs.patient_mentions, (0, width)),
        characters=pad(inputs.characters, (0, width)),
    )


@pytest.mark.parametrize("low", [False, True], ids=["fresh", "all states near -1"])
@pytest.mark.parametrize("memory", MEMORIES)
@torch.no_grad()
def test_padding_changes_nothing(corpus: Corpus, memory: str, low: bool) -> None:
    """Also where every state of a recurrent net lies below what padding might be taken for."""
    model, batch = tiny_vrbot(tiny_config(network__memory=memory), corpus, scale=1.0), batch_of(corpus)
    if low:
        for name, parameter in model.context_encoder.named_parameters():
            if ".bias_ih" in name:  # gates of reset, update and candidate
                parameter.copy_(torch.tensor([0.0, -4.0, -4.0]).repeat_interleave(len(parameter) // 3))
    found, expected = (model.hear(inputs, batch.layout) for inputs in (padded(batch.inputs, 5), batch.inputs))
    torch.testing.assert_close(found.context.summary, expected.context.summary, atol=1e-5, rtol=1e-4)
    width = batch.inputs.context.shape[1]
    torch.testing.assert_close(found.context.tokens[:, :width], expected.context.tokens, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("memory", MEMORIES)
@torch.no_grad()
def test_an_earlier_turn_reaches_later_turns_of_its_session_and_no_other_row(corpus: Corpus, memory: str) -> None:
    model, batch = tiny_vrbot(tiny_config(network__memory=memory), corpus), batch_of(corpus)
    session, turn = batch.session_ids.index("cold"), 1
    changed = batch.inputs.context.clone()
    row = int(((batch.session == session) & (batch.turn == turn)).nonzero())
    changed[row, 0] = corpus.vocabulary.id_of("腹泻")
    before = model.hear(batch.inputs, batch.layout).context.summary
    after = model.hear(dataclasses.replace(batch.inputs, context=changed), batch.layout).context.summary
    moved = (before - after).abs().amax(dim=1) > 1e-6
    assert torch.equal(moved, rows_of(batch, "cold") & (batch.turn >= turn))


@pytest.mark.parametrize("memory", MEMORIES)
def test_gradient_passes_from_turn_to_turn_only_in_the_form_that_reads_whole_sessions(
    corpus: Corpus, memory: str
) -> None:
    model, batch = tiny_vrbot(tiny_config(network__memory=memory), corpus), batch_of(corpus)
    embedded = model.words(batch.inputs.context).detach().requires_grad_()
    context = model.context_encoder(embedded, batch.inputs, batch.layout)
    (gradient,) = torch.autograd.grad(context.summary[batch.turn == 1].sum(), embedded)
    reached = gradient.abs().amax(dim=(1, 2)) > 0
    assert bool(reached[batch.turn == 0][: int((batch.turn == 1).sum())].any()) is (memory == "session")
    assert not reached[batch.turn > 1].any()


@torch.no_grad()
def test_a_mention_is_the_vector_of_its_token(corpus: Corpus) -> None:
    model, batch = tiny_vrbot(tiny_config(), corpus), batch_of(corpus)
    heard = model.hear(batch.inputs, batch.layout)
    for row, (entities, positions) in enumerate(
        zip(batch.inputs.mention_entities.tolist(), batch.inputs.mention_positions.tolist(), strict=True)
    ):
        for place, (entity, position) in enumerate(zip(entities, positions, strict=True)):
            assert bool(heard.mentions.mask[row, place]) is (entity >= 0)
            if entity >= 0:
                assert int(heard.mentions.entities[row, place]) == entity
                assert torch.equal(heard.mentions.vectors[row, place], heard.context.tokens[row, position])
