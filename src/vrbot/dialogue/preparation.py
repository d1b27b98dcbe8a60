"""From dialogues and knowledge in files to a prepared corpus: the same bytes whoever does the work."""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from itertools import chain
from pathlib import Path
from time import perf_counter
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from vrbot.dialogue.corpus import Corpus, copy_knowledge, fingerprint_of, write_knowledge, write_split
from vrbot.dialogue.encoding import write_pieces
from vrbot.dialogue.formats import SPLITS, ImportReport, guess_format, read_sessions, split_files
from vrbot.dialogue.manifest import A_CORPUS, MANIFEST, kind_of, write_manifest
from vrbot.dialogue.preparation_knowledge import (
    KnowledgeFiles,
    PreparedKnowledge,
    gather_knowledge,
    knowledge_of,
    well_named,
)
from vrbot.dialogue.preparation_report import NAMED_TIMES, PreparationReport, SplitCounts, count_split
from vrbot.dialogue.ragged import offsets_of
from vrbot.dialogue.reading import ReadSessions, SessionReader, merge_sessions, open_readers
from vrbot.dialogue.session import Session
from vrbot.dialogue.splits import Split
from vrbot.dialogue.vocabulary import (
    CharacterVocabulary,
    Vocabulary,
    build_characters,
    build_vocabulary,
    listed_vocabulary,
)
from vrbot.errors import DataError, UsageError, VRBotError
from vrbot.files import sha256_of, sync_folder

SPLIT_SHARES = {"train": 80, "valid": 10, "test": 10}
"""How one file is divided, in percent of its dialogues, by a hash of their ids."""


@dataclass(frozen=True)
class PreparationSettings:
    """How a corpus is made; `like` takes words, entities, graph and segmenter from another corpus."""

    format: str | None = None  # guessed where it is not given
    knowledge: KnowledgeFiles = field(default_factory=KnowledgeFiles)
    trust_aliases: bool = False  # people wrote them; else rows that cannot be right are dropped
    segmenter: str = "rjieba"
    segmenter_model: Path | None = None
    vocabulary_size: int = 30_000
    minimum_count: int = 2
    minimum_mentions: int = 0
    minimum_labelled: float = 0.0
    like: Path | None = None


DEFAULT_SETTINGS = PreparationSettings()


def prepare(
    source: Path,
    out: Path,
    settings: PreparationSettings = DEFAULT_SETTINGS,
    *,
    workers: int = 1,
    dask: str | Any | None = None,
    overwrite: bool = False,
    on_bad: Callable[[DataError], None] | None = None,
    on_progress: Callable[[int], None] | None = None,
) -> PreparationReport:
    """Prepares a corpus at `out`, whole or not at all; `source` is a folder with the splits, or one file to divide.

    `on_bad` gets dialogues that cannot be read, which else stop the work; `on_progress` is told how many more are read.
    """
    started = perf_counter()
    _check_use(out, settings, workers, overwrite)
    sources = _Sources.find(source, settings.format)
    like = None if settings.like is None else Corpus.open(settings.like, saved_model=True)
    trust = settings.trust_aliases
    knowledge = gather_knowledge(settings.knowledge, trust_aliases=trust) if like is None else knowledge_of(like)
    if settings.minimum_mentions > 0 or settings.minimum_labelled > 0:
        least, least_share = settings.minimum_mentions, settings.minimum_labelled
        knowledge = well_named(knowledge, sources.training(on_bad), least, least_share)
    reader = _reader(settings, knowledge, like)
    report = ImportReport()
    with open_readers(reader, workers, dask) as read_all:
        read = _gather(read_all(sources.sessions(on_bad, report)), on_progress)
    if not read["train"].session_ids and (like is None or not report.sessions):
        sources.refuse_empty(report)
    with _new_directory(out, overwrite) as directory:
        vocabulary, characters = _write_shared(directory, settings, knowledge, like, read["train"])
        counts, named = _write_splits(directory, vocabulary, characters, read)
        manifest = write_manifest(directory, _recorded(settings, reader, sources), _counted(counts, knowledge))
    return PreparationReport(
        splits=counts,
        knowledge=knowledge.counts,
        named={times: int((named >= times).sum()) for times in NAMED_TIMES},
        vocabulary=len(vocabulary),
        characters=len(characters),
        unlinked=sum((part.unlinked for part in read.values()), Counter()),
        skipped=report.skipped,
        repairs=report.as_dict()["repairs"],
        fingerprint=fingerprint_of(manifest),
        input_bytes=sources.num_bytes,
        seconds=perf_counter() - started,
    )


def _check_use(out: Path, settings: PreparationSettings, workers: int, overwrite: bool) -> None:
    if workers < 1:
        raise UsageError(f"at least one worker must do the work, got {workers}: use --workers 1 or more")
    if settings.like is not None and settings.knowledge != KnowledgeFiles():
        raise UsageError(
            "--like takes words and knowledge from the other corpus: leave out --graph and the other files"
        )
    if settings.like is not None and (settings.minimum_mentions or settings.minimum_labelled):
        raise UsageError(
            "--like takes the entities of the other corpus: leave out --minimum-mentions and --minimum-labelled"
        )
    if settings.trust_aliases and settings.knowledge.alias is None:
        raise UsageError("there are no aliases to trust: give them with --alias, or leave out --trust-aliases")
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return
    if not overwrite:
        raise UsageError(f"{out} already exists: choose another place, or replace it with --overwrite")
    kind = kind_of(out)
    if not (out / MANIFEST).is_file() or kind not in (None, A_CORPUS):
        found = "is" if kind in (None, A_CORPUS) else f"is {kind},"
        raise UsageError(f"{out} {found} not a prepared corpus and will not be replaced: choose another place")


@dataclass(frozen=True)
class _Sources:
    """The files with the dialogues: one for each split, or one that is to be divided (under the name "")."""

    format: str
    files: dict[str, Path]

    @classmethod
    def find(cls, source: Path, format: str | None) -> _Sources:
        if not source.exists():
            raise DataError(source, None, "source", "does not exist", "give a folder with the splits, or one file")
        format = guess_format(source) if format is None else format
        if source.is_dir() and not (format == "release" and any(source.glob("*.json"))):
            return cls(format, split_files(source, format))
        return cls(format, {"": source})

    @property
    def num_bytes(self) -> int:
        sizes = (
            path.stat().st_size for root in self.files.values() for path in [root, *root.rglob("*")] if path.is_file()
        )
        return sum(sizes)

    def hashes(self) -> dict[str, str]:
        """The SHA-256 of each source that is one file."""
        return {split or "all": sha256_of(path) for split, path in self.files.items() if path.is_file()}

    def sessions(
        self, on_bad: Callable[[DataError], None] | None, report: ImportReport
    ) -> Iterator[tuple[str, Session]]:
        """Every session with the name of its split; no two have one id, whatever their splits."""
        seen: dict[str, Path] = {}
        for split, path in self.files.items():
            for session in read_sessions(path, self.format, on_bad=on_bad, report=report, seen=seen):
                yield split or split_of(session.id), session

    def training(self, on_bad: Callable[[DataError], None] | None) -> Iterator[Session]:
        """The sessions of the training split; what cannot be read is complained about when everything is read."""
        passed_over, report = None if on_bad is None else lambda error: None, ImportReport()
        found = (session for split, session in self.sessions(passed_over, report) if split == "train")
        first = next(found, None)
        if first is None:
            self.refuse_empty(report)
        return chain([first], found)

    def refuse_empty(self, report: ImportReport) -> NoReturn:
        """Complains that nothing was found to learn from."""
        file = self.files.get("train", next(iter(self.files.values())))
        if "" in self.files and report.sessions:
            way_out = "add more, or give a folder with train, valid and test"
            raise VRBotError(f"{file}: holds no dialogues for training: {way_out}")
        skipped = f" ({report.skipped:,} of the source skipped)" if report.skipped else ""
        raise VRBotError(f"{file}: holds no dialogues{skipped}: give a file with at least one")


def split_of(session_id: str) -> str:
    """The split a session of an undivided file falls into: always the same for the same id."""
    place = int.from_bytes(hashlib.sha256(session_id.encode()).digest()[:8], "big") % 100
    for split, share in SPLIT_SHARES.items():
        if place < share:
            return split
        place -= share
    raise AssertionError("the shares make up 100")


def _reader(settings: PreparationSettings, knowledge: PreparedKnowledge, like: Corpus | None) -> SessionReader:
    name, model = settings.segmenter, settings.segmenter_model
    if like is not None:
        name, model = like.segmenter_settings
    reader = SessionReader(knowledge.inventory, name, None if model is None else model.resolve())
    reader.segmenter.cut("")  # a segmenter that is missing complains here, before the work
    return reader


def _gather(
    parts: Iterable[tuple[str, ReadSessions]], on_progress: Callable[[int], None] | None
) -> dict[str, ReadSessions]:
    found: dict[str, list[ReadSessions]] = {split: [] for split in SPLITS}
    for split, part in parts:
        found[split].append(part)
        if on_progress is not None:
            on_progress(len(part.session_ids))
    return {split: merge_sessions(parts) for split, parts in found.items()}


def _write_shared(
    directory: Path,
    settings: PreparationSettings,
    knowledge: PreparedKnowledge,
    like: Corpus | None,
    train: ReadSessions,
) -> tuple[Vocabulary, CharacterVocabulary]:
    """Writes words, characters, entities and graph: the other corpus's, or built on the training split."""
    if like is not None:
        copy_knowledge(like, directory)
        return like.vocabulary, like.characters
    inventory = knowledge.inventory
    if knowledge.word_list is not None:
        words = listed_vocabulary(knowledge.word_list.words, inventory.names)
    else:
        counts = train.pieces.word_counts()
        words = build_vocabulary(counts, inventory.names, settings.vocabulary_size, settings.minimum_count)
    characters = build_characters(train.pieces.codes)
    write_knowledge(directory, inventory, knowledge.graph, words, characters)
    return Vocabulary(words, inventory.names, inventory.surfaces), characters


def _write_splits(
    directory: Path, vocabulary: Vocabulary, characters: CharacterVocabulary, read: dict[str, ReadSessions]
) -> tuple[dict[str, SplitCounts], NDArray[np.int64]]:
    """What each split holds, and how often the training texts mention each entity [E]."""
    counts, named = {}, np.zeros(len(vocabulary.entity_word), dtype=np.int64)
    for name, sessions in read.items():
        split = Split(
            session_ids=sessions.session_ids,
            session_offsets=offsets_of(sessions.num_turns),
            texts=write_pieces(sessions.pieces, vocabulary, characters),
            labels=sessions.labels,
        )
        write_split(directory / name, split, sessions.lines)
        counts[name] = count_split(split)
        if name == "train":
            named = np.bincount(split.texts.mention_entities, minlength=len(named))
    return counts, named


def _recorded(settings: PreparationSettings, reader: SessionReader, sources: _Sources) -> dict[str, Any]:
    """The settings as the manifest keeps them, files by their hash; the model of a segmenter alone by its path, from
    which `Corpus.segmenter` opens it again."""
    model = reader.segmenter_model
    return {
        "format": sources.format,
        "segmenter": reader.segmenter_name,
        "segmenter_model": None if model is None else str(model),
        "vocabulary_size": settings.vocabulary_size,
        "minimum_count": settings.minimum_count,
        "minimum_mentions": settings.minimum_mentions,
        "minimum_labelled": settings.minimum_labelled,
        "trust_aliases": settings.trust_aliases,
        "knowledge": settings.knowledge.hashes(),
        "sources": sources.hashes(),
    }


def _counted(counts: dict[str, SplitCounts], knowledge: PreparedKnowledge) -> dict[str, Any]:
    return {"splits": {name: asdict(split) for name, split in counts.items()}, "knowledge": asdict(knowledge.counts)}


@contextmanager
def _new_directory(out: Path, overwrite: bool) -> Iterator[Path]:
    """A directory that takes its place at `out` only when the block ends without an exception."""
    out = Path(os.path.abspath(out))
    out.parent.mkdir(parents=True, exist_ok=True)
    mark = secrets.token_hex(8)
    draft, former = out.with_name(f".{out.name}.{mark}.tmp"), out.with_name(f".{out.name}.{mark}.old")
    draft.mkdir()
    try:
        yield draft
        if overwrite and out.exists():
            out.rename(former)
        os.replace(draft, out)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        if former.exists() and not out.exists():
            former.rename(out)
        raise
    shutil.rmtree(former, ignore_errors=True)
    sync_folder(out.parent)
