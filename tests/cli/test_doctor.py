"""`vrbot doctor`: required parts decide the exit code, every lack has a way out."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from vrbot.cli import doctor as doctor_module
from vrbot.cli.doctor import TORCH_VERSION, Check, describe, examine, find_program
from vrbot.cli.main import run


def test_this_machine_is_healthy_and_says_so_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["healthy"] is True
    assert {check["name"] for check in report["checks"] if check["required"]} == {"Python", "torch", "clinic data"}


def test_every_check_that_is_not_good_names_a_way_out() -> None:
    assert all(check.fix for check in examine() if not check.good)


@pytest.mark.parametrize(("required", "code", "mark"), [(True, 1, "FAIL"), (False, 0, "none")])
def test_only_a_required_part_that_is_missing_fails(
    required: bool, code: int, mark: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lack = Check("moon", good=False, required=required, found="not up", fix="wait for the night")
    monkeypatch.setattr(doctor_module, "examine", lambda: [lack])
    assert run(["doctor"]) == code
    assert f"{mark}  moon: not up  ->  wait for the night" in capsys.readouterr().out


def test_a_good_part_shows_no_way_out() -> None:
    assert describe(Check("moon", good=True, required=True, found="up", fix="nothing")) == "ok    moon: up"


def test_a_program_is_found_on_the_path_or_where_debian_hides_it(tmp_path: Path) -> None:
    hidden = tmp_path / "moonserver"
    hidden.write_text("#!/bin/sh\n")
    hidden.chmod(0o755)
    assert find_program("sh", []) is not None
    assert find_program("moonserver", []) is None
    assert find_program("moonserver", [tmp_path]) == str(hidden)


def test_the_doctor_asks_for_the_torch_that_is_installed_by_the_project() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
    assert f"torch=={TORCH_VERSION}" in project["project"]["dependencies"]


def test_a_clinic_that_cannot_be_read_is_reported_and_not_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def torn() -> None:
        raise KeyError("symptom_zh")

    monkeypatch.setattr("vrbot.clinic.world.load_world", torn)
    clinic = next(check for check in examine() if check.name == "clinic data")
    assert not clinic.good
    assert "symptom_zh" in clinic.found
