"""Lineage of real batches, as OpenLineage's own library writes the same."""

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.facet_v2 import (
    error_message_run,
    input_statistics_input_dataset,
    job_type_job,
    output_statistics_output_dataset,
    processing_engine_run,
    schema_dataset,
    storage_dataset,
)
from openlineage.client.serde import Serde

from blizzard.events import BatchStarted
from blizzard.exports import LineageListener, PipelineExporter, dataset_of, fields_of
from lakebed.errors import StoreUnavailable
from lakebed.telemetry.events import StepFailed, StepFinished
from tests.support.builders import NOON, Bench, ndjson, pipeline_settings, put, rows
from tests.support.pipelines import run_once

PRODUCER = "urn:blizzard-penguin:1.2.3"


@dataclass
class Told:
    """A pipeline whose lineage is told."""

    bench: Bench
    documents: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.exporter = PipelineExporter(
            settings=self.bench.settings, namespace="lake", version="1.2.3"
        )
        self.listener = LineageListener(
            lambda body: self.documents.append(json.loads(body)),
            NOON.timestamp,
            {"default": self.exporter},
        )
        self.pipeline = self.bench.pipeline()
        self.pipeline.emit = self.pipeline._events.emit = self.listener

    def run(self) -> None:
        run_once(self.pipeline, self.listener)


@pytest.fixture
def told(tmp_path: Path) -> Told:
    put(tmp_path / "in", "a.ndjson", ndjson(rows(3)))
    put(tmp_path / "in", "b.ndjson", b'{"id": "no"}\n')
    return Told(Bench(pipeline_settings(tmp_path / "in", tmp_path / "table")))


def job() -> Job:
    kind = job_type_job.JobTypeJobFacet(
        processingType="BATCH", integration="BLIZZARD", jobType="JOB", producer=PRODUCER
    )
    return Job(namespace="lake", name="default", facets={"jobType": kind})


def run(run_id: str, **facets: Any) -> Run:
    engine = processing_engine_run.ProcessingEngineRunFacet(
        version="1.2.3", name="blizzard", producer=PRODUCER
    )
    return Run(runId=run_id, facets={"processing_engine": engine, **facets})


def as_openlineage_writes(event: RunEvent) -> dict[str, Any]:
    """Return what the library would send; empty maps and lists say nothing."""
    found: dict[str, Any] = _without_empty(Serde.to_dict(event))
    return found


def _without_empty(node: Any) -> Any:
    if isinstance(node, dict):
        kept = {key: _without_empty(each) for key, each in node.items()}
        return {key: each for key, each in kept.items() if each not in ({}, [])}
    return [_without_empty(each) for each in node] if isinstance(node, list) else node


def event(kind: RunState, of: Run, **given: Any) -> RunEvent:
    return RunEvent(
        eventType=kind,
        eventTime="2024-01-01T12:00:00.000+00:00",
        run=of,
        job=job(),
        producer=PRODUCER,
        **given,
    )


def storage() -> Any:
    return storage_dataset.StorageDatasetFacet(
        storageLayer="delta", fileFormat="parquet", producer=PRODUCER
    )


def without_rows(kind: RunState, of: Run, root: Path) -> dict[str, Any]:
    """Return what is told of a batch of which nothing is written, or not yet."""
    table = str(root / "table")
    outputs = [OutputDataset(namespace="file", name=table, facets={"storage": storage()})]
    inputs = [InputDataset(namespace="file", name=str(root / "in"))]
    return as_openlineage_writes(event(kind, of, inputs=inputs, outputs=outputs))


def test_a_batch_starts_and_is_complete_with_what_it_read_and_wrote(told: Told, tmp_path: Path):
    told.run()
    (entry,) = told.bench.entries()[1:]
    start, complete = told.documents
    run_id = start["run"]["runId"]
    source, table = str(tmp_path / "in"), str(tmp_path / "table")
    assert start == without_rows(RunState.START, run(run_id), tmp_path)
    read = input_statistics_input_dataset.InputStatisticsInputDatasetFacet(
        rowCount=3, size=len(ndjson(rows(3))), fileCount=1, producer=PRODUCER
    )
    written = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
        rowCount=3, size=sum(file.size for file in entry.files), fileCount=1, producer=PRODUCER
    )
    columns = schema_dataset.SchemaDatasetFacet(
        fields=[
            schema_dataset.SchemaDatasetFacetFields(name=column["name"], type=column["type"])
            for column in entry.table_schema["fields"]
        ],
        producer=PRODUCER,
    )
    assert complete == as_openlineage_writes(
        event(
            RunState.COMPLETE,
            run(run_id),
            inputs=[
                InputDataset(namespace="file", name=source, inputFacets={"inputStatistics": read})
            ],
            outputs=[
                OutputDataset(
                    namespace="file",
                    name=table,
                    facets={"storage": storage(), "schema": columns},
                    outputFacets={"outputStatistics": written},
                )
            ],
        )
    )


def test_a_batch_that_fails_says_why_and_the_next_try_is_another_run(told: Told, tmp_path: Path):
    def fails(*_given: object, **_named: object) -> None:
        raise StoreUnavailable("no answer", path="in/a.ndjson")

    runner = told.pipeline.runner
    told.pipeline.runner = replace(runner, stores=fails)  # type: ignore[type-var]
    told.run()
    start, fail = told.documents
    message = fail["run"]["facets"]["errorMessage"]["message"]
    assert "no answer" in message
    error = error_message_run.ErrorMessageRunFacet(
        message=message, programmingLanguage="PYTHON", producer=PRODUCER
    )
    failed = run(start["run"]["runId"], errorMessage=error)
    assert fail == without_rows(RunState.FAIL, failed, tmp_path)
    told.pipeline.runner = runner
    told.run()
    assert [each["eventType"] for each in told.documents] == ["START", "FAIL", "START", "COMPLETE"]


def test_a_batch_that_was_stopped_is_aborted_and_an_unforeseen_error_is_not_repeated(told: Told):
    started = BatchStarted(pipeline="default", entry=1, files=1, bytes=1, units=1, journal="j")
    told.listener(started)
    told.listener(StepFinished(who="default", found=False))
    told.listener(started)
    told.listener(
        StepFailed(who="default", code="internal_error", error="a secret", next_try_secs=None)
    )
    told.listener(StepFinished(who="default", found=False))
    kinds = [each["eventType"] for each in told.documents]
    assert kinds == ["START", "ABORT", "START", "FAIL"]
    assert "a secret" not in json.dumps(told.documents)


@pytest.mark.parametrize(
    ("uri", "namespace", "name"),
    [
        ("s3://bucket/a/b", "s3://bucket", "a/b"),
        ("s3a://bucket/a/b/", "s3://bucket", "a/b"),
        ("gs://bucket", "gs://bucket", "/"),
        ("/var/lake/t", "file", "/var/lake/t"),
        (
            "abfss://box@account.dfs.core.windows.net/t",
            "abfss://box@account.dfs.core.windows.net",
            "t",
        ),
    ],
)
def test_places_are_named_as_openlineage_names_them(uri: str, namespace: str, name: str):
    assert dataset_of(uri) == {"namespace": namespace, "name": name}


def test_nested_columns_are_told_whole():
    columns: list[dict[str, Any]] = [
        {"name": "id", "type": "long"},
        {"name": "who", "type": {"type": "struct", "fields": [{"name": "name", "type": "string"}]}},
        {"name": "tags", "type": {"type": "array", "elementType": "string"}},
        {"name": "more", "type": {"type": "map", "keyType": "string", "valueType": "long"}},
    ]
    assert fields_of(columns) == [
        {"name": "id", "type": "long"},
        {"name": "who", "type": "struct", "fields": [{"name": "name", "type": "string"}]},
        {"name": "tags", "type": "array", "fields": [{"name": "_element", "type": "string"}]},
        {
            "name": "more",
            "type": "map",
            "fields": [{"name": "key", "type": "string"}, {"name": "value", "type": "long"}],
        },
    ]
