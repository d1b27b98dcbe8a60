"""A language model behind an endpoint as a system that answers questions, several at a time."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from vrbot.baselines.llm.cache import AnswerCache
from vrbot.baselines.llm.endpoint import Endpoint
from vrbot.baselines.llm.prompts import Question, language_of, messages_of, reply_text
from vrbot.baselines.llm.settings import EndpointSettings


class LanguageModel:
    """Replies from an endpoint, or from the cache where the same was asked before."""

    def __init__(self, settings: EndpointSettings, endpoint: Endpoint, cache: AnswerCache | None = None) -> None:
        self.settings, self._endpoint, self._cache = settings, endpoint, cache

    def request_of(self, question: Question) -> dict[str, Any]:
        """What is sent: the model's name, the messages, how to write."""
        language = language_of(question) if self.settings.language == "auto" else self.settings.language
        return {
            "model": self.settings.model,
            "messages": messages_of(question, language),
            "temperature": self.settings.temperature,
            "max_tokens": self.settings.max_tokens,
            "stream": False,
        }

    def reply(self, question: Question) -> str:
        """The reply to one question."""
        request = self.request_of(question)
        known = None if self._cache is None else self._cache.get(request)
        if known is None:
            known = self._endpoint.ask(request)
            if self._cache is not None:
                self._cache.put(request, known)
        return reply_text(known.text)

    def replies(self, questions: Sequence[Question], told: Callable[[int], None] | None = None) -> list[str]:
        """The reply to each, at most `concurrency` at a time; the first failure ends it, and what is there is kept.

        `told` is called with 1 for each reply, in order.
        """
        found: list[str] = []
        self._endpoint.stopped.clear()
        pool = ThreadPoolExecutor(self.settings.concurrency, thread_name_prefix="llm")
        try:
            for text in pool.map(self.reply, questions):
                found.append(text)
                if told is not None:
                    told(1)
        except BaseException:
            self._endpoint.stopped.set()
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
        return found


def open_language_model(settings: EndpointSettings, cache: Path | str | None = None) -> LanguageModel:
    """With the key that the environment holds, if any; nothing is contacted before the first question."""
    endpoint = Endpoint(settings, os.environ.get(settings.key_variable) or None)
    return LanguageModel(settings, endpoint, None if cache is None else AnswerCache(cache, settings.base_url))
