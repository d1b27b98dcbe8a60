"""Text that comes back byte for byte from any database, and JSON that has one form only."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

from sqlalchemy import Dialect, LargeBinary
from sqlalchemy.types import TypeDecorator

from vrbot.serving.problems import InvalidInputError

MAX_TEXT_BYTES = 4 * 2**20
LONGEST_OF_PATIENT, LONGEST_OF_STAFF = 4_000, 100_000
"""Characters of one text: the rules read all of it, and others wait meanwhile."""
MAX_NAME_LENGTH = 128
_NAME = re.compile(r"[!-~]+")


class ExactText(TypeDecorator[str]):
    """Text kept as its UTF-8 bytes: PostgreSQL's own text has no NUL, and no collation may touch what was said."""

    impl = LargeBinary
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> bytes | None:
        return None if value is None else value.encode("utf-8")

    def process_result_value(self, value: bytes | None, dialect: Dialect) -> str | None:
        return None if value is None else bytes(value).decode("utf-8")


def checked_text(text: object, field: str) -> str:
    """The text itself, if every character of it can be stored; the message never repeats it."""
    if not isinstance(text, str):
        raise InvalidInputError(f"{field} must be a text, got a value of type {type(text).__name__}")
    try:
        size = len(text.encode("utf-8"))
    except UnicodeEncodeError as error:
        raise InvalidInputError(
            f"{field} holds half a surrogate pair at character {error.start}: send well-formed Unicode"
        ) from None
    if size > MAX_TEXT_BYTES:
        raise InvalidInputError(f"{field} has {size:,} bytes, more than {MAX_TEXT_BYTES:,}: send it in parts")
    return text


def checked_length(text: str, field: str, longest: int) -> str:
    """The text itself, if it has at most so many characters."""
    if len(text) > longest:
        raise InvalidInputError(f"{field} has {len(text):,} characters, more than {longest:,}: send it in parts")
    return text


def checked_name(name: object, field: str) -> str:
    """An identifier: 1 to 128 visible ASCII characters."""
    if isinstance(name, str) and len(name) <= MAX_NAME_LENGTH and _NAME.fullmatch(name):
        return name
    raise InvalidInputError(f"{field} must be 1 to {MAX_NAME_LENGTH} visible ASCII characters without blanks")


def canonical_json(value: Any) -> str:
    """The one way to write a JSON value: keys sorted, no blanks, characters as they are; ValueError if it has none."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))
    text.encode("utf-8")  # half a surrogate pair is a ValueError here, not later in the database
    return text


def text_sha256(text: str) -> str:
    """The fingerprint of a text: what a physician approves is the text with this fingerprint, and no other."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()
