"""The kill switch for drafts."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from vrbot.errors import UsageError
from vrbot.safety.switch import KillSwitch, SwitchState

NOW = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)


def test_drafts_flow_until_somebody_switches_them_off(tmp_path: Path) -> None:
    switch = KillSwitch(tmp_path / "switch.json")
    assert not switch.state().on
    switch.switch_on("wrong doses seen", "Ada", NOW)
    assert switch.state() == SwitchState(True, "wrong doses seen", "Ada", "2030-01-02T03:04:05+00:00")
    switch.switch_off("model replaced", "Ada", NOW)
    assert not switch.state().on
    assert switch.state().reason == "model replaced"


def test_the_flag_outlives_the_process_and_is_seen_by_others(tmp_path: Path) -> None:
    other = KillSwitch(tmp_path / "switch.json")
    KillSwitch(tmp_path / "switch.json").switch_on("演练", "王", NOW)
    assert other.state().on
    assert other.state().who == "王"


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "null", '{"on": false}', '{"on": 0, "reason": "", "who": "", "when": ""}']
)
def test_a_damaged_flag_counts_as_on(tmp_path: Path, content: str) -> None:
    path = tmp_path / "switch.json"
    path.write_text(content, encoding="utf-8")
    assert KillSwitch(path).state().on


def test_bytes_that_are_no_text_count_as_on(tmp_path: Path) -> None:
    path = tmp_path / "switch.json"
    path.write_bytes(b"\xff\xfe\x00")
    assert KillSwitch(path).state().on


@pytest.mark.parametrize(("reason", "who"), [("", "Ada"), ("  ", "Ada"), ("why", "")])
def test_without_a_reason_and_a_name_nothing_is_switched(tmp_path: Path, reason: str, who: str) -> None:
    switch = KillSwitch(tmp_path / "switch.json")
    with pytest.raises(UsageError, match="reason and a name"):
        switch.switch_on(reason, who, NOW)
    assert not switch.state().on


def test_a_write_that_fails_leaves_the_former_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    switch = KillSwitch(tmp_path / "switch.json")
    switch.switch_on("first", "Ada", NOW)

    def broken(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", broken)
    with pytest.raises(OSError, match="disk full"):
        switch.switch_off("second", "Ada", NOW)
    assert switch.state().reason == "first"
    assert [path.name for path in tmp_path.iterdir()] == ["switch.json"]
