"""Batches as OpenLineage runs and as OpenTelemetry traces, from events.

In lineage, the job is the pipeline, its inputs are the source folders, and its output is the table.
A run begins with a batch and completes with its journal entry; penguin then makes it visible.

A listing that finds nothing makes no trace. A trace ends with the step, so it includes the hand-off
and an inline commit.
"""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

from blizzard.events import (
    BatchJournaled,
    BatchStarted,
    BatchStep,
    InferenceEnded,
    StageFinished,
    UnitReported,
    UnitsEnded,
)
from blizzard.model.settings import BlizzardSettings, PipelineSettings
from lakebed.documents.entry import Entry
from lakebed.locations import place_of
from lakebed.telemetry.events import Event, StepFailed, StepFinished
from lakebed.telemetry.export import BATCH, Span, TracedBatch, Value
from lakebed.telemetry.health import PartKind
from lakebed.terminal.console import picked

SPEC = "https://openlineage.io/spec"
RUN_EVENT = f"{SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent"
FACETS = {
    "schema": "1-2-0/SchemaDatasetFacet",
    "storage": "1-0-1/StorageDatasetFacet",
    "inputStatistics": "1-0-0/InputStatisticsInputDatasetFacet",
    "outputStatistics": "1-0-2/OutputStatisticsOutputDatasetFacet",
    "errorMessage": "1-0-1/ErrorMessageRunFacet",
    "processing_engine": "1-1-1/ProcessingEngineRunFacet",
    "jobType": "2-0-4/JobTypeJobFacet",
}
"""The facets to send, with the versions of their schemas."""

Node = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineExporter:
    """Writes the documents of one pipeline. Pure."""

    settings: PipelineSettings
    namespace: str
    version: str
    """The version of the program."""

    def started(self, run: UUID, at: float) -> Node:
        """Return the START event of a batch."""
        inputs = [dataset_of(source.uri) for source in self.settings.sources]
        return self._event("START", run, at, inputs=inputs, outputs=[self._output()])

    def completed(self, run: UUID, at: float, entry: Entry) -> Node:
        """Return the COMPLETE event of a batch, with what it read and wrote."""
        inputs = list(self._inputs(entry))
        output = self._output() | {
            "facets": {
                **self._output()["facets"],
                **self._facet("schema", fields=fields_of(entry.table_schema["fields"])),
            },
            "outputFacets": self._facet(
                "outputStatistics",
                rowCount=sum(file.record_count for file in entry.files),
                size=sum(file.size for file in entry.files),
                fileCount=len(entry.files),
            ),
        }
        return self._event("COMPLETE", run, at, inputs=inputs, outputs=[output])

    def stopped(self, run: UUID, at: float) -> Node:
        """Return the event of a batch that was stopped before it read anything."""
        return self._event("ABORT", run, at, inputs=[], outputs=[])

    def failed(self, run: UUID, at: float, message: str) -> Node:
        """Return the FAIL event of a batch; a retry is another run."""
        inputs = [dataset_of(source.uri) for source in self.settings.sources]
        facet = self._facet("errorMessage", message=message, programmingLanguage="PYTHON")
        return self._event("FAIL", run, at, inputs=inputs, outputs=[self._output()], facets=facet)

    def _inputs(self, entry: Entry) -> Iterator[Node]:
        """Yield every source that was read, with the amount."""
        for name, uri in entry.source_uris.items():
            read = [
                record
                for record in entry.readings
                if record.source == name and record.failure is None and not record.gone
            ]
            if read:
                yield dataset_of(uri) | {
                    "inputFacets": self._facet(
                        "inputStatistics",
                        rowCount=sum(record.lines for record in read),
                        size=sum(record.size for record in read),
                        fileCount=len(read),
                    )
                }

    def _output(self) -> Node:
        storage = self._facet("storage", storageLayer="delta", fileFormat="parquet")
        return dataset_of(self.settings.sink.table_uri) | {"facets": storage}

    def _event(
        self,
        kind: str,
        run: UUID,
        at: float,
        *,
        inputs: list[Node],
        outputs: list[Node],
        facets: Mapping[str, Any] | None = None,
    ) -> Node:
        engine = self._facet("processing_engine", version=self.version, name="blizzard")
        job_type = self._facet(
            "jobType", processingType="BATCH", integration="BLIZZARD", jobType="JOB"
        )
        return {
            "eventType": kind,
            "eventTime": datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds"),
            "producer": self._producer,
            "schemaURL": RUN_EVENT,
            "run": {"runId": str(run), "facets": {**engine, **(facets or {})}},
            "job": {
                "namespace": self.namespace,
                "name": self.settings.name,
                "facets": job_type,
            },
            "inputs": inputs,
            "outputs": outputs,
        }

    @property
    def _producer(self) -> str:
        return f"urn:blizzard-penguin:{self.version}"

    def _facet(self, facet: str, /, **values: object) -> Node:
        kind = FACETS[facet].partition("/")[2]
        schema = f"{SPEC}/facets/{FACETS[facet]}.json#/$defs/{kind}"
        return {facet: {"_producer": self._producer, "_schemaURL": schema, **values}}


def dataset_of(uri: str) -> Node:
    """Return a location as an OpenLineage dataset: the store as namespace, the folder as name."""
    place = place_of(uri)
    path = "/".join(place.folders)
    if place.scheme == "file":
        return {"namespace": "file", "name": f"/{path}"}
    if place.scheme == "az":
        host = f"{place.bucket}@{place.account}.dfs.core.windows.net"
        return {"namespace": f"abfss://{host}", "name": path or "/"}
    return {"namespace": f"{place.scheme}://{place.bucket}", "name": path or "/"}


def fields_of(columns: list[Node]) -> list[Node]:
    """Return the columns of a table, including fields of structs."""
    return [_field(column["name"], column["type"]) for column in columns]


def _field(name: str, kind: Any) -> Node:  # noqa: ANN401 - a name, or what Delta nests
    if not isinstance(kind, dict):
        return {"name": name, "type": kind}
    match kind["type"]:
        case "struct":
            return {"name": name, "type": "struct", "fields": fields_of(kind["fields"])}
        case "array":
            inner = [_field("_element", kind["elementType"])]
            return {"name": name, "type": "array", "fields": inner}
        case "map":
            inner = [_field("key", kind["keyType"]), _field("value", kind["valueType"])]
            return {"name": name, "type": "map", "fields": inner}
        case other:
            return {"name": name, "type": str(other)}


def tellers_of(settings: BlizzardSettings) -> dict[str, PipelineExporter]:
    """Return a writer of lineage documents for each pipeline."""
    program, namespace = version("blizzard-penguin"), settings.export.openlineage_namespace
    return {
        each.name: PipelineExporter(settings=each, namespace=namespace, version=program)
        for each in settings.pipelines
    }


class LineageListener:
    """Turns the events of every pipeline into lineage documents."""

    def __init__(
        self,
        put: Callable[[bytes], None],
        seconds: Callable[[], float],
        pipelines: Mapping[str, PipelineExporter],
    ) -> None:
        self._put, self._seconds, self._pipelines = put, seconds, pipelines
        self._lock = threading.Lock()
        self._runs: dict[str, UUID] = {}

    def __call__(self, event: Event) -> None:
        """Take in an event."""
        now = self._seconds()
        with self._lock:
            match event:
                case BatchStarted() if event.pipeline in self._pipelines:
                    name = f"{event.journal}/{event.pipeline}/{event.entry}/{now}"
                    run = self._runs[event.pipeline] = uuid5(NAMESPACE_URL, name)
                    self._send(self._pipelines[event.pipeline].started(run, now))
                case BatchJournaled(document=Entry() as entry) if event.pipeline in self._runs:
                    run = self._runs.pop(event.pipeline)
                    self._send(self._pipelines[event.pipeline].completed(run, now, entry))
                case StepFailed(kind=PartKind.PIPELINE) if event.who in self._runs:
                    run = self._runs.pop(event.who)
                    self._send(self._pipelines[event.who].failed(run, now, event.shown))
                case StepFinished(kind=PartKind.PIPELINE) if event.who in self._runs:
                    run = self._runs.pop(event.who)
                    self._send(self._pipelines[event.who].stopped(run, now))
                case _:
                    pass

    def _send(self, document: Node) -> None:
        self._put(json.dumps(document, ensure_ascii=False).encode())


MOST_UNITS = 1000
"""The most units of a batch with their own spans; a larger trace is unreadable."""
COUNTS = "files_read files_failed records bytes_read parquet_files bytes_written"
"""The attributes of a unit's span."""
ROWS = "rows source_files=files source_files_failed=failed parquet_files bytes"
"""The attributes of a journaled batch's span."""
_Part = tuple[tuple[str, ...], str, tuple[float, float], Mapping[str, Value]]
"""A span's names, parent, start and end, and attributes."""


@dataclass(slots=True)
class _TracedUnit:
    began: float
    ended: float
    report: UnitReported


@dataclass(slots=True)
class _OpenBatch:
    """A batch that has not ended."""

    batch: TracedBatch
    began: float
    attributes: dict[str, Value]
    parts: list[_Part] = field(default_factory=list)
    units: dict[str, _TracedUnit] = field(default_factory=dict)
    journaled: bool = False

    def add(self, name: str, start: float, end: float, **attributes: Value) -> None:
        attributes["pipeline"] = self.batch.pipeline
        self.parts.append(((name,), BATCH, (start, end), attributes))

    def add_units(self) -> None:
        """Turn unit reports into child spans of the run."""
        for name, unit in self.units.items():
            attributes = {"unit": name, **picked(unit.report, COUNTS)}
            self.parts.append((("unit", name), BatchStep.RUN, (unit.began, unit.ended), attributes))
        self.units = {}

    def ended(self, at: float, error: str | None) -> Iterator[Span]:
        """Yield all spans of the batch.

        An attempt that was not journaled is repeated under the same entry number, so its spans get
        other ids: the batch's ids belong to the attempt that is journaled.
        """
        attempt = "" if self.journaled else str(self.began)
        batch = replace(self.batch, attempt=attempt)
        took = self.began, at
        yield batch.part(BATCH, below=None, took=took, attributes=self.attributes, error=error)
        for name, below, took, attributes in self.parts:
            yield batch.part(*name, below=below, took=took, attributes=attributes)


class BatchTracer:
    """Turns the events of every pipeline into spans."""

    def __init__(self, put: Callable[[Span], None], seconds: Callable[[], float]) -> None:
        self._put, self._seconds = put, seconds
        self._lock = threading.Lock()
        self._discovered: dict[str, tuple[float, float]] = {}
        self._open: dict[str, _OpenBatch] = {}

    def __call__(self, event: Event) -> None:
        """Take in an event."""
        now = self._seconds()
        with self._lock:
            match event:
                case StageFinished(stage=BatchStep.DISCOVER):
                    self._discovered[event.pipeline] = (now - event.seconds, now)
                case BatchStarted():
                    self._started(event, now)
                case StageFinished() if event.pipeline in self._open:
                    self._open[event.pipeline].add(event.stage.value, now - event.seconds, now)
                case UnitReported() if event.pipeline in self._open:
                    self._reported(event, now)
                case InferenceEnded() if event.pipeline in self._open:
                    self._open[event.pipeline].units = {}
                case UnitsEnded() if event.pipeline in self._open:
                    self._open[event.pipeline].add_units()
                case BatchJournaled() if event.pipeline in self._open:
                    batch = self._open[event.pipeline]
                    batch.journaled = True
                    batch.attributes |= picked(event, ROWS)
                case StepFinished(kind=PartKind.PIPELINE):
                    self._ended(event.who, now, None)
                case StepFailed(kind=PartKind.PIPELINE):
                    self._ended(event.who, now, event.shown)
                case _:
                    pass

    def _reported(self, event: UnitReported, now: float) -> None:
        """Record a unit's latest report."""
        units = self._open[event.pipeline].units
        began = units[event.unit].began if event.unit in units else now
        if event.unit in units or len(units) < MOST_UNITS:
            units[event.unit] = _TracedUnit(began, now, event)

    def _started(self, event: BatchStarted, now: float) -> None:
        began, listed = self._discovered.pop(event.pipeline, (now, now))
        batch = TracedBatch(pipeline=event.pipeline, journal=event.journal, entry=event.entry)
        found = self._open[event.pipeline] = _OpenBatch(
            batch, began, picked(event, "pipeline entry units")
        )
        found.add(BatchStep.DISCOVER.value, began, listed)
        found.add("plan", listed, now, **picked(event, "files bytes units"))

    def _ended(self, pipeline: str, now: float, error: str | None) -> None:
        self._discovered.pop(pipeline, None)
        batch = self._open.pop(pipeline, None)
        if batch is not None:
            batch.add_units()
            for span in batch.ended(now, error):
                self._put(span)
