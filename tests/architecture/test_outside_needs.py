"""What happens when a test needs something from outside the repository."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests.real_data import needs_program, real_data


def test_absent_real_data_is_a_skip_even_in_ci(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("VRBOT_DATA", str(tmp_path))
    monkeypatch.setenv("CI", "true")
    with pytest.raises((pytest.skip.Exception, pytest.fail.Exception), match="VRBOT_DATA") as caught:
        real_data("imaginary")
    assert caught.type is pytest.skip.Exception


def test_real_data_is_found_where_the_variable_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "chats").mkdir()
    monkeypatch.setenv("VRBOT_DATA", str(tmp_path))
    assert real_data("chats") == tmp_path / "chats"


@pytest.mark.parametrize(("in_ci", "outcome"), [("", pytest.skip.Exception), ("true", pytest.fail.Exception)])
def test_a_missing_program_is_a_skip_at_home_and_a_failure_in_ci(
    in_ci: str, outcome: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", in_ci)
    with pytest.raises((pytest.skip.Exception, pytest.fail.Exception), match="imaginary-program") as caught:
        needs_program("imaginary-program")
    assert caught.type is outcome


def test_a_program_that_is_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    assert needs_program("sh").name == "sh"


def test_tests_cannot_reach_other_machines() -> None:
    with socket.socket() as outside, pytest.raises(ConnectionRefusedError, match="must not use the network"):
        outside.connect(("192.0.2.1", 80))
