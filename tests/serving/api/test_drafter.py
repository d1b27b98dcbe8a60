"""Drafts in turn: batches change no answer, a full queue sends away, a deadline is kept."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from tests.serving.api.served import desk_of, settings_of
from tests.serving.fakes import ANN, Parrot
from vrbot.serving.api.drafter import Drafter
from vrbot.serving.problems import BusyError, LateError
from vrbot.serving.records import Draft
from vrbot.serving.safety_desk import Conversation
from vrbot.serving.store import Store


class Batching(Parrot):
    """Answers several at once, as it would answer each; waits until it may."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []
        self.may = threading.Event()
        self.may.set()

    def respond(self, conversation: Conversation) -> Mapping[str, Any]:
        self.may.wait(30)
        return super().respond(conversation)

    def respond_many(self, conversations: Sequence[Conversation]) -> list[Mapping[str, Any]]:
        self.sizes.append(len(conversations))
        return [self.respond(conversation) for conversation in conversations]


def turns(desk: Any, texts: Sequence[str]) -> list[str]:
    opened = [desk.consultations.open(ANN, "en").id for _ in texts]
    return [
        desk.consultations.receive(ANN, consultation, "t", text).id
        for consultation, text in zip(opened, texts, strict=True)
    ]


@pytest.fixture
def store() -> Any:
    found = Store.open("sqlite://", create=True)
    yield found
    found.close()


def test_what_comes_together_is_answered_together_and_as_if_alone(store: Store) -> None:
    model = Batching()
    desk = desk_of(store, model)
    texts = [f"cough {number}" for number in range(12)] + ["crash", "crash again", "broken"]

    async def ask() -> list[Draft]:
        drafter = Drafter(desk, settings_of(batch_size=8))
        model.may.clear()
        tasks = [asyncio.create_task(drafter.draft(ANN, turn)) for turn in turns(desk, texts)]
        while drafter.under_way < len(texts):
            await asyncio.sleep(0.01)
        model.may.set()
        found = await asyncio.gather(*tasks)
        await drafter.stop()
        return list(found)

    together = asyncio.run(ask())
    alone = [desk_of(store).drafting.draft(ANN, turn) for turn in turns(desk, texts)]
    assert [(draft.text, draft.reply) for draft in together] == [(draft.text, draft.reply) for draft in alone]
    assert [draft.failure for draft in together[-3:-1]] == [draft.failure for draft in alone[-3:-1]]
    assert max(model.sizes) > 1


class OneByOne(Parrot):
    """Makes one reply after the other, each when it is told to, also those that are asked for together."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []
        self.steps = threading.Semaphore(0)

    def respond(self, conversation: Conversation) -> Mapping[str, Any]:
        self.steps.acquire(timeout=30)
        return super().respond(conversation)

    def respond_many(self, conversations: Sequence[Conversation]) -> Iterator[Mapping[str, Any]]:
        self.sizes.append(len(conversations))
        return (self.respond(conversation) for conversation in conversations)


def test_an_answer_is_given_while_the_rest_of_its_batch_is_still_being_made(store: Store) -> None:
    model = OneByOne()
    desk = desk_of(store, model)

    async def ask() -> list[int]:
        drafter, done = Drafter(desk, settings_of(batch_size=8)), []
        asked = turns(desk, [f"cough {number}" for number in range(5)])
        tasks = [asyncio.create_task(drafter.draft(ANN, turn)) for turn in asked]
        await asyncio.sleep(0.1)  # some are with the model, the others wait: they are its next batch
        for number in range(5):
            model.steps.release()
            while sum(task.done() for task in tasks) <= number:
                await asyncio.sleep(0.005)
            done.append(sum(task.done() for task in tasks))
        await drafter.stop()
        return done

    assert asyncio.run(asyncio.wait_for(ask(), 20)) == [1, 2, 3, 4, 5]
    assert max(model.sizes) > 1


def test_a_full_queue_sends_away_at_once_and_loses_nobody_who_was_let_in(store: Store) -> None:
    model = Batching()
    desk = desk_of(store, model)

    async def ask() -> list[Any]:
        drafter = Drafter(desk, settings_of(queue_length=3))
        model.may.clear()
        tasks = [asyncio.create_task(drafter.draft(ANN, turn)) for turn in turns(desk, ["a"] * 10)]
        await asyncio.sleep(0.05)
        assert sum(task.done() for task in tasks) == 7
        model.may.set()
        found = await asyncio.gather(*tasks, return_exceptions=True)
        await drafter.stop()
        return found

    found = asyncio.run(ask())
    assert sum(isinstance(each, Draft) for each in found) == 3
    refused = [each for each in found if isinstance(each, BusyError)]
    assert len(refused) == 7
    assert all(each.retry_after >= 1 for each in refused)


def test_a_deadline_is_kept_and_what_came_too_late_is_there_for_who_asks_again(store: Store) -> None:
    model = Batching()
    desk = desk_of(store, model)

    async def ask() -> list[Draft]:
        drafter = Drafter(desk, settings_of(draft_seconds=0.3))
        (slow,) = turns(desk, ["slow"])
        model.may.clear()
        for _ in range(3):  # a retry joins what is under way
            with pytest.raises(LateError, match="no draft within"):
                await drafter.draft(ANN, slow)
            assert drafter.under_way == 1
        model.may.set()
        while drafter.under_way:
            await asyncio.sleep(0.01)
        again = Drafter(desk, settings_of())
        found = [await again.draft(ANN, slow), desk.drafting.draft(ANN, slow)]
        await drafter.stop()
        await again.stop()
        return found

    found = asyncio.run(ask())
    assert found[0] == found[1]
    assert found[0].text == "You say: slow"
    assert model.calls == 1


def test_what_two_ask_for_at_once_is_made_once(store: Store) -> None:
    model = Batching()
    desk = desk_of(store, model)

    async def ask() -> list[Draft]:
        drafter = Drafter(desk, settings_of())
        (turn,) = turns(desk, ["both"])
        found = await asyncio.gather(*(drafter.draft(ANN, turn) for _ in range(5)))
        replies = await asyncio.gather(*(drafter.reply([("both", "")]) for _ in range(5)))
        assert len({str(reply) for reply in replies}) == 1
        await drafter.stop()
        return list(found)

    assert len({draft.id for draft in asyncio.run(ask())}) == 1
    assert model.calls == 2
