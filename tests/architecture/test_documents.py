"""The documents are true: what they name exists."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from tests.architecture.project import ROOT, SOURCE
from vrbot.experiments.readme import with_tables

PAPER_MAP = ROOT / "docs" / "paper-map.md"
STILL_TO_BUILD = "## Still to build"
PAPER_ITEMS = (
    [f"Eq. {number}" for number in range(1, 21)]
    + [f"Table {number}" for number in range(1, 8)]
    + [f"Fig. {number}" for number in range(1, 6)]
)
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def mapped_symbols() -> list[str]:
    """The dotted names in the last column of the paper map's tables."""
    built = PAPER_MAP.read_text("utf-8").split(STILL_TO_BUILD)[0]
    rows = [line for line in built.splitlines() if line.startswith("|")]
    return sorted({name for row in rows for name in re.findall(r"`([\w.]+\.\w+)`", row.strip("|").split("|")[-1])})


@pytest.mark.parametrize("symbol", mapped_symbols())
def test_every_symbol_of_the_paper_map_can_be_imported(symbol: str) -> None:
    parts = symbol.split(".")
    for split in range(len(parts) - 1, 0, -1):
        try:
            value: object = importlib.import_module(".".join(["vrbot", *parts[:split]]))
        except ModuleNotFoundError:
            continue
        for name in parts[split:]:
            value = getattr(value, name)
        return
    pytest.fail(f"no module of vrbot holds {symbol}")


def test_the_tables_of_the_readme_are_those_of_the_results_kept_beside_it() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    assert with_tables(text, ROOT) == text, "write them anew: vrbot experiment readme README.md"


@pytest.mark.parametrize("item", PAPER_ITEMS)
def test_every_equation_table_and_figure_has_its_place_in_the_paper_map(item: str) -> None:
    places = re.findall(rf"^(?:\||-) *{re.escape(item)}(?!\d)", PAPER_MAP.read_text("utf-8"), re.MULTILINE)
    assert len(places) == 1


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_everything_a_document_says_to_make_can_be_made(document: Path) -> None:
    targets = re.findall(r"^([a-z][\w-]*):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    blocks = re.findall(r"^```\w*\n(.*?)^```", document.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    named = {word for block in blocks for word in re.findall(r"^(?:\S+ )?make ([a-z][\w-]*)", block, re.MULTILINE)}
    assert named <= set(targets)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_link_inside_the_project_leads_somewhere(document: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", document.read_text("utf-8"))
    inside = [link for link in links if "://" not in link]
    assert [link for link in inside if not (document.parent / link).exists()] == []


def test_the_tree_in_the_architecture_page_names_every_package_and_no_other() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    tree = page.split("src/vrbot/\n", 1)[1].split("\ndocs/", 1)[0]
    named = {line.split()[0] for line in tree.splitlines()}
    packages = {f"{path.parent.name}/" for path in SOURCE.glob("*/__init__.py")}
    modules = {path.name for path in SOURCE.glob("*.py")} - {"__init__.py"}
    assert named == packages | modules
