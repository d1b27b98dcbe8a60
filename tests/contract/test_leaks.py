"""The leak law: what a system perceives and replies in a turn depends on that turn and on earlier ones of its session.

The recorded response of a turn is heard one turn later, as the context of the next; labels are never heard.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
import torch
from torch import Tensor

from tests.contract.replying import reply_to_batch
from tests.model.tiny import MODELS, batch_of, rows_of, sessions, tiny_config, tiny_model, write_splits
from vrbot.config import Config
from vrbot.dialogue.batching import SessionBatch, TurnInputs, TurnLayout, TurnTargets, collate
from vrbot.dialogue.corpus import Corpus
from vrbot.dialogue.preparation import PreparationSettings, prepare
from vrbot.dialogue.session import Session, Turn
from vrbot.model.contract import DialogueModel, Perception

both_forms = pytest.mark.parametrize(("name", "form"), [(name, form) for form in ("small", "paper") for name in MODELS])
cases = pytest.mark.parametrize(("name", "form"), [*((name, "small") for name in MODELS), ("vrbot", "paper")])


def scrambled_inputs(inputs: TurnInputs, rows: Tensor, num_words: int, num_entities: int) -> TurnInputs:
    """Other words, entities and characters in these rows, lengths as they were."""
    random = torch.Generator().manual_seed(7)

    def other(values: Tensor, low: int, high: int, kept: Tensor) -> Tensor:
        drawn = torch.randint(low, high, values.shape, generator=random)
        return torch.where(rows.unsqueeze(1) & kept, drawn, values)

    there = torch.arange(inputs.context.shape[1]) < inputs.context_lengths.unsqueeze(1)
    return dataclasses.replace(
        inputs,
        context=other(inputs.context, 5, num_words, there),
        mention_entities=other(inputs.mention_entities, 0, num_entities, inputs.mention_entities >= 0),
        characters=other(inputs.characters, 3, 9, inputs.characters > 0),
    )


def nonsense_targets(targets: TurnTargets, num_words: int, num_entities: int) -> TurnTargets:
    """Other responses, other mentions, other labels in every row."""
    random = torch.Generator().manual_seed(8)
    changes = {}
    for name, value in vars(targets).items():
        if value.dtype == torch.bool:
            changes[name] = ~value
        elif name == "response":
            changes[name] = torch.randint(5, num_words, value.shape, generator=random)
        elif name in ("response_lengths", "category"):
            changes[name] = torch.randint(0, 4, value.shape, generator=random)
        else:
            changes[name] = torch.randint(0, num_entities, value.shape, generator=random)
    return TurnTargets(**changes)


def assert_same(found: Perception, expected: Perception, rows: Tensor) -> None:
    """The same state, category and keywords in these rows."""
    for name in ("state", "category", "keywords"):
        mine, theirs = getattr(found, name), getattr(expected, name)
        assert (mine is None) == (theirs is None)
        if mine is not None:
            torch.testing.assert_close(mine[rows], theirs[rows], atol=1e-4, rtol=1e-4)


def log_probs(model: DialogueModel, perception: Perception, batch: SessionBatch) -> Tensor:
    """What the responses of `batch` would cost."""
    return model.reply_log_prob(perception, batch.targets.response, batch.targets.response_lengths)


def case(name: str, form: str, corpus: Corpus) -> tuple[Config, DialogueModel, SessionBatch]:
    config = tiny_config(form)
    return config, tiny_model(name, config, corpus), batch_of(corpus)


@both_forms
def test_the_reply_does_not_change_when_reference_responses_labels_and_later_turns_do(
    corpus: Corpus, name: str, form: str
) -> None:
    config, model, batch = case(name, form, corpus)
    words, entities, last = len(corpus.vocabulary), len(corpus.inventory.names), 1
    heard_so_far = batch.turn <= last
    changed = dataclasses.replace(
        batch,
        inputs=scrambled_inputs(batch.inputs, ~heard_so_far, words, entities),
        targets=nonsense_targets(batch.targets, words, entities),
    )
    before, after = (model.perceive(either.inputs, either.layout) for either in (batch, changed))
    assert_same(after, before, heard_so_far)
    found, expected = log_probs(model, after, batch), log_probs(model, before, batch)
    torch.testing.assert_close(found[heard_so_far], expected[heard_so_far], atol=1e-4, rtol=1e-4)
    assert not torch.allclose(found[~heard_so_far], expected[~heard_so_far])
    replies, others = (reply_to_batch(model, either, config.decoding) for either in (batch, changed))
    kept = int(heard_so_far.sum())
    assert replies[:kept] == others[:kept]


@cases
def test_a_turn_is_understood_the_same_whether_or_not_the_session_goes_on(corpus: Corpus, name: str, form: str) -> None:
    _, model, batch = case(name, form, corpus)
    whole = model.perceive(batch.inputs, batch.layout)
    stop = batch.turn_offsets[2]
    layout = TurnLayout(batch.session[:stop], batch.turn[:stop], batch.turn_offsets[:3])
    short = model.perceive(batch.inputs.rows(0, stop), layout)
    assert_same(short, whole, torch.arange(stop))
    targets = batch.targets.rows(0, stop)
    torch.testing.assert_close(
        model.reply_log_prob(short, targets.response, targets.response_lengths),
        log_probs(model, whole, batch)[:stop],
        atol=1e-3,
        rtol=1e-4,
    )


@cases
def test_what_happens_in_one_session_reaches_no_other(corpus: Corpus, name: str, form: str) -> None:
    _, model, batch = case(name, form, corpus)
    words, entities = len(corpus.vocabulary), len(corpus.inventory.names)
    for session in ("cold", "long"):
        own = rows_of(batch, session)
        inputs = scrambled_inputs(batch.inputs, own, words, entities)
        before, after = model.perceive(batch.inputs, batch.layout), model.perceive(inputs, batch.layout)
        assert_same(after, before, ~own)
        found, expected = log_probs(model, after, batch), log_probs(model, before, batch)
        torch.testing.assert_close(found[~own], expected[~own], atol=1e-4, rtol=1e-4)
        assert not torch.allclose(found[own], expected[own])


@cases
def test_sessions_together_equal_sessions_alone_in_any_order(corpus: Corpus, name: str, form: str) -> None:
    config, model, batch = case(name, form, corpus)
    expected = {(reply.session_id, reply.turn): reply for reply in reply_to_batch(model, batch, config.decoding)}
    costs = log_probs(model, model.perceive(batch.inputs, batch.layout), batch)
    for chosen in (*([number] for number in range(len(sessions()))), [4, 2, 0, 3, 1]):
        part = batch_of(corpus, chosen)
        for reply in reply_to_batch(model, part, config.decoding):
            assert reply == expected[reply.session_id, reply.turn]
        found = log_probs(model, model.perceive(part.inputs, part.layout), part)
        places = torch.stack(
            [
                (rows_of(batch, part.session_ids[session]) & (batch.turn == turn)).nonzero().squeeze()
                for session, turn in zip(part.session.tolist(), part.turn.tolist(), strict=True)
            ]
        )
        torch.testing.assert_close(found, costs[places], atol=1e-3, rtol=1e-4)


def with_another_ending(session: Session) -> Session:
    """No labels, and the last response is another."""
    turns = [Turn(turn.patient, turn.physician, None, None) for turn in session.turns]
    return Session(session.id, (*turns[:-1], Turn(turns[-1].patient, "气管炎。腹泻吗？", None, None)))


def test_from_the_text_on_no_system_hears_labels_or_the_reply_it_has_to_give(corpus: Corpus, tmp_path: Path) -> None:
    write_splits(tmp_path, [with_another_ending(session) for session in sessions()])
    prepare(tmp_path, tmp_path / "corpus", PreparationSettings(like=corpus.directory))
    other = collate(Corpus.open(tmp_path / "corpus").split("train"), range(len(sessions())))
    batch = batch_of(corpus)
    assert not torch.equal(other.targets.response[: len(sessions())], batch.targets.response[: len(sessions())])
    assert not other.targets.state_known.any()
    for name in MODELS:
        config = tiny_config()
        model = tiny_model(name, config, corpus)
        assert reply_to_batch(model, other, config.decoding) == reply_to_batch(model, batch, config.decoding)
