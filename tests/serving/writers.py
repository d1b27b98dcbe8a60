"""Processes that write turns and acknowledge each one on a pipe only after it was stored."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from contextlib import closing
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NamedTuple

from tests.serving.fakes import ANN, PlainRules
from vrbot.serving.chain import FileWitness
from vrbot.serving.consultations import Consultations
from vrbot.serving.store import Store

Acknowledged = tuple[int, str, str]
"""Number, client's id and fingerprint of the text of a stored turn."""


class Writer(NamedTuple):
    process: BaseProcess
    pipe: Connection


def start_writer(address: str, consultation: str, name: str, count: int, witness: Any) -> Writer:
    """A process that writes `count` turns as fast as it can."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.serving.writers"])
    ours, theirs = context.Pipe(duplex=False)
    place = witness.path if isinstance(witness, FileWitness) else None
    process = context.Process(target=write_turns, args=(address, consultation, name, count, place, theirs))
    process.start()
    theirs.close()
    return Writer(process, ours)


def write_turns(address: str, consultation: str, name: str, count: int, witness: Path | None, pipe: Connection) -> None:
    """The life of a writer."""
    with closing(Store.open(address, witness=witness)) as store:
        desk = Consultations(store, PlainRules(), demo=False)
        for number in range(count):
            turn = desk.receive(ANN, consultation, f"{name}-{number}", f"\0{name} says {number} 次 " * 20)
            pipe.send((turn.seq, turn.client_turn_id, turn.text_sha256))


def heard(writer: Writer) -> Iterator[Acknowledged]:
    """What a writer acknowledged until its pipe ended; half a message counts as none."""
    while True:
        try:
            yield writer.pipe.recv()
        except (EOFError, OSError):
            return


def ended(writer: Writer) -> list[Acknowledged]:
    """All a writer acknowledged, once it has come to a good end."""
    found = list(heard(writer))
    writer.process.join()
    assert writer.process.exitcode == 0
    return found
