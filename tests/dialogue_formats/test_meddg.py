"""Laws of reading MedDG pickles, above all of those that are no MedDG."""

from __future__ import annotations

import collections
import os
import pickle
from pathlib import Path
from typing import Any

import pytest

from tests.dialogue_formats.examples import MEDDG, meddg_line, read_all, write_meddg
from vrbot.dialogue.formats import Repair
from vrbot.dialogue.importers import plain_pickle
from vrbot.dialogue.session import Action, Session, Turn
from vrbot.dialogue.sources import Place
from vrbot.errors import DataError


def complaint_about(path: Path) -> DataError:
    with pytest.raises(DataError) as caught:
        read_all(path, "meddg")
    return caught.value


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_the_state_runs_over_both_speakers_and_the_action_is_what_the_physician_names(
    tmp_path: Path, protocol: int
) -> None:
    write_meddg(tmp_path / "train.pk", protocol=protocol)
    sessions, report = read_all(tmp_path / "train.pk", "meddg")
    first = Turn("肚子疼还拉稀", "有胃炎吗？疼多久了", ("腹泻", "腹痛"), Action(None, ("胃炎", "时长")))
    second = Turn("两天 也恶心", "做胃镜", ("腹泻", "腹痛", "胃炎", "时长", "恶心"), Action(None, ("胃镜",)))
    assert sessions == [
        Session("train-0", (first, second)),
        Session("train-1", (Turn("", "你好", (), Action(None, ())), Turn("胃胀", "", ("胃胀",), None))),
    ]
    assert report.repairs == {Repair.MERGED_UTTERANCE: 1, Repair.PHYSICIAN_FIRST: 1, Repair.NO_LAST_REPLY: 1}


def test_entities_stand_in_the_order_of_the_sentence_and_the_unnamed_ones_last(tmp_path: Path) -> None:
    line = meddg_line("Patients", "先吐后泻又胀", Symptom=["恶心", "胀", "泻"], Disease=["吐"])
    write_meddg(tmp_path / "a.pk", [[line]])
    assert read_all(tmp_path / "a.pk", "meddg")[0][0].turns[0].state == ("吐", "泻", "胀", "恶心")


def test_after_an_unlabelled_utterance_the_state_is_unknown(tmp_path: Path) -> None:
    unlabelled = {"id": "Doctor", "Sentence": "嗯", "mood": 1}
    write_meddg(tmp_path / "a.pk", [[MEDDG[0][0], unlabelled, MEDDG[0][3], MEDDG[0][4]]])
    (session,), report = read_all(tmp_path / "a.pk", "meddg")
    assert [turn.state for turn in session.turns] == [("腹泻", "腹痛"), None]
    assert [turn.action for turn in session.turns] == [None, Action(None, ("胃镜",))]
    assert report.repairs == {Repair.MISSING_LABELS: 1, Repair.UNUSED_FIELD: 1}


def test_a_pickle_of_python_2_is_read_as_utf_8(tmp_path: Path) -> None:
    text = "咳".encode()
    body = b"".join(b"U%c%s" % (len(part), part) for part in (b"id", b"Doctor", b"Sentence", text))
    (tmp_path / "a.pk").write_bytes(b"\x80\x02](](}(" + body + b"uee.")
    assert read_all(tmp_path / "a.pk", "meddg")[0][0].turns[0].physician == "咳"


@pytest.mark.parametrize(
    ("value", "field"),
    [
        (5, "file"),
        ({}, "file"),
        ([MEDDG[0], 5], "dialogue 1"),
        ([MEDDG[0], []], "dialogue 1"),
        ([[["Doctor", "x"]]], "dialogue 0[0]"),
        ([[meddg_line("Nurse", "x")]], "dialogue 0[0].id"),
        ([[{**meddg_line("Doctor", "x"), "Sentence": None}]], "dialogue 0[0].Sentence"),
        ([[{**meddg_line("Doctor", "x"), "Test": "胃镜"}]], "dialogue 0[0].Test"),
        ([[{**meddg_line("Doctor", "x"), "Test": [10**5000]}]], "dialogue 0[0].Test[0]"),
        ([[meddg_line("Doctor", "\ud800")]], "dialogue 0[0].Sentence"),
        ([[meddg_line("Doctor", "a\0b")]], "dialogue 0[0].Sentence"),
    ],
)
def test_a_wrong_value_is_named_with_its_dialogue_and_field(tmp_path: Path, value: Any, field: str) -> None:
    write_meddg(tmp_path / "a.pk", value)
    error = complaint_about(tmp_path / "a.pk")
    assert error.field == field
    str(error).encode("utf-8")


class Calls:
    """Pickles to a call of `function`."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.call = (function, arguments)

    def __reduce__(self) -> Any:
        return self.call


def hostile_pickles(mark: Path) -> dict[str, bytes]:
    """Programs in the shape of data; each would leave a file or fill the memory if it were obeyed."""
    command = f"touch {mark}"
    named = command.encode()
    return {
        **{f"reduce {p}": pickle.dumps([[Calls(os.system, command)]], protocol=p) for p in range(6)},
        "eval": pickle.dumps(Calls(eval, f"__import__('os').mkdir({str(mark)!r})")),
        "global": b"cos\nsystem\n(S'" + named + b"'\ntR.",
        "inst": b"(S'" + named + b"'\nios\nsystem\n.",
        "obj": b"(cos\nsystem\nS'" + named + b"'\no.",
        "build": b"}(S'a'\nS'b'\nu}(S'c'\nS'd'\nub.",
        "newobj": b"\x80\x02cbuiltins\nlist\n)\x81.",
        "persistent": b"Pos.system\n.",
        "binary persistent": b"S'x'\nQ.",
        "extension": b"\x80\x02\x82\x01.",
        "class": pickle.dumps([[collections.OrderedDict(id="Doctor")]]),
        "function": pickle.dumps(os.getcwd),
        "set": pickle.dumps([[{1, 2}]], protocol=4),
        "bytes": pickle.dumps([[bytearray(b"x")]], protocol=5),
        "buffer": b"\x80\x05\x97.",
        "memo slot": b"\x80\x02]r\xff\xff\xff\xff.",
        "memo slot in words": b"]p99999999999\n.",
        "negative memo slot": b"]p-1\n.",
        "length": b"\x80\x04\x8d" + b"\xff" * 8 + b"x.",
        "frame": b"\x80\x04\x95" + b"\xff" * 7 + b"\x7f].",
        "nested tuple as key": b"\x80\x02}" + b")" + b"\x85" * 300_000 + b"Ns.",
        "nested lists": b"\x80\x02" + b"]" * 300_000 + b"a" * 299_999 + b".",
        "unhashable key": b"\x80\x02}]Ns.",
        "itself": b"\x80\x02]q\x00h\x00a.",
        "two pickles": pickle.dumps([]) + pickle.dumps([]),
        "digits": b"L" + b"9" * 10_000 + b"L\n.",
        "protocol": b"\x80\xff].",
        "no end": b"\x80\x02]",
        "empty": b"",
        "text": "病人：你好".encode(),
    }


@pytest.mark.parametrize("kind", hostile_pickles(Path("mark")).keys())
def test_a_hostile_pickle_is_a_data_error_and_runs_nothing(tmp_path: Path, kind: str) -> None:
    mark = tmp_path / "mark"
    (tmp_path / "a.pk").write_bytes(hostile_pickles(mark)[kind])
    error = complaint_about(tmp_path / "a.pk")
    assert all((error.field, error.problem, error.fix))
    assert not mark.exists()


def test_the_hostile_pickles_do_run_where_nothing_stops_them(tmp_path: Path) -> None:
    for kind in ("reduce 4", "global", "inst", "obj", "eval"):
        mark = tmp_path / kind.replace(" ", "_")
        pickle.loads(hostile_pickles(mark)[kind])
        assert mark.exists(), kind


@pytest.mark.parametrize("shared", ["sentence", "utterance", "dialogue"])
def test_a_pickle_that_repeats_one_value_without_end_is_refused(tmp_path: Path, shared: str) -> None:
    line = meddg_line("Doctor", "x" * (100_000 if shared == "sentence" else 100))
    utterances = [dict(line) for _ in range(2_000)] if shared == "sentence" else [line] * 2_000
    dialogues = [utterances] * (500 if shared == "dialogue" else 100 if shared == "utterance" else 1)
    write_meddg(tmp_path / "a.pk", dialogues)
    assert (tmp_path / "a.pk").stat().st_size < 300_000
    assert "unfolds" in complaint_about(tmp_path / "a.pk").problem


@pytest.mark.parametrize("kind", ["reduce 0", "reduce 4", "global", "inst", "obj", "eval", "persistent", "extension"])
def test_the_unpickler_runs_nothing_even_without_the_check_of_instructions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(plain_pickle, "_check_instructions", lambda data, place: None)
    mark = tmp_path / "mark"
    with pytest.raises(DataError, match="damaged"):
        plain_pickle.load_plain_pickle(hostile_pickles(mark)[kind], Place("memory"))
    assert not mark.exists()


@pytest.mark.parametrize(
    ("kind", "instruction"),
    [
        ("reduce 4", "STACK_GLOBAL"),
        ("global", "GLOBAL"),
        ("inst", "INST"),
        ("build", "BUILD"),
        ("persistent", "PERSID"),
        ("binary persistent", "BINPERSID"),
        ("extension", "EXT1"),
        ("set", "EMPTY_SET"),
        ("buffer", "NEXT_BUFFER"),
        ("nested tuple as key", "EMPTY_TUPLE"),
    ],
)
def test_the_forbidden_instruction_is_named(tmp_path: Path, kind: str, instruction: str) -> None:
    (tmp_path / "a.pk").write_bytes(hostile_pickles(tmp_path / "mark")[kind])
    assert f"the instruction {instruction} " in complaint_about(tmp_path / "a.pk").problem
