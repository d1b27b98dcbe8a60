"""Labels as files on the annotation page: a download, and a dialog that takes a file in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nicegui import events, ui

from vrbot.errors import VRBotError
from vrbot.serving.console.annotation_files import take_in, write_labels
from vrbot.serving.console.parts import button, card, text
from vrbot.serving.problems import SignInError

if TYPE_CHECKING:
    from vrbot.serving.console.annotation_page import AnnotationScreen

MAX_MEGABYTES = 4
FILE_NAME = "labels.jsonl"


async def download_labels(screen: AnnotationScreen) -> None:
    """Hands the labels to the browser."""
    desk, actor = screen.visit.desk, screen.visit.actor
    content = await screen.visit.asked(screen.heard, write_labels, desk.annotation, actor, demo=desk.demo)
    if content is not None:
        ui.download.content(content, FILE_NAME, "application/x-ndjson")


def ask_for_file(screen: AnnotationScreen) -> None:
    """A dialog: labels of people or proposals of a model, and the file."""
    heard = screen.heard
    chosen = {"proposed": False}

    async def take(event: events.UploadEventArguments) -> None:
        desk, actor = screen.visit.desk, screen.visit.actor
        content = await event.file.read()
        try:
            taken = await screen.visit.does(
                take_in, desk.annotation, actor, event.file.name, content, proposed=chosen["proposed"], demo=desk.demo
            )
        except SignInError:
            screen.visit.leave()
            return
        except VRBotError as error:
            problem.text = f"{heard('import failed')}: {error}"
            upload.reset()
            return
        dialog.close()
        ui.notify(heard("imported", labels=taken.labels, sessions=taken.sessions), type="positive", position="top")
        await screen.reload()

    def refused() -> None:
        problem.text = heard("too large", size=MAX_MEGABYTES)

    with ui.dialog(value=True) as dialog, card(heard("import title"), classes="dialog"):
        text("p", heard("import text"), "hint")
        with ui.element("div").classes("choices").props('role="radiogroup"'):
            options = {False: "import as labels", True: "import as proposals"}
            boxes: dict[bool, ui.element] = {}

            def choose(proposed: bool) -> None:
                chosen["proposed"] = proposed
                for value, box in boxes.items():
                    box.props["aria-checked"] = "true" if value == proposed else "false"

            for value, key in options.items():
                box = ui.element("button").classes("choice").props('type="button" role="radio"')
                box.on("click", lambda value=value: choose(value), args=[])
                boxes[value] = box
                with box:
                    text("span", heard(key), "choice-title")
                    text("span", heard(f"{key} text"), "hint")
            choose(False)
        upload = ui.upload(
            label=heard("choose file"), auto_upload=True, max_file_size=MAX_MEGABYTES * 2**20, max_files=1
        ).props('accept=".jsonl,.json,.txt" flat bordered')
        upload.classes("full").on_upload(take).on_rejected(refused)
        problem = text("p", "", "problem").props('role="alert"')
        with ui.element("div").classes("dialog-foot"):
            button(heard("close"), dialog.close, kind="quiet")
    dialog.on("hide", dialog.delete)
