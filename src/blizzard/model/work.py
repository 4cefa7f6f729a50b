"""Values that pass between stages: work units, what all of a batch share, and outcomes.

They cross from the driver to Spark's executors and back, so they are frozen and they pickle.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from uuid import UUID

from blizzard.model.bad_lines import LineReplay
from blizzard.model.event_time import RowPartitions
from blizzard.model.progress import Bounds, Done
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
    """The limits of quarantined lines per file; None if one bad line fails its file."""
    infer_share: float | None = None
    """The share of each file to sample for columns, from 0 to 1, without writing; None to read the
    files."""
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
