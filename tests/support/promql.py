"""Which metrics and labels an expression names: all of them must be ours."""

import re
from collections.abc import Iterator

from blizzard.metrics import METRICS
from lakebed.telemetry.measures import MetricKind, Spec
from penguin.metrics import METRICS as PENGUIN

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
