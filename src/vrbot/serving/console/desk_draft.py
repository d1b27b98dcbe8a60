"""The draft card: the text with its sources, the checks, how sure the model is, and the physician's decision."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from nicegui import events, ui

from vrbot.safety.tables import NOTICE
from vrbot.serving.console.composing import Composer, composer
from vrbot.serving.console.desk_actions import DeskActions, Seen
from vrbot.serving.console.desk_view import (
    DeskView,
    Spot,
    evidence_of,
    finding_marks,
    pieces,
    source_marks,
)
from vrbot.serving.console.parts import button, card, empty_state, icon, percent, since, text
from vrbot.serving.records import Draft, Turn
from vrbot.serving.safety_desk import findings_sha256

SOURCES = ("from-context", "from-state", "from-action")
APPROVE = "(e) => emit(vrbot.draftSeen(e.currentTarget))"


class DraftColumn:
    """The card in the middle of the desk."""

    def __init__(
        self,
        around: ui.element,
        actions: DeskActions,
        light: Callable[[Sequence[Spot]], None],
        address: Callable[[], None],
    ) -> None:
        self._around, self._actions, self._light, self._heard = around, actions, light, actions.heard
        self._address = address
        self._labelled: Sequence[str] = ()
        self.writing = False
        self._view: DeskView | None = None
        actions.ask_reason = self._ask_reason

    def show(self, view: DeskView, *, pending: bool, labelled: Sequence[str]) -> None:
        """Builds the card anew."""
        self._view, self._labelled = view, labelled
        self._around.clear()
        with self._around:
            if view.turn is None:
                with card(self._heard("draft")):
                    empty_state("hourglass_empty", self._heard("no turn"), self._heard("no turn text"))
            elif view.answer is not None:
                self._answered(view)
            elif view.closed:
                with card(self._heard("draft")):
                    empty_state("lock", self._heard("ended"))
            elif self.writing:
                self._writing(view, view.turn)
            elif pending and view.current is None:
                self._pending()
            elif view.current is None or view.current.text is None:
                self._nothing(view)
            else:
                self._draft(view, view.current, view.current.text, pending)

    def _answered(self, view: DeskView) -> None:
        answer = view.answer
        if answer is None:
            return
        with card(self._heard("answered"), classes="card-sent"):
            text("div", answer.text, "draft-text")
            ago = since(answer.sent_at, self._actions.visit.desk.store.clock(), self._heard)
            key = "answered simulated" if answer.simulated else "answered text"
            with ui.element("div").classes("line"):
                icon("done_all")
                text("span", self._heard(key, ago=ago), "hint")

    def _pending(self) -> None:
        with card(self._heard("draft")):
            with ui.element("div").classes("skeleton").props('role="status"') as waiting:
                waiting.props["aria-label"] = self._heard("drafting")
                for width in ("92%", "78%", "55%"):
                    ui.element("span").classes("bone").style(f"width: {width}")
            text("p", self._heard("drafting"), "hint")

    def _nothing(self, view: DeskView) -> None:
        failure = None if view.current is None else view.current.failure
        with card(self._heard("draft")):
            title, body = ("set aside", self._heard("set aside text")) if failure is None else ("failed", failure)
            around = empty_state("edit_note" if failure is None else "cloud_off", self._heard(title), body)
            with around, ui.element("div").classes("line line-center"):
                button(self._heard("ask again"), self._actions.ask_again, name="refresh")
                button(self._heard("write"), self._write, kind="primary", name="edit", key="E")

    def _draft(self, view: DeskView, draft: Draft, words: str, pending: bool) -> None:
        with card(self._heard("draft"), note=self._heard(f"draft {draft.origin}"), classes="card-draft") as around:
            around.props["data-draft-card"] = ""
            self._doubt(draft)
            if view.before is not None and view.before.text is not None:
                with ui.element("div").classes("side-by-side"):
                    with ui.element("div").classes("draft-box draft-before"):
                        text("div", self._heard("before"), "draft-label")
                        text("div", view.before.text, "draft-text").props('data-testid="draft-before"')
                    with ui.element("div").classes("draft-box draft-now"):
                        text("div", self._heard("after"), "draft-label")
                        self._words(draft, words)
            else:
                with ui.element("div").classes("draft-box draft-now"):
                    self._words(draft, words)
            self._legend(draft)
            self._confidence(draft)
            self._checks(draft)
            self._decide(view, draft, pending)

    def _words(self, draft: Draft, words: str) -> None:
        told = evidence_of(draft.reply or {}).get("words") or ()
        marks = source_marks(words, told) + finding_marks(words, draft.checks.findings)
        with ui.element("div").classes("draft-text").props('data-testid="draft"') as shown:
            shown.props["data-draft-text"] = draft.id
            for piece in pieces(words, marks):
                element = text("span", piece.text, " ".join(piece.marks))
                if piece.spots:
                    element.classes("has-source").on("click", lambda spots=piece.spots: self._light(spots), args=[])

    def _legend(self, draft: Draft) -> None:
        if not evidence_of(draft.reply or {}).get("words"):
            return
        with ui.element("div").classes("legend"):
            text("span", self._heard("says"), "hint")
            for source in SOURCES:
                text("span", self._heard(source), f"legend-mark {source}")
            text("span", self._heard("generated"), "legend-mark")

    def _doubt(self, draft: Draft) -> None:
        reasons = evidence_of(draft.reply or {}).get("abstain") or ()
        if reasons:
            with ui.element("div").classes("notice notice-caution").props('role="alert" data-testid="abstain"'):
                icon("front_hand")
                with ui.element("div"):
                    text("strong", self._heard("abstain"))
                    text("div", " · ".join(self._heard.of(reason) for reason in reasons))

    def _confidence(self, draft: Draft) -> None:
        reply = draft.reply or {}
        evidence = evidence_of(reply)
        sure = evidence.get("confidence")
        if sure is None:
            if reply.get("categories") and evidence.get("abstain") is None:
                told = text("div", self._heard("uncalibrated"), "hint").props('data-testid="uncalibrated"')
                told.props["title"] = self._heard("uncalibrated text")
            return
        with ui.element("div").classes("confidence") as line:
            line.props["title"] = self._heard("confidence text")
            text("span", self._heard("confidence"), "label")
            with ui.element("span").classes("bar-track"):
                ui.element("span").classes("bar-fill").style(f"width: {sure * 100:.1f}%")
            text("span", percent(sure), "bar-share")

    def _checks(self, draft: Draft) -> None:
        with ui.element("div").classes("checks").props('data-testid="checks"'):
            for finding in draft.checks.findings:
                self._finding(finding)
            if not draft.checks.findings:
                with ui.element("div").classes("check check-none"):
                    icon("verified_user")
                    text("span", self._heard("checks none"))
            text("div", NOTICE[self._heard.language], "check-source").props('data-testid="notice"')

    def _finding(self, finding: dict[str, Any]) -> None:
        level = finding["level"]
        with ui.element("div").classes(f"check check-of-{level}"):
            icon({"stop": "block", "caution": "warning_amber", "info": "info"}[level])
            with ui.element("div"):
                text("strong", self._heard(f"level {level}"), "check-level")
                text("span", self._told(finding))
                if finding.get("reference"):
                    text("div", self._heard("source", reference=finding["reference"]), "check-source")

    def _told(self, finding: dict[str, Any]) -> str:
        """A finding as a sentence in the language of the page."""
        if finding.get("code") == "check_failed":
            return self._heard("check failed")
        if finding["check"] == "unsupported" and finding.get("surface"):
            return self._heard("unsupported", surface=finding["surface"])
        return str(finding.get(f"message_{self._heard.language}") or self._heard("check unknown"))

    def _decide(self, view: DeskView, draft: Draft, pending: bool) -> None:
        if draft.origin == "what_if" or len(view.trail.versions) > 1:
            with ui.element("div").classes("line"):
                button(self._heard("undo"), self._actions.undo, name="undo", key="U").props('data-testid="undo"')
                saved = bool(draft.change) and set(draft.change or ()) <= set(self._labelled)
                label = button(
                    self._heard("labelled" if saved else "save label"),
                    self._actions.save_label,
                    name="check" if saved else "label",
                    key="" if saved else "L",
                )
                label.props("disabled" if saved else "").props('data-testid="save-label"')
        with ui.element("div").classes("decide"):
            accept = button(self._heard("accept"), kind="primary", name="send", key="A").props('data-testid="accept"')
            accept.on("click", self._approve, js_handler=APPROVE)
            button(self._heard("edit"), self._write, name="edit", key="E").props('data-testid="edit"')
            button(
                self._heard("reject"), lambda: self._actions.reject(draft), kind="danger", name="close", key="R"
            ).props('data-testid="reject"')
            if pending:
                ui.spinner(size="1.2em")
        with ui.element("div").classes("line"):
            icon("shield")
            text("span", self._heard("not sent"), "hint")

    async def _approve(self, event: events.GenericEventArguments) -> None:
        view = self._view
        if view is None or view.turn is None or view.current is None or event.args.get("draft") != view.current.id:
            ui.notify(self._heard("error conflict"), type="warning", position="top")
            return
        await self._actions.approve(Seen(view.current, str(event.args.get("text")), view.turn.seq))

    def _write(self) -> None:
        self._begin_or_end(True)

    def _stop_writing(self) -> None:
        if self._view is not None:
            ui.run_javascript(f'vrbot.forget("edit:{self._view.case.consultation.id}")')
        self._begin_or_end(False)

    def _begin_or_end(self, writing: bool) -> None:
        self.writing = writing
        self._address()
        if self._view is not None:
            self.show(self._view, pending=False, labelled=self._labelled)

    def _writing(self, view: DeskView, turn: Turn) -> None:
        draft = view.current if view.current is not None and view.current.text is not None else None
        about = Composer(
            name="edit",
            keep=f"edit:{turn.consultation}",  # more may be said while somebody writes: the text stays
            label=self._heard("edit label"),
            send=self._heard("edit save"),
            hint=self._heard("edit hint"),
            initial="" if draft is None else draft.text or "",
            with_ctrl=True,
            focus=True,
            rows=4,
            icon="check",
        )

        async def keep(words: str, name: str) -> bool:
            del name  # the same text twice is the same draft
            write, edit = self._actions.write, self._actions.edit
            stored = await (write(turn.id, words) if draft is None else edit(draft, words))
            if stored:
                with self._actions.client:
                    self._stop_writing()
            return stored

        with card(self._heard("draft"), note=self._heard("draft physician"), classes="card-draft"):
            composer(about, keep, self._stop_writing, self._heard("cancel"))

    def _ask_reason(self, seen: Seen, findings: tuple[dict[str, Any], ...]) -> None:
        """A dialog about what was seen when it opened: what comes meanwhile is behind it, and was not."""
        with ui.dialog(value=True) as dialog, card(self._heard("override"), classes="dialog"):
            for finding in findings:
                self._finding(finding)
            text("p", self._heard("override text"), "hint")
            box = ui.textarea(self._heard("override reason")).props("outlined autofocus autogrow").classes("full")
            problem = text("div", "", "field-error").props('role="alert"')

            async def send() -> None:
                if not (box.value or "").strip():
                    problem.text = self._heard("override missing")
                    return
                dialog.close()
                await self._actions.approve(seen, box.value, findings_sha256(findings))

            with ui.element("div").classes("dialog-foot"):
                button(self._heard("cancel"), dialog.close, kind="quiet")
                button(self._heard("override send"), send, kind="danger", name="send").props('data-testid="override"')
        dialog.on("hide", dialog.delete)
