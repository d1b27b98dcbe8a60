"""A real PostgreSQL on this machine for the tests: its own folder, port and unprivileged user, gone afterwards."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

SERVANTS = ("postgres", "nobody")
PATIENCE_SECONDS = 60


@dataclass
class Server:
    """A running server; databases are made from one that has the tables already."""

    port: int
    made: int = 0

    def url(self, name: str) -> str:
        return f"postgresql+psycopg://desk@127.0.0.1:{self.port}/{name}"

    def new_database(self, template: str = "template1") -> str:
        """The URL of a database nobody has used."""
        self.made += 1
        name = f"desk{self.made}"
        with self.administer() as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        return self.url(name)

    @contextmanager
    def administer(self) -> Iterator[psycopg.Connection[Any]]:
        address = f"host=127.0.0.1 port={self.port} user=desk dbname=postgres connect_timeout=10"
        with psycopg.connect(address, autocommit=True) as connection:
            yield connection


@contextmanager
def running_postgres(initdb: Path, postgres: Path) -> Iterator[Server]:
    """A server from its first file to its last."""
    servant = _servant()
    folder = Path(tempfile.mkdtemp(prefix="vrbot-postgres-"))
    try:
        if servant:
            os.chown(folder, servant.pw_uid, servant.pw_gid)
        as_servant: dict[str, Any] = {"cwd": folder}
        if servant:
            as_servant |= {"user": servant.pw_uid, "group": servant.pw_gid, "extra_groups": []}
        make: list[str | Path] = [
            initdb,
            "-D",
            folder / "data",
            "-U",
            "desk",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--locale=C",
            "--no-sync",
        ]
        subprocess.run(make, check=True, capture_output=True, **as_servant)
        port = _free_port()
        settings = {"listen_addresses": "127.0.0.1", "port": port, "unix_socket_directories": "", "fsync": "off"}
        serve: list[str | Path] = [
            postgres,
            "-D",
            folder / "data",
            *(f"--{name}={value}" for name, value in settings.items()),
        ]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(serve, stdout=log, stderr=log, **as_servant)
        try:
            server = Server(port)
            _wait_for(server, process, folder / "log")
            yield server
        finally:
            process.send_signal(signal.SIGQUIT)  # at once: nothing here is worth keeping
            process.wait(PATIENCE_SECONDS)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _servant() -> pwd.struct_passwd | None:
    """Whom the server runs as: PostgreSQL refuses to run as root."""
    if os.getuid() != 0:
        return None
    known = {entry.pw_name: entry for entry in pwd.getpwall()}
    return next(known[name] for name in SERVANTS if name in known)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(server: Server, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            with server.administer():
                return
        except psycopg.OperationalError:
            if process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"PostgreSQL did not start: {log.read_text(errors='replace')[-2000:]}") from None
            time.sleep(0.05)
