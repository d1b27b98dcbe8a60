"""`vrbot evaluate`, `compare` and `probe`: what they print, write and refuse."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.model.tiny import sessions, write_splits
from vrbot.cli.main import run
from vrbot.dialogue.corpus import Corpus
from vrbot.dialogue.preparation import PreparationSettings, prepare
from vrbot.evaluation.measuring import measure_model
from vrbot.evaluation.reply_files import read_replies, write_replies
from vrbot.evaluation.systems import open_system

CONTRACT = (
    "num_turns",
    "bleu_2",
    "rouge_2",
    "distinct_1",
    "distinct_2",
    "macro_precision",
    "macro_recall",
    "macro_f1",
    "micro_precision",
    "micro_recall",
    "micro_f1",
    "embedding_average",
    "embedding_greedy",
    "state_f1",
    "action_f1",
    "category_accuracy",
    "turns_per_second",
)
TIMED = "turns_per_second"


def test_evaluation_prints_a_table_and_writes_the_keys_of_the_contract(
    run_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [tmp_path / "one.json", tmp_path / "two.json"]
    for file in files:
        assert run(["evaluate", str(run_folder), "--beam", "2", "--json", str(file)]) == 0
    said = capsys.readouterr().out
    assert "mi-F1" in said
    assert "11 turns" in said
    assert "Protocol vrbot: no stop words removed" in said
    one, two = (json.loads(file.read_text("utf-8")) for file in files)
    assert set(CONTRACT) <= one.keys()
    assert all(one[key] is not None for key in CONTRACT)
    assert {**one, TIMED: 0} == {**two, TIMED: 0}
    assert (one["split"], one["beam"], one["model"], one["num_turns"]) == ("test", 2, "vrbot", 11)


def test_protocol_meddg_has_other_keys(run_folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "scores.json"
    assert run(["evaluate", str(run_folder), "--beam", "1", "--protocol", "meddg", "--json", str(file)]) == 0
    found = json.loads(file.read_text("utf-8"))
    assert "character_bleu_4" in found
    assert "bleu_2" not in found


def test_every_switch_is_stated(run_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = tmp_path / "stop.txt"
    words.write_text("。 ，", encoding="utf-8")
    options = ["--stop-words", str(words), "--minimum-gold-count", "6", "--entityless-replies", "skip"]
    assert run(["evaluate", str(run_folder), "--beam", "1", *options]) == 0
    said = capsys.readouterr().out
    assert "2 stop words removed" in said
    assert "at least 6 gold" in said
    assert "replies without entities are skipped" in said


def test_stored_replies_are_the_turns_to_the_last_digit(corpus: Corpus, run_folder: Path, tmp_path: Path) -> None:
    system = open_system(run_folder)
    decoding = system.config.decoding.model_copy(update={"beam": 1})
    turns = measure_model(system.model, system.corpus, "test", system.config, decoding).turns
    write_replies(tmp_path / "replies.jsonl", turns, corpus.inventory.names)
    numbers = {name: number for number, name in enumerate(corpus.inventory.names)}
    assert read_replies(tmp_path / "replies.jsonl", numbers) == turns
    first = json.loads((tmp_path / "replies.jsonl").read_text("utf-8").splitlines()[0])
    assert first["gold"]["keywords"] == ["发烧", "头痛"]
    assert first["gold"]["category"] == "ask_symptoms"
    assert first["scores"].keys() >= {"micro_f1", "bleu_2", "action_f1"}


def test_a_file_that_is_not_of_replies_is_refused_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_text('{"session": 1}\n', encoding="utf-8")
    assert run(["compare", str(tmp_path / "a.jsonl"), str(tmp_path / "b.jsonl")]) == 1
    assert "a.jsonl" in capsys.readouterr().err


def test_a_corpus_with_other_words_is_refused_with_the_command_that_makes_it_fit(
    run_folder: Path, corpus: Corpus, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "source"
    write_splits(source, sessions())
    prepare(source, tmp_path / "other", PreparationSettings(minimum_count=1))
    assert run(["evaluate", str(run_folder), "--corpus", str(tmp_path / "other")]) == 2
    assert f"--like {corpus.directory}" in capsys.readouterr().err
    prepare(source, tmp_path / "fitting", PreparationSettings(like=corpus.directory))
    assert run(["evaluate", str(run_folder), "--corpus", str(tmp_path / "fitting"), "--beam", "1"]) == 0


def test_an_unknown_split_is_refused(run_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["evaluate", str(run_folder), "--split", "dev"]) == 2
    assert "train, valid, test" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("protocol", "option", "value", "own"),
    [
        ("meddg", "--stop-words", "words.txt", "vrbot"),
        ("meddg", "--vectors", "words.vec", "vrbot"),
        ("meddg", "--minimum-gold-count", "1", "vrbot"),
        ("meddg", "--entityless-replies", "zero", "vrbot"),
        ("meddg", "--references-without-pairs", "skip", "vrbot"),
        ("vrbot", "--variant", "meddg", "meddg"),
    ],
)
def test_an_option_of_the_other_protocol_is_refused_even_with_its_usual_value(
    run_folder: Path, capsys: pytest.CaptureFixture[str], protocol: str, option: str, value: str, own: str
) -> None:
    assert run(["evaluate", str(run_folder), "--protocol", protocol, option, value]) == 2
    assert f"{option} counts under --protocol {own} only" in capsys.readouterr().err


def test_nothing_to_evaluate_is_wrong_use(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["evaluate"]) == 2
    assert "--references" in capsys.readouterr().err


def test_the_trivial_systems_stand_beside_the_run_with_the_oracle_marked(
    run_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "scores.json"
    assert run(["evaluate", str(run_folder), "--beam", "1", "--references", "--json", str(file)]) == 0
    said = capsys.readouterr().out
    assert "an upper bound, told the physician's action; not a system" in said
    found = json.loads(file.read_text("utf-8"))
    assert set(CONTRACT) <= found.keys()
    assert {"most-frequent-reply", "linear-action", "retrieval", "copy-the-state"} <= found["references"].keys()
    assert "vrbot oracle-gold-action" in found["references"]


def test_the_trivial_systems_need_no_run(corpus: Corpus, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["evaluate", "--references", "--corpus", str(corpus.directory)]) == 0
    assert "most-frequent-keyword" in capsys.readouterr().out


def stored(run_path: Path, file: Path, *options: str) -> Path:
    assert run(["evaluate", str(run_path), "--beam", "1", "--replies", str(file), *options]) == 0
    return file


def test_runs_and_stored_replies_compare_alike(
    run_folder: Path, other_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [stored(other_run, tmp_path / "seq2seq.jsonl"), stored(run_folder, tmp_path / "vrbot.jsonl")]
    options = ["--beam", "1", "--resamples", "200", "--metric", "micro_f1", "--metric", "bleu_2", "--json"]
    assert run(["compare", str(other_run), str(run_folder), *options, str(tmp_path / "runs.json")]) == 0
    assert run(["compare", *map(str, files), *options, str(tmp_path / "files.json")]) == 0
    one, two = (json.loads((tmp_path / name).read_text("utf-8")) for name in ("runs.json", "files.json"))
    assert one == two
    assert one["values"].keys() == {"seq2seq", "vrbot"}
    assert {each["metric"] for each in one["contests"][0]["comparisons"]} == {"micro_f1", "bleu_2"}
    shown, test = capsys.readouterr().out, one["contests"][0]["comparisons"][0]["bootstrap"]
    assert "Holm" in shown
    assert "{difference:.4f} [{low:.4f}, {high:.4f}]".format(**test) in shown.replace("*", "").replace("+", "")


@pytest.mark.parametrize(("form", "sign"), [("markdown", "| system |"), ("latex", "\\toprule"), ("csv", "system,")])
def test_tables_can_be_written_for_papers(
    form: str, sign: str, run_folder: Path, other_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [stored(other_run, tmp_path / "a.jsonl"), stored(run_folder, tmp_path / "b.jsonl")]
    capsys.readouterr()
    assert run(["compare", *map(str, files), "--resamples", "200", "--format", form]) == 0
    assert sign in capsys.readouterr().out


def test_runs_over_different_turns_are_refused(
    run_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = stored(run_folder, tmp_path / "all.jsonl")
    fewer = tmp_path / "fewer.jsonl"
    fewer.write_text("".join(file.read_text("utf-8").splitlines(keepends=True)[1:]), encoding="utf-8")
    assert run(["compare", str(file), str(fewer)]) == 2
    assert "all and fewer cannot be compared" in capsys.readouterr().err


def test_a_system_is_not_compared_with_itself(run_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compare", str(run_folder), str(run_folder)]) == 2
    capsys.readouterr()
    assert run(["compare", str(run_folder)]) == 2
    seen = capsys.readouterr().err
    assert "at least two" in seen
    assert "evaluating" not in seen


def test_every_system_is_looked_for_before_the_first_is_evaluated(
    run_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["compare", str(run_folder), str(tmp_path / "nowhere")]) != 0
    seen = capsys.readouterr().err
    assert "nowhere" in seen
    assert "evaluating" not in seen


def test_a_probe_prints_the_chain_and_writes_it(
    run_folder: Path, other_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["probe", str(run_folder), "--json", str(tmp_path / "probe.json")]) == 0
    said = capsys.readouterr().out
    assert "obedience" in said
    assert "11 turns" in said
    found = json.loads((tmp_path / "probe.json").read_text("utf-8"))
    assert {"kl_action", "obedience", "perplexity_inference_action", "none_share"} <= found.keys()
    assert run(["probe", str(other_run)]) == 2


def test_training_writes_the_chain_into_its_log(run_folder: Path) -> None:
    table = (run_folder / "metrics.csv").read_text("utf-8")
    assert all(name in table for name in ("micro_f1", "inference_action_f1", "none_share", "kl_action"))
