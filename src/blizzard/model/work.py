"""Values that pass between stages: work units, the shared work of a batch, and outcomes.

They cross from the driver to Spark's executors and back, so they are frozen and they pickle.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from uuid import UUID

from blizzard.model.bad_lines import LineReplay
from blizzard.model.event_time import RowPartitions
from blizzard.model.seen import Seen
from blizzard.model.settings import QuarantineLimits, RollingPolicy, Sizing, UploadSettings
from blizzard.model.source.file import SourceFile
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
)
from lakebed.storage.options import Location
from lakebed.types import KEEPING, OnMismatch, Provenance, UnknownFields


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkUnit:
    """Source files that one task reads."""

    name: str
    partition_values: Mapping[str, str | None]
    """The partition values in the paths of all its files; rows may add more."""
    files: tuple[SourceFile, ...]
    file_size: int | None = None
    """The size at which to close its data files, for even sizes; None for the configured one."""
    replay: LineReplay | None = None
    """The quarantined lines to read instead of files; None for any other unit."""

    @property
    def to_read(self) -> int:
        """Return the bytes to read of its files, or of its parts of them."""
        return sum(
            file.to_read if file.part is None else file.part.end - file.part.start
            for file in self.files
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskLimits:
    """How much of a source a task reads at once."""

    max_concurrent_files: int
    batch_size: int
    """The most rows in one Arrow batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedProvenance:
    """Provenance values that all rows of a batch share; the same if a unit runs again."""

    columns: tuple[Provenance, ...]
    batch: str
    """The pipeline, the journal and the number of the next entry."""
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
    """The physical names of the columns in data files; None without column mapping."""
    unknown_fields: UnknownFields = UnknownFields.DROP
    on_mismatch: OnMismatch = OnMismatch.FAIL
    quarantine: QuarantineLimits | None = None
    """The limits of quarantined lines per file; None if one bad line fails its file."""
    infer_share: float | None = None
    """The share of each file to sample for columns, from 0 to 1, without writing; None to read the
    files."""
    stamp: SharedProvenance | None = None
    """The values of provenance columns; None without such columns."""
    row_partitions: RowPartitions | None = None
    """How to partition rows; None if only the source path determines the partition."""
    rolling: RollingPolicy
    upload: UploadSettings
    limits: Mapping[str, TaskLimits]
    """By source."""
    marks: Mapping[str, str]
    """Footer metadata of every file: the pipeline and the journal's id."""
    clock: Clock
    batch: int | None = None
    """The number of the next journal entry; None outside a journal."""
    outbox: str | None = None
    """The pipeline whose outbox holds files until their entry; None to write them in place."""
    show_values: bool = False
    """Whether failure messages may quote line content."""
    max_seconds: float | None = None
    """The age at which the batch ends before all of its files are read; None for no limit."""
    sizing: Sizing = field(default_factory=Sizing)
    decompress_ahead: bool = False
    """Whether a separate thread decompresses a large file, because a core is idle."""

    @property
    def written(self) -> Schema:
        """Return the columns of data files, with `_rescued` if values may go there."""
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
    """The records that its rows come from; in a part of a file, counted from the part's start
    unless the lines before it are known."""
    statistics: Mapping[str, ColumnStatistics]
    seconds: float = 0.0
    """The time to encode and write it."""
    partition_values: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """The effort of the work, for metrics only: no decision depends on it."""

    write_seconds: Mapping[str, float] = field(default_factory=dict)
    """The time to encode and write each data file, by its name."""
    download_retries: int = 0
    upload_retries: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitOutcome:
    """The outcome of a unit: the source files that were read or failed, and the written files.

    A source file that is not in it was not read, because the unit was asked to end. It has no
    effect until the driver journals it.
    """

    unit: str
    sources: tuple[SourceRecord, ...]
    files: tuple[FinishedFile, ...]
    quarantine: tuple[QuarantineFile, ...] = ()
    resolved: tuple[Resolved, ...] = ()
    """The quarantine files whose lines the unit replayed."""
    effort: Effort = field(default_factory=Effort)
    handed_in: bool = False
    """Whether it left something for the next batch, although no stop was requested."""
    sink_full: str | None = None
    """The error of the sink's store if it had no room for a file: no fault of a source file."""
    seen: Mapping[str, Seen] = field(default_factory=dict)
    """The observed types of values without a column, by path, if columns are inferred."""
