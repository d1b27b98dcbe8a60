"""A machine that does anything in any order at a desk, and knows from its own books what a patient may see."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.serving.fakes import ANN, BOB, Parrot, PlainRules
from vrbot.errors import VRBotError
from vrbot.serving.audit import verify
from vrbot.serving.problems import ReasonNeededError
from vrbot.serving.records import Draft, Turn
from vrbot.serving.service import Desk
from vrbot.serving.store import Store
from vrbot.serving.texts import text_sha256

SAID = st.sampled_from(["a cough", "crash", "I am allergic to aspirin", "give me medicine", "broken", "", "头痛\0"])
WRITTEN = st.sampled_from(["Rest.", "Take aspirin.", "You say: a cough", "", "喝水\0", "It is broken."])
PICK = st.integers(0, 1000)
SEQUENCES_A_STORE = 100


@dataclass
class Books:
    """One consultation as the machine knows it."""

    id: str
    demo: bool
    closed: bool = False
    turns: list[Turn] = field(default_factory=list)
    answered: dict[str, str] = field(default_factory=dict)


class ApprovalMachine(RuleBasedStateMachine):
    """Two desks, one of them a demonstration, on one store that many sequences share."""

    sequences: ClassVar[Any] = itertools.count()
    shared: ClassVar[Store | None] = None

    @initialize()
    def sit_down(self) -> None:
        if next(ApprovalMachine.sequences) % SEQUENCES_A_STORE == 0:
            if ApprovalMachine.shared is not None:
                assert verify(ApprovalMachine.shared).good
                ApprovalMachine.shared.close()
            ApprovalMachine.shared = Store.open("sqlite://", create=True)
        assert ApprovalMachine.shared is not None
        self.rules_now = PlainRules()
        parrot = Parrot()
        self.desks = {demo: Desk(ApprovalMachine.shared, self.rules_now, parrot, demo=demo) for demo in (False, True)}
        self.books: list[Books] = []
        self.drafts: list[tuple[Books, Turn, Draft]] = []
        self.decided: dict[str, str] = {}
        self.names = itertools.count()
        for demo in (False, True):
            self.books.append(Books(self.desks[demo].consultations.open(ANN, "en").id, demo))

    @rule(pick=PICK, text=SAID)
    def patient_says(self, pick: int, text: str) -> None:
        book = self.books[pick % len(self.books)]
        name = f"t{next(self.names)}"
        receive = self.desks[book.demo].consultations.receive
        if book.closed:
            assert refused(lambda: receive(ANN, book.id, name, text))
            return
        turn = receive(ANN, book.id, name, text)
        assert receive(ANN, book.id, name, text) == turn
        book.turns.append(turn)

    @rule(pick=PICK, own=st.none() | WRITTEN, change=st.none() | st.just({"state": ["cough"]}))
    def somebody_drafts(self, pick: int, own: str | None, change: dict[str, Any] | None) -> None:
        found = [(book, turn) for book in self.books for turn in book.turns if not book.closed]
        if not found:
            return
        book, turn = found[pick % len(found)]
        drafting = self.desks[book.demo].drafting
        draft = drafting.draft(ANN, turn.id, change) if own is None else drafting.write(ANN, turn.id, own)
        assert own is None or draft.text == own
        self.drafts.append((book, turn, draft))

    @rule(
        pick=PICK,
        seen=st.sampled_from(["that", "that", "that", "another", "nothing"]),
        other=PICK,
        reason=st.sampled_from([None, "", "I know better"]),
        late=st.booleans(),
        physician=st.sampled_from([ANN, ANN, ANN, BOB]),
    )
    def physician_approves(
        self, pick: int, seen: str, other: int, reason: str | None, late: bool, physician: Any
    ) -> None:
        if not self.drafts:
            return
        book, turn, draft = self.drafts[pick % len(self.drafts)]
        text = {"that": draft.text, "nothing": ""}.get(seen, self.drafts[other % len(self.drafts)][2].text) or ""
        newest = len(book.turns) - (1 if late else 0)
        approve = self.desks[book.demo].signoff.approve
        try:
            message = approve(
                physician, draft.id, text_sha256(text), override_reason=reason, seen_turn=newest if late else None
            )
        except ReasonNeededError:
            assert not reason
            return
        except VRBotError:
            assert not self._may_send(book, turn, draft, text, late=late, own=physician == ANN)
            return
        assert physician == ANN
        assert message.text == draft.text == text
        if self.decided.get(draft.id) != "accept":
            assert self._may_send(book, turn, draft, text, late=late, own=True)
            book.answered[turn.id] = text
            self.decided[draft.id] = "accept"

    def _may_send(self, book: Books, turn: Turn, draft: Draft, text: str, *, late: bool, own: bool) -> bool:
        models = {each.text for _, of, each in self.drafts if of == turn and each.origin != "physician"}
        held = bool(self.rules_now.stopped) and draft.text in models
        known = draft.id in self.decided or turn.id in book.answered
        return own and draft.text == text and not (book.closed or held or known or late)

    @rule(pick=PICK, text=WRITTEN, right=st.booleans())
    def physician_edits(self, pick: int, text: str, right: bool) -> None:
        if not self.drafts:
            return
        book, turn, draft = self.drafts[pick % len(self.drafts)]
        edit = self.desks[book.demo].signoff.edit
        seen = draft.text_sha256 or "" if right else "0" * 64
        if draft.id in self.decided:
            refused(lambda: edit(ANN, draft.id, seen, text))  # a retry of the same edit is no error; it sends nothing
        elif book.closed or not right or draft.text is None:
            assert refused(lambda: edit(ANN, draft.id, seen, text))
        else:
            self.drafts.append((book, turn, edit(ANN, draft.id, seen, text)))
            self.decided[draft.id] = "edit"

    @rule(pick=PICK)
    def physician_rejects(self, pick: int) -> None:
        if not self.drafts:
            return
        book, _, draft = self.drafts[pick % len(self.drafts)]
        reject = self.desks[book.demo].signoff.reject
        before = self.decided.get(draft.id)
        if refused(lambda: reject(ANN, draft.id, "no")):
            assert book.closed or before in ("accept", "edit", "reject")
        else:
            assert before in (None, "reject")
            self.decided[draft.id] = "reject"

    @rule(pick=PICK, at_demo_desk=st.booleans())
    def simulation_decides(self, pick: int, at_demo_desk: bool) -> None:
        if not self.drafts:
            return
        book, turn, draft = self.drafts[pick % len(self.drafts)]
        simulate = self.desks[at_demo_desk].signoff.simulate_physician
        known = self.decided.get(draft.id)
        if refused(lambda: simulate(draft.id)):
            return
        assert at_demo_desk
        assert book.demo
        if known is None:
            answered = {line.seq for line in self.desks[True].patient_view(book.id) if line.author == "physician"}
            self.decided[draft.id] = "accept" if turn.seq in answered and turn.id not in book.answered else "reject"
            if self.decided[draft.id] == "accept":
                book.answered[turn.id] = draft.text or ""

    @rule(reason=st.sampled_from([None, None, "trial"]))
    def switch_is_thrown(self, reason: str | None) -> None:
        self.rules_now.stopped = reason

    @rule(pick=PICK, chance=st.integers(0, 4))
    def consultation_ends(self, pick: int, chance: int) -> None:
        book = self.books[pick % len(self.books)]
        if chance == 0 and not book.closed:
            self.desks[book.demo].consultations.close(ANN, book.id)
            book.closed = True
            self.books.append(Books(self.desks[book.demo].consultations.open(ANN, "en").id, book.demo))

    @invariant()
    def patients_see_what_was_approved_and_nothing_else(self) -> None:
        for book in getattr(self, "books", []):
            lines = self.desks[book.demo].patient_view(book.id)
            shown = {line.seq: line.text for line in lines if line.author == "physician"}
            numbers = {turn.id: turn.seq for turn in book.turns}
            assert shown == {numbers[turn]: text for turn, text in book.answered.items()}
            assert [line.text for line in lines if line.author == "patient"] == [turn.text for turn in book.turns]


def refused(call: Any) -> bool:
    """Whether a call ends in an error of the desk's own."""
    try:
        call()
    except VRBotError:
        return True
    return False
