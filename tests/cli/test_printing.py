"""The printer: columns that stand straight, JSON that machines can read, no progress off a terminal."""

from __future__ import annotations

import json

import pytest

from vrbot.cli.printing import progress, say_json, say_table


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


def test_progress_off_a_terminal_passes_everything_and_writes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(progress(range(5), "counting")) == [0, 1, 2, 3, 4]
    seen = capsys.readouterr()
    assert (seen.out, seen.err) == ("", "")
