"""The card of the served model, shown as text."""

from __future__ import annotations

from nicegui import ui

from vrbot.serving.console.card_view import Block, Code, Grid, Heading, Paragraph, blocks_of
from vrbot.serving.console.parts import asked, button, card, empty_state, text
from vrbot.serving.console.records_frame import command, page_style, plain_table
from vrbot.serving.console.shell import Visit, page_frame
from vrbot.serving.console.words import card as card_words
from vrbot.serving.responder import DescribesItself


async def page(visit: Visit) -> None:
    """Builds the page."""
    heard = visit.words(card_words.WORDS)
    responder = visit.desk.responder
    content = await asked(heard, lambda: responder.card) if isinstance(responder, DescribesItself) else None
    with page_frame(visit, "model"):
        page_style(visit)
        with ui.element("div").classes("page-head"):
            with ui.element("div"):
                text("h1", heard("heading"), "page-title")
                text("p", heard("note"), "page-note")
            ui.element("div").classes("grow")
            if content:
                kept = content.encode("utf-8")
                button(
                    heard("download"), lambda: ui.download.content(kept, "README.md", "text/markdown"), name="download"
                )
        if not content:
            empty_state("badge", heard("none"), heard("none text"))
            return
        with card(heard("fingerprint")):
            text("code", "" if responder is None else responder.fingerprint, "fingerprint")
        for section in _sections(blocks_of(content)):
            with ui.element("section").classes("card model-card"):
                for block in section:
                    _show(block, visit.language)


def _sections(blocks: list[Block]) -> list[list[Block]]:
    """The blocks from each heading to the next."""
    found: list[list[Block]] = []
    for block in blocks:
        if isinstance(block, Heading) or not found:
            found.append([])
        found[-1].append(block)
    return found


def _show(block: Block, language: str) -> None:
    if isinstance(block, Heading):
        title = card_words.in_language(block.text, language)
        text("h2", title, "card-headline" if block.level == 1 else "card-title")
    elif isinstance(block, Paragraph):
        text("p", card_words.in_language(block.text, language), "prose")
    elif isinstance(block, Code):
        command(block.text)
    elif isinstance(block, Grid):
        header = [card_words.in_language(cell, language) for cell in block.header]
        rows = [[card_words.in_language(cell, language) for cell in row] for row in block.rows]
        plain_table(header, rows, numbers=max(len(header) - 1, 0))
