"""Drafts in turn: a bounded queue in front of the model, small batches that change no answer, and deadlines."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from vrbot.serving.actors import Actor
from vrbot.serving.api.meters import Meters
from vrbot.serving.api.settings import AppSettings
from vrbot.serving.drafting import Proposal, Question
from vrbot.serving.problems import BusyError, LateError
from vrbot.serving.records import Draft
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

    The model has one thread. What has come while it was at work is its next batch: nobody waits for a batch to fill.
    """

    def __init__(self, desk: Desk, settings: AppSettings, meters: Meters | None = None) -> None:
        self._desk, self._settings, self._meters = desk, settings, meters or Meters()
        self._model = ThreadPoolExecutor(1, thread_name_prefix="model")
        self._storing = ThreadPoolExecutor(settings.threads, thread_name_prefix="drafts")
        self._queue: asyncio.Queue[_Job] = asyncio.Queue()
        self._worker: asyncio.Task[None] | None = None
        self._under_way = 0

    @property
    def under_way(self) -> int:
        """How many are waiting for an answer."""
        return self._under_way

    async def draft(self, actor: Actor, turn: str, change: Mapping[str, Any] | None = None) -> Draft:
        """As `Drafting.draft`; BusyError if too many wait already, LateError if it takes too long."""
        drafting = self._desk.drafting

        async def make() -> Draft:
            asked = await self.in_thread(lambda: drafting.prepare(actor, turn, change))
            if isinstance(asked, Draft):
                return asked
            proposal = cast(Proposal, await self._by_model(asked))
            self._meters.drafts.labels("failed" if proposal.failure else "made").inc()
            return await self.in_thread(lambda: drafting.keep(asked, proposal))

        return await self._in_time(make)

    async def reply(self, conversation: Conversation) -> Mapping[str, Any]:
        """As `Drafting.reply_to`, in turn with all others."""

        async def make() -> Mapping[str, Any]:
            return cast("Mapping[str, Any]", await self._by_model(lambda: self._desk.drafting.reply_to(conversation)))

        return await self._in_time(make)

    async def stop(self) -> None:
        """Ends the threads; whoever still waits is told it is too late."""
        if self._worker is not None:
            self._worker.cancel()
            with suppress(asyncio.CancelledError, RuntimeError):
                await self._worker
        while not self._queue.empty():
            self._queue.get_nowait().answer.cancel()
        self._model.shutdown(wait=False, cancel_futures=True)
        self._storing.shutdown(wait=False, cancel_futures=True)

    async def _in_time(self, make: Callable[[], Awaitable[T]]) -> T:
        if self._under_way >= self._settings.queue_length:
            self._meters.refused.inc()
            raise BusyError(f"{self._under_way} drafts are waited for already: try again in a second", retry_after=1)
        self._under_way += 1
        self._meters.waiting.set(self._under_way)
        try:
            async with asyncio.timeout(self._settings.draft_seconds):
                return await make()
        except TimeoutError:
            raise LateError(f"no draft within {self._settings.draft_seconds:g} seconds: try again") from None
        finally:
            self._under_way -= 1
            self._meters.waiting.set(self._under_way)

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
            wanted = [job for job in jobs if not job.answer.done()]  # the others gave up waiting
            if not wanted:
                continue
            self._meters.batch.observe(len(wanted))
            answers = await asyncio.get_running_loop().run_in_executor(self._model, self._answers, wanted)
            for job, answer in zip(wanted, answers, strict=True):
                if job.answer.done():
                    continue
                if isinstance(answer, Exception):
                    job.answer.set_exception(answer)
                else:
                    job.answer.set_result(answer)

    def _answers(self, jobs: list[_Job]) -> list[Any]:
        """The answer to each job, or the exception it ended with; in the model's thread."""
        questions = [job.work for job in jobs if isinstance(job.work, Question)]
        try:
            proposals = iter(self._desk.drafting.propose(questions)) if questions else iter(())
        except Exception as error:
            return [error for _ in jobs]
        return [next(proposals) if isinstance(job.work, Question) else _tried(job.work) for job in jobs]


def _tried(work: Callable[[], Any]) -> Any:
    try:
        return work()
    except Exception as error:
        return error
