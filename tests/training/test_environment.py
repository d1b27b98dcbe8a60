"""What a run says of the sources it was made with."""

from __future__ import annotations

import pytest

from vrbot.training import description


@pytest.mark.parametrize(
    ("head", "status", "commit"),
    [("abc", "", "abc"), ("abc", " M model/vrbot.py", "abc+changed"), ("", "", None), ("", " M x", None)],
)
def test_a_commit_is_called_changed_where_the_sources_are_and_left_out_where_there_is_none(
    head: str, status: str, commit: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(description, "_git", lambda *command: head if command[0] == "rev-parse" else status)
    assert description._environment()["commit"] == commit
