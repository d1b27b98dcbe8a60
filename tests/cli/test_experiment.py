"""`vrbot experiment`: from a plan to a report, in the terminal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from vrbot.cli.experiment import duration
from vrbot.cli.main import run
from vrbot.experiments import own_corpora, own_tables
from vrbot.experiments.own_tables import OwnTable
from vrbot.experiments.smoke import smoke_corpus


def test_the_plans_are_listed_with_their_rows(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["experiment", "list"]) == 0
    seen = capsys.readouterr()
    for name in ("unlabelled", "semi-supervised", "ablations", "span-lengths", "human", "transfer", "all-models"):
        assert name in seen.out
    assert run(["experiment", "list", "--json"]) == 0
    plans = {plan["name"]: plan for plan in json.loads(capsys.readouterr().out)}
    assert plans["smoke"]["rows"] == ["seq2seq", "vrbot"]
    assert "vrbot-told-category" in plans["category-leak"]["rows"]


def test_the_smoke_plan_runs_in_processes_skips_what_is_done_and_reports(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    command = ["experiment", "run", "smoke", "--out", str(out), "--seeds", "1", "--set", "training.max_epochs=1"]
    only = ["--only", "seq2seq", "--only", "references", "--jobs", "2"]
    assert run([*command, *only]) == 0
    seen = capsys.readouterr()
    assert "2 of 2 jobs are finished" in seen.out
    assert "clinic seq2seq seed 1 finished" in seen.err
    assert [path.read_text("utf-8") for path in out.rglob("log.txt")] == ["", ""]
    assert run([*command, *only]) == 0
    assert "clinic seq2seq seed 1 skipped" in capsys.readouterr().err
    assert run(["experiment", "report", str(out), "--resamples", "100"]) == 0
    said = capsys.readouterr()
    assert "| seq2seq | 1/1 |" in said.out
    assert "| vrbot |" not in said.out
    assert "clinic vrbot: 1 of 1 runs are still to be done" in said.out
    assert (out / "report" / "report.tex").is_file()
    document = tmp_path / "README.md"
    document.write_text("<!-- results: out/report -->\n<!-- end of results -->\n", encoding="utf-8")
    for words in ("has new tables", "had these tables already"):
        assert run(["experiment", "readme", str(document)]) == 0
        assert words in capsys.readouterr().out
    assert "| seq2seq | 1 |" in document.read_text("utf-8")


def test_a_row_that_is_none_is_refused_before_anything_is_begun(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert run(["experiment", "run", "smoke", "--out", str(out), "--only", "seq2sek"]) == 2
    assert "no row 'seq2sek'; its rows: seq2seq, vrbot, references" in capsys.readouterr().err
    assert not (out / "experiment.json").exists()


def test_our_tables_are_made_and_published_and_one_whose_data_is_not_here_is_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def tiny(data: Path | None, folder: Path) -> None:
        smoke_corpus(folder, dialogues=12)

    monkeypatch.delenv("VRBOT_DATA", raising=False)
    monkeypatch.setattr(own_corpora, "BUILDERS", {**own_corpora.BUILDERS, "clinic": tiny})
    here = OwnTable("smoke-clinic", "smoke", "clinic", {"training.max_epochs": 1}, rows=("seq2seq",), seeds=(1,))
    monkeypatch.setattr(own_tables, "TABLES", (OwnTable("elsewhere", "smoke", "meddg"), here))
    out, results = tmp_path / "out", tmp_path / "results"
    command = ["experiment", "tables", "--out", str(out), "--publish", str(results), "--jobs", "2"]
    assert run(command) == 0
    seen = capsys.readouterr()
    assert "elsewhere is left out: the real dialogues of meddg are not in this repository" in seen.err
    assert "2 of 2 jobs are finished" in seen.out
    assert "| seq2seq | 1/1 |" in (results / "smoke-clinic" / "report.md").read_text("utf-8")
    assert run([*command, "smoke-clinic"]) == 0
    assert "clinic seq2seq seed 1 skipped" in capsys.readouterr().err
    assert (
        run([*command, "smoke-clinic", "--out", str(tmp_path / "there"), "--go-on-from", str(results), "--jobs", "0"])
        == 0
    )
    assert "2 runs of smoke-clinic are taken from" in capsys.readouterr().err
    assert "| seq2seq | 1/1 |" in (results / "smoke-clinic" / "report.md").read_text("utf-8")
    begun_anew = ["experiment", "tables", "smoke-clinic", "--out", str(tmp_path / "anew"), "--jobs", "2"]
    assert run(begun_anew) == 0
    assert f"report: {tmp_path / 'anew' / 'smoke-clinic' / 'report'}" in capsys.readouterr().out
    (tmp_path / "anew" / "smoke-clinic" / "clinic" / "seq2seq" / "seed-1" / "result.json").unlink()
    assert run([*begun_anew[:-1], "0", "--publish", str(results)]) == 1
    assert "not published: " in capsys.readouterr().err
    assert run([*command, "elsewhere"]) == 1
    assert run([*command, "table-9"]) == 2


def test_a_part_of_our_tables_is_made_by_rows_and_seeds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def tiny(data: Path | None, folder: Path) -> None:
        smoke_corpus(folder, dialogues=12)

    monkeypatch.setattr(own_corpora, "BUILDERS", {**own_corpora.BUILDERS, "clinic": tiny})
    table = OwnTable("smoke-clinic", "smoke", "clinic", {"training.max_epochs": 1}, seeds=(1, 2))
    monkeypatch.setattr(own_tables, "TABLES", (table,))
    command = ["experiment", "tables", "--out", str(tmp_path / "out")]
    assert run([*command, "--only", "seq2seq", "--seeds", "2"]) == 0
    finished = {file.parent.relative_to(tmp_path / "out") for file in tmp_path.glob("out/smoke-clinic/**/result.json")}
    assert finished == {Path("smoke-clinic/clinic/seq2seq/seed-2")}
    assert "1 of 1 jobs are finished" in capsys.readouterr().out
    assert "| seq2seq | 1/2 |" in (tmp_path / "out" / "smoke-clinic" / "report" / "report.md").read_text("utf-8")
    for wrong in (["--only", "seq2sek"], ["--seeds", "3"], ["--seeds", "one"]):
        assert run([*command, *wrong]) == 2
    first, second, third = capsys.readouterr().err.splitlines()
    assert "'seq2sek' is no row of smoke-clinic; known: references, seq2seq, vrbot" in first
    assert "smoke-clinic has the seeds 1, 2, not 3" in second
    assert "such as 1,2,3" in third


def test_wrong_use_is_one_line_and_code_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = ["--out", str(tmp_path / "out")]
    assert run(["experiment", "run", "table-2", *out]) == 2
    assert run(["experiment", "run", "ablations", *out]) == 2
    assert run(["experiment", "run", "category-leak", *out]) == 2
    assert run(["experiment", "run", "smoke", "--seeds", "one", *out]) == 2
    assert run(["experiment", "report", str(tmp_path)]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 5
    for line, words in zip(lines, ("known: ", "--corpus", "category label", "1,2,3", "not an experiment"), strict=True):
        assert words in line


@pytest.mark.parametrize("verb", ["run", "report", "list", "tables"])
def test_every_verb_explains_itself_with_an_example(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["experiment", verb, "--help"]) == 0
    assert f"vrbot experiment {verb}" in capsys.readouterr().out.split("Example", 1)[1]


@pytest.mark.parametrize(("seconds", "text"), [(5, "5 s"), (600, "10 min"), (12_000, "3 h 20 min")])
def test_durations_are_written_for_people(seconds: float, text: str) -> None:
    assert duration(seconds) == text
