"""The audit page: events newest first, filters, one draft replayed, the switch thrown and noted."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import vrbot.serving
from tests.serving.fakes import ANN, EVE, SUE, DeskAtWork, Parrot
from vrbot.safety.switch import KillSwitch
from vrbot.serving.audit import verify
from vrbot.serving.console import audit_view
from vrbot.serving.console.audit_view import Wanted, events, kinds, pretty, replay_draft, throw_switch
from vrbot.serving.console.words import audit
from vrbot.serving.problems import NotFoundError, RefusedError
from vrbot.serving.store import Store


@pytest.fixture
def work(tmp_path: Path) -> DeskAtWork:
    return DeskAtWork(Store.open(tmp_path / "desk.sqlite", create=True))


def test_events_come_newest_first_and_filters_leave_out_the_others(work: DeskAtWork) -> None:
    turn = work.said(work.opened(), "a cough")
    work.said(work.opened(), "a fever")
    work.desk.annotation.label(EVE, turn.id, "state", ["cough"])
    found, rest = events(work.store, SUE, Wanted())
    assert rest is None
    assert [event.seq for event in found] == list(range(len(found), 0, -1))
    assert {event.kind for event in events(work.store, SUE, Wanted(kind="turn received"))[0]} == {"turn received"}
    assert [event.actor for event in events(work.store, SUE, Wanted(actor="eve"))[0]] == ["eve"]
    of_one = events(work.store, SUE, Wanted(consultation=turn.consultation))[0]
    assert {event.consultation for event in of_one} == {turn.consultation}
    assert len(of_one) == 3
    assert "cough" not in "".join(pretty(event) for event in found)
    assert kinds(work.store, SUE) == sorted({event.kind for event in found})


def test_older_events_go_on_where_the_page_stopped(work: DeskAtWork, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_view, "AT_ONCE", 2)
    for number in range(4):
        work.said(work.opened(), f"cough {number}")
    seen, before = list[int](), None
    while True:
        found, before = events(work.store, SUE, Wanted(), before)
        seen += [event.seq for event in found]
        if before is None:
            break
    assert seen == list(range(9, 0, -1))


def test_only_auditors_see_the_log(work: DeskAtWork) -> None:
    for ask in (lambda: events(work.store, ANN, Wanted()), lambda: kinds(work.store, ANN)):
        with pytest.raises(RefusedError):
            ask()


def test_a_draft_is_replayed_by_the_model_that_made_it(work: DeskAtWork) -> None:
    turn = work.said(work.opened(), "a cough")
    draft = work.drafted(turn)
    (made,) = events(work.store, SUE, Wanted(kind="draft made"))[0]
    assert made.draft == draft.id
    assert replay_draft(work.store, SUE, work.parrot, draft.id) == "same"
    assert replay_draft(work.store, SUE, Parrot("parrot-2"), draft.id) == "other model"
    assert replay_draft(work.store, SUE, None, draft.id) == "no model"
    work.parrot.respond = lambda conversation: {"text": "else"}  # type: ignore[method-assign]
    assert replay_draft(work.store, SUE, work.parrot, draft.id) == "different"
    with pytest.raises(NotFoundError):
        replay_draft(work.store, SUE, work.parrot, work.desk.drafting.write(ANN, turn.id, "rest").id)


def test_throwing_the_switch_is_an_event_and_an_administrators_right(work: DeskAtWork, tmp_path: Path) -> None:
    switch = KillSwitch(tmp_path / "switch.json")
    assert throw_switch(work.store, switch, SUE, True, "odd drafts").on
    assert (switch.state().reason, switch.state().who) == ("odd drafts", "sue")
    assert not throw_switch(work.store, switch, SUE, False, "fixed").on
    noted = [event.kind for event in events(work.store, SUE, Wanted())[0][:2]]
    assert noted == ["drafts switched on", "drafts switched off"]
    assert verify(work.store).good
    for actor, place in ((ANN, switch), (SUE, None)):
        with pytest.raises(RefusedError):
            throw_switch(work.store, place, actor, True, "because")


def test_every_kind_of_event_has_its_name_in_both_languages() -> None:
    written = set[str]()
    for path in Path(vrbot.serving.__path__[0]).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "writing":
                written |= {str(each.value) for each in ast.walk(node.args[0]) if isinstance(each, ast.Constant)}
    assert len(written) > 15
    for language in ("zh", "en"):
        assert sorted(kind for kind in written if f"event {kind}" not in audit.WORDS[language]) == []
