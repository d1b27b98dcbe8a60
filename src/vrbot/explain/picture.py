"""An explanation as a picture: the chat with marked words, state chips, bars, and the paths as a graph."""

from __future__ import annotations

import logging
import unicodedata
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path as FilePath
from typing import Any

from vrbot.agent.reply import Reply
from vrbot.agent.respond import Conversation
from vrbot.dialogue.session import CATEGORIES
from vrbot.errors import UsageError
from vrbot.explain.evidence import Evidence, KeywordEvidence, Place
from vrbot.explain.readable import place_text, printable, words_of
from vrbot.files import atomic_write_bytes

log = logging.getLogger(__name__)

CJK_FONTS = (
    "Noto Sans CJK SC",
    "Noto Serif CJK SC",
    "Source Han Sans SC",
    "WenQuanYi Zen Hei",
    "SimHei",
    "PingFang SC",
)
COLOURS = {"generated": "#dddddd", "context": "#9ecae1", "state": "#a1d99b", "action": "#fdae6b"}
CHIPS = {"new": "#a1d99b", "kept": "#d9d9d9", "dropped": "#fc9272"}
FORMATS = (".png", ".svg")
COLUMNS = 44
"""How many columns of text a line of the chat holds; Chinese characters take two."""


def chinese_font() -> str | None:
    """A font of this machine that can write Chinese, or None."""
    from matplotlib import font_manager

    known = font_manager.fontManager
    if not any(font.name in CJK_FONTS for font in known.ttflist):
        listed = {font.fname for font in known.ttflist}  # a list that matplotlib keeps: later fonts are not in it
        for path in font_manager.findSystemFonts():
            if path not in listed:
                with suppress(RuntimeError, OSError):  # a file that is no font it can draw with
                    known.addfont(path)
    there = {font.name for font in known.ttflist}
    return next((name for name in CJK_FONTS if name in there), None)


def draw(reply: Reply, conversation: Conversation, path: FilePath, language: str) -> None:
    """Writes the picture as PNG or SVG, by the ending of the path; a missing Chinese font is logged as a warning."""
    if path.suffix.lower() not in FORMATS:
        raise UsageError(f"{path} is neither a .png nor a .svg file: choose one of these endings")
    evidence, words = reply.evidence, words_of(language)
    if not isinstance(evidence, Evidence):
        raise UsageError("there is no evidence to draw: ask an explainer for the reply")
    import matplotlib

    font = chinese_font()
    if font is None and any(not character.isascii() for turn in conversation for text in turn for character in text):
        log.warning(
            "no font on this machine can write Chinese, so boxes will stand for it: install one, "
            "for example the Debian package fonts-noto-cjk"
        )
    family = ["DejaVu Sans"] if font is None else [font, "DejaVu Sans"]
    with matplotlib.rc_context({"font.family": family, "svg.fonttype": "path", "svg.hashsalt": "vrbot"}):
        save(_figure(reply, evidence, conversation, words), path)


def save(figure: Any, path: FilePath) -> None:
    """Writes a figure as what the ending says, whole or not at all; the same figure gives the same bytes."""
    ending = path.suffix.lower().removeprefix(".")
    with atomic_write_bytes(path) as file:
        figure.savefig(file, format=ending, dpi=110, metadata={"Date" if ending == "svg" else "Software": None})


def _figure(reply: Reply, evidence: Evidence, conversation: Conversation, words: Mapping[str, str]) -> Any:
    from matplotlib.figure import Figure

    figure: Any = Figure(figsize=(13, 8.5), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=(1.25, 1.0))
    _draw_chat(left.subplots(), evidence, conversation, words)
    chips, categories, keywords, paths = right.subplots(4, 1, height_ratios=(0.7, 1.1, 1.2, 2.0))
    _draw_chips(chips, evidence, words)
    _draw_categories(categories, reply, words)
    _draw_keywords(keywords, evidence.keywords or (), words)
    _draw_paths(paths, evidence.keywords or (), words)
    figure.supxlabel(words["notice"], fontsize=8)
    return figure


def _draw_chat(axes: Any, evidence: Evidence, conversation: Conversation, words: Mapping[str, str]) -> None:
    """The last two turns; words that were copied, and those that caused a change of the state, are marked."""
    _bare(axes, words["context"])
    marks = _marks(evidence)
    pen = _Pen(axes)
    turn = len(conversation) - 1
    for number in range(max(0, turn - 1), turn + 1):
        for speaker, text in zip(("patient", "physician"), conversation[number], strict=True):
            if speaker == "physician" and number == turn:
                continue
            pen.line(place_text(Place(speaker, number, 0, 0, 0), words) + ":")  # type: ignore[arg-type]
            for start, end, colour in _runs(text, marks.get((speaker, number), {})):
                pen.write(printable(text[start:end]), colour)
            pen.line()
    pen.line(words["reply"] + ":")
    for word in evidence.words:
        pen.write(printable(word.text), COLOURS[word.source])
    pen.line()
    pen.line()
    for source, colour in COLOURS.items():
        pen.write(words.get(f"{source} source", words.get(source, source)), colour)
        pen.write("  ", None)


def _marks(evidence: Evidence) -> dict[tuple[str, int], dict[tuple[int, int], str]]:
    """Colours of places, by speaker and turn."""
    marks: dict[tuple[str, int], dict[tuple[int, int], str]] = {}
    for word in evidence.words:
        for copy in word.copies:
            if copy.place is not None and copy.share >= 0.05:
                at = copy.place
                marks.setdefault((at.speaker, at.turn), {})[at.start, at.end] = COLOURS["context"]
    for entity in evidence.state or ():
        for mention in entity.mentions:
            if entity.status == "new" and mention.share >= 0.05:
                at = mention.place
                marks.setdefault((at.speaker, at.turn), {})[at.start, at.end] = COLOURS["state"]
    return marks


def _runs(text: str, marks: Mapping[tuple[int, int], str]) -> list[tuple[int, int, str | None]]:
    """A text as stretches with their colours."""
    runs: list[tuple[int, int, str | None]] = []
    cursor = 0
    for (start, end), colour in sorted(marks.items()):
        if start >= cursor:
            runs += [(cursor, start, None), (start, end, colour)]
            cursor = end
    return [run for run in [*runs, (cursor, len(text), None)] if run[0] < run[1]]


class _Pen:
    """Writes text on axes character by character, in columns, with a coloured ground; stops at the lower edge."""

    def __init__(self, axes: Any) -> None:
        self._axes, self._column, self._row = axes, 0, 0
        axes.set_xlim(0, COLUMNS)
        axes.set_ylim(30, -1)

    def write(self, text: str, colour: str | None) -> None:
        for character in text:
            width = 2 if unicodedata.east_asian_width(character) in "WF" else 1
            if self._column + width > COLUMNS:
                self.line()
            if colour is not None:
                ground = (self._column, self._row - 0.45)
                self._axes.add_patch(_rectangle(ground, width, 0.9, colour))
            self._axes.text(
                self._column + width / 2,
                self._row,
                character,
                ha="center",
                va="center",
                fontsize=13,
                parse_math=False,
                clip_on=True,
            )
            self._column += width

    def line(self, text: str = "") -> None:
        self.write(text, None)
        self._column, self._row = 0, self._row + 1


def _rectangle(corner: tuple[float, float], width: float, height: float, colour: str) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle(corner, width, height, color=colour, linewidth=0)


def _draw_chips(axes: Any, evidence: Evidence, words: Mapping[str, str]) -> None:
    _bare(axes, words["state"])
    state = evidence.state or ()
    axes.set_xlim(0, 4)
    axes.set_ylim(-max(2, -(-len(state) // 4)) + 0.4, 0.6)
    for number, entity in enumerate(state):
        style = {"boxstyle": "round", "facecolor": CHIPS[entity.status], "edgecolor": "none"}
        text = {"new": "+ ", "kept": "", "dropped": "- "}[entity.status] + printable(entity.name)
        axes.text(number % 4 + 0.5, -(number // 4), text, ha="center", va="center", bbox=style, parse_math=False)


def _draw_categories(axes: Any, reply: Reply, words: Mapping[str, str]) -> None:
    axes.set_title(words["action"], loc="left", fontsize=10)
    if reply.categories is None:
        axes.set_axis_off()
        return
    names = list(reversed(CATEGORIES))
    bars = axes.barh([words[name] for name in names], [reply.categories[name] for name in names], color="#9ecae1")
    axes.bar_label(bars, fmt="{:.0%}", padding=3)
    axes.set_xlim(0, 1.15)
    axes.set_xticks([])


def _draw_keywords(axes: Any, keywords: Sequence[KeywordEvidence], words: Mapping[str, str]) -> None:
    axes.set_title(words["keywords"], loc="left", fontsize=10)
    if not keywords:
        axes.set_axis_off()
        return
    shown = list(reversed(keywords))
    places = range(len(shown))
    said = [keyword.probability * keyword.from_conversation for keyword in shown]
    reached = [keyword.copy_weight for keyword in shown]
    axes.barh(places, said, color=COLOURS["context"], label=words["from_conversation"])
    axes.barh(places, reached, left=said, color=COLOURS["action"], label=words["from_graph"])
    axes.set_yticks(list(places), [printable(keyword.name) for keyword in shown], parse_math=False)
    axes.set_xlim(0, 1)
    axes.legend(fontsize=7, loc="lower right")


def _draw_paths(axes: Any, keywords: Sequence[KeywordEvidence], words: Mapping[str, str]) -> None:
    """Each path on a line of its own, from the state on the left to the keyword on the right."""
    _bare(axes, words["paths"])
    paths = [path for keyword in keywords for path in keyword.paths][:6]
    axes.set_xlim(-0.1, 1.1)
    axes.set_ylim(-max(len(paths), 2) + 0.4, 0.7)
    for row, path in enumerate(paths):
        across = [i / (len(path.entities) - 1) for i in range(len(path.entities))]
        for x, entity in zip(across, path.entities, strict=True):
            style = {"boxstyle": "round", "facecolor": "#f0f0f0"}
            axes.text(x, -row, printable(entity), ha="center", va="center", bbox=style, fontsize=8, parse_math=False)
        for start, end, relation in zip(across, across[1:], path.relations, strict=False):
            arrow = {"arrowstyle": "->", "shrinkA": 26, "shrinkB": 26}
            axes.annotate("", (end, -row), (start, -row), arrowprops=arrow)
            middle = (start + end) / 2
            axes.text(middle, -row + 0.18, printable(relation), ha="center", fontsize=7, parse_math=False)
        effect = words["effect"].format(effect=-path.effect)
        below = f"{words['weight']} {path.weight:.2g}, {effect}"
        axes.text(across[1] / 2, -row - 0.3, below, ha="center", fontsize=7, color="#555555")


def _bare(axes: Any, title: str) -> None:
    axes.set_title(title, loc="left", fontsize=10)
    axes.set_axis_off()
