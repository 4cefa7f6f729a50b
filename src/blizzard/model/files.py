"""Values that pass between stages: source files, work units, outcomes, and where stores are.

They cross from the driver to Spark's executors and back, so they are frozen and they pickle.
"""

import copyreg
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

from blizzard.model.bad_lines import LineReplay
from blizzard.model.event_time import RowPartitions
from blizzard.model.progress import Bounds, Done
from blizzard.model.seen import Seen
from blizzard.model.settings import (
    PipelineSettings,
    QuarantineLimits,
    RollingPolicy,
    Sizing,
    SourceSettings,
    UploadSettings,
)
from blizzard.model.source.byte_range import ByteRange
from blizzard.model.source.form import Form
from lakebed.clock import Clock
from lakebed.columns.column_mapping import ColumnMapping
from lakebed.columns.schema import Schema
from lakebed.documents.records import (
    ColumnStatistics,
    FinishedFile,
    QuarantineFile,
    Resolved,
    Run,
    SourceRecord,
    Unread,
)
from lakebed.errors import ObjectMissing
from lakebed.locations import written_out
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import Reader, Store
from lakebed.types import KEEPING, Codec, OnMismatch, Provenance, UnknownFields


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """One file to read, as it was listed."""

    source: str
    path: str
    size: int
    etag: str | None
    codec: Codec
    partition_values: Mapping[str, str | None]
    """What its path says."""
    modified: datetime
    """When the store says it was written."""
    part: ByteRange | None = None
    """The bytes to read of a large plain file that several tasks share."""
    by_content: bool = False
    """Whether its first bytes are asked how it is compressed; its name is only a guess then."""
    skip: int = 0
    """Lines that earlier batches have read: the first ones, unless `unread` says otherwise."""
    unread: tuple[Unread, ...] = ()
    """The bytes of a plain file that earlier batches have left; nothing where that is all of it,
    or where the first lines are to be skipped."""
    form: Form = field(default_factory=Form)
    """What it is made of; of documents each record counts as a line."""
    numbers: tuple[int | None, ...] | None = None
    """The number of each line, where these are only some lines of the file, read again; None of a
    line means unknown."""

    @property
    def from_start(self) -> bool:
        """Whether its lines are read from its first byte on, not from a later line.

        The lines of documents are not bytes of the file: what cuts them has seen its start.
        """
        if self.form.is_documents:
            return False
        return not self.skip if self.part is None else self.part.start == 0

    @property
    def records_before(self) -> int | None:
        """Return how many records come before the first that is read; None where unknown.

        In front of a part that is not the first to be read, the lines are not counted yet.
        """
        if self.part is None:
            return self.skip
        if not self.part.start:
            return 0
        first = self.unread[0] if self.unread else None
        return first.lines_before if first and first.start == self.part.start else None

    @property
    def key(self) -> str:
        """Name the file among all sources of the pipeline."""
        return f"{self.source}:{self.path}"

    @property
    def modified_ms(self) -> int:
        """Return when the store says that it was written, as the journal records it."""
        return round(self.modified.timestamp() * 1000)

    @property
    def to_read(self) -> int:
        """Count the bytes that are to be read of it."""
        return sum(one.end - one.start for one in self.unread) if self.unread else self.size


@dataclass(frozen=True, slots=True, kw_only=True)
class UnfinishedFile:
    """What the journal says of a source file."""

    record: SourceRecord
    at: datetime
    entry: int | None = None
    """The entry that says so; None before it is written."""
    since: datetime | None = None
    """When it failed first, if it has failed ever since."""
    failed_in: int | None = None
    """The entry that says how it failed: a later one may only ask for it to be read again."""
    read_in: int | None = None
    """The last entry that read lines of it; None where none did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestedFile:
    """A source file that is in the table, as the object it was when it was read."""

    key: str
    size: int
    etag: str | None
    empty: bool = False
    """Whether it gave no row, so that nothing of it can come into the table a second time."""
    entry: int | None = None
    """The entry with which it was done; None if unknown."""
    retracted: bool = False
    """Whether that entry has taken its rows out of the table."""

    @property
    def row(self) -> list[Any]:
        """Return the file as a line of a segment."""
        flag = [True] if self.retracted else []
        return [self.key, self.size, self.etag, self.empty, self.entry, *flag]

    @classmethod
    def of(cls, row: Sequence[Any]) -> "IngestedFile":
        """Return the file of a line of a segment."""
        key, size, etag, empty, entry, *flag = row
        return cls(key=key, size=size, etag=etag, empty=empty, entry=entry, retracted=bool(flag))


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """What the journal says of a source file: how it was left, and what of it is in the table."""

    unfinished: UnfinishedFile | None = None
    """It failed, or a stop left a part of it unread."""
    finished: IngestedFile | None = None
    """All of it is in the table, as the object it was then."""
    is_rejected: bool = False
    """Whether it was to replace rows of other files, and that was rejected: it is not read by
    itself, even with new content."""

    def object_of(self, key: str) -> SourceRecord | None:
        """Return the object that is known under a key, without any line; None where none is."""
        known = self.finished or (self.unfinished.record if self.unfinished else None)
        source, _, path = key.partition(":")
        if known is None:
            return None
        return SourceRecord(source=source, path=path, size=known.size, etag=known.etag)


UNKNOWN = Before()


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkUnit:
    """Source files that one task reads, one after the other."""

    name: str
    partition_values: Mapping[str, str | None]
    """What the paths of all of its files say; rows may add to it."""
    files: tuple[SourceFile, ...]
    file_size: int | None = None
    """Where its data files are closed, so that all are about alike; None for what is asked for."""
    replay: LineReplay | None = None
    """The lines in quarantine that are read again instead of files; None for any other unit."""

    @property
    def to_read(self) -> int:
        """Return how many bytes of its files, or of its parts of them, are to be read."""
        return sum(
            file.to_read if file.part is None else file.part.end - file.part.start
            for file in self.files
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """Where a store is and how to access it; executors open stores themselves."""

    uri: str
    options: StorageOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskLimits:
    """How much of one source a task takes at once."""

    max_concurrent_files: int
    batch_size: int
    """The most rows in one Arrow batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """What columns say of all rows of a batch; a unit that runs again says the same."""

    columns: tuple[Provenance, ...]
    batch: str
    """The pipeline, the journal and the number of the entry that was to be written next."""
    ingested_at: datetime
    """When the batch began."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What all units of a batch share."""

    sources: Mapping[str, Location]
    sink: Location
    file_schema: Schema
    """The columns of the data files: the table's without its partition columns."""
    mapping: ColumnMapping | None = None
    """How data files hold the columns; None where they have the same names in them."""
    unknown_fields: UnknownFields = UnknownFields.DROP
    on_mismatch: OnMismatch = OnMismatch.FAIL
    quarantine: QuarantineLimits | None = None
    """How many bad lines a file may have, which are set aside; None where one fails its file."""
    look: float | None = None
    """How much of each file is looked at to find columns, from 0 to 1, and nothing is written;
    None where the files are read."""
    stamp: Stamp | None = None
    """What columns say of where a row came from; None where no column does."""
    row_partitions: RowPartitions | None = None
    """How a row gives its partition; None where the source path alone does."""
    rolling: RollingPolicy
    upload: UploadSettings
    limits: Mapping[str, TaskLimits]
    """Those of each source."""
    marks: Mapping[str, str]
    """What every footer carries: the pipeline and the journal's id."""
    clock: Clock
    batch: int | None = None
    """The number of the journal entry that is to be written next; None outside a journal."""
    outbox: str | None = None
    """The pipeline whose outbox holds files until their entry; None where they need not wait."""
    show_values: bool = False
    """Whether failures may quote what is in a line."""
    bounds: Bounds = field(default_factory=Bounds)
    """When the batch is to end before all of its files are read."""
    sizing: Sizing = field(default_factory=Sizing)
    decompress_ahead: bool = False
    """Whether a thread of its own decompresses a large file: where cores would be idle."""

    @property
    def written(self) -> Schema:
        """Return the columns that data files may have: all, and one for what none of them takes."""
        keeps = self.unknown_fields in KEEPING or self.on_mismatch is OnMismatch.RESCUE
        return self.file_schema.with_rescued() if keeps else self.file_schema


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedFile:
    """A complete Parquet file on the local disk, ready to be uploaded."""

    name: UUID
    path: Path
    size: int
    rows: int
    sources: tuple[str, ...]
    runs: tuple[Run, ...] = ()
    """Which records its rows come from; in a part of a file, counted from the part's start unless
    the lines before it are known."""
    statistics: Mapping[str, ColumnStatistics]
    seconds: float = 0.0
    """How long it took to encode and write it."""
    partition_values: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """What the work took. It is for metrics alone: nothing is decided by it."""

    write_seconds: Mapping[str, float] = field(default_factory=dict)
    """How long each data file took to be encoded and written, by its name."""
    download_retries: int = 0
    upload_retries: int = 0
    attempts: tuple[tuple[str, Done], ...] = ()
    """What each attempt whose outcome counts has done in the end, by the attempt's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitOutcome:
    """The outcome of a unit: every source file read or failed, and the files that hold the rows.

    A source file that is not in it was not read, because the unit was asked to end. Nothing in it
    means anything until the driver has journaled it.
    """

    unit: str
    sources: tuple[SourceRecord, ...]
    files: tuple[FinishedFile, ...]
    quarantine: tuple[QuarantineFile, ...] = ()
    resolved: tuple[Resolved, ...] = ()
    """The quarantine file of which lines became rows, where the unit replays some."""
    effort: Effort = field(default_factory=Effort)
    handed_in: bool = False
    """Whether it left something for the next batch without a stop having been requested."""
    sink_full: str | None = None
    """What the sink's store said where it had no room for a file: no fault of any source file."""
    seen: Mapping[str, Seen] = field(default_factory=dict)
    """What values looked like that have no column, by their paths, where columns are looked for."""


_SLOTS: dict[type, list[Callable[[object, object], None]]] = {}


def _unpickled(kind: type[object], values: Sequence[object]) -> object:
    """Return an instance with these values in its slots."""
    made = object.__new__(kind)
    for put, value in zip(_SLOTS[kind], values, strict=True):
        put(made, value)
    return made


def _pickle_by_slots(kind: Any) -> None:  # noqa: ANN401 - any class with slots
    """Pickle a class as the values in its slots.

    There is an instance for each of many small files: by its fields, which dataclass looks up for
    each of them, pickling takes twice as long, and a quarter of the time of a batch.
    """
    names = kind.__slots__
    values = attrgetter(*names)
    _SLOTS[kind] = [getattr(kind, name).__set__ for name in names]
    copyreg.pickle(kind, lambda one: (_unpickled, (kind, values(one))))


for _kind in (SourceFile, SourceRecord):
    _pickle_by_slots(_kind)

OpenReader = Callable[[Location], Reader]
OpenStore = Callable[[Location], Store]
R = TypeVar("R", bound=Reader)


def open_reader(location: Location) -> Reader:
    """Open a store that can only be read."""
    return Reader(location.uri, location.options)


def open_store(location: Location) -> Store:
    """Open a store that can be written."""
    return Store(location.uri, location.options)


def open_table(settings: PipelineSettings, opening: Callable[[Location], R]) -> R | None:
    """Open the table's directory; None where there is none yet, and so no journal either."""
    try:
        return opening(sink_location(settings))
    except ObjectMissing:
        return None


def source_uris_of(settings: PipelineSettings) -> dict[str, str]:
    """Return where the sources are, by their names, as the journal remembers it."""
    return {source.name: written_out(source.uri) for source in settings.sources}


def source_location(source: SourceSettings) -> Location:
    """Return where a source is."""
    return Location(uri=source.uri, options=source.storage_options)


def sink_location(settings: PipelineSettings) -> Location:
    """Return where the table's directory is."""
    return Location(uri=settings.sink.table_uri, options=settings.sink.storage_options)
