"""Files that are either whole or not there: atomic writing, and the fingerprint of what was written."""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, BinaryIO, TextIO, cast

from vrbot.errors import UsageError


@contextmanager
def atomic_write(path: str | Path) -> Iterator[TextIO]:
    """A UTF-8 text file that appears under `path` only when the block ends without an exception.

    Whoever reads `path` meanwhile, or after a crash at any moment, sees the former file or the complete new one. A
    folder that is not there is made.
    """
    with _replacing(Path(path), "x", encoding="utf-8", newline="\n") as file:
        yield cast(TextIO, file)


@contextmanager
def atomic_write_bytes(path: str | Path) -> Iterator[BinaryIO]:
    """As `atomic_write`, for bytes."""
    with _replacing(Path(path), "xb") as file:
        yield cast(BinaryIO, file)


@contextmanager
def _replacing(path: Path, mode: str, **how: Any) -> Iterator[IO[Any]]:
    target = Path(os.path.realpath(path))  # a link keeps pointing where it did; the file behind it is replaced
    draft = target.with_name(f".{target.name[:60]}.{secrets.token_hex(8)}.tmp")  # same folder: a rename suffices
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{path}: its folder cannot be made ({error.strerror}): choose another place") from None
    try:
        with draft.open(mode, **how) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    sync_folder(target.parent)


def sync_folder(folder: Path) -> None:
    """Make renames in `folder` survive a power cut; a file system that cannot do this is left as it is."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    except OSError:
        pass
    finally:
        os.close(descriptor)


def sha256_of(path: str | Path) -> str:
    """The SHA-256 of the file's bytes, in hexadecimal."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
