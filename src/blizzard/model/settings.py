"""The settings of a blizzard run: plain values in bytes and seconds, which pickle.

They are built from YAML by `blizzard.config.load`; the stages know only this module. Limits say how
much is read, held in memory and listed at a time.
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

# Far below what Python's own parser can take, so that the answer never depends on the caller.
MAX_DEPTH = 500


MAX_LINE_BYTES = 128 << 20

BLOCK_BYTES = 1 << 20
COLUMNS_OF_A_BLOCK = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeLimits:
    """How much is decoded at a time, and how many names of values without a column are reported."""

    block_bytes: int = BLOCK_BYTES
    """About so many bytes of lines make a batch of few columns."""
    most_blocks: int = 4
    """A batch of many columns is made of the bytes of so many."""
    max_cells: int = 4_000_000
    """The most values in a batch."""
    short_bytes: int = 64 * 1024
    """Up to this much of lines the calls cost more than the bytes do."""
    max_combined: int = 256
    """The most short files that are read together."""
    max_names: int = 100
    """The most names that are reported of a file; values of all others are counted under one."""
    max_name_characters: int = 200

    def batch_bytes(self, columns: int) -> int:
        """Return how many bytes of lines make a batch of so many columns, nested ones included.

        What a column costs beside its values is paid for every batch. Few columns have enough rows
        in a block that stays in the processor's cache; to many, that cost matters more.
        """
        return self.block_bytes * max(1, min(self.most_blocks, columns // COLUMNS_OF_A_BLOCK))


@dataclass(frozen=True, slots=True, kw_only=True)
class LookLimits:
    """What a quick look at a source may cost; beyond that, the source is listed whole."""

    names: int = 5000
    """Names that it may list of a folder."""
    ranges: int = 200
    """Ranges that it may list."""
    page: int = 1000
    """Names that one request lists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotLimits:
    """When what a journal says is written down, so that the next start need not read it all."""

    entries: int = 100
    """Entries after which a snapshot is written."""
    names: int = 5000
    """Names of ingested files that are held in memory before they are written to a segment."""
    block: int = 1000
    """Rows in a block of a segment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuarantineLimits:
    """What turns the quarantine of bad lines back into the failure of their file.

    Both count what one batch reads of a file; a file that several tasks share counts as one.
    """

    max_records: int | None = None
    """The most bad lines; None where there is no limit."""
    max_ratio: float | None = None
    """The highest share of lines that are bad, of those that are neither blank nor left out."""

    def too_many(self, bad: int) -> str | None:
        """Return which limit so many bad lines exceed in a file of any size."""
        if self.max_records is None or bad <= self.max_records:
            return None
        lines = plural(bad, "line")
        return f"{lines} cannot be read, and error_handling.max_bad_records is {self.max_records}"

    def exceeded(self, bad: int, records: int) -> str | None:
        """Return which limit so many bad lines of so many exceed; None where none does."""
        # A share is compared as it is written: 0.1 is a tenth.
        if self.max_ratio is None or bad <= Fraction(repr(self.max_ratio)) * records:
            return self.too_many(bad)
        share = f"{bad:,} of {plural(records, 'line')}"
        return f"{share} cannot be read, and error_handling.max_bad_ratio is {self.max_ratio}"


class QueueService(StrEnum):
    """Whose queue it is."""

    SQS = "sqs"
    AZURE = "azure"
    PUBSUB = "pubsub"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSettings:
    """A queue that announces new files of a source; the environment fills what is not given."""

    url: str
    endpoint: str
    """The address of the service: the beginning of the URL, or Google's where there is none."""
    service: QueueService = QueueService.SQS
    region: str | None = None
    account: str = ""
    """Azure's, which the URL names."""
    options: StorageOptions = field(default_factory=StorageOptions)
    """By the names `access_key_id`, `secret_access_key`, `session_token` and `profile`; for Azure
    `account_key`, `sas_key`, `token`, `client_id`, `client_secret` and `tenant_id`; for Google
    `service_account`, `service_account_key` and `application_credentials`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSettings:
    """One place where files land, what they are, and how much of it is taken at once."""

    name: str = "default"
    uri: str
    storage_options: StorageOptions = field(default_factory=StorageOptions)
    compression: Compression = Compression.AUTO
    form: Form = field(default_factory=Form)
    max_concurrent_files: int = 16
    batch_size: int = 8192
    """The most rows in one Arrow batch."""
    poll_interval: float = 10.0
    """Seconds between two looks at the source."""
    max_files_per_batch: int = 10_000
    max_bytes_per_batch: int = 16 * 1024**3
    pattern: SourcePattern | None = None
    """Which names below the URI are meant; None where all are."""
    min_age: float = 0.0
    """Seconds that a file must be old, so that its writer has finished."""
    on_change: OnChange = OnChange.ERROR
    late_window: float = 3600.0
    """Seconds that a folder is looked at again after the last arrival in it."""
    sweep_interval: float = 3600.0
    """The most seconds between two looks at the whole source."""
    horizon: Window | None = None
    """The folders that a look at the whole source compares; None where it compares all."""
    lookback: Window | None = None
    """The folders that the first look takes; None where it takes all."""
    notifications: QueueSettings | None = None
    """The queue that announces new files; None where they are found by listing alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RollingPolicy:
    """When a Parquet file is finished and when a row group is."""

    file_size: int = mebibytes(128)
    """Encoded bytes."""
    row_group_size: int = mebibytes(128)
    """Arrow bytes buffered."""
    rollover: float = 300.0
    """Seconds that a file may be open, or that a source file may wait for its batch."""
    inactivity: float = 60.0
    """Seconds without a new source file after which those that wait are taken."""
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
        # One part costs three requests, and is no more than a single PUT can take.
        return size >= self.min_multipart_size and size > self.part_size


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactSettings:
    """Which small data files are put together, and when a run does that by itself."""

    enabled: bool = False
    every: float = 3600.0
    """Seconds between two times that a run does it by itself."""
    min_files: int = 4
    """Files that are worth it though together they do not make one of full size."""
    quiet: float = 600.0
    """Seconds that a file must be old."""
    max_bytes: int = mebibytes(10_240)
    """The most bytes that are read at once."""
    cluster_by: tuple[str, ...] = ()
    """The columns that the rows are sorted by; nothing where they keep their order."""


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
    """Seconds between two looks of penguin at the table."""
    late_after: float = 900.0
    """Seconds that a file may wait to be read, or an entry to be committed, without an error."""
    template: Template | None = None
    timestamp_field: str | None = None
    """The field that gives a row's partition; None where the source path does."""
    compact: CompactSettings = field(default_factory=CompactSettings)

    @property
    def committer(self) -> str:
        """Return the program to run so that an entry is committed."""
        return "blizzard" if self.commit is CommitMode.INLINE else "penguin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizing:
    """How finely work is cut and how much of it waits in memory; no key of a config sets it."""

    smallest_unit: int = mebibytes(16)
    """Bytes of plain NDJSON below which a task is over before it has paid for itself."""
    largest_unit: int = mebibytes(8192)
    """Bytes of plain NDJSON that keep a core busy for a minute or so: above, other cores help, even
    if data files come out smaller."""
    units_per_core: int | None = None
    """Into how many units the share of a core is cut; None where the load decides."""
    decoded_budget: int = mebibytes(64)
    """Arrow bytes of one source file that are kept in memory until its last line has parsed; some
    times as many are kept on the local disk."""
    staged_bytes: int = mebibytes(16)
    """Arrow bytes that are divided among the partitions of their rows at once: each partition
    among them costs some microseconds."""
    worth_a_thread: int = mebibytes(4)
    """Compressed bytes from which on a thread of its own decompresses a file, if a core is free."""
    decoding: DecodeLimits = field(default_factory=DecodeLimits)
    looks: LookLimits = field(default_factory=LookLimits)
    snapshots: SnapshotLimits = field(default_factory=SnapshotLimits)


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineSettings:
    """One pipeline: its sources, its table, the fields it declares."""

    name: str = "default"
    sources: tuple[SourceSettings, ...]
    sink: SinkSettings
    schema: Schema
    infer: bool = False
    """Whether columns are found in the data beside those that the schema has."""
    infer_max_bytes: int = 1 << 30
    """How many bytes of source files are looked at to find them."""
    unknown_fields: UnknownFields = UnknownFields.RESCUE
    on_mismatch: OnMismatch = OnMismatch.FAIL
    provenance: tuple[Provenance, ...] = ()
    """What columns say of where a row came from."""
    quarantine: QuarantineLimits | None = None
    """How many bad lines a file may have, which are set aside; None where one fails its file."""
    max_failures: int | None = None
    """The failed file that stops the pipeline; None where failures never stop it."""
    dlq_path: str | None = None
    dlq_options: StorageOptions = field(default_factory=StorageOptions)
    """Those of the dead letter queue alone; where there are none, the sink's may do."""
    """The dead letter queue; None where it is below the table directory."""
    show_values: bool = False
    """Whether failure messages may quote what is in a line."""
    sizing: Sizing = field(default_factory=Sizing)

    @property
    def table_schema(self) -> Schema:
        """Return all columns of the table that the configuration knows of."""
        return table_schema(self.schema, self.sink.template).with_provenance(self.provenance)

    @property
    def poll_interval(self) -> float:
        """Return the seconds between two looks at the sources."""
        return min(source.poll_interval for source in self.sources)


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkSettings:
    """Where Spark runs. `conf` may hold credentials, so it is not shown."""

    master: str = "local[*,4]"
    conf: Mapping[str, str] = field(default_factory=dict, repr=False)
    most_tasks: int | None = None
    """The most tasks at once: each transfers at least one file, so no more than may transfer."""
    shared_paths: tuple[str, ...] = ()
    """Folders that are mounted at the same place on the driver and on every executor."""
    line_port: int = 0
    """Where the driver listens to running tasks; 0 for any free port."""


def share_of(total: int | None, *, limit: int, tasks: int) -> int:
    """Return one task's share of all transfers, given how many tasks may run; at most its limit."""
    return limit if total is None else max(1, min(limit, total // max(1, tasks)))


@dataclass(frozen=True, slots=True, kw_only=True)
class BlizzardSettings(ProgramSettings):
    """Everything one blizzard process does."""

    pipelines: tuple[PipelineSettings, ...]
    spark: SparkSettings = field(default_factory=SparkSettings)
    tables: Mapping[str, str] = field(default_factory=dict)
    """Names under `tables:` by pipeline: the entry that holds the settings of inline commits."""
    total_concurrency: int | None = None
    """The most downloads, and the most uploads, at once in all running tasks together."""
    poll_jitter: float = 0.0
    """Each look at a source is delayed by up to this many seconds, at random."""

    def only(self, name: str | None) -> "BlizzardSettings":
        """Return the settings with one pipeline alone; all of them without a name."""
        found = tuple(each for each in self.pipelines if name in (None, each.name))
        if not found:
            names = ", ".join(each.name for each in self.pipelines)
            raise ConfigInvalid([f"there is no pipeline {name!r}; there are: {names}"])
        return replace(self, pipelines=found)
