"""Imports run in one direction: a package imports only from the lines above its own."""

from __future__ import annotations

from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from tests.architecture.project import SOURCE, imported_modules

LINES = (
    ("errors",),
    ("config", "files", "machine_speed", "sealed"),
    ("probability", "knowledge", "decoding"),
    ("dialogue",),
    ("clinic", "nets"),
    ("model",),
    ("objective",),
    ("baselines",),
    ("training", "agent"),
    ("explain", "safety", "evaluation"),
    ("experiments",),
    ("serving",),
    ("cli",),
)
LINE_OF = {name: number for number, names in enumerate(LINES) for name in names}


def package_of(path: Path) -> str:
    """The package (or top-level module) a source file belongs to."""
    return path.relative_to(SOURCE).with_suffix("").parts[0]


def source_files() -> list[Path]:
    return [path for path in sorted(SOURCE.rglob("*.py")) if path != SOURCE / "__init__.py"]


def wrong_imports(path: Path) -> list[str]:
    """The imports of a file that run against the direction, as sentences."""
    own = package_of(path)
    others = [(name, name.split(".")[1]) for name in sorted(imported_modules(path)) if "." in name]
    return [
        f"{path.relative_to(SOURCE)} ({own}) imports {name}"
        for name, package in others
        if package in LINE_OF and package != own and LINE_OF[package] >= LINE_OF[own]
    ]


def test_every_package_has_its_line() -> None:
    assert {package_of(path) for path in source_files()} <= set(LINE_OF)


def test_imports_run_downwards_only() -> None:
    assert [wrong for path in source_files() for wrong in wrong_imports(path)] == []


def test_packages_do_not_import_each_other_in_a_circle() -> None:
    graph: dict[str, set[str]] = {}
    for path in source_files():
        used = {name.split(".")[1] for name in imported_modules(path) if "." in name} & set(LINE_OF)
        graph.setdefault(package_of(path), set()).update(used - {package_of(path)})
    TopologicalSorter(graph).prepare()  # raises CycleError


@pytest.mark.parametrize(
    ("statement", "wrong"),
    [
        ("from vrbot.serving.store import Store", True),
        ("import vrbot.training.loop", True),
        ("from vrbot import experiments", True),
        ("from ..cli import main", True),
        ("def late():\n    from vrbot.agent import respond", True),
        ("from vrbot.nets import rgat", False),
        ("from vrbot.errors import VRBotError", False),
        ("from . import contract", False),
    ],
)
def test_the_check_sees_every_way_to_write_an_import(
    statement: str, wrong: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "model" / "tracker.py"
    file.parent.mkdir()
    file.write_text(statement + "\n", encoding="utf-8")
    monkeypatch.setattr("tests.architecture.project.SOURCE", tmp_path)
    monkeypatch.setattr("tests.architecture.test_import_direction.SOURCE", tmp_path)
    assert bool(wrong_imports(file)) is wrong
