"""A batch as OpenLineage tells it: a run of a job, what it reads and what it writes, as JSON.

The job is the pipeline, its inputs are the folders of its sources, its output is the table. A run
begins with a batch and is complete with its journal entry: from there on it has happened, and
penguin makes it visible.
"""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

from blizzard.events import BatchJournaled, BatchStarted
from blizzard.model.settings import BlizzardSettings, PipelineSettings
from lakebed.documents.entry import Entry
from lakebed.locations import place_of
from lakebed.telemetry.events import Event, StepFailed, StepFinished
from lakebed.telemetry.health import PartKind

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
"""The facets that are sent, each in the version that its fields are of."""

Node = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Teller:
    """Writes the documents of one pipeline. Pure."""

    settings: PipelineSettings
    namespace: str
    version: str
    """That of the program."""

    def started(self, run: UUID, at: float) -> Node:
        """Return that a batch begins."""
        inputs = [dataset_of(source.uri) for source in self.settings.sources]
        return self._event("START", run, at, inputs=inputs, outputs=[self._output()])

    def completed(self, run: UUID, at: float, entry: Entry) -> Node:
        """Return what a batch has read and written."""
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
        """Return that a batch came to no entry: a stop was asked for before anything was read."""
        return self._event("ABORT", run, at, inputs=[], outputs=[])

    def failed(self, run: UUID, at: float, message: str) -> Node:
        """Return that a batch failed; it is tried again as another run."""
        inputs = [dataset_of(source.uri) for source in self.settings.sources]
        facet = self._facet("errorMessage", message=message, programmingLanguage="PYTHON")
        return self._event("FAIL", run, at, inputs=inputs, outputs=[self._output()], facets=facet)

    def _inputs(self, entry: Entry) -> Iterator[Node]:
        """Yield every source of which something was read, with how much that was."""
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
    """Return how OpenLineage names a place: a namespace for the store, a name for the folder."""
    place = place_of(uri)
    path = "/".join(place.folders)
    if place.scheme == "file":
        return {"namespace": "file", "name": f"/{path}"}
    if place.scheme == "az":
        host = f"{place.bucket}@{place.account}.dfs.core.windows.net"
        return {"namespace": f"abfss://{host}", "name": path or "/"}
    return {"namespace": f"{place.scheme}://{place.bucket}", "name": path or "/"}


def fields_of(columns: list[Node]) -> list[Node]:
    """Return the columns of a table, those within structs included."""
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


def tellers_of(settings: BlizzardSettings) -> dict[str, Teller]:
    """Return what writes the documents of each pipeline."""
    program, namespace = version("blizzard-penguin"), settings.export.openlineage_namespace
    return {
        each.name: Teller(settings=each, namespace=namespace, version=program)
        for each in settings.pipelines
    }


class LineageListener:
    """Listens to the events of every pipeline, and hands documents on."""

    def __init__(
        self,
        put: Callable[[bytes], None],
        seconds: Callable[[], float],
        pipelines: Mapping[str, Teller],
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
                    self._tell(self._pipelines[event.pipeline].started(run, now))
                case BatchJournaled(document=Entry() as entry) if event.pipeline in self._runs:
                    run = self._runs.pop(event.pipeline)
                    self._tell(self._pipelines[event.pipeline].completed(run, now, entry))
                case StepFailed(kind=PartKind.PIPELINE) if event.who in self._runs:
                    run = self._runs.pop(event.who)
                    self._tell(self._pipelines[event.who].failed(run, now, event.shown))
                case StepFinished(kind=PartKind.PIPELINE) if event.who in self._runs:
                    run = self._runs.pop(event.who)
                    self._tell(self._pipelines[event.who].stopped(run, now))
                case _:
                    pass

    def _tell(self, document: Node) -> None:
        self._put(json.dumps(document, ensure_ascii=False).encode())
