"""A batch is one trace: the stages of the driver, its units, and an error if it had one."""

from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from blizzard.events import BatchStarted, InferenceEnded, UnitReported, UnitsEnded
from blizzard.exports import BatchTracer
from lakebed.errors import StoreUnavailable
from lakebed.telemetry.events import Event, StepFailed, StepFinished
from lakebed.telemetry.export import Span, TracedBatch
from tests.support.builders import Bench, ndjson, pipeline_settings, put, rows
from tests.support.pipelines import run_once


@dataclass
class Traced:
    """A pipeline that is traced, by a clock that goes on with every event."""

    bench: Bench
    spans: list[Span] = field(default_factory=list)
    at: float = 1000.0

    def __post_init__(self) -> None:
        self.tracer = BatchTracer(self.spans.append, self.seconds)
        self.pipeline = self.bench.stepping()
        self.pipeline.emit = self.pipeline._events.emit = self.tracer

    def seconds(self) -> float:
        self.at += 0.001
        return self.at

    def run(self) -> None:
        run_once(self.pipeline, self.tracer)

    def named(self, name: str) -> Span:
        (found,) = (span for span in self.spans if span.name == name)
        return found


@pytest.fixture
def traced(tmp_path: Path) -> Traced:
    source = tmp_path / "in"
    put(source, "a.ndjson", ndjson(rows(3)))
    return Traced(Bench(pipeline_settings(source, tmp_path / "table")))


def test_a_batch_is_one_trace_with_its_stages(traced: Traced):
    traced.run()
    (entry,) = traced.bench.entries()[1:]
    batch = TracedBatch(pipeline="default", journal=entry.journal, entry=1)
    assert {span.trace for span in traced.spans} == {batch.trace}
    root = traced.named("batch")
    assert (root.id, root.parent, root.error) == (batch.span("batch"), None, None)
    assert root.attributes == {
        "pipeline": "default",
        "entry": 1,
        "units": 1,
        "rows": 3,
        "source_files": 1,
        "source_files_failed": 0,
        "parquet_files": 1,
        "bytes": sum(file.size for file in entry.files),
    }
    stages = [span.name for span in traced.spans if span.parent == root.id]
    assert stages == ["discover", "plan", "run", "journal", "publish"]
    assert all(root.start <= span.start <= span.end <= root.end for span in traced.spans)


def heard(traced: Traced, unit: str, records: int) -> None:
    traced.tracer(UnitReported(pipeline="default", unit=unit, records=records, files_read=1))


def test_units_are_below_the_run_from_their_first_report_to_their_last(traced: Traced):
    traced.tracer(
        BatchStarted(pipeline="default", entry=1, files=2, bytes=10, units=2, journal="j")
    )
    heard(traced, "0", 0)
    traced.tracer(InferenceEnded(pipeline="default"))
    inferred = traced.at
    heard(traced, "0", 1)
    heard(traced, "1", 5)
    heard(traced, "0", 9)
    traced.tracer(UnitsEnded(pipeline="default"))
    heard(traced, "0", 10)
    traced.tracer(UnitReported(pipeline="other", unit="0"))
    traced.tracer(StepFinished(who="default", found=True))
    units = [span for span in traced.spans if span.name == "unit"][:2]
    assert [(span.attributes["unit"], span.attributes["records"]) for span in units] == [
        ("0", 9),
        ("1", 5),
    ]
    assert units[0].end > units[1].end > units[1].start - 1
    assert units[0].start > inferred
    assert len({span.parent for span in units}) == 1


def test_a_batch_that_fails_says_why_and_the_next_try_has_spans_of_its_own(traced: Traced):
    def fails(*_given: object, **_named: object) -> None:
        raise StoreUnavailable("no answer", path="in/a.ndjson")

    runner = traced.pipeline.runner
    traced.pipeline.runner = replace(runner, stores=fails)  # type: ignore[type-var]
    traced.run()
    failed = traced.named("batch")
    assert failed.error is not None
    assert "no answer" in failed.error
    assert "[store_unavailable]" in failed.error
    before = {span.id for span in traced.spans}
    traced.pipeline.runner = runner
    traced.spans.clear()
    traced.run()
    root = traced.named("batch")
    assert (root.trace, root.error) == (failed.trace, None)
    assert root.id == TracedBatch(pipeline="default", journal=_journal(traced), entry=1).span(
        "batch"
    )
    assert not before & {span.id for span in traced.spans}


def _journal(traced: Traced) -> str:
    return traced.bench.entries()[-1].journal


def test_what_nobody_foresaw_is_not_repeated(traced: Traced):
    started: Event = BatchStarted(
        pipeline="default", entry=1, files=1, bytes=1, units=1, journal="j"
    )
    traced.tracer(started)
    traced.tracer(
        StepFailed(who="default", code="internal_error", error="a secret", next_try_secs=None)
    )
    assert traced.named("batch").error == "see the log [internal_error]"
