"""Reading sessions into pieces and labels, here or on several workers, with the same result in the same order."""

from __future__ import annotations

import json
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import orjson
from numpy.typing import NDArray

from vrbot.dialogue.encoding import Pieces, merge_pieces, read_pieces
from vrbot.dialogue.ragged import offsets_of, places_between
from vrbot.dialogue.segment import Segmenter, open_segmenter
from vrbot.dialogue.session import CATEGORIES, Session
from vrbot.dialogue.splits import Labels
from vrbot.errors import UsageError
from vrbot.knowledge.entities import Inventory
from vrbot.knowledge.linking import Linker

CHUNK_SESSIONS = 500


@dataclass(frozen=True)
class ReadSessions:
    """Sessions, read: ids, turns of each, canonical lines, texts in pieces, labels, and labels no entity answers to."""

    session_ids: tuple[str, ...]
    num_turns: NDArray[np.int64]
    lines: list[bytes]
    pieces: Pieces
    labels: Labels
    unlinked: Counter[str]


class SessionReader:
    """Reads sessions with the linker of an inventory and a segmenter; travels to workers by its settings alone."""

    def __init__(self, inventory: Inventory, segmenter: str, model: Path | None) -> None:
        self.inventory, self.segmenter_name, self.segmenter_model = inventory, segmenter, model

    def __reduce__(self) -> tuple[Any, ...]:
        return SessionReader, (self.inventory, self.segmenter_name, self.segmenter_model)

    @cached_property
    def linker(self) -> Linker:
        return Linker(self.inventory.surfaces)

    @cached_property
    def segmenter(self) -> Segmenter:
        return open_segmenter(self.segmenter_name, self.segmenter_model)

    def read(self, sessions: Sequence[Session]) -> ReadSessions:
        """Reads sessions; their texts in the order patient, physician, turn by turn."""
        texts = [text for session in sessions for turn in session.turns for text in (turn.patient, turn.physician)]
        unlinked: Counter[str] = Counter()
        return ReadSessions(
            session_ids=tuple(session.id for session in sessions),
            num_turns=np.array([len(session.turns) for session in sessions], dtype=np.int64),
            lines=[_line_of(session) for session in sessions],
            pieces=read_pieces(texts, self.linker, self.segmenter),
            labels=self._labels(sessions, unlinked),
            unlinked=unlinked,
        )

    def _labels(self, sessions: Sequence[Session], unlinked: Counter[str]) -> Labels:
        turns = [turn for session in sessions for turn in session.turns]
        actions = [turn.action for turn in turns]
        keywords = [None if action is None else action.keywords for action in actions]
        categories = [None if action is None else action.category for action in actions]
        state_entities, state_offsets, state_known = self._entity_lists([turn.state for turn in turns], unlinked)
        keyword_entities, keyword_offsets, keywords_known = self._entity_lists(keywords, unlinked)
        category = [-1 if name is None else CATEGORIES.index(name) for name in categories]
        return Labels(
            state_entities=state_entities,
            state_offsets=state_offsets,
            state_known=state_known,
            category=np.array(category, dtype=np.int8),
            keyword_entities=keyword_entities,
            keyword_offsets=keyword_offsets,
            keywords_known=keywords_known,
        )

    def _entity_lists(
        self, labels: Sequence[tuple[str, ...] | None], unlinked: Counter[str]
    ) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.bool_]]:
        """Entities of every turn, each once and in order; where each turn's begin; which turns are labelled."""
        number: defaultdict[str, int] = defaultdict()
        number.default_factory = number.__len__
        given = np.array([number[name] for names in labels for name in names or ()], dtype=np.int64)
        turn = np.repeat(np.arange(len(labels)), [len(names or ()) for names in labels])
        meanings = [self.inventory.ids_of(name) for name in number]
        occurrences = np.bincount(given, minlength=len(number)).tolist()
        unlinked.update({n: k for n, k, ids in zip(number, occurrences, meanings, strict=True) if not ids})
        starts = offsets_of(np.array([len(ids) for ids in meanings], dtype=np.int64))
        places = places_between(starts[given], starts[given + 1])
        entities = np.array([entity for ids in meanings for entity in ids], dtype=np.int64)[places.index]
        turn = turn[places.row]
        first = np.sort(np.unique(turn * len(self.inventory) + entities, return_index=True)[1])
        known = np.array([names is not None for names in labels], dtype=np.bool_)
        counts = np.bincount(turn[first], minlength=len(labels))
        return entities[first].astype(np.int32), offsets_of(counts), known


def _line_of(session: Session) -> bytes:
    """The session in the canonical format; it was read, and so checked, a moment ago."""
    turns = [
        {
            "patient": turn.patient,
            "physician": turn.physician,
            "state": turn.state,
            "action": None if turn.action is None else vars(turn.action),
        }
        for turn in session.turns
    ]
    record = {"id": session.id, **session.extra, "turns": turns}
    try:
        return orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE)
    except TypeError:  # whole numbers past 64 bits, which only the slow writer knows
        return f"{_WRITER.encode(record)}\n".encode()


_WRITER = json.JSONEncoder(ensure_ascii=False, allow_nan=False)


def merge_sessions(parts: Sequence[ReadSessions]) -> ReadSessions:
    """All parts as one, in their order."""
    return ReadSessions(
        session_ids=tuple(name for part in parts for name in part.session_ids),
        num_turns=np.concatenate([np.zeros(0, dtype=np.int64), *(part.num_turns for part in parts)]),
        lines=[line for part in parts for line in part.lines],
        pieces=merge_pieces([part.pieces for part in parts]),
        labels=_merge_labels([part.labels for part in parts]),
        unlinked=sum((part.unlinked for part in parts), Counter()),
    )


def _merge_labels(parts: Sequence[Labels]) -> Labels:
    def joined(name: str, kind: type[np.generic]) -> NDArray[Any]:
        return np.concatenate([np.zeros(0, dtype=kind), *(getattr(part, name) for part in parts)])

    def joined_offsets(name: str) -> NDArray[np.int64]:
        return offsets_of(
            np.concatenate([np.zeros(0, dtype=np.int64), *(np.diff(getattr(part, name)) for part in parts)])
        )

    return Labels(
        state_entities=joined("state_entities", np.int32),
        state_offsets=joined_offsets("state_offsets"),
        state_known=joined("state_known", np.bool_),
        category=joined("category", np.int8),
        keyword_entities=joined("keyword_entities", np.int32),
        keyword_offsets=joined_offsets("keyword_offsets"),
        keywords_known=joined("keywords_known", np.bool_),
    )


ReadAll = Callable[[Iterable[tuple[str, Session]]], Iterator[tuple[str, ReadSessions]]]
"""Reads a stream of sessions, each with the name of its split, in chunks of one split, in their order."""


@contextmanager
def open_readers(reader: SessionReader, workers: int = 1, dask: str | Any | None = None) -> Iterator[ReadAll]:
    """Reads in this process, on `workers` processes, or on the Dask cluster at an address (or of a client)."""
    if dask is not None:
        with _dask_client(dask) as client:
            shared = client.scatter(reader, broadcast=True)
            yield _in_order(lambda chunk: client.submit(SessionReader.read, shared, chunk, pure=False), ahead=16)
    elif workers > 1:
        pool = ProcessPoolExecutor(workers, get_context("spawn"), initializer=_start_worker, initargs=(reader,))
        with pool:
            yield _in_order(lambda chunk: pool.submit(_read_on_worker, chunk), ahead=2 * workers)
    else:
        yield lambda sessions: ((split, reader.read(chunk)) for split, chunk in _chunks(sessions))


class _Future(Protocol):
    def result(self) -> ReadSessions: ...


def _in_order(submit: Callable[[list[Session]], _Future], ahead: int) -> ReadAll:
    """Keeps at most `ahead` chunks under way, so that memory does not grow with the source."""

    def read_all(sessions: Iterable[tuple[str, Session]]) -> Iterator[tuple[str, ReadSessions]]:
        waiting: deque[tuple[str, _Future]] = deque()
        for split, chunk in _chunks(sessions):
            waiting.append((split, submit(chunk)))
            if len(waiting) >= ahead:
                first, future = waiting.popleft()
                yield first, future.result()
        for first, future in waiting:
            yield first, future.result()

    return read_all


def _chunks(sessions: Iterable[tuple[str, Session]]) -> Iterator[tuple[str, list[Session]]]:
    begun: dict[str, list[Session]] = {}
    for split, session in sessions:
        chunk = begun.setdefault(split, [])
        chunk.append(session)
        if len(chunk) == CHUNK_SESSIONS:
            yield split, begun.pop(split)
    yield from begun.items()


_worker_reader: SessionReader | None = None


def _start_worker(reader: SessionReader) -> None:
    global _worker_reader
    _worker_reader = reader


def _read_on_worker(sessions: list[Session]) -> ReadSessions:
    assert _worker_reader is not None
    return _worker_reader.read(sessions)


@contextmanager
def _dask_client(address: str | Any) -> Iterator[Any]:
    """A client for the address, closed at the end; a client that was passed in is left open."""
    if not isinstance(address, str):
        yield address
        return
    try:
        from distributed import Client
    except ImportError as error:
        raise UsageError("Dask is not installed: pip install 'vrbot[dask]'") from error
    try:
        client = Client(address, timeout="10s")
    except (OSError, ValueError) as error:
        raise UsageError(f"no Dask scheduler answers at {address}: {error}: check --dask ADDRESS") from error
    with client:
        yield client
