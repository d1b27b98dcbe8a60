"""The project's own files, as the architecture tests read them."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "vrbot"
NOT_OURS = {".git", ".venv", "__pycache__", "build", "runs", "corpora", ".mypy_cache", ".ruff_cache", ".hypothesis"}
TEXT_ENDINGS = {
    ".py",
    ".md",
    ".toml",
    ".yaml",
    ".yml",
    ".json",
    ".csv",
    ".jsonl",
    ".txt",
    ".sh",
    ".cfg",
    ".html",
    ".css",
}
TEXT_NAMES = {"Makefile", "run", "LICENSE", ".editorconfig", ".gitignore"}


@cache
def project_files() -> tuple[Path, ...]:
    """Every file that is, or is about to be, under version control; without git, every file of the tree."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode == 0:
        paths = [ROOT / name for name in listed.stdout.split("\0") if name]
    else:
        paths = [path for path in ROOT.rglob("*") if not NOT_OURS & set(path.relative_to(ROOT).parts)]
        paths = [path for path in paths if not any(part.endswith(".egg-info") for part in path.parts)]
    return tuple(sorted(path for path in paths if path.is_file()))


def text_files() -> Iterator[tuple[Path, str]]:
    """Every text file of the project with its content."""
    for path in project_files():
        if path.suffix in TEXT_ENDINGS or path.name in TEXT_NAMES:
            yield path, path.read_text(encoding="utf-8")


def python_files() -> list[Path]:
    """Every Python file of the project."""
    return [path for path in project_files() if path.suffix == ".py"]


def imported_modules(path: Path) -> set[str]:
    """The dotted names under `vrbot` that a source file imports, at any depth of the file."""
    package = ["vrbot", *path.relative_to(SOURCE).parent.parts]
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            origin = ".".join([*base, *([node.module] if node.module else [])])
            found |= {f"{origin}.{alias.name}" for alias in node.names}
    return {name for name in found if name.split(".")[0] == "vrbot"}
