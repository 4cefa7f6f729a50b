"""The settings of a blizzard run: plain values in bytes and seconds that can be pickled.

`blizzard.config.load` builds them from YAML; the stages use only this module. Limits bound how much
is read, held in memory and listed at a time.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fractions import Fraction

from blizzard.model.source.form import Form, SourcePattern
from lakebed.columns.schema import Schema
from lakebed.errors import ConfigInvalid
from lakebed.listing.lookback import Window
from lakebed.partition import Template, table_schema
from lakebed.storage.options import StorageOptions
from lakebed.telemetry.settings import ProgramSettings
from lakebed.types import (
    CommitMode,
    Compression,
    Handoff,
    OnChange,
    OnMismatch,
    ParquetCodec,
    Provenance,
    UnknownFields,
)
from lakebed.units import mebibytes, plural

# Far below the recursion limit, so that the result does not depend on the caller's stack.
MAX_DEPTH = 500
MAX_LINE_BYTES = 128 << 20
BLOCK_BYTES = 1 << 20
COLUMNS_OF_A_BLOCK = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeLimits:
    """How much is decoded at a time, and how many undeclared names are reported."""

    block_bytes: int = BLOCK_BYTES
    """Approximate bytes of lines per batch with few columns."""
    most_blocks: int = 4
    """At most this many blocks per wide batch."""
    max_cells: int = 4_000_000
    """The most values in a batch."""
    short_bytes: int = 64 * 1024
    """Up to this size, the fixed cost of a file exceeds that of its bytes."""
    max_combined: int = 256
    """The most short files that are decoded together."""
    max_names: int = 100
    """The most names reported per file; values of all others are counted under one name."""
    max_name_characters: int = 200

    def batch_bytes(self, columns: int) -> int:
        """Return the bytes of lines per batch, given the number of columns and nested fields.

        Each column has a fixed cost per batch. With few columns, a block that fits the processor's
        cache has enough rows; with many, larger batches amortise the cost.
        """
        return self.block_bytes * max(1, min(self.most_blocks, columns // COLUMNS_OF_A_BLOCK))


@dataclass(frozen=True, slots=True, kw_only=True)
class ListingLimits:
    """The limits of a quick listing of a source; beyond them, the source is swept."""

    names: int = 5000
    """Names to list per folder."""
    ranges: int = 200
    """Ranges to list."""
    page: int = 1000
    """Names per list request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotLimits:
    """When to write snapshots of the journal, which save reading it at the next start."""

    entries: int = 100
    """Entries between two snapshots."""
    names: int = 5000
    """Names of ingested files held in memory before they are written to a segment."""
    block: int = 1000
    """Rows in a block of a segment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuarantineLimits:
    """The limits of bad lines beyond which their file fails.

    Both apply to what one batch reads of a file, including all tasks that share it.
    """

    max_records: int | None = None
    """The most bad lines; None for no limit."""
    max_ratio: float | None = None
    """The highest share of bad lines among those that are neither blank nor filtered."""

    def too_many(self, bad: int) -> str | None:
        """Return how `bad` lines exceed `max_records`; None if they do not."""
        if self.max_records is None or bad <= self.max_records:
            return None
        lines = plural(bad, "line")
        return f"{lines} cannot be read, and error_handling.max_bad_records is {self.max_records}"

    def exceeded(self, bad: int, records: int) -> str | None:
        """Return which limit `bad` of `records` lines exceed; None if none."""
        # Compare the ratio as written: 0.1 is exactly a tenth.
        if self.max_ratio is None or bad <= Fraction(repr(self.max_ratio)) * records:
            return self.too_many(bad)
        share = f"{bad:,} of {plural(records, 'line')}"
        return f"{share} cannot be read, and error_handling.max_bad_ratio is {self.max_ratio}"


class QueueService(StrEnum):
    """The service of a queue."""

    SQS = "sqs"
    AZURE = "azure"
    PUBSUB = "pubsub"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSettings:
    """A queue that announces new files of a source; missing options come from the environment."""

    url: str
    endpoint: str
    """The address of the service: the start of the URL, or Google's default."""
    service: QueueService = QueueService.SQS
    region: str | None = None
    account: str = ""
    """The Azure account in the URL."""
    options: StorageOptions = field(default_factory=StorageOptions)
    """By the names `access_key_id`, `secret_access_key`, `session_token` and `profile`; for Azure
    `account_key`, `sas_key`, `token`, `client_id`, `client_secret` and `tenant_id`; for Google
    `service_account`, `service_account_key` and `application_credentials`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSettings:
    """One source: its place, the form of its files, and the limits of a batch."""

    name: str = "default"
    uri: str
    storage_options: StorageOptions = field(default_factory=StorageOptions)
    compression: Compression = Compression.AUTO
    form: Form = field(default_factory=Form)
    max_concurrent_files: int = 16
    batch_size: int = 8192
    """The most rows in one Arrow batch."""
    poll_interval: float = 10.0
    """Seconds between two listings of the source."""
    max_files_per_batch: int = 10_000
    max_bytes_per_batch: int = 16 * 1024**3
    pattern: SourcePattern | None = None
    """The names below the URI to read; None for all."""
    min_age: float = 0.0
    """The least age of a file in seconds, so that its writer has finished."""
    on_change: OnChange = OnChange.ERROR
    late_window: float = 3600.0
    """Seconds for which quick listings list a folder after its last arrival."""
    sweep_interval: float = 3600.0
    """The most seconds between two sweeps."""
    horizon: Window | None = None
    """The folders that a sweep considers; None for all."""
    lookback: Window | None = None
    """The folders that the first listing takes; None for all."""
    notifications: QueueSettings | None = None
    """The queue that announces new files; None for listing alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RollingPolicy:
    """When to close a Parquet file, and when a row group."""

    file_size: int = mebibytes(128)
    """Encoded bytes."""
    row_group_size: int = mebibytes(128)
    """Arrow bytes buffered."""
    rollover: float = 300.0
    """Seconds that a batch may run, or that a source file may wait for its batch."""
    inactivity: float = 60.0
    """Seconds without a new source file after which the waiting ones are taken."""
    codec: ParquetCodec = ParquetCodec.SNAPPY


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadSettings:
    """How finished files are uploaded; sizes in bytes."""

    part_size: int = mebibytes(32)
    min_multipart_size: int = mebibytes(5)
    max_concurrent_parts: int = 8
    max_concurrent_uploads: int = 4

    def in_parts(self, size: int) -> bool:
        """Whether a file of this size is uploaded in parts."""
        # A single part would cost three requests instead of one PUT.
        return size >= self.min_multipart_size and size > self.part_size


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactSettings:
    """Which small data files to compact, and how often a run does so."""

    enabled: bool = False
    every: float = 3600.0
    """Seconds between two automatic compactions."""
    min_files: int = 4
    """The least files to merge if they do not fill a full-size file."""
    quiet: float = 600.0
    """The least age of a file in seconds."""
    max_bytes: int = mebibytes(10_240)
    """The most bytes to read in one compaction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkSettings:
    """The table directory, and how files are written to it and handed off."""

    table_uri: str
    storage_options: StorageOptions = field(default_factory=StorageOptions)
    rolling: RollingPolicy = field(default_factory=RollingPolicy)
    upload: UploadSettings = field(default_factory=UploadSettings)
    handoff: Handoff = Handoff.JOURNAL
    commit: CommitMode = CommitMode.PENGUIN
    commit_poll: float = 10.0
    """Seconds between two polls of penguin."""
    late_after: float = 900.0
    """Seconds after which an unread file or an uncommitted entry counts as late."""
    template: Template | None = None
    timestamp_field: str | None = None
    """The field that gives a row's partition; None for the source path."""
    compact: CompactSettings = field(default_factory=CompactSettings)

    @property
    def committer(self) -> str:
        """Return the program that commits entries."""
        return "blizzard" if self.commit is CommitMode.INLINE else "penguin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizing:
    """The sizes of work units and of what is held in memory; not configurable."""

    smallest_unit: int = mebibytes(16)
    """Bytes of plain NDJSON below which a task is not worth its overhead."""
    largest_unit: int = mebibytes(8192)
    """Bytes of plain NDJSON that keep a core busy for about a minute: beyond that, other cores
    share the work, even if data files come out smaller."""
    units_per_core: int | None = None
    """Units per core; None to derive it from the load."""
    decoded_budget: int = mebibytes(64)
    """Arrow bytes of one source file to keep in memory until its last line is parsed; several times
    as many are kept on the local disk."""
    staged_bytes: int = mebibytes(16)
    """Arrow bytes to divide among partitions at once: each partition costs some microseconds."""
    worth_a_thread: int = mebibytes(4)
    """The least compressed size of a file that a separate thread decompresses if a core is idle."""
    decoding: DecodeLimits = field(default_factory=DecodeLimits)
    quick_listing: ListingLimits = field(default_factory=ListingLimits)
    snapshots: SnapshotLimits = field(default_factory=SnapshotLimits)


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineSettings:
    """One pipeline: its sources, its table, the fields it declares."""

    name: str = "default"
    sources: tuple[SourceSettings, ...]
    sink: SinkSettings
    schema: Schema
    infer: bool = False
    """Whether to infer columns from the data in addition to the schema."""
    infer_max_bytes: int = 1 << 30
    """The most bytes of source files to sample for that."""
    unknown_fields: UnknownFields = UnknownFields.RESCUE
    on_mismatch: OnMismatch = OnMismatch.FAIL
    provenance: tuple[Provenance, ...] = ()
    """The provenance columns of each row."""
    quarantine: QuarantineLimits | None = None
    """The limits of quarantined lines per file; None if one bad line fails its file."""
    max_failures: int | None = None
    """The number of failed files that stops the pipeline; None for no limit."""
    dlq_path: str | None = None
    """The dead letter queue; None if it is below the table directory."""
    dlq_options: StorageOptions = field(default_factory=StorageOptions)
    """The storage options of the dead letter queue; if empty, the sink's may apply."""
    show_values: bool = False
    """Whether failure messages may quote line content."""
    sizing: Sizing = field(default_factory=Sizing)

    @property
    def table_schema(self) -> Schema:
        """Return all columns of the table that the configuration declares."""
        return table_schema(self.schema, self.sink.template).with_provenance(self.provenance)

    @property
    def poll_interval(self) -> float:
        """Return the shortest poll interval of the sources."""
        return min(source.poll_interval for source in self.sources)


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkSettings:
    """Where Spark runs. `conf` may hold credentials, so it is not shown."""

    master: str = "local[*,4]"
    conf: Mapping[str, str] = field(default_factory=dict, repr=False)
    most_tasks: int | None = None
    """The most concurrent tasks: each transfers at least one file, so the limit of transfers."""
    shared_paths: tuple[str, ...] = ()
    """Folders mounted at the same path on the driver and on every executor."""
    line_port: int = 0
    """The port on which the driver listens to tasks; 0 for any free port."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlizzardSettings(ProgramSettings):
    """The settings of one blizzard process."""

    pipelines: tuple[PipelineSettings, ...]
    spark: SparkSettings = field(default_factory=SparkSettings)
    tables: Mapping[str, str] = field(default_factory=dict)
    """Names under `tables:` by pipeline, for the settings of inline commits."""
    total_concurrency: int | None = None
    """The most concurrent downloads, and uploads, of all running tasks together."""
    poll_jitter: float = 0.0
    """The most seconds of random delay before each listing of a source."""

    def only(self, name: str | None) -> "BlizzardSettings":
        """Return the settings with one pipeline alone; all of them without a name."""
        found = tuple(each for each in self.pipelines if name in (None, each.name))
        if not found:
            names = ", ".join(each.name for each in self.pipelines)
            raise ConfigInvalid([f"there is no pipeline {name!r}; there are: {names}"])
        return replace(self, pipelines=found)
