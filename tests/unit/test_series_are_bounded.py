"""Pipelines that fail in every way have as many series as those that do not."""

from prometheus_client.parser import text_string_to_metric_families

from blizzard import events
from blizzard.metrics import FAILURES, METRICS, STEP_FAILURES
from lakebed.telemetry.events import Event, StepFailed
from lakebed.telemetry.health import PartKind
from lakebed.telemetry.measures import Spec
from lakebed.telemetry.metrics_server import MetricsRegistry
from penguin.events.backlog import PipelineStopped
from penguin.events.commits import FilesHeld
from penguin.model.commit import HoldCode
from penguin.telemetry import METRICS as PENGUIN

MANY = 10
CODES = [(stage, code) for stage, codes in FAILURES.items() for code in codes]
WAYS = max(len(CODES), len(STEP_FAILURES))
SECRET = "s3://bucket/path/of/customer-4711.ndjson"
PER_PIPELINE, PER_TABLE = 300, 250


def shown(metrics: MetricsRegistry) -> dict[str, set[str]]:
    """Return every series of ours, and the values of each label."""
    text = metrics.page("")[1].decode()
    labels: dict[str, set[str]] = {}
    lines = [line for line in text.splitlines() if line[0] != "#" and "_bucket{" not in line]
    labels["series"] = {line.rpartition(" ")[0] for line in lines if line[:8] != "process_"}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            for label, value in sample.labels.items():
                labels.setdefault(label, set()).add(value)
    return labels


def begun(specs: tuple[Spec, ...], label: str) -> MetricsRegistry:
    metrics = MetricsRegistry(specs)
    for number in range(MANY):
        metrics.begin(**{label: f"part-{number:03}"})
    return metrics


def happens(metrics: MetricsRegistry, event: Event) -> None:
    for measure in event.measures():
        metrics.record(measure)


def test_the_series_of_blizzard_are_bounded():
    metrics = begun(METRICS, "pipeline")
    before = shown(metrics)
    for number in range(MANY):
        name = f"part-{number:03}"
        for nth in range(WAYS):
            stage, code = CODES[nth % len(CODES)]
            happens(
                metrics,
                events.SourceFileFailed(
                    pipeline=name,
                    path=f"{SECRET}.{nth}",
                    stage=stage.value,
                    code=code,
                    reason=f"line {nth}: {SECRET}",
                    line=nth,
                    field=SECRET,
                ),
            )
            step = STEP_FAILURES[nth % len(STEP_FAILURES)]
            error = f"{SECRET} number {nth}"
            happens(metrics, StepFailed(who=name, code=step, error=error, next_try_secs=1.0))
    after = shown(metrics)
    assert after == before
    assert len(after["series"]) <= PER_PIPELINE * MANY
    assert after["pipeline"] == {f"part-{number:03}" for number in range(MANY)}
    assert not any("/" in value or " " in value for values in _labels(after) for value in values)


def test_the_series_of_penguin_are_bounded():
    metrics = begun(PENGUIN, "table")
    before = len(shown(metrics)["series"])
    for number in range(MANY):
        name = f"part-{number:03}"
        for nth in range(WAYS):
            code = list(HoldCode)[nth % len(HoldCode)]
            happens(
                metrics,
                FilesHeld(
                    table=name,
                    pipeline="p",
                    entry=nth,
                    code=code,
                    reasons=(SECRET,),
                    paths=(f"{SECRET}.{nth}",),
                    rows=1,
                ),
            )
            step = STEP_FAILURES[nth % len(STEP_FAILURES)]
            failed = StepFailed(
                kind=PartKind.TABLE, who=name, code=step, error=SECRET, next_try_secs=1.0
            )
            if step in dict(_values(PENGUIN, "penguin_step_failures_total")):
                happens(metrics, failed)
        happens(
            metrics,
            PipelineStopped(table=name, pipeline="p", code="document_unreadable", error=SECRET),
        )
    after = shown(metrics)
    # One gauge says of each pipeline of a table that it has stopped.
    assert len(after["series"]) == before + MANY
    assert before <= PER_TABLE * MANY
    assert not any("/" in value or " " in value for values in _labels(after) for value in values)


def _labels(found: dict[str, set[str]]) -> list[set[str]]:
    return [values for label, values in found.items() if label not in ("series", "le")]


def _values(specs: tuple[Spec, ...], name: str) -> list[tuple[str, bool]]:
    return [(values[0], True) for spec in specs if spec.name == name for values in spec.series]
