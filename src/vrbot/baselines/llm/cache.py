"""Answers kept on disk, one file for each request: what was asked once is never asked again, and repeats exactly.

The files hold what patients said, as the corpus does, and never a key.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from vrbot.baselines.llm.endpoint import Completion
from vrbot.errors import IntegrityError
from vrbot.files import atomic_write


class AnswerCache:
    """Safe for several threads and processes: a file is whole or not there, and equal requests have one file."""

    def __init__(self, folder: Path | str, base_url: str) -> None:
        self._folder, self._base_url = Path(folder), base_url

    def get(self, request: Mapping[str, Any]) -> Completion | None:
        """The answer to exactly this request of this endpoint."""
        path = self._path(request)
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            if content["request"] != request or content["base_url"] != self._base_url:
                raise ValueError("it answers another request")
            return Completion(**content["answer"])
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError) as error:
            raise IntegrityError(f"{path} is damaged ({error}): delete it to ask the endpoint again") from error

    def put(self, request: Mapping[str, Any], answer: Completion) -> None:
        path = self._path(request)
        path.parent.mkdir(parents=True, exist_ok=True)
        content = {"base_url": self._base_url, "request": request, "answer": asdict(answer)}
        with atomic_write(path) as file:
            json.dump(content, file, ensure_ascii=False, indent=1, allow_nan=False)

    def _path(self, request: Mapping[str, Any]) -> Path:
        listing = json.dumps([self._base_url, request], ensure_ascii=False, sort_keys=True, allow_nan=False)
        name = hashlib.sha256(listing.encode()).hexdigest()
        return self._folder / name[:2] / f"{name}.json"
