"""Drafts in turn: a bounded queue in front of the model, small batches that change no answer, and deadlines."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar, cast

from vrbot.serving.actors import Actor
from vrbot.serving.api.meters import Meters
from vrbot.serving.api.settings import AppSettings
from vrbot.serving.drafting import DraftProposal, Question
from vrbot.serving.problems import BusyError, LateError, RefusedError
from vrbot.serving.proposals import Proposal as LabelProposal
from vrbot.serving.records import Draft
from vrbot.serving.responder import KnownStates, ProposesLabels
from vrbot.serving.safety_desk import Conversation
from vrbot.serving.service import Desk

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class _Job:
    """A question to be drafted (with others, if there are), or something the model's thread does by itself."""

    work: Question | Callable[[], Any]
    answer: asyncio.Future[Any]


class Drafter:
    """Whoever wants a draft awaits it here, over HTTP or in the console; all in one event loop.

    The model has one thread. What has come while it was at work is its next batch: nobody waits for a batch to fill,
    and each has its answer once it is there.
    What was begun is finished even if whoever asked has given up: who asks again finds it done, or joins in. So a slow
    model answers as many as it can, and never the same twice.
    """

    def __init__(self, desk: Desk, settings: AppSettings, meters: Meters | None = None) -> None:
        self._desk, self._settings, self._meters = desk, settings, meters or Meters()
        self._model = ThreadPoolExecutor(1, thread_name_prefix="model")
        self._storing = ThreadPoolExecutor(settings.threads, thread_name_prefix="drafts")
        self._queue: asyncio.Queue[_Job] = asyncio.Queue()
        self._worker: asyncio.Task[None] | None = None
        self._wishes: dict[Hashable, asyncio.Task[Any]] = {}

    @property
    def under_way(self) -> int:
        """How many answers are being made."""
        return len(self._wishes)

    async def draft(self, actor: Actor, turn: str, change: Mapping[str, Any] | None = None) -> Draft:
        """As `Drafting.draft`; BusyError if too many wait already, LateError if it takes too long."""
        drafting = self._desk.drafting

        async def make() -> Draft:
            asked = await self.in_thread(lambda: drafting.prepare(actor, turn, change))
            if isinstance(asked, Draft):
                return asked
            proposal = cast(DraftProposal, await self._by_model(asked))
            self._meters.drafts.labels("failed" if proposal.failure else "made").inc()
            return await self.in_thread(lambda: drafting.keep(asked, proposal))

        return await self._in_time((actor, turn, repr(change)), make)

    async def reply(self, conversation: Conversation) -> Mapping[str, Any]:
        """As `Drafting.reply_to`, in turn with all others."""

        async def make() -> Mapping[str, Any]:
            return cast("Mapping[str, Any]", await self._by_model(lambda: self._desk.drafting.reply_to(conversation)))

        return await self._in_time(tuple(tuple(turn) for turn in conversation), make)

    async def propose_labels(self, turns: Conversation, states: KnownStates = ()) -> list[Mapping[str, LabelProposal]]:
        """The labels the model proposes for these turns, in turn with all others; RefusedError if it cannot."""
        responder = self._desk.responder
        if not isinstance(responder, ProposesLabels):
            raise RefusedError("this model has no inference networks to propose labels with")

        async def make() -> list[Mapping[str, LabelProposal]]:
            found = await self._by_model(lambda: responder.propose_labels(turns, states))
            return cast("list[Mapping[str, LabelProposal]]", found)

        return await self._in_time(("labels", *(tuple(turn) for turn in turns), repr(states)), make)

    async def stop(self) -> None:
        """Ends the threads; whoever still waits is told nothing more."""
        unfinished: list[asyncio.Task[Any]] = list(self._wishes.values())
        if self._worker is not None:
            unfinished.append(self._worker)
        for task in unfinished:
            task.cancel()
        await asyncio.gather(*unfinished, return_exceptions=True)
        self._model.shutdown(wait=False, cancel_futures=True)
        self._storing.shutdown(wait=False, cancel_futures=True)

    async def _in_time(self, wish: Hashable, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        task: asyncio.Task[T] | None = self._wishes.get(wish)
        if task is None:
            if self.under_way >= self._settings.queue_length:
                self._meters.refused.inc()
                raise BusyError(f"{self.under_way} drafts are being made already: try again in a second", retry_after=1)
            task = asyncio.get_running_loop().create_task(make())
            self._wishes[wish] = task
            self._meters.waiting.set(self.under_way)
            task.add_done_callback(lambda done: self._fulfilled(wish, done))
        try:
            async with asyncio.timeout(self._settings.draft_seconds):
                return await asyncio.shield(task)
        except TimeoutError:
            raise LateError(f"no draft within {self._settings.draft_seconds:g} seconds: ask again for it") from None

    def _fulfilled(self, wish: Hashable, task: asyncio.Task[Any]) -> None:
        self._wishes.pop(wish, None)
        self._meters.waiting.set(self.under_way)
        if not task.cancelled():
            task.exception()  # nobody may be left to hear of it

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Something that waits for the database, out of the event loop's way."""
        return await asyncio.get_running_loop().run_in_executor(self._storing, work)

    async def _by_model(self, work: Question | Callable[[], Any]) -> Any:
        if self._worker is None or self._worker.done():
            self._worker = asyncio.get_running_loop().create_task(self._work(), name="drafter")
        job = _Job(work, asyncio.get_running_loop().create_future())
        self._queue.put_nowait(job)
        return await job.answer

    async def _work(self) -> None:
        while True:
            jobs = [await self._queue.get()]
            while len(jobs) < self._settings.batch_size and not self._queue.empty():
                jobs.append(self._queue.get_nowait())
            self._meters.batch.observe(len(jobs))
            loop = asyncio.get_running_loop()

            def tell(job: _Job, answer: Any, loop: asyncio.AbstractEventLoop = loop) -> None:
                loop.call_soon_threadsafe(_settle, job, answer)

            await loop.run_in_executor(self._model, self._answer, jobs, tell)

    def _answer(self, jobs: list[_Job], tell: Callable[[_Job, Any], None]) -> None:
        """Tells the answer to each job, or the exception it ended with, once it is there; in the model's thread."""
        proposals = self._desk.drafting.propose([job.work for job in jobs if isinstance(job.work, Question)])
        for job in jobs:
            tell(job, _tried(partial(next, proposals) if isinstance(job.work, Question) else job.work))


def _settle(job: _Job, answer: Any) -> None:
    if job.answer.done():  # the server is stopping
        return
    if isinstance(answer, Exception):
        job.answer.set_exception(answer)
    else:
        job.answer.set_result(answer)


def _tried(work: Callable[[], Any]) -> Any:
    try:
        return work()
    except Exception as error:
        return error
