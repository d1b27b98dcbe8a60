"""Who has named what so far, read off the texts themselves."""

from __future__ import annotations

import torch

from tests.model.tiny import batch_of, sessions
from vrbot.dialogue.corpus import Corpus
from vrbot.model.spans import span_of
from vrbot.model.standing import NUM_STANDINGS, named_so_far, standings


def test_flags_tell_who_named_an_entity_and_when(corpus: Corpus) -> None:
    batch, names = batch_of(corpus), corpus.inventory.names
    told = named_so_far(batch.inputs, batch.layout, len(names))
    by_name = {session.id: session for session in sessions()}
    for row, (session, turn) in enumerate(zip(batch.session.tolist(), batch.turn.tolist(), strict=True)):
        turns = by_name[batch.session_ids[session]].turns
        said, answered = [each.patient for each in turns], ["", *(each.physician for each in turns)]
        heard = (said[turn], answered[turn], "".join(said[:turn]), "".join(answered[:turn]))
        expected = [[float(name in text) for text in heard] for name in names]
        assert told[row].tolist() == expected, (batch.session_ids[session], turn)


def test_the_state_has_a_flag_of_its_own() -> None:
    named = torch.zeros(2, 6, NUM_STANDINGS - 1)
    named[0, 3, 1] = 1.0
    state = span_of(torch.tensor([[4, 0, -1], [-1, -1, -1]]), 3, 6)
    told = standings(named, state)
    assert torch.equal(told[..., :-1], named)
    assert told[..., -1].tolist() == [[1, 0, 0, 0, 1, 0], [0] * 6]
