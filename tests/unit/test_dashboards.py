"""Dashboards and alerts name what is exported, are what `panels.yml` says, and are explained."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.dashboards import FOLDER, Dashboard, Panel, dashboards, rendered
from tests.support.promql import faults_in, labels_of

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
        assert titles[-1] == "Memory and disk"


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


@pytest.mark.parametrize(
    ("expression", "fault"),
    [
        ("blizzard_records", "no metric blizzard_records"),
        ("rate(blizzard_batch_duration_seconds[5m])", "no metric blizzard_batch_duration_seconds"),
        ('penguin_lag_seconds{pipeline="p"}', "no label pipeline"),
        ("sum by (tabel) (penguin_lag_seconds)", "no label tabel"),
        ("up and on (host) penguin_lag_seconds", "no label host"),
        ('penguin_lag_seconds{table="blizzard_nothing"}', None),
    ],
)
def test_what_is_not_exported_is_found(expression: str, fault: str | None):
    assert list(faults_in(expression)) == ([] if fault is None else [fault])
