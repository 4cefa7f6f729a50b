"""The Grafana dashboards in `ops/grafana`, written from what `panels.yml` says of each panel.

`make dashboards` writes them; a test sees that they are what is written now.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parents[2] / "ops" / "grafana"
WIDTH, ROW_HEIGHT = 24, 1
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
SCHEMA_VERSION = 38
"""That of Grafana 10; newer ones migrate it when they load it."""

Node = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Query:
    """One expression of a panel, and what its series are called."""

    expression: str
    legend: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One panel: what it shows, in which unit, and as what."""

    title: str
    text: str
    queries: tuple[Query, ...]
    unit: str = "short"
    shape: str = "timeseries"
    width: int = 8
    height: int = 7
    bad_from: float | None = None
    """From which value on a number is red."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of panels under a heading."""

    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dashboard:
    """One dashboard: of a program, with its pipelines or tables to choose from."""

    uid: str
    title: str
    label: str
    metric: str
    """The metric whose label has the names to choose from."""
    rows: tuple[Row, ...]


def dashboards() -> Iterator[Dashboard]:
    """Yield every dashboard that `panels.yml` describes."""
    for found in yaml.safe_load((FOLDER / "panels.yml").read_text()):
        rows = tuple(
            Row(row["title"], tuple(_described(panel) for panel in row["panels"]))
            for row in found.pop("rows")
        )
        yield Dashboard(**found, rows=rows)


def _described(panel: Node) -> Panel:
    queries = tuple(Query(query["expr"], query["legend"]) for query in panel["queries"])
    usual = {"width": 4, "height": 4} if panel.get("shape") == "stat" else {}
    return Panel(**{**usual, **panel, "queries": queries})


def rendered(dashboard: Dashboard) -> str:
    """Write a dashboard as Grafana loads it."""
    document = {
        "uid": dashboard.uid,
        "title": dashboard.title,
        "tags": ["blizzard", "penguin", "delta-lake"],
        "schemaVersion": SCHEMA_VERSION,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "time": {"from": "now-6h", "to": "now"},
        "refresh": "30s",
        "timezone": "browser",
        "annotations": {"list": []},
        "links": [],
        "templating": {"list": list(_variables(dashboard))},
        "panels": list(_panels(dashboard)),
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _variables(dashboard: Dashboard) -> Iterator[Node]:
    yield {
        "name": "datasource",
        "label": "Data source",
        "type": "datasource",
        "query": "prometheus",
        "current": {},
        "hide": 0,
    }
    query = f"label_values({dashboard.metric}, {dashboard.label})"
    yield {
        "name": dashboard.label,
        "label": dashboard.label.capitalize(),
        "type": "query",
        "datasource": SOURCE,
        "query": {"query": query, "refId": "names"},
        "definition": query,
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"selected": True, "text": ["All"], "value": ["$__all"]},
        "hide": 0,
    }


def _panels(dashboard: Dashboard) -> Iterator[Node]:
    """Yield rows and panels, each with a number and a place: from left to right, then down."""
    number, top = 1, 0
    for row in dashboard.rows:
        place = {"h": ROW_HEIGHT, "w": WIDTH, "x": 0, "y": top}
        yield {
            "id": number, "type": "row", "title": row.title, "gridPos": place,
            "collapsed": False, "panels": [],
        }  # fmt: skip
        number, top, left, height = number + 1, top + ROW_HEIGHT, 0, 0
        for panel in row.panels:
            if left + panel.width > WIDTH:
                top, left, height = top + height, 0, 0
            place = {"h": panel.height, "w": panel.width, "x": left, "y": top}
            yield {"id": number, "gridPos": place, **_panel(panel)}
            number, left, height = number + 1, left + panel.width, max(height, panel.height)
        top += height


def _panel(panel: Panel) -> Node:
    is_number = panel.shape == "stat"
    return {
        "type": panel.shape,
        "title": panel.title,
        "description": panel.text,
        "datasource": SOURCE,
        "targets": [
            {
                "refId": chr(ord("A") + place),
                "datasource": SOURCE,
                "expr": query.expression,
                "legendFormat": query.legend,
                "instant": is_number,
                "range": not is_number,
            }
            for place, query in enumerate(panel.queries)
        ],
        "fieldConfig": {"defaults": _field(panel), "overrides": []},
        "options": _number_options() if is_number else _graph_options(),
    }


def _field(panel: Panel) -> Node:
    steps: list[Node] = [{"color": "green", "value": None}]
    if panel.bad_from is not None:
        steps.append({"color": "red", "value": panel.bad_from})
    colour = "thresholds" if panel.shape == "stat" else "palette-classic"
    field: Node = {
        "unit": panel.unit,
        "color": {"mode": colour},
        "thresholds": {"mode": "absolute", "steps": steps},
    }
    if panel.shape == "timeseries":
        field |= {"min": 0, "custom": {"fillOpacity": 10, "lineWidth": 1, "showPoints": "never"}}
    return field


def _number_options() -> Node:
    return {
        "colorMode": "background",
        "graphMode": "none",
        "justifyMode": "auto",
        "orientation": "auto",
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        "textMode": "auto",
    }


def _graph_options() -> Node:
    return {
        "legend": {"calcs": [], "displayMode": "list", "placement": "bottom", "showLegend": True},
        "tooltip": {"mode": "multi", "sort": "desc"},
    }


def write() -> None:
    """Write every dashboard."""
    for dashboard in dashboards():
        (FOLDER / f"{dashboard.uid}.json").write_text(rendered(dashboard))


if __name__ == "__main__":
    write()
