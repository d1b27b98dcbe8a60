"""Laws of the simulated corpus on disk and of `vrbot simulate`."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from vrbot.cli.main import run
from vrbot.clinic.simulate import SimulationSettings, assign_splits, simulate_corpus, simulate_sessions
from vrbot.dialogue.corpus import Corpus
from vrbot.dialogue.formats import read_sessions
from vrbot.dialogue.preparation import PreparationSettings, prepare
from vrbot.dialogue.preparation_knowledge import KnowledgeFiles
from vrbot.errors import UsageError

FILES = ("train.jsonl", "valid.jsonl", "test.jsonl", "graph.csv", "alias.json", "lexicon.json", "entities.csv")


def fingerprint(folder: Path) -> str:
    digest = hashlib.sha256()
    for name in sorted(path.name for path in folder.iterdir()):
        digest.update(name.encode() + (folder / name).read_bytes())
    return digest.hexdigest()


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(tmp_path):
    simulate_corpus(tmp_path / "a", SimulationSettings(30, seed=5))
    simulate_corpus(tmp_path / "b", SimulationSettings(30, seed=5))
    simulate_corpus(tmp_path / "c", SimulationSettings(30, seed=6))
    assert fingerprint(tmp_path / "a") == fingerprint(tmp_path / "b")
    assert (tmp_path / "a" / "train.jsonl").read_bytes() != (tmp_path / "c" / "train.jsonl").read_bytes()


def test_the_bytes_do_not_depend_on_the_order_of_hashes(tmp_path):
    prints = set()
    for hash_seed in ("1", "2"):
        out = tmp_path / hash_seed
        command = (
            "from vrbot.clinic.simulate import *; "
            f"simulate_corpus({str(out)!r}, SimulationSettings(40, 3, 'en', 'hard'))"
        )
        subprocess.run([sys.executable, "-c", command], check=True, env={**os.environ, "PYTHONHASHSEED": hash_seed})
        prints.add(fingerprint(out))
    assert len(prints) == 1


def test_a_dialogue_does_not_depend_on_how_many_are_simulated():
    few = list(simulate_sessions(SimulationSettings(10, seed=1)))
    many = list(simulate_sessions(SimulationSettings(30, seed=1)))
    assert many[:10] == few


def test_dialogues_are_divided_eight_to_one_to_one():
    settings = SimulationSettings(200, seed=2)
    sessions = list(simulate_sessions(settings))
    splits = assign_splits(sessions, settings)
    assert {split: len(ones) for split, ones in splits.items()} == {"train": 160, "valid": 20, "test": 20}
    assert sorted(one.id for ones in splits.values() for one in ones) == sorted(one.id for one in sessions)


def test_a_held_out_department_is_in_test_only():
    settings = SimulationSettings(150, seed=2, hold_out=("cardiology", "ent"))
    splits = assign_splits(list(simulate_sessions(settings)), settings)
    departments = {split: {one.extra["department"] for one in ones} for split, ones in splits.items()}
    assert not departments["train"] & {"cardiology", "ent"}
    assert not departments["valid"] & {"cardiology", "ent"}
    assert departments["test"] >= {"cardiology", "ent"}


def test_what_is_written_can_be_read_back_as_it_was(tmp_path):
    settings = SimulationSettings(20, seed=4, language="en")
    simulate_corpus(tmp_path / "clinic", settings)
    assert {path.name for path in (tmp_path / "clinic").iterdir()} == {*FILES, "simulation.json"}
    splits = assign_splits(list(simulate_sessions(settings)), settings)
    for split, sessions in splits.items():
        assert list(read_sessions(tmp_path / "clinic" / f"{split}.jsonl")) == sessions
    assert {session.extra["language"] for session in splits["train"]} == {"en"}
    assert all(session.extra["diagnosis"] for session in splits["train"])


@pytest.mark.parametrize("language", ["zh", "en"])
def test_a_prepared_clinic_knows_every_label_and_every_other_name(tmp_path, language):
    folder = tmp_path / "clinic"
    simulate_corpus(folder, SimulationSettings(20, seed=4, language=language))
    files = {kind: folder / f"{kind}.{end}" for kind, end in (("graph", "csv"), ("entities", "csv"))}
    by_lexicon = PreparationSettings(knowledge=KnowledgeFiles(**files, lexicon=folder / "lexicon.json"))
    by_alias = PreparationSettings(knowledge=KnowledgeFiles(**files, alias=folder / "alias.json"), trust_aliases=True)
    for number, settings in enumerate((by_lexicon, by_alias)):
        report = prepare(folder, tmp_path / f"corpus-{number}", settings).as_dict()
        assert report["dialogues"] == 20
        assert report["graph"]["relations"] == 12
        assert report["unlinked_labels"]["labels"] == 0
        assert report["aliases_dropped"] == []
        inventory = Corpus.open(tmp_path / f"corpus-{number}").inventory
        aliases = json.loads((folder / "alias.json").read_text(encoding="utf-8"))
        assert {alias: [inventory.names[number] for number in inventory.surfaces[alias]] for alias in aliases} == {
            alias: [name] for alias, name in aliases.items()
        }


def test_a_folder_with_something_in_it_is_replaced_only_on_request_and_only_a_simulated_one(tmp_path):
    out = tmp_path / "clinic"
    out.mkdir()
    (out / "notes.txt").write_text("mine")
    for asked, answer in ((False, "--overwrite"), (True, "will not be replaced")):
        with pytest.raises(UsageError, match=answer):
            simulate_corpus(out, SimulationSettings(10, seed=1), overwrite=asked)
    assert (out / "notes.txt").read_text() == "mine"
    (out / "notes.txt").unlink()
    simulate_corpus(out, SimulationSettings(10, seed=1))
    before = fingerprint(out)
    with pytest.raises(UsageError, match="--overwrite"):
        simulate_corpus(out, SimulationSettings(10, seed=2))
    assert fingerprint(out) == before
    simulate_corpus(out, SimulationSettings(10, seed=2), overwrite=True)
    assert fingerprint(out) != before
    assert [path.name for path in tmp_path.iterdir()] == ["clinic"]


def test_an_interrupted_simulation_leaves_the_former_folder_as_it_was(tmp_path, monkeypatch):
    out = tmp_path / "clinic"
    simulate_corpus(out, SimulationSettings(10, seed=1))
    before = fingerprint(out)
    monkeypatch.setattr("vrbot.clinic.simulate.write_world", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        simulate_corpus(out, SimulationSettings(10, seed=2), overwrite=True)
    assert fingerprint(out) == before
    assert [path.name for path in tmp_path.iterdir()] == ["clinic"]


@pytest.mark.parametrize(
    "settings",
    [
        {"dialogues": 3, "seed": 1},
        {"dialogues": 10, "seed": 1, "language": "fr"},
        {"dialogues": 10, "seed": 1, "difficulty": "cruel"},
        {"dialogues": 10, "seed": 1, "hold_out": ("surgery",)},
    ],
)
def test_settings_that_cannot_be_are_refused_with_the_value(settings):
    with pytest.raises(UsageError) as refusal:
        SimulationSettings(**settings)
    wrong = next(value for key, value in settings.items() if key != "seed" and value != 10)
    assert str(wrong[0] if isinstance(wrong, tuple) else wrong) in str(refusal.value)


def test_the_command_writes_the_folder_and_reports_in_json(tmp_path, capsys):
    out = tmp_path / "clinic"
    arguments = ["simulate", "--out", str(out), "--dialogues", "20", "--seed", "3", "--language", "en"]
    assert run([*arguments, "--hold-out", "ent", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert sum(report["dialogues"].values()) == 20
    assert report["settings"]["hold_out"] == ["ent"]
    assert "reference" not in report
    assert run(arguments) == 2
    assert "--overwrite" in capsys.readouterr().err


def test_the_command_can_report_what_simple_rules_score(tmp_path, capsys):
    arguments = ["simulate", "--out", str(tmp_path / "clinic"), "--dialogues", "50", "--language", "en", "--report"]
    assert run([*arguments, "--json"]) == 0
    scores = json.loads(capsys.readouterr().out)["reference"]
    assert scores["dialogues"] == 10
    assert 0 < scores["state_f1"]["names either side says"] < 80
    assert scores["keyword_f1"]["the same by stage"] < scores["keyword_f1"]["the physician again"]
    assert run([*arguments, "--overwrite"]) == 0
    assert "names either side says" in capsys.readouterr().out
