"""What a prepared corpus consists of: every file with its hash, so that a changed one is refused."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vrbot.errors import IntegrityError
from vrbot.files import atomic_write, sha256_of

MANIFEST = "manifest.json"
SCHEMA_VERSION = 1
A_RUN, A_SAVED_MODEL, A_CORPUS = "a run", "a saved model", "a corpus"
_KINDS = {"run.json": A_RUN, "model.json": A_SAVED_MODEL, "inventory.json": A_CORPUS}
_AGAIN = "prepare the corpus again, or restore the file from a copy"


@dataclass(frozen=True)
class Manifest:
    """The files of a corpus (path -> SHA-256 and size), the settings it was made with, and what it counts."""

    files: dict[str, dict[str, Any]]
    settings: dict[str, Any]
    counts: dict[str, Any]

    def text(self) -> str:
        """The manifest as JSON; its own hash stands in it, so that it can be checked like any other file."""
        content = {"schema": SCHEMA_VERSION, **vars(self)}
        own_hash = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
        return json.dumps({**content, "sha256": own_hash}, ensure_ascii=False, sort_keys=True, indent=1) + "\n"


def write_manifest(directory: Path, settings: dict[str, Any], counts: dict[str, Any]) -> Manifest:
    """Hashes every file of the directory and writes the manifest beside them."""
    paths = sorted(path for path in directory.rglob("*") if path.is_file() and path != directory / MANIFEST)
    files = {
        path.relative_to(directory).as_posix(): {"sha256": sha256_of(path), "size": path.stat().st_size}
        for path in paths
    }
    manifest = Manifest(files, settings, counts)
    with atomic_write(directory / MANIFEST) as file:
        file.write(manifest.text())
    return manifest


def kind_of(directory: Path) -> str | None:
    """What a folder with a manifest is, by the first file that only such a folder has; None where it has none."""
    return next((kind for name, kind in _KINDS.items() if (directory / name).is_file()), None)


def read_manifest(directory: Path) -> Manifest:
    """The manifest of a corpus; IntegrityError where it is missing, changed, or of another version."""
    path = directory / MANIFEST
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        reason = error.strerror or str(error)
        raise IntegrityError(f"{path}: {reason}: give the directory of a corpus made by `vrbot prepare`") from error
    except UnicodeDecodeError as error:
        raise IntegrityError(f"{path}: is not UTF-8: {_AGAIN}") from error
    try:
        content = json.loads(text)
        schema = content["schema"]
        manifest = Manifest(content["files"], content["settings"], content["counts"])
    except (ValueError, KeyError, TypeError) as error:
        raise IntegrityError(f"{path}: cannot be read as a manifest ({error}): {_AGAIN}") from error
    if schema != SCHEMA_VERSION:
        raise IntegrityError(f"{path}: schema {schema!r} is not {SCHEMA_VERSION}: prepare the corpus again")
    if manifest.text() != text:
        raise IntegrityError(f"{path}: has been changed since it was written: {_AGAIN}")
    return manifest


def verify_files(directory: Path, manifest: Manifest) -> None:
    """IntegrityError for the first file that is missing or not what the manifest says."""
    for name, expected in manifest.files.items():
        path = directory / name
        if not path.is_file():
            raise IntegrityError(f"{path}: is missing: {_AGAIN}")
        size = path.stat().st_size
        if size != expected["size"]:
            raise IntegrityError(f"{path}: has {size} bytes where the manifest says {expected['size']}: {_AGAIN}")
        if sha256_of(path) != expected["sha256"]:
            raise IntegrityError(f"{path}: has been changed since it was written (SHA-256 differs): {_AGAIN}")
