"""The paths from state to keywords as a picture: entities in columns, edges as strong as the model used them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vrbot.serving.console.desk_view import evidence_of

MOST_PATHS = 8
MOST_LABELS = 5
"""With more edges than this their names stand in the list of paths only, and at an edge somebody points to."""
COLOURS = {
    "symptom": "#0e9384",
    "disease": "#7a5af8",
    "medicine": "#e8590c",
    "test": "#2e90fa",
    "attribute": "#98a2b3",
    "other": "#98a2b3",
}
QUIET = "#8b95a5"
"""A grey that can be read on white and on black: the picture does not know which of them it stands on."""
ROW_HEIGHT = 62


@dataclass(frozen=True)
class ShownPath:
    """A path that carries a keyword."""

    keyword: str
    entities: tuple[str, ...]
    relations: tuple[str, ...]
    weight: float
    effect: float


def shown_paths(reply: Mapping[str, Any], keyword: str | None = None) -> list[ShownPath]:
    """The heaviest paths, of one keyword or of all."""
    found = []
    for each in evidence_of(reply).get("keywords") or ():
        if keyword in (None, each["name"]):
            found += [
                ShownPath(each["name"], tuple(p["entities"]), tuple(p["relations"]), p["weight"], p["effect"])
                for p in each["paths"]
            ]
    return sorted(found, key=lambda path: -path.weight)[:MOST_PATHS]


def weight_text(weight: float) -> str:
    """A weight in few digits; what is not nothing is not shown as nothing."""
    return f"{weight:.2f}" if weight >= 0.01 else f"{weight:.3f}" if weight >= 0.001 else "<0.001"


def entity_types(reply: Mapping[str, Any]) -> dict[str, str]:
    """The types of the entities a reply names."""
    evidence = evidence_of(reply)
    named = [*(evidence.get("state") or ()), *(evidence.get("keywords") or ())]
    return {each["name"]: each["type"] for each in named}


def picture(paths: Sequence[ShownPath], types: Mapping[str, str], relations: Mapping[str, str]) -> dict[str, Any]:
    """Options of an ECharts graph; `relations` are their names for people. Names are drawn, never read as HTML."""
    rows = _rows(_places(paths))
    tallest = max((len(names) for names in rows.values()), default=1)
    keywords = {path.keyword for path in paths}
    nodes = []
    for column, names in rows.items():
        top = (tallest - len(names)) / 2
        for row, name in enumerate(names):
            nodes.append(_node(name, column, row + top, types.get(name), column == 0 or name in keywords))
    links = [_link(path, step, relations) for path in paths for step in range(len(path.relations))]
    series = {
        "type": "graph",
        "coordinateSystem": "cartesian2d",
        "animationDuration": 300,
        "data": nodes,
        "links": _merged(links),
        "edgeSymbol": ["none", "arrow"],
        "edgeSymbolSize": 8,
        "emphasis": {"focus": "adjacency", "lineStyle": {"width": 4}},
    }
    return {
        "tooltip": {"show": False},
        "grid": {"left": 56, "right": 56, "top": 26, "bottom": 34},
        "xAxis": {"show": False, "type": "value", "min": 0, "max": max(*rows, 1)},
        "yAxis": {"show": False, "type": "value", "min": -0.35, "max": tallest - 0.65, "inverse": True},
        "series": [series],
    }


def picture_height(paths: Sequence[ShownPath]) -> int:
    """How many pixels the picture needs."""
    rows = _rows(_places(paths))
    return 56 + ROW_HEIGHT * max((len(names) for names in rows.values()), default=1)


def _places(paths: Sequence[ShownPath]) -> dict[str, int]:
    """The column of each entity: as many steps from the state as its longest way there has."""
    places: dict[str, int] = {}
    for path in paths:
        for step, name in enumerate(path.entities):
            places[name] = max(places.get(name, 0), step)
    return places


def _rows(places: Mapping[str, int]) -> dict[int, list[str]]:
    rows: dict[int, list[str]] = {}
    for name, column in places.items():
        rows.setdefault(column, []).append(name)
    return rows


def _node(name: str, x: float, y: float, kind: str | None, is_end: bool) -> dict[str, Any]:
    colour = COLOURS.get(kind or "disease", QUIET)
    return {
        "id": name,
        "name": name,
        "value": [x, y],
        "symbolSize": 16 if is_end else 11,
        "itemStyle": {"color": colour, "borderColor": colour, "borderWidth": 2},
        "label": {
            "show": True,
            "formatter": "{b}",
            "position": "bottom",
            "color": QUIET,
            "fontSize": 12,
            "distance": 5,
        },
    }


def _link(path: ShownPath, step: int, relations: Mapping[str, str]) -> dict[str, Any]:
    relation = relations.get(path.relations[step], path.relations[step])
    return {
        "source": path.entities[step],
        "target": path.entities[step + 1],
        "relation": relation,
        "weight": path.weight,
    }


def _merged(links: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """An edge that several paths share is drawn once, as strong as the strongest of them."""
    strongest: dict[tuple[str, str], Mapping[str, Any]] = {}
    for link in links:
        ends = (link["source"], link["target"])
        if ends not in strongest or link["weight"] > strongest[ends]["weight"]:
            strongest[ends] = link
    top = max((link["weight"] for link in strongest.values()), default=1.0) or 1.0
    return [
        {
            "source": link["source"],
            "target": link["target"],
            "lineStyle": {
                "width": 1.2 + 2.8 * link["weight"] / top,
                "opacity": 0.45 + 0.5 * link["weight"] / top,
                "color": QUIET,
                "curveness": 0.08,
            },
            "label": {
                "show": len(strongest) <= MOST_LABELS,
                "formatter": f"{link['relation']}  {weight_text(link['weight'])}",
                "fontSize": 11,
                "color": QUIET,
            },
            "emphasis": {"label": {"show": True}},
        }
        for link in strongest.values()
    ]
