"""Experiments: tables and curves from the folders `vrbot experiment run` writes."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from nicegui import ui

from vrbot.evaluation.tables import ABSENT, Cell, Table
from vrbot.serving.console.material import material_of
from vrbot.serving.console.parts import asked, button, card, empty_state, link, text
from vrbot.serving.console.records_frame import command, page_style
from vrbot.serving.console.shell import Visit, page_frame
from vrbot.serving.console.words import Words, experiments

if TYPE_CHECKING:
    from vrbot.serving.console.experiments_view import CorpusView, ExperimentView, Listed, Panel

RUN = """vrbot experiment run latents --corpus CORPUS --out experiments/latents
vrbot serve MODEL --experiments experiments"""
COLOURS = ["#0f766e", "#b45309", "#4f46e5", "#be185d", "#15803d", "#64748b"]


async def page(visit: Visit) -> None:
    """Builds the page, which fills as soon as the folder is read; `?name=` chooses among several experiments."""
    heard = visit.words(experiments.WORDS)
    folder = material_of(visit.console.settings).experiments
    with page_frame(visit, "experiments", wide=True):
        page_style(visit)
        _head(heard)
        if folder is None:
            _nothing(heard, heard("none text"))
            return
        place = ui.element("div").classes("stack")
        with place:
            text("p", heard("loading"), "hint").props('role="status"')

        async def fill() -> None:
            found = await asked(heard, _experiments_in, folder)
            wanted = visit.request.query_params.get("name")
            if not found:
                place.clear()
                with place:
                    _nothing(heard, heard("empty folder", folder=folder.name))
                return
            chosen = next((each for each in found if each.name == wanted), found[0])
            view = None if chosen.problem else await asked(heard, _experiment_view, chosen.path)
            place.clear()
            with place:
                if len(found) > 1:
                    _choice(heard, found, chosen)
                _show(heard, chosen, view)

        ui.timer(0.01, fill, once=True)


def _nothing(heard: Words, body: str) -> None:
    with empty_state("science", heard("none"), body):
        command(RUN)


def _experiments_in(place: Path) -> list[Listed]:
    from vrbot.serving.console.experiments_view import experiments_in  # brings every model there is

    return experiments_in(place)


def _experiment_view(path: Path) -> ExperimentView:
    from vrbot.serving.console.experiments_view import experiment_view

    return experiment_view(path)


def _head(heard: Words) -> None:
    with ui.element("div").classes("page-head"):
        with ui.element("div"):
            text("h1", heard("heading"), "page-title")
            text("p", heard("note"), "page-note")
        ui.element("div").classes("grow")
        button(heard("reload"), ui.navigate.reload, name="refresh", key="R")


def _choice(heard: Words, found: list[Listed], chosen: Listed) -> None:
    with ui.element("nav").classes("tabs") as tabs:
        tabs.props["aria-label"] = heard("choose")
        for each in found:
            anchor = link("", "/experiments", "tab")
            anchor.props["href"] = f"/experiments?name={quote(each.name)}"
            anchor.props["aria-current"] = "page" if each is chosen else "false"
            with anchor:
                text("span", each.name)


def _show(heard: Words, chosen: Listed, view: ExperimentView | None) -> None:
    if view is None:
        empty_state("error_outline", heard("broken"), chosen.problem)
        return
    _facts(heard, view)
    if not any(each.tables for each in view.corpora):
        empty_state("hourglass_empty", heard("nothing finished"), heard("nothing finished text"))
    for each in view.corpora:
        _corpus(heard, each, alone=len(view.corpora) == 1)
    if view.failures:
        with card(heard("failures")), ui.element("ul").classes("plain-list"):
            for line in view.failures:
                text("li", line)


def _facts(heard: Words, view: ExperimentView) -> None:
    done, planned = view.runs
    with card(view.plan.title, note=heard("runs", done=done, all=planned)):
        with ui.element("div").classes("meter").props("aria-hidden=true"):
            ui.element("div").classes("meter-fill").style(f"width: {100 * done / max(planned, 1):.0f}%")
        facts = {
            "source": view.plan.source,
            "recipe": view.setup.recipe,
            "seeds": ", ".join(map(str, view.setup.seeds)),
            "beam": str(view.setup.beam),
            "corpus": ", ".join(view.setup.corpora),
        }
        with ui.element("dl").classes("facts"):
            for key, value in facts.items():
                with ui.element("div"):
                    text("dt", heard(key))
                    text("dd", value)


def _corpus(heard: Words, view: CorpusView, *, alone: bool) -> None:
    if not alone:
        text("h2", view.corpus, "section-title")
    if view.panels:
        with card(heard("curves"), note=heard("curves note")), ui.element("div").classes("panels"):
            for panel in view.panels:
                ui.echart(curve_options(panel), renderer="svg").classes("panel")
    for key, table in view.tables.items():
        with card(heard(key), classes="table-card"):
            score_rows(heard, table)
            with ui.element("details").classes("notes"):
                text("summary", heard("notes"))
                for note in table.notes:
                    text("p", note, "hint")
            content = table.to_csv().encode("utf-8")
            name = f"{view.corpus}-{key}.csv"
            hand_out = partial(ui.download.content, content, name, "text/csv")
            save = button(heard("csv"), hand_out, name="download")
            save.classes("card-action").props["title"] = heard("csv title")


def score_rows(heard: Words, table: Table) -> None:
    """A table of results: the best of a column in bold, intervals below the means."""
    named = {"system": heard("system"), "runs": heard("runs column")}
    with ui.element("div").classes("table-scroll"), ui.element("table").classes("table"):
        with ui.element("thead"), ui.element("tr"):
            for place, column in enumerate(table.columns):
                text("th", named.get(column, column), "" if place == 0 else "number").props("scope=col")
        with ui.element("tbody"):
            for row in table.rows:
                with ui.element("tr"):
                    for place, cell in enumerate(row):
                        _cell(heard, cell, table.decimals, first=place == 0)


def _cell(heard: Words, cell: Cell, decimals: int, *, first: bool) -> None:
    value = cell.value
    told = ABSENT if value is None else f"{value:,.{decimals}f}" if isinstance(value, float) else str(value)
    with ui.element("th" if first else "td").classes("" if first else "number") as made:
        if first:
            made.props["scope"] = "row"
        text("span", told + cell.marker, "best" if cell.best else "")
        if cell.low is not None and cell.high is not None:
            low, high = f"{cell.low:.{decimals}f}", f"{cell.high:.{decimals}f}"
            text("span", f"{low} – {high}", "interval").props["title"] = heard("interval", low=low, high=high)


def curve_options(panel: Panel) -> dict[str, Any]:
    """The chart of one metric: a line for each curve, whiskers where there is an interval."""
    series: list[dict[str, Any]] = []
    for place, (name, points) in enumerate(panel.lines.items()):
        colour = COLOURS[place % len(COLOURS)]
        line = {"data": [[x, mean] for x, mean, _, _ in points], "symbolSize": 8, "lineStyle": {"width": 2}}
        series.append({"type": "line", "name": name, "color": colour, **line})
        for x, _, low, high in points:
            if low is not None and high is not None:
                whisker = {"symbol": "rect", "symbolSize": [9, 2], "lineStyle": {"width": 1.5, "opacity": 0.6}}
                ends = {"data": [[x, low], [x, high]], "silent": True, "tooltip": {"show": False}}
                series.append({"type": "line", "name": name, "color": colour, **whisker, **ends})
    return {
        "title": {"text": panel.metric, "left": "center", "textStyle": {"fontSize": 13, "color": "#64748b"}},
        "tooltip": {"trigger": "item", "renderMode": "richText"},
        "legend": {"bottom": 0, "type": "scroll", "data": list(panel.lines), "textStyle": {"color": "#64748b"}},
        "grid": {"left": 48, "right": 16, "top": 36, "bottom": 64},
        "xAxis": {"type": "value", "name": panel.axis, "nameLocation": "middle", "nameGap": 26, "scale": True},
        "yAxis": {"type": "value", "scale": True},
        "animation": False,
        "series": series,
    }
