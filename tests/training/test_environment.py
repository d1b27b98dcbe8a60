"""What a run says of the sources it was made with."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from vrbot.training import description


def _git(folder: Path, *command: str) -> str:
    somebody = ["-c", "user.name=somebody", "-c", "user.email=somebody@example.org"]
    done = subprocess.run(["git", "-C", str(folder), *somebody, *command], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package that believes to be vrbot, in a folder that is no repository yet."""
    package = tmp_path / "src" / "vrbot"
    (package / "training").mkdir(parents=True)
    (package / "model.py").write_text("size = 1\n")
    monkeypatch.setattr(description, "__file__", str(package / "training" / "description.py"))
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    return package


def _commit(repository: Path) -> str:
    _git(repository, "add", "--all")
    _git(repository, "commit", "--quiet", "--message", "one more")
    return _git(repository, "rev-parse", "HEAD")


def test_the_commit_is_the_one_that_last_changed_the_sources(sources: Path, tmp_path: Path) -> None:
    assert description._environment()["commit"] is None
    _git(tmp_path, "init", "--quiet")
    assert description._environment()["commit"] is None, "nothing is committed yet"
    first = _commit(tmp_path)
    (tmp_path / "README.md").write_text("a document\n")
    assert description._environment()["commit"] == first
    assert _commit(tmp_path) != first
    assert description._environment()["commit"] == first, "a document changes no figure"
    (sources / "model.py").write_text("size = 2\n")
    assert description._environment()["commit"] == f"{first}+changed"
    last = _commit(tmp_path)
    assert description._environment()["commit"] == last


def test_where_git_cannot_be_asked_there_is_no_commit(sources: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert description._environment()["commit"] is None
