"""Folders that are either whole or not there: written aside, hashed, renamed into place, refused when changed.

At any moment a complete folder can be found, under its name or (between the two renames of a replacement) under the
name its predecessor was moved to; `read_sealed` knows both.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vrbot.errors import IntegrityError, VRBotError

MANIFEST = "manifest.json"
SCHEMA_VERSION = 1
_AGAIN = "restore the folder from a copy, or train again"


def write_sealed(folder: Path, files: Mapping[str, bytes]) -> None:
    """Puts the files and their manifest into `folder`, in place of what stood there; VRBotError if that fails."""
    draft = folder.with_name(f".{folder.name}.{secrets.token_hex(8)}.tmp")
    try:
        recover(folder)
        draft.mkdir(parents=True)
        for name, content in files.items():
            _write(draft / name, content)
        _write(draft / MANIFEST, _manifest_text(files).encode())
        _sync_folder(draft)
        _swap(draft, folder)
    except OSError as error:
        shutil.rmtree(draft, ignore_errors=True)
        reason = error.strerror or str(error)
        raise VRBotError(f"{folder}: could not be saved: {reason}: what was saved before is still there") from error
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise


def read_sealed(folder: Path) -> dict[str, bytes]:
    """The files as they were written; IntegrityError names the first one that is not."""
    folder = _present(folder)
    listed = _read_manifest(folder / MANIFEST)
    return {name: _read_verified(folder / name, expected) for name, expected in listed.items()}


def is_sealed(folder: Path) -> bool:
    """Whether there is such a folder, complete or damaged."""
    return (_present(folder) / MANIFEST).exists()


def recover(folder: Path) -> None:
    """Ends a replacement that was cut short, and removes what unfinished writing left behind."""
    former = _former(folder)
    if former.exists():
        if folder.exists():
            shutil.rmtree(former)
        else:
            os.rename(former, folder)
    if folder.parent.is_dir():
        for path in folder.parent.iterdir():
            if path.name.startswith(f".{folder.name}.") and path.name.endswith(".tmp"):
                shutil.rmtree(path)


def _swap(draft: Path, folder: Path) -> None:
    former = _former(folder)
    replacing = folder.exists()
    if replacing:
        os.rename(folder, former)
    try:
        os.rename(draft, folder)
    except OSError:
        if replacing:
            os.rename(former, folder)
        raise
    _sync_folder(folder.parent)
    if replacing:
        shutil.rmtree(former, ignore_errors=True)  # the new folder stands; `recover` tries again, and complains


def _former(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.former")


def _present(folder: Path) -> Path:
    former = _former(folder)
    return former if not folder.exists() and former.exists() else folder


def _write(path: Path, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sync_folder(folder: Path) -> None:
    """As `files.sync_folder`, but only a file system that knows no such thing is excused."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)


def _manifest_text(files: Mapping[str, bytes]) -> str:
    listed = {name: {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)} for name, data in files.items()}
    return _sealed_text({"schema": SCHEMA_VERSION, "files": listed})


def _sealed_text(content: dict[str, Any]) -> str:
    """The manifest with its own hash in it, so that it can be checked like any other file."""
    own_hash = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    return json.dumps({**content, "sha256": own_hash}, sort_keys=True, indent=1) + "\n"


def _read_manifest(path: Path) -> dict[str, dict[str, Any]]:
    raw = _read(path)
    try:
        content = json.loads(raw)
        files: dict[str, dict[str, Any]] = content["files"]
        schema = content["schema"]
        unchanged = _sealed_text({"schema": schema, "files": files}).encode() == raw
    except (ValueError, KeyError, TypeError) as error:
        raise IntegrityError(f"{path}: cannot be read as a manifest ({error}): {_AGAIN}") from error
    if not unchanged:
        raise IntegrityError(f"{path}: has been changed since it was written: {_AGAIN}")
    if schema != SCHEMA_VERSION:
        raise IntegrityError(
            f"{path}: schema {schema!r} is not {SCHEMA_VERSION}: read it with the version that wrote it"
        )
    return files


def _read_verified(path: Path, expected: Mapping[str, Any]) -> bytes:
    content = _read(path)
    if len(content) != expected["size"]:
        raise IntegrityError(f"{path}: has {len(content)} bytes where the manifest says {expected['size']}: {_AGAIN}")
    if hashlib.sha256(content).hexdigest() != expected["sha256"]:
        raise IntegrityError(f"{path}: has been changed since it was written (SHA-256 differs): {_AGAIN}")
    return content


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise IntegrityError(f"{path}: {error.strerror or error}: {_AGAIN}") from error
