"""Dashboards and alerts name what is exported, are what `panels.yml` says, and are explained."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from blizzard.metrics import METRICS
from lakebed.telemetry.measures import MetricKind, Spec
from penguin.telemetry import METRICS as PENGUIN
from tests.support.dashboards import FOLDER, Dashboard, Panel, dashboards, rendered

TARGET = {"job", "instance"}
"""What Prometheus adds to every series."""
OF_PROCESS = {"process_resident_memory_bytes", "process_cpu_seconds_total", "up"}
SPECS: dict[str, Spec] = {spec.name: spec for spec in (*METRICS, *PENGUIN)}
PARTS = ("_bucket", "_sum", "_count")

_METRIC = re.compile(r"\b((?:blizzard|penguin|process)_[a-z_]+|up)\b")
_MATCHER = re.compile(r"\{([^}]*)\}")
_GROUPING = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right) *\(([^)]*)\)")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')


def metrics_in(expression: str) -> set[str]:
    """Return the names of metrics in an expression; texts and labels do not count."""
    bare = _GROUPING.sub(" ", _MATCHER.sub(" ", _STRING.sub('""', expression)))
    return set(_METRIC.findall(bare))


def spec_of(metric: str) -> Spec | None:
    """Return the metric that a series belongs to; None where there is none."""
    if metric in SPECS and SPECS[metric].kind is not MetricKind.HISTOGRAM:
        return SPECS[metric]
    for part in PARTS:
        whole = SPECS.get(metric.removesuffix(part))
        if metric.endswith(part) and whole is not None and whole.kind is MetricKind.HISTOGRAM:
            return whole
    return None


def labels_of(expression: str) -> set[str]:
    """Return the labels that the series of an expression can have."""
    found = set(TARGET)
    for metric in metrics_in(expression):
        spec = spec_of(metric)
        found |= set(spec.labels) if spec else set()
        found |= {"le"} if metric.endswith("_bucket") else set()
    return found


def faults_in(expression: str) -> Iterator[str]:
    """Yield what an expression names that nobody exports."""
    for metric in metrics_in(expression):
        if metric not in OF_PROCESS and spec_of(metric) is None:
            yield f"no metric {metric}"
    named = {
        label for group in _GROUPING.findall(expression) for label in re.findall(r"\w+", group)
    } | {
        label
        for matchers in _MATCHER.findall(expression)
        for label in re.findall(r"(\w+) *(?:=~|!~|!=|=)", _STRING.sub('""', matchers))
    }
    for label in named - labels_of(expression):
        yield f"no label {label}"


ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "dashboards.md").read_text()
DASHBOARDS = {each.uid: each for each in dashboards()}
PANELS = {
    f"{uid}: {row.title}: {panel.title}": panel
    for uid, each in DASHBOARDS.items()
    for row in each.rows
    for panel in row.panels
}
RULES: dict[str, dict[str, Any]] = {
    rule["alert"]: rule
    for group in yaml.safe_load((ROOT / "ops/prometheus/rules.yml").read_text())["groups"]
    for rule in group["rules"]
}
SHAPES = {"timeseries", "stat"}
UNITS = {"short", "s", "bytes", "Bps"}


@pytest.mark.parametrize("dashboard", DASHBOARDS.values(), ids=DASHBOARDS)
def test_the_file_is_what_make_dashboards_writes(dashboard: Dashboard):
    assert (FOLDER / f"{dashboard.uid}.json").read_text() == rendered(dashboard)


@pytest.mark.parametrize("uid", DASHBOARDS)
def test_panels_have_places_of_their_own(uid: str):
    document = json.loads((FOLDER / f"{uid}.json").read_text())
    panels = document["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken = [
        (x, y)
        for place in (panel["gridPos"] for panel in panels)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(taken) == len(set(taken))
    assert max(x for x, _ in taken) < 24
    assert {variable["name"] for variable in document["templating"]["list"]} == {
        "datasource",
        DASHBOARDS[uid].label,
    }


@pytest.mark.parametrize("panel", PANELS.values(), ids=PANELS)
def test_a_panel_names_only_what_is_exported(panel: Panel):
    assert panel.queries
    assert panel.shape in SHAPES
    assert panel.unit in UNITS
    assert panel.text.endswith(".")
    for query in panel.queries:
        assert not list(faults_in(query.expression))
        assert set(re.findall(r"{{(\w+)}}", query.legend)) <= labels_of(query.expression)


def test_both_dashboards_ask_the_same_questions():
    for uid in ("blizzard", "penguin"):
        titles = [row.title for row in DASHBOARDS[uid].rows]
        assert titles[0] == "Is it well?"
        assert "Backlog and freshness" in titles
        assert titles[-1] == "Memory and CPU"


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_an_alert_names_only_what_is_exported(rule: dict[str, Any]):
    assert not list(faults_in(rule["expr"]))
    told = " ".join(rule["annotations"].values())
    assert set(re.findall(r"\$labels\.(\w+)", told)) <= labels_of(rule["expr"])
    assert rule["labels"]["severity"] in ("critical", "warning", "info")


def test_the_page_explains_every_alert_where_it_points_to():
    headings = re.findall(r"^### (\w+)$", PAGE, flags=re.MULTILINE)
    assert headings == list(RULES)
    for name, rule in RULES.items():
        assert rule["annotations"]["runbook_url"] == f"docs/dashboards.md#{name.lower()}"
