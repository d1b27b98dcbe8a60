"""`vrbot serve`: a run on a port, and one-line errors before anything is loaded."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.agent.conftest import make_agent, run, tiny_corpus
from tests.serving.api.served import wait_for
from vrbot.cli.main import run as vrbot
from vrbot.serving.running import files_beside, kept_secret

__all__ = ["make_agent", "run", "tiny_corpus"]

PASSWORD = "a long password"


def one_line(capsys: pytest.CaptureFixture[str]) -> str:
    seen = capsys.readouterr().err
    assert seen.count("\n") == 1
    return seen


def test_what_cannot_be_served_is_said_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").write_text("{}")
    assert vrbot(["serve", "nowhere"]) == 2
    assert "nowhere is neither a saved model nor a run" in one_line(capsys)
    assert list(tmp_path.glob("desk*")) == []
    assert vrbot(["serve", "run", "--database", "postgresql+psycopg://desk@127.0.0.1:1/desk"]) == 1
    assert "127.0.0.1:1/desk" in one_line(capsys)
    assert vrbot(["serve", "run", "--database", "mysql://x"]) == 2
    one_line(capsys)
    assert vrbot(["serve", "run", "--demo", "--host", "0.0.0.0"]) == 2
    assert "loopback only" in one_line(capsys)
    assert vrbot(["serve", "run", "--workers", "2"]) == 2
    assert "one worker" in one_line(capsys)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert vrbot(["serve", "run", "--port", str(taken.getsockname()[1])]) == 2
    assert "choose another --port" in one_line(capsys)


def test_the_secret_is_kept_and_only_its_owner_can_read_it(tmp_path: Path) -> None:
    secret, switch = files_beside(str(tmp_path / "desk.sqlite"))
    assert (secret.name, switch.name) == ("desk.sqlite.secret", "desk.sqlite.switch")
    assert kept_secret(secret) == kept_secret(secret)
    assert secret.stat().st_mode & 0o077 == 0
    assert files_beside("postgresql+psycopg://desk@db/desk", tmp_path) == (
        tmp_path / "vrbot.secret",
        tmp_path / "vrbot.switch",
    )


def test_a_run_is_served_from_set_up_to_sign_off_and_ends_in_good_order(run: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from vrbot.cli.main import main; main()", "serve", str(run), "--port", "0"]
    process = subprocess.Popen(
        [*command, "--no-console"], cwd=tmp_path, stderr=subprocess.PIPE, text=True, env={**os.environ}
    )
    try:
        assert process.stderr is not None
        code = process.stderr.readline().rsplit(" ", 1)[1].strip()
        told = process.stderr.readline()
        assert "confidence is not calibrated" in told, told
        line = process.stderr.readline()
        assert " on http" in line, line
        address = line.split(" on ")[1].split(" ")[0]
        with httpx.Client(base_url=address, timeout=60) as client:
            wait_for(lambda: _status(client, "/livez") == 200)
            wait_for(lambda: _status(client, "/readyz") == 200)
            first = {"name": "root", "password": PASSWORD}
            assert client.post("/api/v1/setup", json={**first, "code": code}).status_code == 201
            client.headers["Authorization"] = f"Bearer {_token(client, 'root')}"
            added = {"name": "ann", "password": PASSWORD, "role": "physician"}
            assert client.post("/api/v1/users", json=added).status_code == 201
            client.headers["Authorization"] = f"Bearer {_token(client, 'ann')}"
            consultation = client.post("/api/v1/consultations", json={"language": "zh"}).json()["id"]
            said = {"client_turn_id": "1", "text": "头痛"}
            turn = client.post(f"/api/v1/consultations/{consultation}/turns", json=said).json()
            draft = client.post(f"/api/v1/turns/{turn['id']}/drafts").json()
            assert draft["failure"] is None
            assert "evidence" in draft["reply"]
            seen = {"seen_sha256": draft["text_sha256"], "seen_turn": 1, "override_reason": "a test"}
            assert client.post(f"/api/v1/drafts/{draft['id']}/approve", json=seen).status_code == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
        if process.stderr is not None:
            process.stderr.close()
    assert vrbot(["audit", "verify", str(tmp_path / "desk.sqlite")]) == 0


def _status(client: httpx.Client, path: str) -> int:
    try:
        return client.get(path).status_code
    except httpx.TransportError:
        return 0


def _token(client: httpx.Client, name: str) -> str:
    return str(client.post("/api/v1/sign-in", json={"name": name, "password": PASSWORD}).json()["token"])
