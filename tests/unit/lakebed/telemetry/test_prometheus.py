"""Measures as Prometheus metrics, and that every event's measures are declared."""

import math
import typing
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from importlib import import_module
from pkgutil import iter_modules
from string import Formatter
from sys import modules
from types import NoneType
from typing import Any

import pytest
from prometheus_client import REGISTRY
from prometheus_client.parser import text_string_to_metric_families

import blizzard.events
import lakebed.telemetry.events
import penguin.events
from blizzard.metrics import METRICS as BLIZZARD
from lakebed.documents.entry import Entry
from lakebed.telemetry.events import Event
from lakebed.telemetry.health import PartKind
from lakebed.telemetry.measures import (
    QUICK,
    Age,
    Count,
    GaugeReading,
    Measure,
    MetricKind,
    Observe,
    Spec,
)
from lakebed.telemetry.metrics_server import MetricsRegistry, build_info
from penguin.telemetry import METRICS as PENGUIN

ALL = (*BLIZZARD, *PENGUIN)
LABELS = {"pipeline", "source", "table", "stage", "code", "outcome", "reason", "kind", "found_by"}
LABELS |= {"version", "python", "pyspark"}
BASES = {"Event", "PartEvent", "PipelineEvent", "TableEvent"}
EVENTS = (lakebed.telemetry.events, blizzard.events, penguin.events)
ROOMS = (
    *EVENTS,
    *(
        import_module(f"{package.__name__}.{room.name}")
        for package in EVENTS
        for room in iter_modules(getattr(package, "__path__", ()))
    ),
)

SPECS = (
    Spec(name="sent_total", kind=MetricKind.COUNTER, help="Sent.", labels=("pipeline",)),
    Spec(name="open", kind=MetricKind.GAUGE, help="Open.", labels=("pipeline",)),
    Spec(
        name="took_seconds",
        kind=MetricKind.HISTOGRAM,
        help="Took.",
        labels=("pipeline",),
        buckets=QUICK,
    ),
    Spec(name="failed_total", kind=MetricKind.COUNTER, help="Failed.", labels=("pipeline", "code")),
)
ONE = {"pipeline": "one"}
KNOWN = [build_info(kind) for kind in PartKind]
"""What is shown from the start, whatever happens."""


def samples(metrics: MetricsRegistry) -> dict[tuple[str, str], float]:
    text = metrics.page("")[1].decode()
    return {
        (sample.name, sample.labels.get("pipeline", "")): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if "le" not in sample.labels
    }


def test_each_kind_of_measure_moves_its_kind_of_metric():
    now = [100.0]
    metrics = MetricsRegistry(SPECS, seconds=lambda: now[0])
    metrics.record(Count("sent_total", 2, ONE))
    metrics.record(Count("sent_total", 3, ONE))
    metrics.record(Observe("took_seconds", 0.3, ONE))
    metrics.record(GaugeReading("open", 7, ONE))
    found = samples(metrics)
    assert found["sent_total", "one"] == 5
    assert (found["took_seconds_count", "one"], found["took_seconds_sum", "one"]) == (1, 0.3)
    assert found["open", "one"] == 7


def test_an_age_grows_while_nobody_looks_and_is_zero_where_there_is_none():
    now = [100.0]
    metrics = MetricsRegistry(SPECS, seconds=lambda: now[0])
    metrics.record(Age("open", 90.0, ONE))
    assert samples(metrics)["open", "one"] == 10
    now[0] = 160.0
    assert samples(metrics)["open", "one"] == 70
    metrics.record(Age("open", math.nan, ONE))
    assert math.isnan(samples(metrics)["open", "one"])
    metrics.record(Age("open", None, ONE))
    assert samples(metrics)["open", "one"] == 0


@pytest.mark.parametrize(
    "measure",
    [
        Count("unheard_of_total", 1, ONE),
        Count("sent_total", 1, {"table": "t"}),
        Count("sent_total", 1, {}),
        Count("open", 1, ONE),
        GaugeReading("sent_total", 1, ONE),
        Age("took_seconds", 1.0, ONE),
        Observe("open", 1, ONE),
    ],
)
def test_a_measure_that_is_not_declared_is_a_mistake_of_the_code(measure: Measure):
    with pytest.raises((KeyError, ValueError, TypeError)):
        MetricsRegistry(SPECS).record(measure)


def test_the_registry_is_our_own_and_holds_nothing_but_the_table():
    before = {family.name for family in REGISTRY.collect()}
    metrics = MetricsRegistry(ALL)
    text = metrics.page("")[1].decode()
    shown = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE ")]
    own = [name for name in shown if not name.startswith("process_")]
    assert own == [spec.name for spec in ALL]
    assert {family.name for family in REGISTRY.collect()} == before


def every_event() -> Iterator[type[Event]]:
    for room in ROOMS:
        for found in vars(room).values():
            is_event = isinstance(found, type) and issubclass(found, Event)
            if is_event and found.__name__ not in BASES:
                yield found


def test_what_an_event_says_is_filled_with_its_own_fields():
    for event in every_event():
        known = {each.name for each in fields(event)}  # type: ignore[arg-type]
        named = (name for _text, name, _spec, _how in Formatter().parse(event.says) if name)
        assert {name.partition(".")[0] for name in named} <= known, event


def sample_of(hint: Any) -> Any:
    """Make up a value of a field's type."""
    if isinstance(hint, type) and issubclass(hint, Enum):
        return next(iter(hint))
    if typing.get_origin(hint) in (tuple, list):
        return typing.get_origin(hint)([sample_of(typing.get_args(hint)[0])])
    if typing.get_origin(hint) in (dict, Mapping):
        key, value = typing.get_args(hint)
        return {sample_of(key): sample_of(value)}
    if options := [each for each in typing.get_args(hint) if each is not NoneType]:
        return sample_of(options[0])
    if isinstance(hint, type) and is_dataclass(hint) and hint is not Entry:
        inner = typing.get_type_hints(hint, vars(modules[hint.__module__]))
        return hint(**{each.name: sample_of(inner[each.name]) for each in fields(hint)})
    return {str: "x", int: 3, float: 1.5, bool: True, Entry: None}[hint]


def samples_of(kind: type[Event]) -> Iterator[Event]:
    """Make up an event, and for one that is told of pipelines and of tables, both."""
    hints = typing.get_type_hints(kind, vars(modules[kind.__module__]))
    given = {each.name: sample_of(hints[each.name]) for each in fields(kind)}  # type: ignore[arg-type]
    for part in PartKind if "kind" in given else [None]:
        yield kind(**(given if part is None else given | {"kind": part}))


@pytest.mark.parametrize(
    "kind", sorted(set(every_event()), key=str), ids=lambda kind: kind.__name__
)
def test_the_measures_of_every_event_are_declared(kind: type[Event]):
    for event in samples_of(kind):
        metrics = MetricsRegistry(ALL)
        for measure in event.measures():
            metrics.record(measure)
        assert event.sentence()
        list(event.health_changes())


def test_every_metric_is_moved_by_an_event():
    moved = {
        measure.name
        for kind in every_event()
        for event in samples_of(kind)
        for measure in event.measures()
    }
    known = {measure.name for measure in KNOWN}
    assert moved | known == {spec.name for spec in ALL}
    assert not moved & known


@pytest.mark.parametrize("spec", ALL, ids=lambda spec: spec.name)
def test_a_metric_is_named_by_the_rules_and_has_labels_of_closed_sets(spec: Spec):
    program = "blizzard_" if spec in BLIZZARD else "penguin_"
    assert spec.name.startswith(program)
    assert spec.name.endswith("_total") == (spec.kind is MetricKind.COUNTER)
    times = spec.name.endswith(("_duration_seconds", "_delay_seconds"))
    assert times == (spec.kind is MetricKind.HISTOGRAM)
    assert bool(spec.buckets) == (spec.kind is MetricKind.HISTOGRAM)
    assert set(spec.labels) <= LABELS
    assert spec.help.endswith(".")
