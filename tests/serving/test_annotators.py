"""Two people at one turn: neither replaces a label they have not seen; a file is taken in whole or not at all."""

from __future__ import annotations

import json
from typing import Any
from unittest.mock import AsyncMock, Mock

import pytest

from tests.serving.fakes import ANN, EVE, DeskAtWork
from tests.serving.open_pages import in_a_loop
from vrbot.errors import DataError
from vrbot.serving.actors import Actor
from vrbot.serving.annotation import MAX_ENTITIES
from vrbot.serving.console.annotation_files import take_in, write_labels
from vrbot.serving.console.annotation_page import AnnotationScreen
from vrbot.serving.console.annotation_view import with_name
from vrbot.serving.problems import ConflictError

FAY = Actor("fay", "annotator")


def test_a_label_that_was_not_seen_is_not_replaced(work: DeskAtWork) -> None:
    turn = work.said(work.opened(), "a cough and a fever")
    label = work.desk.annotation.label
    first = label(EVE, turn.id, "state", ["cough"], 0)
    with pytest.raises(ConflictError, match="another label"):
        label(FAY, turn.id, "state", ["fever"], 0)
    assert work.desk.annotation.labels_of(FAY, turn.id)["state"].value == ["cough"]
    second = label(FAY, turn.id, "state", ["cough", "fever"], first.number)
    assert label(FAY, turn.id, "state", ["cough", "fever"], first.number) == second  # an answer that was lost
    with pytest.raises(ConflictError):
        label(EVE, turn.id, "state", ["rash"], first.number)
    work.desk.annotation.propose(EVE, turn.id, "state", ["rash"], 0.9)  # a model's proposal is nobody's label
    label(EVE, turn.id, "category", "diagnosis", 0)
    assert label(EVE, turn.id, "state", ["rash"], second.number).value == ["rash"]


def test_on_the_page_the_label_somebody_else_gave_stays_and_is_shown(work: DeskAtWork) -> None:
    turn = work.said(work.opened(), "a cough and a fever")
    annotation = work.desk.annotation
    (mine,) = annotation.labelled_turns(FAY, turn.consultation)
    annotation.label(EVE, turn.id, "state", ["cough"])

    async def asked(heard: object, function: Any, *arguments: Any, **named: Any) -> Any:
        try:
            return function(*arguments, **named)
        except ConflictError:
            return None

    screen = Mock(dialogue=turn.consultation, _read_queue=AsyncMock())
    screen.visit = Mock(desk=work.desk, actor=FAY, asked=asked)
    card = Mock(turn=mine)
    saved = in_a_loop(lambda: AnnotationScreen.save(screen, card, {"state": with_name(mine, "state", "fever")}))
    assert saved is False
    assert card.show.call_args.args[0].labels["state"].value == ["cough"]
    assert annotation.labels_of(FAY, turn.id)["state"].value == ["cough"]


BAD: dict[str, dict[str, Any]] = {
    "too many": {"state": ["x"] * (MAX_ENTITIES + 1), "action": None},
    "no name": {"state": None, "action": {"category": None, "keywords": ["a", "b\0"]}},
}


@pytest.mark.parametrize("proposed", [False, True])
@pytest.mark.parametrize("bad", BAD)
def test_a_file_with_one_value_that_cannot_be_stored_stores_nothing(bad: str, proposed: bool, work: DeskAtWork) -> None:
    for text in ("a cough", "a fever"):
        work.sent(work.drafted(work.said(work.opened(), text)))
    lines = [json.loads(line) for line in write_labels(work.desk.annotation, EVE).splitlines()]
    lines[0]["turns"][0] |= {"state": ["cough"], "action": None}
    lines[1]["turns"][0] |= BAD[bad]
    content = "".join(json.dumps(line) + "\n" for line in lines).encode()
    head = work.store.head()
    with pytest.raises(DataError, match=r"f:2|line 2"):
        take_in(work.desk.annotation, EVE, "f", content, proposed=proposed)
    assert work.store.head() == head


def test_a_dialogue_that_stands_in_a_file_twice_is_refused(work: DeskAtWork) -> None:
    work.said(work.opened(), "a cough")
    (line,) = [json.loads(line) for line in write_labels(work.desk.annotation, EVE).splitlines()]
    content = ""
    for state in (["cough"], ["fever"]):
        line["turns"][0]["state"] = state
        content += json.dumps(line) + "\n"
    head = work.store.head()
    with pytest.raises(DataError, match="twice"):
        take_in(work.desk.annotation, EVE, "f", content.encode(), proposed=False)
    assert work.store.head() == head
    assert work.desk.annotation.to_label(ANN)[0].given == 0
