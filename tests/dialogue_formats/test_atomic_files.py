"""Laws of atomic writing."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

import pytest

from vrbot.errors import UsageError
from vrbot.files import atomic_write, atomic_write_bytes, sha256_of


def test_the_file_appears_only_at_the_end_and_alone(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    with atomic_write(target) as file:
        file.write("咳嗽\n")
        assert not target.exists()
    assert target.read_bytes() == "咳嗽\n".encode()
    assert os.listdir(tmp_path) == ["a.txt"]


def write_half_and_fail(target: Path, failure: type[BaseException]) -> None:
    with atomic_write_bytes(target) as file:
        file.write(b"half")
        raise failure


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt])
def test_a_failure_leaves_the_former_file_and_no_rubbish(tmp_path: Path, failure: type[BaseException]) -> None:
    target = tmp_path / "a.bin"
    target.write_bytes(b"former")
    with pytest.raises(failure):
        write_half_and_fail(target, failure)
    assert target.read_bytes() == b"former"
    assert os.listdir(tmp_path) == ["a.bin"]


def test_the_bytes_are_on_the_disk_before_the_name_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []

    def noting(name: str) -> None:
        real = getattr(os, name)

        def step(*arguments: object) -> None:
            steps.append(name)
            real(*arguments)

        monkeypatch.setattr(os, name, step)

    noting("fsync")
    noting("replace")
    with atomic_write(tmp_path / "a") as file:
        file.write("x")
    assert steps == ["fsync", "replace", "fsync"]


def test_writing_through_a_link_replaces_the_file_behind_it(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    with atomic_write(tmp_path / "link") as file:
        file.write("new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


def test_a_folder_that_is_not_there_is_made(tmp_path: Path) -> None:
    target = tmp_path / "new" / "deep" / "a.txt"
    with atomic_write(target) as file:
        file.write("x")
    assert target.read_text() == "x"
    assert os.listdir(target.parent) == ["a.txt"]


@pytest.mark.parametrize("name", ["a/x.json", "a/b/x.json"])
def test_where_no_folder_can_be_made_the_path_that_was_asked_for_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "a").write_text("a file")
    with pytest.raises(UsageError, match=re.escape(f"{tmp_path / name}: its folder cannot be made")):
        write_half_and_fail(tmp_path / name, ValueError)
    assert os.listdir(tmp_path) == ["a"]


def test_the_new_file_has_ordinary_permissions(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("x")
    with atomic_write(tmp_path / "atomic") as file:
        file.write("x")
    assert (tmp_path / "atomic").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_the_fingerprint_is_the_sha256_of_the_bytes(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc" * 100_000)
    assert sha256_of(tmp_path / "a") == hashlib.sha256(b"abc" * 100_000).hexdigest()
