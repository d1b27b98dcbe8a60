"""What is published is no text of others, and enough to repeat every test and to go on elsewhere."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.experiments.invented import PLAN, fill, invented_folder, put_result, right_until, turns_with
from vrbot.dialogue.corpus import Corpus
from vrbot.errors import IntegrityError, UsageError
from vrbot.experiments.folder import ExperimentFolder, Job, read_json, write_json
from vrbot.experiments.publishing import RUNS, publish, take_over
from vrbot.experiments.report import Report, as_dict, make_report
from vrbot.experiments.runner import jobs_of

WORDS = ("yes", "no")
"""All that anybody says in the invented dialogues."""


@pytest.fixture(autouse=True)
def _invented_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vrbot.experiments.report.plan_of", lambda name: PLAN)


@pytest.fixture(scope="module")
def folder(clinic: Path, tmp_path_factory: pytest.TempPathFactory) -> ExperimentFolder:
    made = invented_folder(tmp_path_factory.mktemp("here") / "invented", clinic)
    fill(made, clinic)
    return made


@pytest.fixture
def results(folder: ExperimentFolder, tmp_path: Path) -> Path:
    publish(folder, tmp_path / "results")
    return tmp_path / "results"


def jobs(folder: ExperimentFolder) -> list[Job]:
    return jobs_of(PLAN, folder.setup(), (), folder.setup().seeds)


def found(report: Report) -> object:
    return as_dict(report)["corpora"]


def test_what_is_published_are_scores_and_no_replies(results: Path) -> None:
    out = results / "invented"
    assert {file.name for file in out.iterdir()} >= {"report.md", "clinic-replies.csv", "clinic-cost.csv", RUNS}
    assert {file.suffix for file in out.rglob("*") if file.is_file()} <= {".md", ".csv", ".png", ".json", ".npz"}
    tallies = sorted(out.rglob("*.npz"))
    assert len(tallies) == 3 * 3 + 1
    for file in tallies:
        with np.load(file, allow_pickle=False) as stored:
            texts = [name for name in stored.files if stored[name].dtype.kind not in "uif"]
            assert texts == ["facts"]
            assert not [word for word in WORDS if f'"{word}"' in str(stored["facts"])]


def test_folders_of_encoders_and_vectors_are_published_by_their_last_name(clinic: Path, tmp_path: Path) -> None:
    folder = invented_folder(tmp_path / "invented", clinic)
    parts = {"training": {}, "decoding": {}, "hred": {"attention": False}}
    config = {
        **parts,
        "network": {"embeddings_from": "/a/words"},
        "pretrained": {"directory": "/b/reader", "layers": 3},
    }
    names = Corpus.open(clinic).inventory.names
    put_result(folder, Job("clinic", "mine", 1), turns_with(right_until(1)), names, config=config)
    result = read_json(publish(folder, tmp_path / "results") / RUNS / "clinic" / "mine" / "seed-1" / "result.json")
    folders = {"network": {"embeddings_from": "words"}, "pretrained": {"directory": "reader", "layers": 3}}
    assert result["config"] == {**parts, **folders}


def test_on_another_machine_the_report_comes_out_the_same(
    folder: ExperimentFolder, results: Path, clinic: Path, tmp_path: Path
) -> None:
    elsewhere = invented_folder(tmp_path / "invented", clinic)
    assert take_over(elsewhere, jobs(elsewhere), results) == jobs(elsewhere)
    assert not list(elsewhere.path.rglob("*.jsonl"))
    before, after = (make_report(one, num_resamples=300) for one in (folder, elsewhere))
    assert before.corpora[0].matches
    assert found(after) == found(before)
    assert take_over(elsewhere, jobs(elsewhere), results) == []
    again = publish(elsewhere, tmp_path / "again")
    for file in (results / "invented" / RUNS).rglob("*.*"):
        there = again / file.relative_to(results / "invented")
        assert there.read_bytes() == file.read_bytes(), file


def test_published_runs_are_not_replaced_by_fewer(
    folder: ExperimentFolder, results: Path, clinic: Path, tmp_path: Path
) -> None:
    begun = invented_folder(tmp_path / "invented", clinic)
    put_result(begun, Job("clinic", "mine", 1), turns_with(right_until(1)), Corpus.open(clinic).inventory.names)
    before = {file: file.read_bytes() for file in results.rglob("*.*")}
    with pytest.raises(UsageError, match=r"holds \d+ runs and .* only 1: .*--go-on-from"):
        publish(begun, results)
    assert {file: file.read_bytes() for file in results.rglob("*.*")} == before
    take_over(begun, jobs(begun), results)
    publish(begun, results)


def test_what_is_finished_here_stays_and_what_is_missing_is_still_to_be_done(
    results: Path, clinic: Path, tmp_path: Path
) -> None:
    elsewhere = invented_folder(tmp_path / "invented", clinic)
    mine = Job("clinic", "mine", 1)
    put_result(elsewhere, mine, turns_with(right_until(1)), Corpus.open(clinic).inventory.names)
    own = elsewhere.result(mine)
    (results / "invented" / RUNS / "clinic" / "weak" / "seed-2" / "result.json").unlink()
    taken = take_over(elsewhere, jobs(elsewhere), results)
    assert {*jobs(elsewhere)} - {*taken} == {mine, Job("clinic", "weak", 2)}
    assert elsewhere.result(mine) == own
    assert elsewhere.result(Job("clinic", "weak", 2)) is None


def test_runs_of_another_corpus_and_broken_tallies_are_refused_in_one_line(
    results: Path, clinic: Path, tmp_path: Path
) -> None:
    elsewhere = invented_folder(tmp_path / "invented", clinic)
    one = Job("clinic", "strong", 1)
    there = results / "invented" / RUNS / "clinic" / "strong" / "seed-1"
    result = read_json(there / "result.json")
    write_json(there / "result.json", {**result, "corpus_sha256": "another"})
    with pytest.raises(UsageError, match="another corpus clinic"):
        take_over(elsewhere, [one], results)
    assert elsewhere.result(one) is None
    write_json(there / "result.json", result)
    (there / "replies.tallies.npz").write_bytes(b"no tallies")
    take_over(elsewhere, jobs(elsewhere), results)
    with pytest.raises(IntegrityError, match="seed-1"):
        make_report(elsewhere, num_resamples=100)
