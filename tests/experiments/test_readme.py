"""The tables of a document: what the report's files say, between the marks and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

from vrbot.errors import UsageError
from vrbot.experiments.readme import with_tables, write_tables

REPLIES = """system,runs,B@2,B@2 low,B@2 high,mi-F1,mi-F1 low,mi-F1 high,mi-F1 marker
retrieval,1/1,5.47,,,8.1,,,
mine,3/3,10.21,9.02,11.40,21.604,20.4,22.8,*+
half,2/3,10.3,,,14.0,,,!
waiting,0/3,,,,,,,
mine-told-category,1/1,14.1,,,98.0,,,
mine oracle-gold-action,3/3,13.9,13.7,14.1,97.0,96.4,97.7,
mine (somebody),,20.0,,,99.0,,,
"""
LATENTS = """system,runs,state F1,state F1 low,state F1 high,perplexity,perplexity low,perplexity high
mine,3/3,98.56,98.56,98.56,39.0,38.5,39.5
half,2/3,,,,38.04,,
mine-told-category,1/1,,,,20.0,,
"""
BEFORE = "# Mine\n\n<!-- results: kept/run -->\nformer table\n<!-- end of results -->\n\nafter\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "kept" / "run"
    folder.mkdir(parents=True)
    (folder / "corpus-replies.csv").write_text(REPLIES, encoding="utf-8")
    (folder / "corpus-latents.csv").write_text(LATENTS, encoding="utf-8")
    return tmp_path


def test_a_table_holds_means_spreads_and_marks_and_the_best_that_is_not_told_the_answer_is_bold(root: Path) -> None:
    lines = with_tables(BEFORE, root).splitlines()
    assert "| system | seeds | mi-F1 | B@2 | perplexity | state F1 |" in lines
    assert "| retrieval | 1 | 8.1 | 5.5 | - | - |" in lines
    assert r"| mine | 3 | **21.6**\*+ ± 1.2 | 10.2 ± 1.2 | 39.0 ± 0.5 | 98.6 ± 0.0 |" in lines
    assert "| half | 2 of 3 | 14.0! | **10.3** | **38.0** | - |" in lines
    assert not any("waiting" in line for line in lines)
    assert "| mine-told-category | 1 | 98.0 | 14.1 | 20.0 | - |" in lines
    assert "| mine (somebody) |  | 99.0 | 20.0 | - | - |" in lines
    assert "| mine oracle-gold-action | 3 | 97.0 ± 0.6 | 13.9 ± 0.2 | - | - |" in lines


def test_nothing_but_the_place_between_the_marks_is_written_and_twice_changes_nothing(root: Path) -> None:
    document = root / "README.md"
    document.write_text(BEFORE, encoding="utf-8")
    assert write_tables(document)
    once = document.read_text("utf-8")
    assert not write_tables(document)
    assert document.read_text("utf-8") == once
    assert once.startswith("# Mine\n\n<!-- results: kept/run -->\n")
    assert once.endswith("<!-- end of results -->\n\nafter\n")
    assert "former table" not in once
    assert "(kept/run/report.md)" in once


def test_how_a_table_is_to_be_read_is_said_once(root: Path) -> None:
    text = with_tables(BEFORE + BEFORE, root)
    assert text.count("| mine | 3 |") == 2
    assert text.count("Holm's correction") == 1
    assert text.index("Holm's correction") < text.index("\nafter\n")
    assert text.count("(kept/run/report.md)") == 2


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "no place for a table"),
        ("<!-- results: kept/run -->", "no place for a table"),
        ("<!-- results: kept -->\n<!-- end of results -->", "kept holds no table of replies"),
    ],
)
def test_a_document_without_marks_or_with_those_of_no_report_is_refused_and_left_alone(
    text: str, problem: str, root: Path
) -> None:
    document = root / "README.md"
    document.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=problem):
        write_tables(document)
    assert document.read_text("utf-8") == text
