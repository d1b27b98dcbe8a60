"""The real corpora read without a complaint, with the counts their own description states."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.dialogue_formats.examples import read_all
from tests.real_data import real_data
from vrbot.dialogue.formats import guess_format, split_files, write_sessions

SESSIONS = {
    "meddg": (3299, 400, 400),
    "imcs": (1433, 200, 200),
    "covid_zh": (872, 108, 108),
    "mts_en": (1201, 100, 200),
}
TURNS = {"meddg": (14696, 1823, 1752), "imcs": (20900, 2866, 2701), "covid_zh": (3779, 466, 502)}


@pytest.mark.parametrize("corpus", SESSIONS)
def test_a_real_corpus_reads_whole_and_is_written_back_to_the_byte(tmp_path: Path, corpus: str) -> None:
    files = split_files(real_data(corpus))
    assert guess_format(real_data(corpus)) == "canonical"
    reports = []
    for split, path in files.items():
        sessions, report = read_all(path)
        reports.append(report)
        assert report.sessions == path.read_bytes().count(b"\n")
        assert not report.repairs
        write_sessions(tmp_path / f"{split}.jsonl", sessions)
        assert (tmp_path / f"{split}.jsonl").read_bytes() == path.read_bytes()
    assert tuple(report.sessions for report in reports) == SESSIONS[corpus]
    if corpus in TURNS:
        assert tuple(report.turns for report in reports) == TURNS[corpus]


def test_real_raw_blocks_become_one_session_each_and_no_line_is_lost(tmp_path: Path) -> None:
    path = real_data("raw/meddialog_format.txt")
    sessions, report = read_all(path, guess_format(path))
    assert report.sessions == 40
    write_sessions(tmp_path / "raw.jsonl", sessions)
    kept = (tmp_path / "raw.jsonl").read_text(encoding="utf-8").replace('\\"', '"')
    structure = {"Description", "Dialogue", "Diagnosis and suggestions", "医生：", "病人："}
    lines = {line.strip() for line in path.read_text(encoding="utf-8").split("\n")}
    lost = [line for line in lines - structure if not line.startswith("id=") and line not in kept]
    assert not lost
