"""`vrbot annotate` and the files it is given: nothing is replaced unasked, and nothing is done silently."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.explain.test_annotation import answered
from tests.model.tiny import sessions, write_splits
from vrbot.cli.main import run as vrbot
from vrbot.dialogue.corpus import Corpus
from vrbot.dialogue.preparation import PreparationSettings, prepare
from vrbot.dialogue.session import Session
from vrbot.explain.label_studio import tasks_of
from vrbot.explain.proposals import Proposal, ProposedSession, read_proposals, write_proposals

BY_HAND = "labels that somebody wrote\n"
Captured = pytest.CaptureFixture[str]


def refused(capsys: Captured, code: int, *arguments: str | Path) -> str:
    """The one line that says why."""
    capsys.readouterr()
    assert vrbot(["annotate", *map(str, arguments)]) == code
    seen = capsys.readouterr()
    assert seen.out == ""
    assert seen.err.count("\n") == 1, seen.err
    return seen.err


def without_labels(session: Session) -> Session:
    return replace(session, turns=tuple(replace(turn, state=None, action=None) for turn in session.turns))


def like(corpus: Corpus, folder: Path, told: list[Session]) -> Path:
    """A corpus of these sessions with the words and entities of another one."""
    write_splits(folder / "source", told)
    prepare(folder / "source", folder / "made", PreparationSettings(format="canonical", like=corpus.directory))
    return folder / "made"


@pytest.fixture(scope="module")
def bare(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus without a label."""
    return like(corpus, tmp_path_factory.mktemp("bare"), [without_labels(one) for one in sessions()])


@pytest.fixture
def proposals(bare: Path, tmp_path: Path) -> Path:
    """Proposals for two dialogues of the bare corpus, as nobody has touched them."""
    found = [
        ProposedSession(one, tuple({"state": Proposal(("咳嗽",), 0.9, (0.9,))} for _ in one.turns))
        for one in Corpus.open(bare).sessions("train")[:2]
    ]
    write_proposals(tmp_path / "proposed.jsonl", found)
    return tmp_path / "proposed.jsonl"


@pytest.fixture
def by_hand(tmp_path: Path) -> Path:
    (tmp_path / "by-hand.jsonl").write_text(BY_HAND, "utf-8")
    return tmp_path / "by-hand.jsonl"


def test_proposals_replace_a_file_only_where_that_is_asked_for(
    run: Path, bare: Path, by_hand: Path, capsys: Captured
) -> None:
    command = ("propose", run, "--corpus", bare, "--out", by_hand)
    assert "by-hand.jsonl is there already" in refused(capsys, 2, *command)
    assert by_hand.read_text("utf-8") == BY_HAND
    assert vrbot(["annotate", *map(str, command), "--first", "1", "--overwrite"]) == 0
    assert len(list(read_proposals(by_hand))) == 1


def test_proposals_never_replace_a_file_of_the_run_or_of_the_corpus(run: Path, bare: Path, capsys: Captured) -> None:
    files = [next(path for path in sorted(folder.rglob("*.json*")) if path.is_file()) for folder in (run, bare)]
    for file in files:
        before = file.read_bytes()
        complaint = refused(capsys, 2, "propose", run, "--corpus", bare, "--out", file, "--overwrite")
        assert "is a file of the source" in complaint
        assert file.read_bytes() == before


@pytest.mark.parametrize("form", ["jsonl", "label-studio"])
def test_an_export_replaces_a_file_only_where_that_is_asked_for(
    form: str, proposals: Path, by_hand: Path, tmp_path: Path, capsys: Captured
) -> None:
    command = ("export", proposals, "--format", form, "--out")
    assert "--overwrite" in refused(capsys, 2, *command, by_hand)
    assert by_hand.read_text("utf-8") == BY_HAND
    before = proposals.read_bytes()
    (tmp_path / "link.jsonl").symlink_to(proposals)
    for source in (proposals, tmp_path / "link.jsonl"):
        assert "is the source" in refused(capsys, 2, *command, source)
        assert "is the source" in refused(capsys, 2, *command, source, "--overwrite")
    assert proposals.read_bytes() == before
    assert vrbot(["annotate", *map(str, command), str(by_hand), "--overwrite"]) == 0
    assert by_hand.read_text("utf-8") != BY_HAND


def test_a_labelling_configuration_replaces_nothing_else(
    proposals: Path, by_hand: Path, tmp_path: Path, capsys: Captured
) -> None:
    tasks = tmp_path / "tasks.json"
    command = ("export", proposals, "--out", tasks, "--setup")
    assert "by-hand.jsonl is there already" in refused(capsys, 2, *command, by_hand)
    assert "is the source" in refused(capsys, 2, *command, proposals, "--overwrite")
    assert "--setup and --out" in refused(capsys, 2, *command, tasks)
    assert not tasks.exists()
    again = ("annotate", "export", str(proposals), "--setup", str(tmp_path / "setup.xml"), "--out")
    assert vrbot([*again, str(tasks)]) == 0
    assert vrbot([*again, str(tmp_path / "more.json")]) == 0  # the same configuration is there: nothing is lost


def test_where_every_turn_is_labelled_nothing_is_proposed_and_no_file_is_written(
    run: Path, corpus: Corpus, tmp_path: Path, capsys: Captured
) -> None:
    out = tmp_path / "proposed.jsonl"
    for order in ("random", "active", "corpus"):
        command = ["propose", str(run), "--corpus", str(corpus.directory), "--out", str(out), "--order", order]
        assert vrbot(["annotate", *command]) == 0
        assert capsys.readouterr().out == "every turn of train is labelled: nothing to propose\n"
        assert not out.exists()


def test_a_turn_that_nobody_answered_needs_no_action_to_be_labelled(
    run: Path, corpus: Corpus, tmp_path: Path, capsys: Captured
) -> None:
    told = [
        replace(one, turns=tuple(turn if turn.physician else replace(turn, action=None) for turn in one.turns))
        for one in sessions()
    ]
    made, out = like(corpus, tmp_path, told), tmp_path / "proposed.jsonl"
    assert vrbot(["annotate", "propose", str(run), "--corpus", str(made), "--out", str(out)]) == 0
    assert "nothing to propose" in capsys.readouterr().out
    assert not out.exists()


def test_a_folder_where_a_file_is_to_stand_is_refused_before_any_work(
    proposals: Path, by_hand: Path, tmp_path: Path, capsys: Captured
) -> None:
    for command in (("propose", tmp_path / "no-run"), ("export", proposals)):  # the run is not even looked for
        for also in ((), ("--overwrite",)):
            assert "is a folder: give --out the name of a file" in refused(
                capsys, 2, *command, "--out", tmp_path, *also
            )
        assert f"{by_hand} is a file" in refused(capsys, 2, *command, "--out", by_hand / "deep" / "proposed.jsonl")


def test_a_file_where_the_labelled_dialogues_are_to_stand_is_refused(
    proposals: Path, bare: Path, by_hand: Path, capsys: Captured
) -> None:
    for out in (by_hand, by_hand / "labelled"):
        complaint = refused(capsys, 2, "import", proposals, "--corpus", bare, "--out", out)
        assert f"{by_hand} is a file: give --out a new folder" in complaint
    assert by_hand.read_text("utf-8") == BY_HAND


def test_files_without_a_label_are_refused_by_name(
    proposals: Path, bare: Path, tmp_path: Path, capsys: Captured
) -> None:
    out = tmp_path / "labelled"
    tasks = [task for one in read_proposals(proposals) for task in tasks_of(one)]
    (tmp_path / "done.json").write_text(json.dumps([answered(task, state=["咳嗽"]) for task in tasks]), "utf-8")
    for name, content in (("tasks.json", json.dumps(tasks)), ("none.json", "[]"), ("empty.jsonl", "")):
        (tmp_path / name).write_text(content, "utf-8")
    ways_out = {
        "tasks.json": "Label Studio",
        "none.json": "Label Studio",
        "empty.jsonl": "no dialogues",
        "proposed.jsonl": "--accept",
    }
    for name, way_out in ways_out.items():
        for others in ((), (tmp_path / "done.json",)):
            command = ("import", *others, tmp_path / name, "--corpus", bare, "--out", out)
            complaint = refused(capsys, 1, *command)
            assert f"no label was found in {tmp_path / name}: " in complaint
            assert way_out in complaint
    assert not out.exists()


def test_sure_proposals_may_be_accepted_without_a_label_of_anybody(
    proposals: Path, bare: Path, tmp_path: Path, capsys: Captured
) -> None:
    out = tmp_path / "labelled"
    command = ("import", proposals, "--corpus", bare, "--out", out, "--proposals", proposals, "--accept")
    complaint = refused(capsys, 1, *command, "0.95")
    assert "0.95" in complaint
    assert "no label was found" in complaint
    assert not out.exists()
    assert vrbot(["annotate", *map(str, command), "0.9"]) == 0
    assert "no label was found" in capsys.readouterr().err
    assert (out / "train.jsonl").exists()


def test_a_file_given_twice_is_refused(bare: Path, proposals: Path, tmp_path: Path, capsys: Captured) -> None:
    tasks = [answered(task, state=["咳嗽"]) for one in read_proposals(proposals) for task in tasks_of(one)]
    done, out = tmp_path / "done.json", tmp_path / "labelled"
    done.write_text(json.dumps(tasks), "utf-8")
    (tmp_path / "link.json").symlink_to(done)
    for again in (done, tmp_path / "link.json", tmp_path / "x" / ".." / "done.json"):
        (tmp_path / "x").mkdir(exist_ok=True)
        assert "twice" in refused(capsys, 2, "import", done, again, "--corpus", bare, "--out", out)
    assert not out.exists()


def test_an_empty_file_of_proposals_is_refused(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "empty.jsonl").write_text("\n", "utf-8")
    complaint = refused(capsys, 1, "export", tmp_path / "empty.jsonl", "--out", tmp_path / "tasks.json")
    assert "empty.jsonl" in complaint
    assert "holds no dialogues" in complaint
    assert not (tmp_path / "tasks.json").exists()
