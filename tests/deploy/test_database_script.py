"""The script that starts the database of the containers, run for real in a folder of its own."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.deployment import DATABASE
from tests.real_data import needs_program

PATIENCE_SECONDS = 60


@dataclass(frozen=True)
class Place:
    """Where the script works in a test, as which user, with whose programs."""

    folder: Path
    programs: Path
    user: pwd.struct_passwd

    @contextmanager
    def started(self) -> Iterator[None]:
        """The database while it runs; it must end in good order when it is interrupted."""
        script = DATABASE.read_text("utf-8").replace("/var/lib/postgresql", str(self.folder / "kept"))
        script = script.replace("/run/postgresql", str(self.folder / "socket"))
        with (self.folder / "log").open("ab") as log:
            process = subprocess.Popen(["sh", "-c", script], stdout=log, stderr=log, **self._as_owner())
        try:
            self._wait_for(process)
            yield
        finally:
            process.send_signal(signal.SIGINT)
            code = process.wait(PATIENCE_SECONDS)
        assert code == 0

    def ask(self, role: str, question: str, *, by_owner: bool = True) -> subprocess.CompletedProcess[str]:
        """What psql says, asked by the owner of the database or by whoever runs the tests."""
        where = ["-h", str(self.folder / "socket"), "-U", role, "-d", "desk"]
        command = [str(needs_program("psql")), *where, "-Atc", question]
        settings: dict[str, Any] = self._as_owner() if by_owner else {"cwd": self.folder}
        return subprocess.run(command, capture_output=True, text=True, check=False, **settings)

    def _as_owner(self) -> dict[str, Any]:
        surroundings = {"PATH": f"{self.programs}:/usr/bin:/bin", "LC_ALL": "C"}
        owner = {"user": self.user.pw_uid, "group": self.user.pw_gid, "extra_groups": []}
        return {"cwd": self.folder, "env": surroundings, **owner}

    def _wait_for(self, process: subprocess.Popen[bytes]) -> None:
        end = time.monotonic() + PATIENCE_SECONDS
        while self.ask("postgres", "SELECT 1").returncode:
            if process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"it did not start: {(self.folder / 'log').read_text('utf-8')[-2000:]}")
            time.sleep(0.1)


@pytest.fixture
def place() -> Iterator[Place]:
    """A short path, since that of a socket may not be long."""
    programs = needs_program("initdb").resolve().parent
    if os.getuid() != 0 or "postgres" not in {entry.pw_name for entry in pwd.getpwall()}:
        pytest.skip("only root can start it as the user postgres")
    folder, user = Path(tempfile.mkdtemp(prefix="vrbot-")), pwd.getpwnam("postgres")
    for path in (folder, folder / "kept", folder / "socket"):
        path.mkdir(exist_ok=True)
        path.chmod(0o755)
        os.chown(path, user.pw_uid, user.pw_gid)
    try:
        yield Place(folder, programs, user)
    finally:
        shutil.rmtree(folder)


def test_the_database_is_made_once_and_whole_and_lets_nobody_in_under_another_name(place: Place) -> None:
    (place.folder / "kept" / "data.new").mkdir()
    (place.folder / "kept" / "data.new" / "half").write_text("what a power cut left behind", "utf-8")
    os.chown(place.folder / "kept" / "data.new", place.user.pw_uid, place.user.pw_gid)
    with place.started():
        owner = "SELECT pg_get_userbyid(datdba), pg_encoding_to_char(encoding) FROM pg_database WHERE datname = 'desk'"
        assert place.ask("postgres", owner).stdout == "desk|UTF8\n"
        assert place.ask("postgres", "SELECT rolsuper FROM pg_roles WHERE rolname = 'desk'").stdout == "f\n"
        assert place.ask("postgres", "SHOW listen_addresses; SHOW data_checksums").stdout == "\non\n"
        stranger = place.ask("desk", "SELECT 1", by_owner=False)
        assert "Peer authentication failed" in stranger.stderr
        assert place.ask("postgres", "CREATE TABLE kept AS SELECT 7 AS value").returncode == 0
    with place.started():
        assert place.ask("postgres", "SELECT value FROM kept").stdout == "7\n"
    assert [path.name for path in (place.folder / "kept").iterdir()] == ["data"]
