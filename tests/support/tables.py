"""Builders of table directories: real Parquet files and journal entries, without blizzard."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from lakebed.clock import Clock
from lakebed.columns.column_mapping import with_field_ids
from lakebed.columns.schema import Field, Schema
from lakebed.documents.entry import DirectoryProtocol, Entry, Receipt, decode, digest, encode
from lakebed.documents.parquet_footer import statistics
from lakebed.documents.records import FinishedFile, SourceRecord
from lakebed.errors import CommitUnconfirmed
from lakebed.layout import data_file, journal_entry, log_version, protocol, receipt
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import Store
from lakebed.telemetry.events import Emit, Event
from lakebed.types import FieldType, Handoff
from penguin.delta.maintenance import Begin, at_once
from penguin.delta.table import Log, WritableTable
from penguin.model.commit import CommitPlan
from penguin.model.settings import TableSettings
from penguin.pipeline import TableRun, commit_all
from penguin.status import explain

EVENTS = Schema(
    (
        Field(name="id", type=FieldType.INT64, nullable=False),
        Field(name="name", type=FieldType.STRING),
        Field(name="date", type=FieldType.DATE),
    )
)


WIDER = Schema((*EVENTS.fields, Field(name="extra", type=FieldType.STRING)))
"""The events with one column more."""


class Numbered(Schema):
    """A schema whose files carry the ids of fields, as blizzard's do."""

    def without(self, names: frozenset[str]) -> "Numbered":
        return Numbered(super().without(names).fields)

    def arrow(self) -> pa.Schema:
        return with_field_ids(super().arrow())


MARKS = {"blizzard.pipeline": "events", "blizzard.journal": "j"}
"""What blizzard writes into every footer."""

Row = dict[str, Any]


@dataclass
class TableFolder:
    """A table on a local disk, as whoever reads it sees it."""

    root: Path

    def __post_init__(self) -> None:
        self.root.mkdir(parents=True, exist_ok=True)
        self.store = Store(str(self.root), StorageOptions())

    def settings(self, **options: Any) -> TableSettings:
        return TableSettings(name="events", table_uri=str(self.root), **options)

    def delta(self) -> DeltaTable:
        return DeltaTable(str(self.root))

    def rows(self, predicate: str | None = None) -> list[Row]:
        """Read the table as deltalake does, without the reader that aborts at a process's end."""
        return pa.table(self.delta().scan(predicate=predicate).read_all()).to_pylist()

    def ids(self, predicate: str | None = None) -> list[int]:
        return sorted(row["id"] for row in self.rows(predicate))

    def versions(self) -> int:
        return len(list((self.root / "_delta_log").glob("*.json")))


@dataclass
class TableDirectory(TableFolder):
    """A table directory on a local disk, into which entries are written as blizzard would."""

    handoff: Handoff = Handoff.JOURNAL
    journals: dict[str, "Journal"] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.store.create(protocol(1), encode(DirectoryProtocol(handoff=self.handoff)))

    def journal(self, pipeline: str = "events", **options: Any) -> "Journal":
        """Return a pipeline's journal, opened with entry 0 when it is first asked for."""
        if pipeline not in self.journals:
            self.journals[pipeline] = Journal(self, pipeline, **options)
        return self.journals[pipeline]

    def commit_text(self, version: int) -> str:
        return (self.root / log_version(version)).read_text()

    def receipt(self, pipeline: str = "events") -> Receipt | None:
        body = self.store.get(receipt(pipeline))
        return None if body is None else decode(Receipt, body, "receipt")


@dataclass
class Journal:
    """One pipeline's journal, as blizzard writes it."""

    table: TableDirectory
    pipeline: str
    schema: Schema = EVENTS
    partitions: tuple[str, ...] = ("date",)
    id: str = field(default_factory=lambda: str(uuid4()))
    bodies: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.write(self.entry(kind="open"))

    def entry(self, **changes: Any) -> Entry:
        """Build the next entry without writing it."""
        return replace(
            Entry(
                kind="batch",
                pipeline=self.pipeline,
                journal=self.id,
                sequence=len(self.bodies),
                run="run",
                created="2026-01-01T00:00:00+00:00",
                previous=digest(self.bodies[-1]) if self.bodies else None,
                handoff=self.table.handoff,
                source_uris={"in": "file:///in"},
                table_schema=self.schema.delta(),
                partition_columns=self.partitions,
            ),
            **changes,
        )

    def write(self, entry: Entry) -> Entry:
        body = encode(entry)
        self.table.store.replace(journal_entry(entry.pipeline, entry.sequence), body)
        self.bodies.append(body)
        return entry

    def batch(self, *parts: Sequence[Row], **changes: Any) -> Entry:
        """Write one data file per list of rows and the entry that names them."""
        files = tuple(self.file(rows) for rows in parts)
        sources = _sources(files, len(self.bodies))
        return self.write(self.entry(**{"files": files, "sources": sources, **changes}))

    def file(self, rows: Sequence[Row]) -> FinishedFile:
        """Write one data file; its rows are all of the first row's partition."""
        values: dict[str, str | None] = {
            name: None if rows[0].get(name) is None else str(rows[0][name])
            for name in self.partitions
        }
        marks = {"blizzard.pipeline": self.pipeline, "blizzard.journal": self.id}
        return write_file(self.table, self.schema, rows, values, marks)


def write_file(
    table: TableDirectory,
    schema: Schema,
    rows: Sequence[Row],
    values: Mapping[str, str | None],
    marks: Mapping[str, str] = MARKS,
) -> FinishedFile:
    """Write a Parquet file under its final name and give its facts."""
    inside = schema.without(frozenset(values)).arrow()
    path = data_file(values, Clock().fresh_id())
    target = table.root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    data = pa.Table.from_pylist(
        [{name: row.get(name) for name in inside.names} for row in rows], schema=inside
    )
    pq.write_table(data.replace_schema_metadata(dict(marks)), target)
    return FinishedFile(
        filename=path,
        size=target.stat().st_size,
        record_count=len(rows),
        partition_values=values,
        source_file=None,
        source_files=("in:a.ndjson",),
        unit="u",
        statistics=statistics(pq.read_metadata(target), without_nan="nan" not in repr(rows)),
        modification_time=1_767_225_600_000,
    )


def _sources(files: Sequence[FinishedFile], entry: int) -> tuple[SourceRecord, ...]:
    """Return the one source file of an entry; each has another."""
    rows, name = sum(file.record_count for file in files), "a" if entry == 1 else f"a{entry}"
    return (
        SourceRecord(source="in", path=f"{name}.ndjson", size=1, etag=None, lines=rows, rows=rows),
    )


@dataclass
class Penguin:
    """One penguin on one table directory, with what it told."""

    table: TableDirectory
    options: dict[str, Any] = field(default_factory=dict)
    log: type[Log] = Log
    events: list[Event] = field(default_factory=list)
    clock: Clock = field(default_factory=Clock)
    begin: Begin = at_once

    def __post_init__(self) -> None:
        self.run = TableRun(
            settings=self.table.settings(**self.options),
            emit=self.events.append,
            clock=self.clock,
            open_store=lambda: self.table.store,
            open_log=self.log,
            pause=lambda _seconds: None,
            begin=self.begin,
        )

    def step(self) -> bool:
        return self.run.step()

    def drain(self) -> "Penguin":
        while self.run.step():
            pass
        return self

    @property
    def codes(self) -> dict[str, str]:
        """Return the code of each stopped pipeline."""
        return {name: one.error.code for name, one in self.run.stopped.items()}

    def reason(self, pipeline: str = "events") -> str:
        return str(self.run.stopped[pipeline].error)

    @property
    def held(self) -> dict[str, str]:
        """Return the code of each file that is held, as the log and the metas say."""
        found = explain(self.run.settings, self.table.store).view.held
        return {one.filename: one.code for one in found}

    def why(self) -> str:
        """Return all reasons of all files that are held."""
        found = explain(self.run.settings, self.table.store).view.held
        return "; ".join(reason for one in found for reason in one.reasons)


def log_of(table: type[WritableTable]) -> type[Log]:
    """Return a log whose versions are opened as tables of the test's."""

    class OpensSo(Log):
        opened = table

    return OpensSo


def before_commit(happens: Callable[[], object], *, times: int = 1) -> type[Log]:
    """Return a log to which something happens right before the first commits are made."""
    turns = [True] * times

    class Interrupted(WritableTable):
        def commit(self, *given: Any, **named: Any) -> None:
            if turns:
                turns.pop()
                happens()
            super().commit(*given, **named)

    return log_of(Interrupted)


def after_opening(happens: Callable[[], object], *, turn: int = 1) -> type[Log]:
    """Return a log to which something happens right after it was opened so many times."""
    turns = []

    class Overtaken(Log):
        def open(self) -> WritableTable | None:
            found = super().open()
            turns.append(True)
            if len(turns) == turn:
                happens()
            return found

    return Overtaken


class LosingTable(WritableTable):
    """A table whose first commits are made, and whose answers are lost."""

    answers_to_lose: ClassVar[int] = 0

    def commit(self, *given: Any, **named: Any) -> None:
        super().commit(*given, **named)
        if self.answers_to_lose:
            type(self).answers_to_lose -= 1
            raise CommitUnconfirmed("the answer was lost")


def losing(answers: int = 1) -> type[LosingTable]:
    """Return a table that loses so many answers."""

    class Losing(LosingTable):
        answers_to_lose = answers

    return Losing


def opened(log: Log) -> WritableTable:
    """Open a table that is there."""
    found = log.open()
    assert found is not None
    return found


def commit_table(
    settings: TableSettings, store: Store, emit: Emit, clock: Clock, *, pipeline: str | None = None
) -> int:
    """Commit everything that waits for one table, as a process that has just begun."""
    run = TableRun(settings=settings, emit=emit, clock=clock, open_store=lambda: store)
    return commit_all(run, pipeline)


def next_commit(table: TableDirectory) -> CommitPlan:
    """Plan a commit of what waits."""
    plan = explain(table.settings(), table.store).proposal.commit
    assert plan is not None
    return plan


def rows_of(*ids: int, date: str | None = "2026-01-01") -> list[Row]:
    return [{"id": number, "name": f"n{number}", "date": date} for number in ids]
