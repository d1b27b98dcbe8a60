"""Proposals out, labels in: through files of both forms nothing is lost, and every label says who it is by."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.model.tiny import ASK, CHAT, sessions, write_splits
from vrbot.cli.annotate import annotate
from vrbot.dialogue.corpus import Corpus
from vrbot.dialogue.formats import read_sessions, write_sessions
from vrbot.dialogue.preparation import PreparationSettings, prepare
from vrbot.dialogue.session import Action, Session, Turn
from vrbot.errors import DataError, UsageError
from vrbot.explain.given_labels import GivenLabel, join_labels, labels_written_into
from vrbot.explain.label_studio import SETUP, read_annotations, tasks_of, write_tasks
from vrbot.explain.proposals import (
    Kind,
    Proposal,
    ProposedSession,
    label_of,
    read_proposals,
    with_label,
    write_proposals,
)

BARE = Session(
    "bare",
    (Turn("我咳嗽", "发烧吗？"), Turn("发烧", "多喝水。", ("咳嗽",), Action(None, ("发烧",))), Turn("好", "")),
    {"department": "x"},
)
PROPOSED = ProposedSession(
    BARE,
    (
        {"state": Proposal(("咳嗽",), 0.9, (0.95,)), "category": Proposal(ASK, 0.6), "keywords": Proposal((), 1.0)},
        {"category": Proposal(CHAT, 0.99)},
        {"state": Proposal(("咳嗽", "发烧"), 0.4, (0.8, 0.5))},
    ),
    "train",
    "vrbot",
    ("keywords",),
)

ACTIVE = ("--order", "active")
ACCEPT = ("--accept", "0", "--proposals")


def answered(task: dict[str, Any], **values: list[str]) -> dict[str, Any]:
    """The task as Label Studio gives it back."""
    fields = {"state": "text", "category": "choices", "keywords": "text"}
    results = [{"from_name": kind, "value": {fields[kind]: value}} for kind, value in values.items() if value]
    annotation = {"result": results, "completed_by": {"id": 7, "email": "ann@example.org"}, "updated_at": "2026-01-02"}
    return {**task, "annotations": [annotation]}


def test_a_file_of_proposals_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    assert write_proposals(tmp_path / "p.jsonl", [PROPOSED]) == 1
    assert list(read_proposals(tmp_path / "p.jsonl")) == [PROPOSED]
    plain = next(iter(read_sessions(tmp_path / "p.jsonl")))  # proposals are no labels to whoever reads sessions
    assert plain.turns == BARE.turns


@pytest.mark.parametrize(
    "broken",
    [
        {"proposals": []},
        {"split": "train", "model": "m", "copied": [], "proposals": [{}]},
        {"split": "train", "model": "m", "copied": [], "proposals": [{"category": {"value": "sing"}}, {}, {}]},
        {
            "split": "train",
            "model": "m",
            "copied": [],
            "proposals": [{"category": {"value": ASK, "confidence": 2, "entities": []}}, {}, {}],
        },
        7,
    ],
)
def test_a_broken_file_of_proposals_is_refused_with_its_line(broken: Any, tmp_path: Path) -> None:
    write_sessions(tmp_path / "p.jsonl", [replace(BARE, extra={"annotation": broken})])
    with pytest.raises(DataError, match=r"p\.jsonl:1: annotation: .*annotate propose"):
        list(read_proposals(tmp_path / "p.jsonl"))


def test_labels_of_people_are_joined_and_the_former_ones_kept_beside_them() -> None:
    given = [
        GivenLabel("bare", 0, "state", ("咳嗽", "头痛"), "7"),
        GivenLabel("bare", 1, "state", ("发烧",)),
        GivenLabel("bare", 1, "keywords", ("发烧",)),
    ]
    joined = join_labels({"train": [BARE]}, given)
    (session,) = joined.sessions["train"]
    assert joined.counts == {"new": 1, "changed": 1, "confirmed": 1}
    assert session.turns[0].state == ("咳嗽", "头痛")
    assert session.turns[1] == replace(BARE.turns[1], state=("发烧",))
    assert session.turns[2] == BARE.turns[2]
    assert session.extra["department"] == "x"
    assert session.extra["provenance"] == [
        {"state": {"by": "human", "annotator": "7"}},
        {"state": {"by": "human", "former": {"value": ["咳嗽"], "by": "source"}}, "keywords": {"by": "human"}},
        {},
    ]


def test_proposals_fill_only_what_nobody_labelled_and_only_if_sure_enough() -> None:
    joined = join_labels({"train": [BARE]}, [GivenLabel("bare", 0, "category", CHAT)], [PROPOSED], 0.9)
    (session,) = joined.sessions["train"]
    assert session.turns[0].action == Action(CHAT, ())
    assert session.turns[0].state == ("咳嗽",)
    assert session.turns[1].state == ("咳嗽",)
    assert session.turns[2].state is None
    first = session.extra["provenance"][0]
    assert first["category"] == {"by": "human"}
    assert first["state"] == {"by": "proposed", "confidence": 0.9, "model": "vrbot"}
    again = join_labels({"train": [session]}, [GivenLabel("bare", 0, "state", ("头痛",))])
    changed = again.sessions["train"][0]
    assert changed.extra["provenance"][0]["state"]["former"]["by"] == "proposed"
    assert changed.extra["provenance"][0]["category"] == {"by": "human"}


@pytest.mark.parametrize("kind", ["state", "category", "keywords"])
def test_one_kind_of_label_leaves_the_others_alone(kind: Kind) -> None:
    value = ASK if kind == "category" else ("头痛",)
    for turn in (*BARE.turns, *sessions()[0].turns):
        changed = with_label(turn, kind, value)
        assert label_of(changed, kind) == value
        for other in ("state", "category", "keywords"):
            assert other == kind or label_of(changed, other) == label_of(turn, other)


def test_only_what_people_wrote_into_the_lines_counts_as_theirs() -> None:
    source = {"bare": BARE}
    assert list(labels_written_into([PROPOSED], source)) == []
    edited = replace(BARE, turns=(with_label(BARE.turns[0], "category", ASK), *BARE.turns[1:]))
    found = list(labels_written_into([replace(PROPOSED, session=edited)], source))
    assert found == [GivenLabel("bare", 0, "category", ASK)]
    other = replace(BARE, turns=(replace(BARE.turns[0], patient="别的"), *BARE.turns[1:]))
    with pytest.raises(UsageError, match="change labels only"):
        list(labels_written_into([replace(PROPOSED, session=other)], source))
    with pytest.raises(UsageError, match="none of the corpus's"):
        list(labels_written_into([PROPOSED], {}))


def test_labels_for_turns_that_are_not_there_are_refused() -> None:
    with pytest.raises(UsageError, match="none is number 3"):
        join_labels({"train": [BARE]}, [GivenLabel("bare", 3, "state", ())])
    with pytest.raises(UsageError, match="none of the corpus's"):
        join_labels({"train": [BARE]}, [GivenLabel("other", 0, "state", ())])


def test_a_task_holds_the_conversation_the_questions_and_the_predictions() -> None:
    first, second, third = tasks_of(PROPOSED)
    assert first["data"]["conversation"] == [
        {"author": "patient", "text": "我咳嗽"},
        {"author": "physician", "text": "发烧吗？"},
    ]
    assert len(second["data"]["conversation"]) == 4
    assert third["data"]["asked"] == ["state"]
    (prediction,) = first["predictions"]
    assert prediction["score"] == 0.6
    assert [result["from_name"] for result in prediction["result"]] == ["state", "category"]
    assert second["predictions"][0]["result"][0]["value"] == {"text": ["咳嗽"]}  # a label that was there is shown
    for kind in ("state", "category", "keywords"):
        assert f'name="{kind}"' in SETUP


def test_what_annotators_submitted_comes_back_as_labels(tmp_path: Path) -> None:
    first, second, third = tasks_of(PROPOSED)
    old = answered(first, state=["头痛"])["annotations"][0] | {"updated_at": "2025-01-01", "completed_by": 3}
    skipped = old | {"was_cancelled": True, "updated_at": "2027-01-01"}
    task = answered(first, state=["咳嗽", " 咳嗽 "], category=[ASK])
    task["annotations"] = [old, *task["annotations"], skipped]
    path = tmp_path / "annotated.json"
    path.write_text(json.dumps([task, second, answered(third, state=["发烧"])], ensure_ascii=False), encoding="utf-8")
    assert read_annotations(path) == [
        GivenLabel("bare", 0, "state", ("咳嗽",), "7"),
        GivenLabel("bare", 0, "category", ASK, "7"),
        GivenLabel("bare", 0, "keywords", (), "7"),
        GivenLabel("bare", 2, "state", ("发烧",), "7"),
    ]


@pytest.mark.parametrize(
    "content", ["{}", "[7]", '[{"annotations": [{"result": []}]}]', "[", '[{"data": {}, "annotations": [{}]}]']
)
def test_other_files_are_refused_by_name(content: str, tmp_path: Path) -> None:
    path = tmp_path / "annotated.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=r"annotated\.json"):
        read_annotations(path)


def test_a_wrong_category_is_refused_with_the_right_ones(tmp_path: Path) -> None:
    first, *_ = tasks_of(PROPOSED)
    path = tmp_path / "annotated.json"
    path.write_text(json.dumps([answered(first, category=["sing"])]), encoding="utf-8")
    with pytest.raises(DataError, match="ask_symptoms"):
        read_annotations(path)


def test_from_a_run_to_a_corpus_with_the_annotators_labels(run: Path, corpus: Corpus, tmp_path: Path) -> None:
    """All verbs in a row: propose, export, import, prepare."""
    runner = CliRunner()
    bare = [replace(one, turns=tuple(replace(t, state=None, action=None) for t in one.turns)) for one in sessions()]
    write_splits(tmp_path / "chats", bare)
    prepare(tmp_path / "chats", tmp_path / "bare", PreparationSettings(format="canonical", like=corpus.directory))
    proposed, tasks, out = tmp_path / "proposed.jsonl", tmp_path / "tasks.json", tmp_path / "labelled"
    done = runner.invoke(
        annotate,
        ["propose", str(run), "--corpus", str(tmp_path / "bare"), "--out", str(proposed), "--first", "3", *ACTIVE],
    )
    assert done.exit_code == 0, done.output
    assert "copied" in done.output
    found = list(read_proposals(proposed))
    assert len(found) == 3
    assert all(turn for one in found for turn in one.turns)
    done = runner.invoke(annotate, ["export", str(proposed), "--out", str(tasks), "--setup", str(tmp_path / "s.xml")])
    assert done.exit_code == 0, done.output
    content = json.loads(tasks.read_text("utf-8"))
    assert len(content) == sum(len(one.turns) for one in found)
    content[0] = answered(content[0], state=["咳嗽"], category=[ASK])
    tasks.write_text(json.dumps(content), encoding="utf-8")
    done = runner.invoke(
        annotate,
        ["import", str(tasks), "--corpus", str(tmp_path / "bare"), "--out", str(out), *ACCEPT, str(proposed)],
    )
    assert done.exit_code == 0, done.output
    prepare(out, tmp_path / "labelled-corpus", PreparationSettings(format="canonical", like=corpus.directory))
    again = Corpus.open(tmp_path / "labelled-corpus")
    name, turn = content[0]["data"]["dialogue"], content[0]["data"]["turn"]
    session = next(one for one in again.sessions("train") if one.id == name)
    assert session.turns[turn].state == ("咳嗽",)
    assert session.extra["provenance"][turn]["state"] == {"by": "human", "annotator": "7"}
    by = {note["by"] for one in again.sessions("train") for notes in one.extra["provenance"] for note in notes.values()}
    assert by == {"human", "proposed"}
    refused = runner.invoke(annotate, ["import", str(tasks), "--corpus", str(tmp_path / "bare"), "--out", str(out)])
    assert isinstance(refused.exception, UsageError)


def test_tasks_are_written_whole(tmp_path: Path) -> None:
    assert write_tasks(tmp_path / "tasks.json", [PROPOSED]) == 3
    assert json.loads((tmp_path / "tasks.json").read_text("utf-8")) == list(tasks_of(PROPOSED))
