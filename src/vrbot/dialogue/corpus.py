"""A prepared corpus on disk: memory-mapped, and refused when any of its files has changed.

manifest.json, inventory.json, words.json, characters.json, graph/, and for each split sessions.jsonl (the sessions as
they were read), session_ids.json, and one .npy file for each array of `Split`.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vrbot.dialogue.canonical import session_from_line
from vrbot.dialogue.encoding import TextEncoder
from vrbot.dialogue.manifest import A_RUN, A_SAVED_MODEL, Manifest, kind_of, read_manifest, verify_files
from vrbot.dialogue.segment import Segmenter, open_segmenter
from vrbot.dialogue.session import Session
from vrbot.dialogue.sources import Place
from vrbot.dialogue.splits import EncodedTexts, Labels, Split
from vrbot.dialogue.vocabulary import CharacterVocabulary, Vocabulary
from vrbot.errors import UsageError
from vrbot.knowledge.entities import Inventory
from vrbot.knowledge.graph import Graph
from vrbot.knowledge.linking import Linker

SPLITS = ("train", "valid", "test")
GRAPH = "graph"
_INVENTORY, _WORDS, _CHARACTERS = "inventory.json", "words.json", "characters.json"
_SESSIONS, _SESSION_IDS, _SESSION_BYTES = "sessions.jsonl", "session_ids.json", "session_bytes.npy"


class Corpus:
    """A prepared corpus: its words, entities and graph at once, its splits as they are asked for."""

    def __init__(self, directory: Path, manifest: Manifest) -> None:
        self.directory = directory
        self.manifest = manifest
        self.inventory = Inventory.load(directory / _INVENTORY)
        words = _read_json(directory / _WORDS)
        self.vocabulary = Vocabulary(words, self.inventory.names, self.inventory.surfaces)
        self.characters = CharacterVocabulary(_read_json(directory / _CHARACTERS))
        self.graph = Graph.open(directory / GRAPH)
        self._splits: dict[str, Split] = {}

    @classmethod
    def open(cls, directory: Path | str, verify: bool = True, *, saved_model: bool = False) -> Corpus:
        """Opens a corpus; IntegrityError names the first file that is not as it was written.

        With `saved_model` it may be a saved model, too, which has the words, entities and graph but no dialogues.
        """
        directory = Path(directory)
        kind = kind_of(directory)
        if kind == A_RUN or (kind == A_SAVED_MODEL and not saved_model):
            raise UsageError(f"{directory} is {kind}, not a corpus: give the folder that `vrbot prepare` wrote")
        manifest = read_manifest(directory)
        if verify:
            verify_files(directory, manifest)
        return cls(directory, manifest)

    @property
    def split_names(self) -> tuple[str, ...]:
        return tuple(name for name in SPLITS if f"{name}/{_SESSIONS}" in self.manifest.files)

    @property
    def fingerprint(self) -> str:
        """A hash of vocabulary, inventory and graph: equal where a model trained on one corpus can read the other."""
        return fingerprint_of(self.manifest)

    def split(self, name: str) -> Split:
        """The arrays of a split, memory-mapped."""
        if name not in self.split_names:
            raise UsageError(f"{self.directory} has no split {name!r}: choose one of {', '.join(self.split_names)}")
        if name not in self._splits:
            self._splits[name] = _read_split(self.directory / name)
        return self._splits[name]

    def sessions(self, name: str) -> list[Session]:
        """The sessions of a split as they were read: original text and labels."""
        self.split(name)
        path = self.directory / name / _SESSIONS
        with path.open(encoding="utf-8", newline="\n") as lines:
            return [session_from_line(line, Place(path, number)) for number, line in enumerate(lines, start=1)]

    def session(self, name: str, index: int) -> Session:
        """One session of a split, read from its place in the file."""
        self.split(name)
        offsets = _load(self.directory / name / _SESSION_BYTES)
        path = self.directory / name / _SESSIONS
        with path.open("rb") as file:
            file.seek(int(offsets[index]))
            line = file.read(int(offsets[index + 1] - offsets[index])).decode("utf-8")
        return session_from_line(line, Place(path, index + 1))

    @property
    def segmenter_settings(self) -> tuple[str, Path | None]:
        """The name of the segmenter, and the directory of its model."""
        model = self.manifest.settings["segmenter_model"]
        return self.manifest.settings["segmenter"], None if model is None else self.directory / model

    @cached_property
    def segmenter(self) -> Segmenter:
        return open_segmenter(*self.segmenter_settings)

    @cached_property
    def linker(self) -> Linker:
        return Linker(self.inventory.surfaces)

    @cached_property
    def encoder(self) -> TextEncoder:
        """Turns new text into the ids of this corpus, exactly as its own texts were."""
        return TextEncoder(self.linker, self.segmenter, self.vocabulary, self.characters)


def fingerprint_of(manifest: Manifest) -> str:
    """See `Corpus.fingerprint`."""
    files = manifest.files
    shared = [_INVENTORY, _WORDS, _CHARACTERS, *(name for name in files if name.startswith(f"{GRAPH}/"))]
    listing = "\n".join(f"{name} {files[name]['sha256']}" for name in sorted(shared))
    return hashlib.sha256(listing.encode()).hexdigest()


def write_knowledge(
    directory: Path, inventory: Inventory, graph: Graph, words: tuple[str, ...], characters: CharacterVocabulary
) -> None:
    """Writes what all splits share."""
    inventory.save(directory / _INVENTORY)
    _write_json(directory / _WORDS, list(words))
    _write_json(directory / _CHARACTERS, characters.characters)
    graph.save(directory / GRAPH)


def copy_knowledge(source: Corpus, directory: Path) -> None:
    """Copies what all splits share from another corpus, byte for byte."""
    for name in (_INVENTORY, _WORDS, _CHARACTERS):
        shutil.copyfile(source.directory / name, directory / name)
    shutil.copytree(source.directory / GRAPH, directory / GRAPH, copy_function=shutil.copyfile)


def write_split(directory: Path, split: Split, lines: list[bytes]) -> None:
    """Writes a split; `lines` are its sessions in the canonical format, one each, with their line ends."""
    directory.mkdir()
    (directory / _SESSIONS).write_bytes(b"".join(lines))
    _write_json(directory / _SESSION_IDS, list(split.session_ids))
    np.save(directory / _SESSION_BYTES, np.cumsum([0, *map(len, lines)], dtype=np.int64))
    for name, array in split.arrays().items():
        np.save(directory / f"{name}.npy", array)


def _read_split(directory: Path) -> Split:
    def load(kind: type[EncodedTexts] | type[Labels]) -> dict[str, NDArray[Any]]:
        return {field.name: _load(directory / f"{field.name}.npy") for field in fields(kind)}

    return Split(
        session_ids=tuple(_read_json(directory / _SESSION_IDS)),
        session_offsets=_load(directory / "session_offsets.npy"),
        texts=EncodedTexts(**load(EncodedTexts)),
        labels=Labels(**load(Labels)),
    )


def _load(path: Path) -> NDArray[Any]:
    array: NDArray[Any] = np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
    return array


def _read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _write_json(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, ensure_ascii=False, separators=(",", ":")), encoding="utf-8", newline="\n")
