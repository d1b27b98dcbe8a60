"""One consultation on one screen: the conversation, the draft, the reasons; kept up to date from the store."""

from __future__ import annotations

from dataclasses import dataclass

from nicegui import background_tasks, ui

from vrbot.errors import VRBotError
from vrbot.safety.tables import NOTICE
from vrbot.serving.annotation import Label
from vrbot.serving.console.composing import Composer, composer
from vrbot.serving.console.desk_actions import DeskActions
from vrbot.serving.console.desk_chat import ChatColumn
from vrbot.serving.console.desk_draft import DraftColumn
from vrbot.serving.console.desk_view import DeskView, Trail, view_of
from vrbot.serving.console.desk_why import WhyColumn
from vrbot.serving.console.drafts import wanted_draft
from vrbot.serving.console.overview import stamp
from vrbot.serving.console.parts import button, card, empty_state, icon, link, text, told
from vrbot.serving.console.shell import Visit, page_frame
from vrbot.serving.console.words import consultations, desk
from vrbot.serving.patient_links import patient_token
from vrbot.serving.problems import SignInError
from vrbot.serving.records import Case

POLL_SECONDS = 1.0


async def page(visit: Visit) -> None:
    """Builds the page; a consultation of somebody else's looks like none at all."""
    key = visit.request.path_params["consultation"]
    heard = visit.words(consultations.WORDS, desk.WORDS)
    try:
        case = await visit.does(visit.desk.consultations.case, visit.actor, key)
    except VRBotError:
        with page_frame(visit, "desk", heard("gone")), empty_state("search_off", heard("gone"), heard("gone text")):
            button(heard("all consultations"), lambda: ui.navigate.to("/consultations"), kind="primary")
        return
    title = case.consultation.reference.strip() or heard("unnamed", id=key[:6])
    with page_frame(visit, "desk", title, wide=True):
        await DeskScreen(visit, case, title).build()


@dataclass(frozen=True)
class Moment:
    """What the screen was last built from; a part is built anew only where its share of this has changed."""

    view: DeskView
    labelled: tuple[str, ...]
    pending: bool
    writing: bool


class DeskScreen:
    """The desk of one consultation; everything on it comes from the store, so that any number of screens agree."""

    def __init__(self, visit: Visit, case: Case, title: str) -> None:
        self.visit, self.title, self.key = visit, title, case.consultation.id
        self.heard = visit.words(consultations.WORDS, desk.WORDS)
        self.trail = Trail.parse(visit.request.query_params.get("at"))
        self.stamp, self.pending = -1, False
        self.shown: Moment | None = None
        self.actions = DeskActions(visit, self.key, self.heard, self.refresh)

    async def build(self) -> None:
        """All parts, first empty; looks for news from then on."""
        self.head = ui.element("div").classes("desk-head")
        self.banner = ui.element("div").classes("banner-place").props('aria-live="assertive"')
        with ui.element("div").classes("desk"):
            with card(self.heard("conversation"), classes="desk-chat"):
                chat = ui.element("div").classes("chat").props('data-follow role="log"')
                self.note_place = ui.element("div").classes("full")
            with ui.element("div").classes("desk-draft"):
                middle, below = ui.element("div").classes("stack"), ui.element("div").classes("stack")
            why = ui.element("div").classes("desk-why")
        names = getattr(self.visit.desk.responder, "entity_names", ())
        self.chat = ChatColumn(chat, self.heard)
        self.draft = DraftColumn(middle, self.actions, self.chat.light, self._keep_address)
        self.why = WhyColumn(why, below, self.actions, self.chat.light, names)
        self.draft.writing = self.visit.request.query_params.get("write") == "1"
        await self.refresh(self.trail)
        self._note_box()
        ui.timer(POLL_SECONDS, self._look)

    async def _look(self) -> None:
        try:
            newest = await self.visit.does(stamp, self.visit.desk.store, self.key)
        except SignInError:
            self.visit.leave()
            return
        except VRBotError:
            return  # the next look may do better; what is shown stays
        if newest != self.stamp:
            await self.refresh(None)

    async def refresh(self, trail: Trail | None) -> None:
        """Shows the consultation as it is stored now; a trail given is followed from here on."""
        found = await self.visit.asked(self.heard, self._read)
        if found is None:
            return
        self.stamp, case, labels = found
        view = view_of(case, self.trail if trail is None else trail)
        self.trail, self.actions.view, self.actions.labels = view.trail, view, labels
        if view.needs_draft and not self.pending:
            self.pending = True
            background_tasks.create(self._have_drafted(view), name="first draft")
        given = (view.current.change or {}) if view.current is not None else {}
        labelled = tuple(kind for kind, label in labels.items() if label.value == given.get(kind))
        self._show(Moment(view, labelled, self.pending, self.draft.writing))
        self._keep_address()

    def _read(self) -> tuple[int, Case, dict[str, Label]]:
        """What the store has: the stamp of the moment before, the consultation, the labels of its newest turn."""
        desk, actor = self.visit.desk, self.visit.actor
        before, case = stamp(desk.store, self.key), desk.consultations.case(actor, self.key)
        return before, case, desk.annotation.labels_of(actor, case.turns[-1].id) if case.turns else {}

    async def _have_drafted(self, view: DeskView) -> None:
        with self.actions.client:
            try:
                if view.turn is not None and await self.visit.goes_on():
                    await wanted_draft(self.visit.console, self.visit.actor, view.turn.id)
            except VRBotError as error:
                ui.notify(told(error, self.heard), type="warning", position="top")
            finally:
                self.pending = False
            await self.refresh(None)

    def _show(self, now: Moment) -> None:
        before, self.shown = self.shown, now
        if before is None or before.view.case.turns != now.view.case.turns or before.view.closed != now.view.closed:
            self._head(now.view)
            self._red_flags(now.view)
        talked = [(each.view.case.turns, each.view.case.messages, each.view.reply) for each in (before, now) if each]
        if len(talked) < 2 or talked[0] != talked[1]:
            self.chat.show(now.view)
        decided = [(each.view.reply, each.view.current, each.view.closed) for each in (before, now) if each]
        if len(decided) < 2 or decided[0] != decided[1]:
            self.why.show(now.view)
        if before is None or _draft_part(before) != _draft_part(now):
            self.draft.show(now.view, pending=now.pending, labelled=now.labelled)

    def _keep_address(self) -> None:
        """The trail and whether somebody writes stand in the address, so that a reload comes back to them."""
        parts = [f"at={self.trail}"] if len(self.trail.versions) > 1 else []
        parts += ["write=1"] if self.draft.writing else []
        ui.navigate.history.replace(f"/consultations/{self.key}" + ("?" + "&".join(parts) if parts else ""))

    def _head(self, view: DeskView) -> None:
        self.head.clear()
        secret = self.visit.console.settings.secret
        with self.head:
            with link("", "/consultations", "back-link") as back:
                back.props["aria-label"] = self.heard("all consultations")
                icon("arrow_back")
            text("h1", self.title, "page-title")
            text("span", self.heard(f"language {view.case.consultation.language}"), "badge")
            if view.closed:
                text("span", self.heard("ended"), "badge badge-closed")
            ui.element("div").classes("grow")
            with link("", f"/patient/{patient_token(secret, self.key)}", "button button-plain") as patient_link:
                patient_link.props('target="_blank" rel="noopener" data-testid="patient-link"')
                patient_link.props["title"] = self.heard("patient view title")
                icon("open_in_new")
                text("span", self.heard("patient view"))
            if not view.closed:
                button(self.heard("end"), self._ask_to_end, kind="quiet", name="lock")

    def _ask_to_end(self) -> None:
        with ui.dialog(value=True) as dialog, card(self.heard("end"), classes="dialog"):
            text("p", self.heard("end question"))

            async def end() -> None:
                dialog.close()
                await self.actions.end()

            with ui.element("div").classes("dialog-foot"):
                button(self.heard("cancel"), dialog.close, kind="quiet")
                button(self.heard("end"), end, kind="danger", name="lock")
        dialog.on("hide", dialog.delete)

    def _note_box(self) -> None:
        if self.shown is not None and self.shown.view.closed:
            return
        about = Composer(
            name="note",
            keep=f"note:{self.key}",
            label=self.heard("note down"),
            send=self.heard("note down send"),
            placeholder=self.heard("note down"),
            hint=self.heard("enter sends"),
        )
        with self.note_place:
            composer(about, self.actions.note_down)

    def _red_flags(self, view: DeskView) -> None:
        self.banner.clear()
        flagged = [(turn, flag) for turn in reversed(view.case.turns) for flag in turn.flags.findings]
        if not flagged or view.closed:
            return
        language = self.heard.language
        worst = "stop" if any(flag["level"] == "stop" for _, flag in flagged) else "caution"
        with (
            self.banner,
            ui.element("div").classes(f"banner banner-{worst}").props('role="alert" data-testid="banner"'),
        ):
            icon("emergency", "banner-icon")
            with ui.element("div").classes("banner-body"):
                text("strong", self.heard("red flags"), "banner-title")
                for turn, flag in flagged:
                    name = flag.get(f"name_{language}") or self.heard("red flag")
                    advice = flag.get(f"advice_{language}") or self.heard("check failed")
                    with ui.element("div").classes("banner-line"):
                        text("strong", str(name))
                        text("span", str(advice))
                        text("span", self.heard("turn", seq=turn.seq), "banner-note")
                text("div", NOTICE[language], "banner-note").props('data-testid="notice"')


def _draft_part(moment: Moment) -> tuple[object, ...]:
    view = moment.view
    shown = (view.turn, view.current, view.before, view.answer, view.closed)
    return (*shown, view.trail, moment.labelled, moment.pending, moment.writing)
