"""Consultations all at once against `vrbot serve`: `python -m benchmarks.load RUN [--corpus DIR] [--json FILE]`.

Every consultation is a patient and a physician who take turns: a turn is stored, drafted and approved; then they
think. A turn's time is from the patient's words to the draft. Afterwards the database is read: every acknowledged turn
must be there, once, byte for byte, in order, with nothing of another consultation in it. With `--database` (PostgreSQL)
and `--workers 2 --kill` one worker is killed by SIGKILL in the middle; clients try again, and nothing may be lost.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import psutil

from vrbot.serving.audit import verify
from vrbot.serving.queries import turns_of
from vrbot.serving.store import Store

V1 = "/api/v1"
PATIENCE = 600.0
SAYINGS = ("我咳嗽三天了，有点发烧。", "没有。", "头痛，还恶心。", "需要吃什么药吗？", "谢谢医生。", "肚子疼，拉肚子。")


@dataclass
class Figures:
    """What the clients saw."""

    seconds: list[float] = field(default_factory=list)
    storing: list[float] = field(default_factory=list)
    statuses: Counter[str] = field(default_factory=Counter)
    acknowledged: list[tuple[str, str, bytes]] = field(default_factory=list)
    failures: int = 0


async def insist(client: httpx.AsyncClient, figures: Figures, path: str, body: Any = None) -> httpx.Response:
    """The answer, once there is a good one: what was refused or broke off is asked for again."""
    while True:
        try:
            answer = await client.post(V1 + path, json={} if body is None else body)
            figures.statuses[str(answer.status_code)] += 1
            if answer.status_code < 300:
                return answer
            if answer.status_code not in (429, 503):
                raise RuntimeError(f"{path}: {answer.status_code}: {answer.text[:300]}")
            await asyncio.sleep(float(answer.headers.get("retry-after", "1")))
        except httpx.TransportError as error:
            figures.statuses[type(error).__name__] += 1
            await asyncio.sleep(0.1)


async def consult(client: httpx.AsyncClient, number: int, args: argparse.Namespace, figures: Figures) -> str:
    """One consultation from its first word to its last."""
    chance = random.Random(number)
    opening = {"language": "zh", "client_consultation_id": uuid.uuid4().hex}
    key = str((await insist(client, figures, "/consultations", opening)).json()["id"])
    await asyncio.sleep(chance.random() * args.think)
    for turn in range(args.turns):
        began = time.perf_counter()
        body = {"client_turn_id": f"t{turn}", "text": f"{chance.choice(SAYINGS)} [{number}]"}
        said = await insist(client, figures, f"/consultations/{key}/turns", body)
        figures.storing.append(time.perf_counter() - began)
        figures.acknowledged.append((key, body["client_turn_id"], said.content))
        draft = (await insist(client, figures, f"/turns/{said.json()['id']}/drafts")).json()
        figures.seconds.append(time.perf_counter() - began)
        if draft["failure"] is not None:
            figures.failures += 1
            continue
        newest = said.json()["seq"]
        seen = {"seen_sha256": draft["text_sha256"], "seen_turn": newest, "override_reason": "load"}
        await insist(client, figures, f"/drafts/{draft['id']}/approve", seen)
        await asyncio.sleep(args.think * (0.5 + chance.random()))
    return key


async def load(address: str, args: argparse.Namespace, server: int) -> tuple[Figures, float]:
    figures = Figures()
    limits = httpx.Limits(max_connections=args.consultations, max_keepalive_connections=args.consultations)
    async with httpx.AsyncClient(base_url=address, timeout=120, limits=limits) as client:
        began = time.perf_counter()
        talks = [asyncio.create_task(consult(client, number, args, figures)) for number in range(args.consultations)]
        if args.kill:
            while len(figures.seconds) < args.consultations * args.turns // 3:
                await asyncio.sleep(0.1)
            os.kill(workers_of(server)[0], signal.SIGKILL)
            figures.statuses["workers killed"] += 1
        await asyncio.gather(*talks)
        return figures, time.perf_counter() - began


def cpu_seconds_of(server: int) -> float:
    """What the server and its workers have computed; of a worker that was killed, the one in its place is counted."""
    process = psutil.Process(server)
    times = [each.cpu_times() for each in (process, *process.children(recursive=True))]
    return sum(each.user + each.system for each in times)


def workers_of(server: int) -> list[int]:
    children = psutil.Process(server).children()
    return [child.pid for child in children if "resource_tracker" not in " ".join(child.cmdline())]


def lost_turns(database: str, figures: Figures) -> dict[str, Any]:
    """What the database has of what was acknowledged."""
    store = Store.open(database)
    lost = disordered = foreign = 0
    with store.reading() as connection:
        for key in {key for key, _, _ in figures.acknowledged}:
            stored = turns_of(connection, key)
            by_name = {turn.client_turn_id: turn for turn in stored}
            disordered += [turn.seq for turn in stored] != list(range(1, len(stored) + 1))
            foreign += len({turn.text.rpartition("[")[2] for turn in stored}) != 1
            for owner, name, content in figures.acknowledged:
                lost += owner == key and (name not in by_name or by_name[name].to_json() != content)
    good = verify(store).good
    store.close()
    return {"lost": lost, "out_of_order": disordered, "mixed_up": foreign, "audit_good": good}


def start(args: argparse.Namespace, database: str, folder: Path) -> tuple[subprocess.Popen[str], str]:
    command = [sys.executable, "-c", "from vrbot.cli.main import main; main()", "serve", str(args.run.resolve())]
    command += ["--port", "0", "--demo", "--no-console", "--database", database, "--state", str(folder)]
    command += ["--workers", str(args.workers), "--queue", str(args.queue)]
    if args.corpus is not None:
        command += ["--corpus", str(args.corpus.resolve())]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    address = line = ""
    for line in process.stderr:
        if " on http" in line:
            address = line.split(" on ")[1].split(" ")[0]
            break
    if not address:
        raise SystemExit(f"the server did not start (exit code {process.wait()}): {line.strip()}")
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            if httpx.get(f"{address}/readyz", timeout=10).status_code == 200:
                return process, address
        except httpx.TransportError:
            time.sleep(0.5)
        if process.poll() is not None:
            raise SystemExit(f"the server ended (exit code {process.returncode})")
    raise SystemExit("the server was not ready in time")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--corpus", type=Path)
    parser.add_argument("--consultations", type=int, default=50)
    parser.add_argument("--turns", type=int, default=4, help="of each consultation")
    parser.add_argument("--think", type=float, default=20.0, help="seconds between turns, on average")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--queue", type=int, default=64)
    parser.add_argument("--database", help="PostgreSQL; otherwise SQLite in a folder of its own")
    parser.add_argument("--postgres", action="store_true", help="start a PostgreSQL of its own, as the tests do")
    parser.add_argument("--kill", action="store_true", help="kill one worker in the middle")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    args = parser.parse_args()
    if args.postgres:
        from tests.real_data import needs_program
        from tests.serving.postgres import running_postgres

        with running_postgres(needs_program("initdb"), needs_program("postgres")) as server:
            args.database = server.new_database()
            report(args)
    else:
        report(args)


def report(args: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as place:
        database = args.database or str(Path(place) / "desk.sqlite")
        process, address = start(args, database, Path(place))
        try:
            before, computed = psutil.cpu_times(), cpu_seconds_of(process.pid)
            figures, seconds = asyncio.run(load(address, args, process.pid))
            after, computed = psutil.cpu_times(), cpu_seconds_of(process.pid) - computed
        finally:
            process.terminate()
            process.wait(60)
        found = {
            "run": args.run.name,
            "consultations": args.consultations,
            "turns": len(figures.seconds),
            "think_seconds": args.think,
            "workers": args.workers,
            "database": "postgresql" if args.database else "sqlite",
            "p50_seconds": round(float(np.quantile(figures.seconds, 0.5)), 3),
            "p95_seconds": round(float(np.quantile(figures.seconds, 0.95)), 3),
            "p95_seconds_until_stored": round(float(np.quantile(figures.storing, 0.95)), 3),
            "max_seconds": round(max(figures.seconds), 3),
            "turns_per_second": round(len(figures.seconds) / seconds, 2),
            "seconds": round(seconds, 1),
            "cpu_seconds_per_turn": round(computed / len(figures.seconds), 3),
            "idle_share_of_machine": round((after.idle - before.idle) / (seconds * (os.cpu_count() or 1)), 2),
            "statuses": dict(figures.statuses),
            "failed_drafts": figures.failures,
            **lost_turns(database, figures),
        }
    text = json.dumps(found, indent=2)
    if args.json is not None:
        args.json.write_text(text + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
