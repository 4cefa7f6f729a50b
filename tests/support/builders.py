"""Builders: say what matters to a test, and get the rest right."""

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any
from uuid import UUID

from blizzard.discover.schedule import Pace
from blizzard.execute.runner import Runner
from blizzard.handoff.publish import Publisher
from blizzard.journal.lease import Lease
from blizzard.model.settings import (
    PipelineSettings,
    RollingPolicy,
    SinkSettings,
    SourceSettings,
    UploadSettings,
)
from blizzard.model.source.file import SourceFile, UnfinishedFile
from blizzard.model.work import ClosedFile, TaskLimits, Work, WorkUnit
from blizzard.pipeline import Pipeline
from blizzard.pipeline_log import PipelineLog
from lakebed.clock import Clock, uuid7
from lakebed.columns.schema import ELEMENT, Field, Schema
from lakebed.documents.entry import Entry, decode_entry, encode
from lakebed.documents.records import (
    ColumnStatistics,
    Failure,
    FailureStage,
    FinishedFile,
    OldFile,
    Rewrite,
    SourceRecord,
)
from lakebed.layout import TablePath, entry_sequence, journal_folder
from lakebed.partition import Template
from lakebed.storage.options import Location, ObjectFacts, StorageOptions
from lakebed.storage.store import Reader, Store
from lakebed.telemetry.events import Event
from lakebed.types import Codec as SourceCodec
from lakebed.types import FieldType, Handoff
from tests.support.runner import InProcessRunner

NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)

ID_AND_NAME = Schema(
    (
        Field(name="id", type=FieldType.INT64, nullable=False),
        Field(name="name", type=FieldType.STRING),
    )
)


def declared(**columns: Any) -> Schema:
    """Declare columns: a type each, with a ! if required; a dict is a struct, [one] a list."""
    return Schema(tuple(column(name, kind) for name, kind in columns.items()))


def column(name: str, kind: Any) -> Field:
    match kind:
        case dict():
            inner = tuple(column(*each) for each in kind.items())
            return Field(name=name, type=FieldType.STRUCT, fields=inner)
        case [items]:
            return Field(name=name, type=FieldType.LIST, items=column(ELEMENT, items))
    required = kind.endswith("!")
    return Field(name=name, type=FieldType(kind.removesuffix("!")), nullable=not required)


@dataclass
class Hands:
    """A clock whose hands a test moves; ids are drawn from a counter."""

    at: float = NOON.timestamp()
    drawn: Iterator[int] = field(default_factory=count)

    def seconds(self) -> float:
        return self.at

    def randomness(self, size: int) -> bytes:
        return next(self.drawn).to_bytes(size, "big")

    def sleep(self, _seconds: float) -> None:
        """Be over at once; the hands stay where they are."""

    @property
    def clock(self) -> Clock:
        return Clock(self.seconds, self.randomness, self.sleep)


def no_options() -> StorageOptions:
    return StorageOptions()


def ndjson(rows: Iterable[Mapping[str, Any]]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def rows(number: int, start: int = 0) -> list[dict[str, Any]]:
    return [{"id": start + index, "name": f"name {start + index}"} for index in range(number)]


def gz(body: bytes) -> bytes:
    return gzip.compress(body, mtime=0)


def put(root: Path, path: str, body: bytes) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_bytes(body)


def facts(path: str, *, size: int = 10, etag: str | None = "e1") -> ObjectFacts:
    return ObjectFacts(path=path, size=size, etag=etag, modified=NOON)


def source_file(
    path: str = "a.ndjson",
    *,
    source: str = "default",
    size: int = 10,
    codec: SourceCodec = SourceCodec.NONE,
    partition_values: Mapping[str, str | None] | None = None,
) -> SourceFile:
    return SourceFile(
        source=source,
        path=path,
        size=size,
        etag="e1",
        modified=NOON,
        codec=codec,
        partition_values=partition_values or {},
    )


def listed(root: Path, *, source: str = "default") -> tuple[SourceFile, ...]:
    """Return every file of a folder as a listing shows it, compressed or not by its suffix."""
    suffixes = {".gz": SourceCodec.GZIP, ".zst": SourceCodec.ZSTD}
    found = sorted(Reader(str(root), no_options()).objects(), key=lambda each: each.path)
    return tuple(
        SourceFile(
            source=source,
            path=each.path,
            size=each.size,
            etag=each.etag,
            modified=each.modified,
            codec=suffixes.get(Path(each.path).suffix, SourceCodec.NONE),
            partition_values={},
        )
        for each in found
    )


def record(
    path: str = "a.ndjson",
    *,
    source: str = "default",
    size: int = 10,
    etag: str | None = "e1",
    failure: Failure | None = None,
) -> SourceRecord:
    rows = 0 if failure is not None else 1
    return SourceRecord(
        source=source, path=path, size=size, etag=etag, lines=rows, rows=rows, failure=failure
    )


def failure(*, retryable: bool = False, attempts: int = 1, code: str = "bad_json") -> Failure:
    return Failure(
        stage=FailureStage.DOWNLOAD if retryable else FailureStage.PARSE,
        code=code,
        message="it went wrong",
        retryable=retryable,
        attempts=attempts,
    )


def known(*records: SourceRecord, at: datetime = NOON) -> Mapping[str, UnfinishedFile]:
    return {each.key: UnfinishedFile(record=each, at=at) for each in records}


def rewrite(
    old: str, *new: FinishedFile, size: int = 100, left_out: int = 0, **given: Any
) -> Rewrite:
    """Return the rewrite of one data file."""
    rows = left_out + sum(file.record_count for file in new)
    file = OldFile(path=TablePath(old), size=size, rows=rows, left_out=left_out)
    return Rewrite(old=(file,), new=new, **given)


def finished_file(name: str = "x.parquet", *, unit: str = "0.0") -> FinishedFile:
    return FinishedFile(
        filename=TablePath(name),
        size=100,
        record_count=3,
        partition_values={"date": "2024-01-01", "region": None},
        source_file="s3://bucket/a.ndjson",
        source_files=("default:a.ndjson",),
        unit=unit,
        statistics={"id": ColumnStatistics(null_count=0, minimum=1, maximum=3)},
        modification_time=1_704_110_400_000,
    )


def closed_file(folder: Path, *, body: bytes = b"PAR1", number: int = 1) -> ClosedFile:
    name: UUID = uuid7(number, number.to_bytes(10, "big"))
    path = folder / f"{name}.parquet"
    path.write_bytes(body)
    return ClosedFile(
        name=name, path=path, size=len(body), rows=1, sources=("default:a",), statistics={}
    )


def identity(*, run: str = "run-1", handoff: Handoff = Handoff.JOURNAL, **given: Any) -> Entry:
    usual: dict[str, Any] = {
        "kind": "open",
        "pipeline": "default",
        "journal": "",
        "sequence": 0,
        "created": "",
        "previous": None,
        "source_uris": {"default": "/in"},
        "table_schema": ID_AND_NAME.delta(),
        "partition_columns": (),
    }
    return Entry(run=run, handoff=handoff, **(usual | given))


def entry_body(sequence: int) -> bytes:
    """Return the bytes of an entry that says nothing but its number."""
    entry = identity(kind="batch", pipeline="events", journal="j", sequence=sequence)
    return encode(replace(entry, created="2026-01-01T00:00:00+00:00"))


def work(source: Path, sink: Path, **given: Any) -> Work:
    limits = TaskLimits(
        max_concurrent_files=given.pop("max_concurrent_files", 4),
        batch_size=given.pop("batch_size", 8192),
    )
    usual: dict[str, Any] = {
        "sources": {"default": Location(uri=str(source), options=no_options())},
        "sink": Location(uri=str(sink), options=no_options()),
        "file_schema": ID_AND_NAME,
        "rolling": RollingPolicy(),
        "upload": UploadSettings(),
        "limits": dict.fromkeys(given.get("sources", {"default": None}), limits),
        "marks": {"pipeline": "default", "journal": "j-1"},
        # To wait is to do nothing, by a function that executors know, too.
        "clock": Clock(sleep=float),
    }
    return Work(**(usual | given))


def unit(files: Iterable[SourceFile], name: str = "7") -> WorkUnit:
    return WorkUnit(name=name, partition_values={}, files=tuple(files))


def source_settings(root: Path | str = "/in", **given: Any) -> SourceSettings:
    return SourceSettings(uri=str(root), **given)


def pipeline_settings(
    source: Path,
    table: Path,
    *,
    template: str | None = None,
    timestamp_field: str | None = None,
    **given: Any,
) -> PipelineSettings:
    usual: dict[str, Any] = {
        "sources": (source_settings(source),),
        "sink": SinkSettings(
            table_uri=str(table),
            template=Template.parse(template) if template else None,
            timestamp_field=timestamp_field,
        ),
        "schema": ID_AND_NAME,
    }
    return PipelineSettings(**(usual | given))


BEGUN: list[Pipeline] = []
"""The pipelines of a test, the last one at the end."""


class AtEveryStep(Pace):
    """Looks at the sources at every step, as a run that polls does when it is time."""

    def between(self, source: SourceSettings) -> float:
        return 0.0


@dataclass(slots=True)
class PatientLog(PipelineLog):
    """The log of a table that keeps files as long as a test lets it, however late they come."""

    knows: bool = False
    keeps: timedelta = timedelta.max

    def knows_pipeline(self) -> bool:
        return self.knows

    def retention(self) -> timedelta:
        return self.keeps


@dataclass
class Bench:
    """A pipeline over two folders, and everything an operator could see of it."""

    settings: PipelineSettings
    publisher: Publisher = field(default_factory=Publisher)
    runner: Runner = field(default_factory=InProcessRunner)
    hands: Hands = field(default_factory=Hands)
    log_knows_pipeline: bool = False
    once: bool = True
    run_id: str = "run-1"
    store: type[Store] = Store
    lease: Lease | None = None
    events: list[Event] = field(default_factory=list)

    def pipeline(self) -> Pipeline:
        """Start a run: what it knows, it knows from the table directory."""
        begun = Pipeline(
            settings=self.settings,
            runner=self.runner,
            publisher=self.publisher,
            log=PatientLog(self.settings, knows=self.log_knows_pipeline),
            clock=self.hands.clock,
            emit=self.events.append,
            pace=Pace(drain=self.once),
            run_id=self.run_id,
            open_source=lambda place: Reader(place.uri, place.options),
            open_sink=lambda place: self.store(place.uri, place.options, make_folder=True),
            lease=self.lease,
            pause=self.hands.sleep,
        )
        BEGUN.append(begun)
        return begun

    def stepping(self) -> Pipeline:
        """Start a run in which files land between two steps, and each step finds them."""
        begun = replace(self.pipeline(), pace=AtEveryStep(drain=self.once))
        BEGUN.append(begun)
        return begun

    def again(self, **given: Any) -> "Bench":
        """Return the same pipeline, as another process with other circumstances."""
        return replace(self, events=[], **given)

    def said(self, kind: type[Event]) -> list[Event]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def table(self) -> Path:
        return Path(self.settings.sink.table_uri)

    def entries(self) -> list[Entry]:
        return entries(self.table, self.settings.name)


def entries(table: Path, pipeline: str = "default") -> list[Entry]:
    """Read a journal from the disk, as another program would."""
    folder = table / journal_folder(pipeline)
    paths = sorted(path for path in folder.glob("*.json") if entry_sequence(path.name) is not None)
    return [decode_entry(path.read_bytes(), str(path)) for path in paths]


def tree(root: Path) -> dict[str, tuple[int, int]]:
    """Return every file below a folder with its size and time, to see whether it was written to."""
    return {
        str(path.relative_to(root)): (path.stat().st_size, path.stat().st_mtime_ns)
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }
