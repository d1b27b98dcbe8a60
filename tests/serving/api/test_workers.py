"""Real processes on real ports: overload, drain, and the sudden end of one of two workers."""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import psutil

from tests.serving.api.served import V1, wait_for
from tests.serving.api.workers import Workers, running
from tests.serving.postgres import Server
from vrbot.serving.audit import verify
from vrbot.serving.queries import turns_of
from vrbot.serving.store import Store


def opened(workers: Workers) -> str:
    return str(httpx.post(f"{workers.address}{V1}/consultations", json={"language": "en"}, timeout=30).json()["id"])


def said(client: httpx.Client, consultation: str, name: str, text: str) -> httpx.Response:
    return client.post(f"{V1}/consultations/{consultation}/turns", json={"client_turn_id": name, "text": text})


class Gate:
    """Lets the model answer, or not."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "gate"
        self.open()

    def open(self) -> None:
        self.file.touch()

    def close(self) -> None:
        self.file.unlink()


def status(workers: Workers, turn: str) -> Any:
    """Of asking for a draft; the name of the error if there was no answer at all."""
    try:
        return httpx.post(f"{workers.address}{V1}/turns/{turn}/drafts", timeout=120).status_code
    except httpx.TransportError as error:
        return type(error).__name__


def waiting(client: httpx.Client, count: int) -> bool:
    return f"vrbot_drafts_waiting {count}.0" in client.get("/metrics").text


def test_overload_is_answered_with_429_at_once_and_nobody_who_was_let_in_is_lost(tmp_path: Path) -> None:
    gate, database = Gate(tmp_path), str(tmp_path / "desk.sqlite")
    with running(database, PARROT_GATE=str(gate.file)) as workers:
        consultation = opened(workers)
        with httpx.Client(base_url=workers.address, timeout=60) as client, ThreadPoolExecutor(30) as pool:
            turns = [said(client, consultation, f"t{number}", "x").json()["id"] for number in range(30)]
            gate.close()
            asked = [pool.submit(status, workers, turn) for turn in turns]
            wait_for(lambda: sum(each.done() for each in asked) == 22)
            assert waiting(client, 8)
            assert said(client, consultation, "while-it-is-full", "y").status_code == 200
            gate.open()
            statuses = Counter(each.result() for each in asked)
    assert statuses == {200: 8, 429: 22}
    store = Store.open(database)
    with store.reading() as connection:
        assert len(turns_of(connection, consultation)) == 31
        assert connection.exec_driver_sql("SELECT COUNT(DISTINCT turn) FROM drafts").scalar_one() == 8
    assert verify(store).good
    store.close()


def test_a_drain_finishes_what_is_under_way_and_tells_others_503(tmp_path: Path) -> None:
    gate = Gate(tmp_path)
    with running(str(tmp_path / "desk.sqlite"), PARROT_GATE=str(gate.file)) as workers:
        consultation = opened(workers)
        with httpx.Client(base_url=workers.address, timeout=60) as client, ThreadPoolExecutor(4) as pool:
            turns = [said(client, consultation, f"t{number}", "slow").json()["id"] for number in range(4)]
            gate.close()
            slow = [pool.submit(status, workers, turn) for turn in turns]
            wait_for(lambda: waiting(client, 4))
            workers.terminate()
            wait_for(lambda: client.get("/readyz").status_code == 503)
            refused = client.post(f"{V1}/consultations", json={})
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
            assert client.get("/livez").status_code == 200
            gate.open()
            assert [each.result() for each in slow] == [200] * 4
        assert workers.process.wait(60) == 0


def test_one_of_two_workers_killed_loses_no_turn_that_was_acknowledged(postgres: Server) -> None:
    database = postgres.new_database("ready")
    with running(database, workers=2) as workers:
        wait_for(lambda: len(workers.children()) == 2)
        consultations = [opened(workers) for _ in range(4)]
        acknowledged: list[tuple[str, str, bytes]] = []
        done = threading.Event()

        def talk(consultation: str) -> None:
            number = 0
            while not done.is_set():
                try:
                    with httpx.Client(base_url=workers.address, timeout=30) as client:
                        answer = said(client, consultation, f"t{number}", f"{consultation} says {number}")
                except httpx.TransportError:
                    continue  # the same again: a retry is safe
                if answer.status_code == 200:
                    acknowledged.append((consultation, answer.json()["client_turn_id"], answer.content))
                    number += 1

        with ThreadPoolExecutor(4) as pool:
            talks = [pool.submit(talk, consultation) for consultation in consultations]
            wait_for(lambda: len(acknowledged) > 20)
            os.kill(workers.children()[0], signal.SIGKILL)
            before = len(acknowledged)
            wait_for(lambda: len(acknowledged) > before + 20)
            done.set()
            for each in talks:
                each.result()
    store = Store.open(database)
    with store.reading() as connection:
        for consultation in consultations:
            stored = {turn.client_turn_id: turn for turn in turns_of(connection, consultation)}
            assert [turn.seq for turn in stored.values()] == list(range(1, len(stored) + 1))
            for owner, name, content in acknowledged:
                if owner == consultation:
                    assert stored[name].to_json() == content
    assert verify(store).good
    store.close()


def test_workers_end_when_the_process_that_started_them_is_killed(tmp_path: Path) -> None:
    with running(str(tmp_path / "desk.sqlite"), workers=2) as workers:
        wait_for(lambda: len(workers.children()) == 2)
        children = [psutil.Process(child) for child in workers.children()]
        workers.process.kill()
        wait_for(lambda: not any(child.is_running() for child in children))
