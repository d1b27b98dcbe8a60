"""What a physician does at the desk: everything goes by its rules and is in the store before it is shown."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from nicegui import ui

from vrbot.errors import VRBotError
from vrbot.serving.annotation import Label
from vrbot.serving.console.desk_view import DeskView, Trail, action_of, state_chips
from vrbot.serving.console.drafts import begin_draft, wanted_draft
from vrbot.serving.console.parts import told
from vrbot.serving.console.shell import Visit
from vrbot.serving.console.words import Words
from vrbot.serving.problems import ConflictError, ReasonNeededError, SignInError
from vrbot.serving.records import Draft
from vrbot.serving.schema import LABELS
from vrbot.serving.texts import text_sha256

P = ParamSpec("P")
T = TypeVar("T")
Refresh = Callable[[Trail | None], Awaitable[None]]


@dataclass(frozen=True)
class Seen:
    """What was on the screen when somebody decided to send: the draft, its text there, the newest turn."""

    draft: Draft
    text: str
    turn: int


AskReason = Callable[[Seen, tuple[dict[str, Any], ...]], None]


def _on_page(
    method: Callable[Concatenate[DeskActions, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[DeskActions, P], Coroutine[Any, Any, T]]:
    """Lets a method speak to its page whatever has become of the button that called it."""

    @wraps(method)
    async def called(self: DeskActions, /, *arguments: P.args, **named: P.kwargs) -> T:
        with self.client:
            return await method(self, *arguments, **named)

    return called


class DeskActions:
    """The actions on one consultation; `refresh` shows what came of them, `ask_reason` asks for one."""

    def __init__(self, visit: Visit, consultation: str, heard: Words, refresh: Refresh) -> None:
        self.visit, self.consultation, self.heard, self._refresh = visit, consultation, heard, refresh
        self.client = ui.context.client
        self.view: DeskView | None = None
        self.labels: Mapping[str, Label] = {}
        self.ask_reason: AskReason | None = None

    @_on_page
    async def approve(self, seen: Seen, reason: str | None = None, findings: str | None = None) -> bool:
        """Sends the draft if its text is the one on the screen and the patient has said nothing more.

        A reason is for the findings of this fingerprint; where others have come, it is asked for again.
        """
        if text_sha256(seen.text) != seen.draft.text_sha256:
            self._warn(self.heard("seen another"))
            return False
        approve = self.visit.desk.signoff.approve
        try:
            await self.visit.does(
                approve,
                self.visit.actor,
                seen.draft.id,
                text_sha256(seen.text),
                override_reason=reason,
                seen_turn=seen.turn,
                seen_findings=findings,
            )
        except SignInError:
            self.visit.leave()
            return False
        except ReasonNeededError as error:
            if self.ask_reason is not None:
                self.ask_reason(seen, tuple(dict(finding) for finding in error.findings))
            return False
        except VRBotError as error:
            more = isinstance(error, ConflictError) and "said more" in str(error)
            self._warn(self.heard("said more") if more else told(error, self.heard))
            await self._refresh(None)
            return False
        ui.notify(self.heard("sent now"), type="positive", position="top", timeout=1500)
        await self._refresh(None)
        return True

    @_on_page
    async def edit(self, draft: Draft, words: str) -> bool:
        """A new version in the physician's words; it waits for approval like any other."""
        edit = self.visit.desk.signoff.edit
        made = await self.visit.asked(self.heard, edit, self.visit.actor, draft.id, draft.text_sha256 or "", words)
        await self._refresh(Trail())
        return made is not None

    @_on_page
    async def write(self, turn: str, words: str) -> bool:
        """A draft from nothing."""
        made = await self.visit.asked(self.heard, self.visit.desk.drafting.write, self.visit.actor, turn, words)
        await self._refresh(Trail())
        return made is not None

    @_on_page
    async def reject(self, draft: Draft) -> None:
        """Sets the draft aside."""
        if await self.visit.asked(self.heard, self.visit.desk.signoff.reject, self.visit.actor, draft.id) is not None:
            ui.notify(self.heard("set aside now"), position="top", timeout=1200)
        await self._refresh(Trail())

    @_on_page
    async def ask_again(self) -> None:
        """Has the model draft once more."""
        if self.view is not None and self.view.turn is not None:
            await self._drafted(self.view.turn.id, None)
            await self._refresh(Trail())

    @_on_page
    async def change(self, part: str, value: Any) -> None:
        """What if a part of the state or the action were another? The new draft is shown beside the one before."""
        view = self.view
        if view is None or view.turn is None:
            return
        given = dict(view.current.change or {}) if view.current is not None else {}
        draft = await self._drafted(view.turn.id, {**given, part: value})
        if draft is None:
            return
        if draft.failure is not None:
            self._warn(self.heard("error other", message=draft.failure))
            return
        versions = view.trail.versions
        kept = versions[: versions.index(draft.version)] if draft.version in versions else versions
        await self._refresh(Trail(view.turn.seq, (*kept, draft.version)))

    @_on_page
    async def undo(self) -> None:
        """Back to the draft before."""
        if self.view is not None and len(self.view.trail.versions) > 1:
            await self._refresh(Trail(self.view.trail.seq, self.view.trail.versions[:-1]))

    @_on_page
    async def save_label(self) -> None:
        """Keeps what was given in the what-if as labels of the turn.

        The desk does not show other people's labels, so that none of those is replaced from here.
        """
        view = self.view
        if view is None or view.turn is None or view.current is None or not view.current.change:
            return
        kinds = {kind: self.heard("action" if kind == "category" else kind) for kind in LABELS}
        kinds = {kind: name for kind, name in kinds.items() if view.current.change.get(kind) is not None}
        for kind, name in kinds.items():
            value, there = view.current.change[kind], self.labels.get(kind)
            if there is not None and there.value == value:
                continue
            if there is not None and there.made_by != self.visit.actor.id:
                self._warn(self.heard("labelled otherwise", kind=name))
                return
            seen = 0 if there is None else there.number
            label = self.visit.desk.annotation.label
            if await self.visit.asked(self.heard, label, self.visit.actor, view.turn.id, kind, value, seen) is None:
                return
        saved = self.heard("label saved", kinds=", ".join(kinds.values()))
        ui.notify(saved, type="positive", position="top", timeout=2000)
        await self._refresh(None)

    @_on_page
    async def note_down(self, words: str, name: str) -> bool:
        """Stores what the patient said, as the physician heard it."""
        receive = self.visit.desk.consultations.receive
        turn = await self.visit.asked(self.heard, receive, self.visit.actor, self.consultation, name, words)
        if turn is not None:
            begin_draft(self.visit.console, self.visit.actor, turn.id)
        await self._refresh(None)
        return turn is not None

    @_on_page
    async def end(self) -> None:
        """Closes the consultation."""
        await self.visit.asked(self.heard, self.visit.desk.consultations.close, self.visit.actor, self.consultation)
        await self._refresh(None)

    def state_names(self) -> list[str]:
        """The entities of the state shown."""
        reply: Mapping[str, Any] = {} if self.view is None else self.view.reply
        return [chip.name for chip in state_chips(reply) if chip.status != "dropped"]

    def keyword_names(self) -> list[str]:
        """The keywords of the action shown."""
        return list(action_of({} if self.view is None else self.view.reply)[1])

    async def _drafted(self, turn: str, change: Mapping[str, Any] | None) -> Draft | None:
        if not await self.visit.goes_on():
            return None
        try:
            return await wanted_draft(self.visit.console, self.visit.actor, turn, change)
        except VRBotError as error:
            self._warn(told(error, self.heard))
            return None

    def _warn(self, message: str) -> None:
        ui.notify(message, type="warning", position="top")
