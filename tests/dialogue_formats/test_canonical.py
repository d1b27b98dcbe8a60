"""Laws of the canonical format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.dialogue_formats.examples import CANONICAL, complaints_of, read_all, write_canonical
from vrbot.dialogue.canonical import session_from_line, session_to_line
from vrbot.dialogue.formats import Repair, write_sessions
from vrbot.dialogue.session import CATEGORIES, Action, Session, Turn
from vrbot.dialogue.sources import MAX_LINE_BYTES, Place
from vrbot.errors import DataError

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
names = texts.filter(bool)
labels = st.none() | st.lists(names, max_size=3).map(tuple)
actions = st.none() | st.builds(Action, st.none() | st.sampled_from(CATEGORIES), labels)
turns = st.builds(Turn, texts, texts, labels, actions).filter(lambda turn: bool(turn.patient or turn.physician))
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
extras = st.dictionaries(names.filter(lambda key: key not in ("id", "turns")), json_values, max_size=3)
sessions = st.builds(Session, names, st.lists(turns, min_size=1, max_size=4).map(tuple), extras)

GOOD: dict[str, Any] = {
    "id": "a",
    "turns": [
        {"patient": "p", "physician": "d", "state": ["x"], "action": {"category": "chitchat", "keywords": ["y"]}}
    ],
}
GOOD_LINE = json.dumps(GOOD)


def complaint_about(tmp_path: Path, line: str | bytes) -> DataError:
    """The error for a file whose second line is bad."""
    path = tmp_path / "train.jsonl"
    data = line if isinstance(line, bytes) else line.encode("utf-8", "surrogatepass")
    path.write_bytes(json.dumps({**GOOD, "id": "first"}).encode() + b"\n" + data + b"\n")
    with pytest.raises(DataError) as caught:
        read_all(path)
    assert caught.value.line == 2
    assert caught.value.file == str(path)
    assert "\n" not in str(caught.value)
    return caught.value


@given(sessions)
def test_whatever_is_written_is_read_back_the_same(session: Session) -> None:
    place = Place("memory", 1)
    line = session_to_line(session, place)
    assert "\n" not in line
    assert session_from_line(line, place) == session
    assert session_to_line(session_from_line(line, place), place) == line


def test_a_file_read_and_written_is_the_same_to_the_byte(tmp_path: Path) -> None:
    write_canonical(tmp_path / "a.jsonl")
    sessions, report = read_all(tmp_path / "a.jsonl")
    assert sessions == CANONICAL
    assert (report.sessions, report.turns, report.skipped, report.repairs) == (4, 6, 0, {})
    assert write_sessions(tmp_path / "b.jsonl", sessions) == 4
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()


def test_missing_labels_are_no_labels(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"id": "a", "turns": [{"patient": "p", "physician": "d", "action": {}}]}')
    assert read_all(path)[0] == [Session("a", (Turn("p", "d", None, Action(None, None)),))]


def test_a_byte_order_mark_and_windows_line_ends_are_no_obstacle(tmp_path: Path) -> None:
    write_canonical(tmp_path / "a.jsonl")
    lines = (tmp_path / "a.jsonl").read_bytes()
    (tmp_path / "b.jsonl").write_bytes(b"\xef\xbb\xbf" + lines.replace(b"\n", b"\r\n") + b"\r\n")
    sessions, report = read_all(tmp_path / "b.jsonl")
    assert sessions == CANONICAL
    assert report.repairs == {Repair.BLANK_LINE: 1}


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        (["id"], 5, "id"),
        (["id"], "", "id"),
        (["turns"], None, "turns"),
        (["turns"], [], "turns"),
        (["turns"], "text", "turns"),
        (["turns", 0], [1], "turns[0]"),
        (["turns", 0, "patient"], None, "turns[0].patient"),
        (["turns", 0, "physician"], 3.5, "turns[0].physician"),
        (["turns", 0, "state"], "x", "turns[0].state"),
        (["turns", 0, "state"], ["x", None], "turns[0].state[1]"),
        (["turns", 0, "state"], [""], "turns[0].state[0]"),
        (["turns", 0, "action"], "chitchat", "turns[0].action"),
        (["turns", 0, "action", "keywords"], {"y": 1}, "turns[0].action.keywords"),
        (["turns", 0, "action", "keywords"], [["y"]], "turns[0].action.keywords[0]"),
        (["turns", 0, "action", "category"], ["chitchat"], "turns[0].action.category"),
        (["turns", 0, "actions"], None, "turns[0]"),
        (["turns", 0, "action", "keyword"], [], "turns[0].action"),
    ],
)
def test_a_wrong_value_is_named_with_its_line_and_field(
    tmp_path: Path, path: list[Any], value: Any, field: str
) -> None:
    record = json.loads(json.dumps(GOOD))
    part = record
    for step in path[:-1]:
        part = part[step]
    part[path[-1]] = value
    assert complaint_about(tmp_path, json.dumps(record)).field == field


def test_an_unknown_category_is_named_with_the_four_allowed(tmp_path: Path) -> None:
    error = complaint_about(tmp_path, json.dumps(GOOD).replace("chitchat", "prescribe"))
    assert "'prescribe'" in str(error)
    assert all(category in error.fix for category in CATEGORIES)


def test_a_turn_in_which_nobody_speaks_is_an_error(tmp_path: Path) -> None:
    line = '{"id": "b", "turns": [{"patient": "", "physician": ""}]}'
    assert complaint_about(tmp_path, line).field == "turns[0]"


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "null",
        "[]",
        '"text"',
        GOOD_LINE.replace("{", '{"id": "b", ', 1),
        GOOD_LINE.replace("{", '{"x": NaN, ', 1),
        GOOD_LINE.replace("{", '{"x": [-Infinity], ', 1),
        GOOD_LINE.replace("{", '{"x": 1e999, ', 1),
        GOOD_LINE.replace("{", '{"x": ' + "9" * 5000 + ", ", 1),
        GOOD_LINE.replace("{", '{"x": ' + "[" * 100_000 + "]" * 100_000 + ", ", 1),
        '{"id": "b", "x": ' + '{"y":' * 100_000,
        '{"id": "\\ud800", "turns": [{"patient": "p", "physician": "d"}]}',
        '{"id": "b", "turns": [{"patient": "a\\u0000b", "physician": "d"}]}',
        '{"id": "b", "\\udfff": 1, "turns": [{"patient": "p", "physician": "d"}]}',
        '{"id": "b", "turns": [{"patient": "p\0", "physician": "d"}]}',
        b'{"id": "\xff"}',
        b"\xff\xfe{\x00}\x00",
        "病人：你好".encode("gb18030"),
        b"\x80\x04]\x94.",
        b'{"id": "b", "turns": [{"patient": "\xed\xa0\x80", "physician": "d"}]}',
        json.dumps(GOOD).replace('"id": "a"', '"id": "first"'),
    ],
    ids=lambda line: repr(line[:40]),
)
def test_garbage_is_a_data_error_with_its_line(tmp_path: Path, line: str | bytes) -> None:
    error = complaint_about(tmp_path, line)
    assert all((error.field, error.problem, error.fix))
    str(error).encode("utf-8")


def test_a_line_without_end_is_refused_and_the_next_one_read(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    good = json.dumps(GOOD).encode()
    path.write_bytes(b'"' + b"x" * (2 * MAX_LINE_BYTES + 7) + b'"\n' + good + b"\n")
    errors, report = complaints_of(path)
    assert [error.line for error in errors] == [1]
    assert report.sessions == 1


@pytest.mark.parametrize("name", ["missing.jsonl", ".", "a\0b"])
def test_what_is_no_file_is_a_data_error(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError):
        read_all(tmp_path / name)


@pytest.mark.parametrize(
    "bad",
    [
        CANONICAL[0],
        Session("", CANONICAL[0].turns),
        Session("new", ()),
        Session("new", (Turn("\ud800", "x"),)),
        Session("new", (Turn("p", "d", None, Action("prescribe", None)),)),
        Session("new", (Turn("p", "d"),), {"turns": 1}),
        Session("new", (Turn("p", "d"),), {"score": float("nan")}),
        Session("new", (Turn("p", "d"),), {"when": object()}),
    ],
)
def test_a_session_that_could_not_be_read_back_is_not_written_and_the_file_stays(tmp_path: Path, bad: Session) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("former")
    with pytest.raises(DataError) as caught:
        write_sessions(path, [*CANONICAL, bad])
    assert caught.value.line == len(CANONICAL) + 1
    assert path.read_text() == "former"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.jsonl"]
