"""Rules of the house that no linter knows."""

from __future__ import annotations

import ast
import re
import subprocess

import pytest

from tests.architecture.project import ROOT, SOURCE, project_files, python_files, text_files

NAMES_THAT_SAY_NOTHING = {"utils.py", "util.py", "helpers.py", "helper.py", "misc.py", "common.py"}
LARGEST_FILE = 500_000
LONGEST_SOURCE = 400
# Folders of somebody's machine; written in pieces so that this file does not break its own rule.
MACHINE_FOLDERS = "|".join(["work", "tmp", "root", "home", "Users", "opt", "mnt", "workspace", "private"])
MACHINE_PATH = re.compile(rf"(?<![\w.~/)}}-])/(?:{MACHINE_FOLDERS})/[\w.~-]")


def test_no_file_is_larger_than_half_a_megabyte() -> None:
    large = {str(path.relative_to(ROOT)): path.stat().st_size for path in project_files()}
    assert {name: size for name, size in large.items() if size > LARGEST_FILE} == {}


def test_no_published_run_is_passed_over_by_version_control() -> None:
    run = "docs/results/a-table/runs/a-corpus/a-row/seed-1/result.json"
    command = ["git", "check-ignore", "--quiet", "--no-index"]
    by_git = {name: subprocess.run([*command, name], cwd=ROOT, check=False).returncode for name in (run, "runs/a-run")}
    if set(by_git.values()) == {128}:
        pytest.skip("this is no checkout of git")
    assert by_git == {run: 1, "runs/a-run": 0}


def test_no_file_has_a_name_that_says_nothing() -> None:
    assert [str(path) for path in project_files() if path.name in NAMES_THAT_SAY_NOTHING] == []


def test_no_python_file_is_longer_than_400_lines() -> None:
    lengths = {str(path.relative_to(ROOT)): len(path.read_text("utf-8").splitlines()) for path in python_files()}
    assert {name: length for name, length in lengths.items() if length > LONGEST_SOURCE} == {}


def test_no_text_names_a_folder_of_somebodys_machine() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {hit.group()}" for path, text in text_files() for hit in MACHINE_PATH.finditer(text)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("text", "is_machine_path"),
    [
        ("open('/" + "tmp/x.json')", True),
        ("in /" + "home/ann/data", True),
        ("see /usr/lib/postgresql", False),
        ("example.org/home/page", False),
        ("build/tmp/x", False),
    ],
)
def test_the_check_knows_a_machine_path(text: str, is_machine_path: bool) -> None:
    assert bool(MACHINE_PATH.search(text)) is is_machine_path


def test_every_source_file_says_what_it_is_for() -> None:
    silent = [path for path in SOURCE.rglob("*.py") if not ast.get_docstring(ast.parse(path.read_text("utf-8")))]
    assert silent == []


def test_every_folder_of_sources_is_a_package() -> None:
    assert [path.parent for path in SOURCE.rglob("*.py") if not (path.parent / "__init__.py").exists()] == []
