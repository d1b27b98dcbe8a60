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


def test_overload_gives_200_429_or_503_and_nothing_else_and_a_drain_finishes_what_is_under_way(tmp_path: Path) -> None:
    database = str(tmp_path / "desk.sqlite")
    with running(database, PARROT_SECONDS="0.05", QUEUE="8") as workers:
        consultation = opened(workers)
        with httpx.Client(base_url=workers.address, timeout=60) as client:
            turns = [said(client, consultation, f"t{number}", "x").json()["id"] for number in range(60)]

            def draft(turn: str) -> Any:
                try:
                    return client.post(f"{V1}/turns/{turn}/drafts").status_code
                except httpx.TransportError as error:
                    return type(error).__name__

            with ThreadPoolExecutor(40) as pool:
                statuses = Counter(pool.map(draft, turns))
            assert set(statuses) <= {200, 429, 503}
            assert statuses[200] >= 8
            assert statuses[429] >= 1

            with ThreadPoolExecutor(6) as pool:  # a drain in the middle of six drafts
                under_way = [
                    pool.submit(draft, said(client, consultation, f"d{n}", "y").json()["id"]) for n in range(6)
                ]
                metric = "vrbot_drafts_waiting 0.0"
                wait_for(lambda: metric not in httpx.get(f"{workers.address}/metrics").text)
                workers.terminate()
                late = client.get(f"{V1}/me")
                finished = [each.result() for each in under_way]
            assert late.status_code in (200, 503)
            assert set(finished) <= {200, 429, 503}
            assert workers.process.wait(60) == 0
    store = Store.open(database)
    with store.reading() as connection:
        stored = turns_of(connection, consultation)
        kept = connection.exec_driver_sql("SELECT COUNT(DISTINCT turn) FROM drafts").scalar_one()
    assert len(stored) == 66
    assert kept >= statuses[200] + finished.count(200)
    assert verify(store).good
    store.close()


def test_new_requests_hear_503_while_a_drain_waits_for_what_is_under_way(tmp_path: Path) -> None:
    with running(str(tmp_path / "desk.sqlite"), PARROT_SECONDS="2") as workers:
        consultation = opened(workers)
        with httpx.Client(base_url=workers.address, timeout=60) as client, ThreadPoolExecutor(1) as pool:
            turn = said(client, consultation, "t", "slow").json()["id"]
            slow = pool.submit(lambda: httpx.post(f"{workers.address}{V1}/turns/{turn}/drafts", timeout=60))
            wait_for(lambda: "vrbot_drafts_waiting 1.0" in client.get("/metrics").text)
            workers.terminate()
            wait_for(lambda: client.get("/readyz").status_code == 503)
            refused = client.post(f"{V1}/consultations", json={})
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
            assert client.get("/livez").status_code == 200
            assert slow.result().status_code == 200
        assert workers.process.wait(60) == 0


def test_one_of_two_workers_killed_loses_no_turn_that_was_acknowledged(postgres: Server) -> None:
    database = postgres.new_database("ready")
    with running(database, workers=2) as workers:
        wait_for(lambda: len(workers.children()) == 2)
        consultations = [opened(workers) for _ in range(4)]
        acknowledged: list[tuple[str, str, bytes]] = []
        killed = threading.Event()
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
            killed.set()
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
