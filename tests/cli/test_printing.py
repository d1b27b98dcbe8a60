"""The printer: columns that stand straight, JSON that machines can read, no progress off a terminal."""

from __future__ import annotations

import json

import pytest

from vrbot.cli.printing import counting, say_json, say_table


def test_columns_stand_straight_with_chinese_and_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    say_table(["name", "count"], [["咳嗽", 1234], ["fever", 5], ["none", None]])
    assert capsys.readouterr().out.splitlines() == [
        "name   count",
        "-----  -----",
        "咳嗽   1,234",
        "fever      5",
        "none       -",
    ]


def test_json_keeps_chinese_readable_and_refuses_not_a_number(capsys: pytest.CaptureFixture[str]) -> None:
    say_json({"word": "咳嗽"})
    out = capsys.readouterr().out
    assert "咳嗽" in out
    assert json.loads(out) == {"word": "咳嗽"}
    with pytest.raises(ValueError):
        say_json({"score": float("nan")})


def test_off_a_terminal_nothing_counts(capsys: pytest.CaptureFixture[str]) -> None:
    with counting("dialogues", 5) as advance:
        assert advance is None
    assert capsys.readouterr() == ("", "")


def test_on_a_terminal_a_bar_counts_and_goes_away(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with counting("dialogues", 5) as advance:
        assert advance is not None
        advance(3)
    written = capsys.readouterr()
    assert written.out == ""
    assert "3/5" in written.err
