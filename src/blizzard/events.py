"""What happens in blizzard, told as events."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from dataclasses import field as of_dataclass
from enum import StrEnum
from typing import ClassVar

from lakebed.telemetry.events import Event, Level
from lakebed.telemetry.health import Part, PartKind, Sign, Working
from lakebed.telemetry.measures import Age, Count, Measure, Observe, Reading
from lakebed.units import in_words


class Step(StrEnum):
    """The parts of a batch that are timed at the driver."""

    DISCOVER = "discover"
    RUN = "run"
    JOURNAL = "journal"
    PUBLISH = "publish"


class Retried(StrEnum):
    """The calls of a store that are made again when trouble may pass."""

    DOWNLOAD = "download"
    UPLOAD = "upload"
    JOURNAL = "journal"
    DLQ = "dlq"


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteRetried(Event):
    """The driver could not write a document and will try again."""

    level: ClassVar[Level] = Level.WARN
    pipeline: str
    stage: Retried
    next_try_secs: float

    def measures(self) -> Iterable[Measure]:
        """Count it now: a batch that is never journaled must show why."""
        labels = {"pipeline": self.pipeline, "stage": self.stage.value}
        yield Count("blizzard_retries_total", 1, labels)

    def sentence(self) -> str:
        """Say what is written again, and when."""
        return (
            f"{self.pipeline}: the store did not take a write of the {self.stage.value}; "
            f"trying again in {self.next_try_secs:.1f} s"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchStarted(Event):
    """Source files were planned into units, and the units are on their way to Spark."""

    pipeline: str
    entry: int
    files: int
    bytes: int
    units: int

    def sentence(self) -> str:
        """Say how much is in hand."""
        return (
            f"{self.pipeline}: batch {self.entry}: reading {self.files} source files "
            f"({in_words(self.bytes)}) in {self.units} units"
        )

    def signs(self) -> Iterable[Sign]:
        """Say that the pipeline is at work, for as long as it takes."""
        yield Working(Part(PartKind.PIPELINE, self.pipeline))


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchProgress(Event):
    """What the running units of a batch have done so far, and what they are doing now."""

    level: ClassVar[Level] = Level.TRACE
    pipeline: str
    files_read: int = 0
    files_failed: int = 0
    records: int = 0
    bytes_read: int = 0
    parquet_files: int = 0
    bytes_written: int = 0
    active_uploads: int = 0
    active_parts: int = 0

    def sentence(self) -> str:
        """Say how far it is."""
        return (
            f"{self.pipeline}: {self.files_read} files read, {self.records} records, "
            f"{self.parquet_files} Parquet files uploaded"
        )

    def measures(self) -> Iterable[Measure]:
        """Give what is going on now; what was done counts once it is journaled."""
        labels = {"pipeline": self.pipeline}
        yield Reading("blizzard_active_uploads", self.active_uploads, labels)
        yield Reading("blizzard_active_multipart_parts", self.active_parts, labels)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkDone(Event):
    """Running units have finished something more: source files read, data files uploaded."""

    level: ClassVar[Level] = Level.TRACE
    pipeline: str
    rows: int = 0
    blank: int = 0
    source_files: int = 0
    source_bytes: int = 0
    parquet_files: int = 0
    bytes_written: int = 0
    multipart_uploads: int = 0
    write_seconds: tuple[float, ...] = ()

    def sentence(self) -> str:
        """Say how much."""
        return (
            f"{self.pipeline}: {self.source_files} more source files read, {self.rows} rows in "
            f"{self.parquet_files} more Parquet files ({in_words(self.bytes_written)})"
        )

    def facts(self) -> dict[str, object]:
        """Give the fields; of many durations, their sum."""
        return {**Event.facts(self), "write_seconds": round(sum(self.write_seconds), 3)}

    def measures(self) -> Iterable[Measure]:
        """Count it now; should it never come into the journal, it is counted as discarded, too."""
        labels = {"pipeline": self.pipeline}
        ingested = {**labels, "outcome": "ingested"}
        yield Count("blizzard_source_files_total", self.source_files, ingested)
        yield Count("blizzard_source_bytes_total", self.source_bytes, ingested)
        yield Count("blizzard_records_total", self.rows, ingested)
        yield Count("blizzard_records_total", self.blank, {**labels, "outcome": "blank"})
        yield Count("blizzard_bytes_written_total", self.bytes_written, labels)
        yield Count("blizzard_parquet_files_written_total", self.parquet_files, labels)
        yield Count("blizzard_multipart_uploads_total", self.multipart_uploads, labels)
        for seconds in self.write_seconds:
            yield Observe("blizzard_parquet_write_duration_seconds", seconds, labels)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkDiscarded(Event):
    """Work that was counted as done did not come into the journal."""

    level: ClassVar[Level] = Level.DEBUG
    pipeline: str
    rows: int = 0
    blank: int = 0
    source_files: int = 0
    source_bytes: int = 0
    parquet_files: int = 0
    bytes_written: int = 0
    multipart_uploads: int = 0

    def sentence(self) -> str:
        """Say how much."""
        return (
            f"{self.pipeline}: discarded, as it is not in the journal: {self.rows} rows of "
            f"{self.source_files} source files in {self.parquet_files} Parquet files "
            f"({in_words(self.bytes_written)})"
        )

    def measures(self) -> Iterable[Measure]:
        """Count it: what was done, less this, is what the journal says."""
        labels = {"pipeline": self.pipeline}
        ingested = {**labels, "outcome": "ingested"}
        yield Count("blizzard_source_files_discarded_total", self.source_files, labels)
        yield Count("blizzard_source_bytes_discarded_total", self.source_bytes, labels)
        yield Count("blizzard_records_discarded_total", self.rows, ingested)
        yield Count("blizzard_records_discarded_total", self.blank, {**labels, "outcome": "blank"})
        yield Count("blizzard_bytes_discarded_total", self.bytes_written, labels)
        yield Count("blizzard_parquet_files_discarded_total", self.parquet_files, labels)
        yield Count("blizzard_multipart_uploads_discarded_total", self.multipart_uploads, labels)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitsEnded(Event):
    """No unit of the batch runs any more, however that came."""

    level: ClassVar[Level] = Level.TRACE
    pipeline: str

    def sentence(self) -> str:
        """Say so."""
        return f"{self.pipeline}: all units have ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchJournaled(Event):
    """A batch is in the journal: from here on it has happened."""

    pipeline: str
    entry: int
    files: int
    failed: int
    rows: int
    parquet_files: int
    bytes: int
    seconds: float
    files_complete: int = 0
    """Of the files, those that were read to their end."""
    blank: int = 0
    source_bytes: int = 0
    failed_bytes: int = 0
    multipart_uploads: int = 0
    download_retries: int = 0
    upload_retries: int = 0
    write_seconds: tuple[float, ...] = ()
    """How long each Parquet file took to be encoded and written."""

    def facts(self) -> dict[str, object]:
        """Give the fields; of many durations, their sum."""
        return {**Event.facts(self), "write_seconds": round(sum(self.write_seconds), 3)}

    def measures(self) -> Iterable[Measure]:
        """Count what failed and how long it took; what was done has been counted as it was done."""
        labels = {"pipeline": self.pipeline}
        failed = {**labels, "outcome": "failed"}
        yield Count("blizzard_source_files_total", self.failed, failed)
        yield Count("blizzard_source_bytes_total", self.failed_bytes, failed)
        for stage, times in (
            (Retried.DOWNLOAD, self.download_retries),
            (Retried.UPLOAD, self.upload_retries),
        ):
            yield Count("blizzard_retries_total", times, {**labels, "stage": stage.value})
        yield Observe("blizzard_batch_duration_seconds", self.seconds, labels)
        yield Reading("blizzard_journal_entry", self.entry, labels)

    def sentence(self) -> str:
        """Say what the batch gave."""
        failed = f", {self.failed} source files failed" if self.failed else ""
        return (
            f"{self.pipeline}: batch {self.entry}: {self.rows} rows of {self.files} source files "
            f"in {self.parquet_files} Parquet files ({in_words(self.bytes)}) "
            f"in {self.seconds:.1f} s{failed}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesHandedOff(Event):
    """The files of a journaled batch are handed off: penguin may commit them."""

    level: ClassVar[Level] = Level.DEBUG
    pipeline: str
    entry: int
    handoff: str
    files: int

    def sentence(self) -> str:
        """Say how many, and in which way."""
        return (
            f"{self.pipeline}: batch {self.entry}: {self.files} files handed off ({self.handoff})"
        )

    def measures(self) -> Iterable[Measure]:
        """Count them, whatever the hand-off."""
        labels = {"pipeline": self.pipeline}
        yield Count("blizzard_staging_file_written_total", self.files, labels)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFileFailed(Event):
    """A source file is not in the table; the journal says why."""

    level: ClassVar[Level] = Level.WARN
    pipeline: str
    path: str
    stage: str
    code: str
    reason: str
    line: int | None
    field: str | None

    def sentence(self) -> str:
        """Name file, line, field and reason."""
        line = f", line {self.line}" if self.line is not None else ""
        field = f", field {self.field}" if self.field is not None else ""
        return (
            f"{self.pipeline}: skipped {self.path}{line}{field}: {self.reason} "
            f"[{self.stage}/{self.code}]"
        )

    def measures(self) -> Iterable[Measure]:
        """Count it, by where and why."""
        labels = {"pipeline": self.pipeline, "stage": self.stage, "code": self.code}
        yield Count("blizzard_source_file_failures_total", 1, labels)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFilesGone(Event):
    """Files that failed, or were read in part, are not in their source any more."""

    level: ClassVar[Level] = Level.WARN
    pipeline: str
    entry: int
    files: int
    example: str

    def sentence(self) -> str:
        """Say how many, and name one."""
        return (
            f"{self.pipeline}: batch {self.entry}: {self.files} files that were not in the table "
            f"are gone from their source and no longer waited for; one is {self.example}"
        )

    def measures(self) -> Iterable[Measure]:
        """Count them."""
        yield Count("blizzard_source_files_gone_total", self.files, {"pipeline": self.pipeline})


@dataclass(frozen=True, slots=True, kw_only=True)
class FailuresRecorded(Event):
    """The failures of a batch stand in the dead letter queue."""

    pipeline: str
    entry: int
    object: str

    def sentence(self) -> str:
        """Say where."""
        return f"{self.pipeline}: batch {self.entry}: the failures are recorded in {self.object}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsWithoutTime(Event):
    """Rows have no timestamp: they are in the table, in the partition of null."""

    level: ClassVar[Level] = Level.WARN
    pipeline: str
    entry: int
    field: str
    rows: int

    def sentence(self) -> str:
        """Say where they went."""
        return (
            f"{self.pipeline}: batch {self.entry}: {self.rows} rows have no {self.field}; "
            "they are in the partition of null"
        )

    def measures(self) -> Iterable[Measure]:
        """Count them."""
        yield Count("blizzard_rows_without_time_total", self.rows, {"pipeline": self.pipeline})


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldsDropped(Event):
    """Records held fields that the schema does not declare; their values are not in the table."""

    level: ClassVar[Level] = Level.WARN
    pipeline: str
    entry: int
    fields: dict[str, int]
    twins: dict[str, str] = of_dataclass(default_factory=dict)
    """Those that differ from a column, or from another of them, only in case, with that one."""

    def sentence(self) -> str:
        """Name the fields, the most frequent first, and say what can be done."""
        most = sorted(self.fields.items(), key=lambda item: -item[1])
        shown = ", ".join(f"{name} ({count})" for name, count in most[:10])
        more = f" and {len(most) - 10} more" if len(most) > 10 else ""
        return (
            f"{self.pipeline}: batch {self.entry}: values of undeclared fields were left out: "
            f"{shown}{more}{'; '.join(('', *self._ways_out()))}"
        )

    def _ways_out(self) -> Iterable[str]:
        if len(self.twins) < len(self.fields):
            yield "declare them under schema.fields to keep them"
        for name, other in list(self.twins.items())[:3]:
            yield (
                f"{name} differs from {other} only in case, and Delta takes both for one column: "
                "only the spelling that schema.fields declares is kept, so rename one of them in "
                "the data to keep both"
            )

    def measures(self) -> Iterable[Measure]:
        """Count the values; the names are no label, since anybody can send new ones."""
        count = sum(self.fields.values())
        yield Count("blizzard_values_dropped_total", count, {"pipeline": self.pipeline})


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFileOverwritten(Event):
    """An ingested source file is another object now; it is not read again."""

    level: ClassVar[Level] = Level.WARN
    pipeline: str
    path: str

    def sentence(self) -> str:
        """Say that its new content is not in the table."""
        return (
            f"{self.pipeline}: {self.path} was ingested before and has changed since; "
            "its new content is not read. Give new data a new name"
        )

    def measures(self) -> Iterable[Measure]:
        """Count it."""
        yield Count("blizzard_source_files_overwritten_total", 1, {"pipeline": self.pipeline})


@dataclass(frozen=True, slots=True, kw_only=True)
class LateFiles(Event):
    """Files were ingested that sort before others of their folder that came earlier."""

    level: ClassVar[Level] = Level.DEBUG
    pipeline: str
    files: int
    example: str

    def sentence(self) -> str:
        """Say how many, and name one."""
        return (
            f"{self.pipeline}: {self.files} source files came late: a bare watermark would have "
            f"missed them; one is {self.example}"
        )

    def measures(self) -> Iterable[Measure]:
        """Count them."""
        yield Count("blizzard_late_files_total", self.files, {"pipeline": self.pipeline})


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRebuilt(Event):
    """What was derived from the journal is missing or damaged; every entry is read instead."""

    level: ClassVar[Level] = Level.WARN
    pipeline: str
    reason: str

    def sentence(self) -> str:
        """Say why."""
        return (
            f"{self.pipeline}: every journal entry is read again, because a snapshot or a list of "
            f"known names is of no use: {self.reason}"
        )

    def measures(self) -> Iterable[Measure]:
        """Count it."""
        yield Count("blizzard_history_rebuilt_total", 1, {"pipeline": self.pipeline})


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotFailed(Event):
    """A snapshot could not be written; nothing is lost, and it is tried again."""

    level: ClassVar[Level] = Level.WARN
    pipeline: str
    code: str
    error: str

    def sentence(self) -> str:
        """Say why, and what it means."""
        return (
            f"{self.pipeline}: no snapshot of the journal was written: {self.error}; the next "
            "start reads more entries until one is"
        )

    def measures(self) -> Iterable[Measure]:
        """Count it."""
        yield Count("blizzard_snapshot_failures_total", 1, {"pipeline": self.pipeline})


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcesListed(Event):
    """The sources were looked at; so much waits to be read."""

    level: ClassVar[Level] = Level.TRACE
    pipeline: str
    pending: int
    oldest: float | None
    """When the first of the pending files was written, in seconds since the epoch."""
    resting: int
    """Files that failed, and are tried again later or not at all."""
    amiss: Mapping[str, int] = field(default_factory=dict)
    """Names that are passed over and that a person should see to, by the reason."""

    def sentence(self) -> str:
        """Say how much."""
        return f"{self.pipeline}: {self.pending} source files wait, {self.resting} failed ones rest"

    def measures(self) -> Iterable[Measure]:
        """Give the backlog."""
        labels = {"pipeline": self.pipeline}
        yield Reading("blizzard_pending_files", self.pending, labels)
        yield Age("blizzard_oldest_pending_file_age_seconds", self.oldest, labels)
        yield Reading("blizzard_resting_files", self.resting, labels)
        for reason, names in self.amiss.items():
            yield Reading("blizzard_names_passed_over", names, {**labels, "reason": reason})


@dataclass(frozen=True, slots=True, kw_only=True)
class NamesPassedOver(Event):
    """A source has names that cannot be read; everything else goes on."""

    level: ClassVar[Level] = Level.WARN
    pipeline: str
    source: str
    reason: str
    names: int
    example: str
    why: str

    def sentence(self) -> str:
        """Name one of them, and the reason."""
        more = f" and {self.names - 1} more" if self.names > 1 else ""
        return (
            f"{self.pipeline}: source {self.source}: passed over {self.example}{more}: {self.why}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StageFinished(Event):
    """A part of a batch is done."""

    level: ClassVar[Level] = Level.TRACE
    pipeline: str
    stage: Step
    seconds: float

    def sentence(self) -> str:
        """Say how long it took."""
        return f"{self.pipeline}: {self.stage} took {self.seconds:.3f} s"

    def measures(self) -> Iterable[Measure]:
        """Give the time it took."""
        labels = {"pipeline": self.pipeline, "stage": self.stage.value}
        yield Observe("blizzard_stage_duration_seconds", self.seconds, labels)


@dataclass(frozen=True, slots=True, kw_only=True)
class NothingNew(Event):
    """A look at the sources found nothing to do."""

    level: ClassVar[Level] = Level.DEBUG
    pipeline: str
    resting: int

    def sentence(self) -> str:
        """Say so, and how many failed files rest."""
        rest = f"; {self.resting} failed files rest" if self.resting else ""
        return f"{self.pipeline}: nothing new{rest}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkStarting(Event):
    """The Spark session is being started; this takes some seconds."""

    master: str

    def sentence(self) -> str:
        """Say where Spark runs."""
        return f"starting Spark on {self.master}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkSaid(Event):
    """Spark, or the Java that it runs in, has printed a line that may matter."""

    level: ClassVar[Level] = Level.WARN
    line: str

    def sentence(self) -> str:
        """Repeat it, and say whose words they are."""
        return f"spark: {self.line}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkComplained(SparkSaid):
    """Spark has printed an error."""

    level: ClassVar[Level] = Level.ERROR


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkMurmured(SparkSaid):
    """Spark has printed what it prints at every start."""

    level: ClassVar[Level] = Level.DEBUG


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverNotReached(Event):
    """No unit of a job could call the driver; the work was done all the same."""

    level: ClassVar[Level] = Level.WARN
    host: str
    port: int

    def sentence(self) -> str:
        """Say what is missing and what to look at."""
        return (
            f"executors cannot reach the driver at {self.host}:{self.port}: the work goes on, but "
            "progress is not shown and a stop waits for running units; set spark.driver.host to "
            "an address that they reach and open spark.line_port, see docs/cluster.md"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NextStartMadeFaster(Event):
    """A process of its own keeps what Java worked out, for the next start of Spark."""

    def sentence(self) -> str:
        """Say what goes on after the end."""
        return "in the background: keeping what Java worked out, so that Spark starts faster next"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitsLeft(Event):
    """Some units of a batch could not be run; what the others have done is journaled."""

    level: ClassVar[Level] = Level.WARN
    pipeline: str
    units: int
    reason: str

    def sentence(self) -> str:
        """Return what is left, and why."""
        return (
            f"{self.pipeline}: {self.units} units were not run and go on in the next batch: "
            f"{self.reason}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchHandedIn(Event):
    """A batch was journaled before all of its files were read; the rest goes on in the next one."""

    pipeline: str
    entry: int
    left: int
    seconds: float

    def sentence(self) -> str:
        """Return how old it was, and how much is left."""
        return (
            f"{self.pipeline}: batch {self.entry} was handed in after {self.seconds:.1f} s "
            f"(rollover_timeout_secs); {self.left} source files, or the rest of them, go on in "
            "the next one"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSplit(Event):
    """A job failed; its units are run again in halves, to find the file that kills the workers."""

    level: ClassVar[Level] = Level.WARN
    pipeline: str
    units: int
    reason: str

    def sentence(self) -> str:
        """Say what failed and what happens now."""
        return (
            f"{self.pipeline}: {self.reason}; its {self.units} units are run again in halves, "
            "to find the file that does it"
        )

    def measures(self) -> Iterable[Measure]:
        """Count it."""
        yield Count("blizzard_jobs_split_total", 1, {"pipeline": self.pipeline})


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherWriterWatched(Event):
    """Another blizzard seems to write the pipeline; whether it is alive is being found out."""

    pipeline: str
    other: str
    seconds: float

    def sentence(self) -> str:
        """Say who it is, and how long this takes."""
        return (
            f"{self.pipeline}: another blizzard has not ended: {self.other}; watching for up to "
            f"{self.seconds:.0f} s whether it is alive"
        )

    def signs(self) -> Iterable[Sign]:
        """Say that the wait is no trouble."""
        yield Working(Part(PartKind.PIPELINE, self.pipeline))


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenOver(Event):
    """This blizzard goes on where another one left off."""

    level: ClassVar[Level] = Level.WARN
    pipeline: str
    other: str
    why: str

    def sentence(self) -> str:
        """Say from whom, and why that is sound."""
        return f"{self.pipeline}: taking over from {self.other}: {self.why}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BeatFailed(Event):
    """The note of who writes could not be renewed; nothing depends on it but who is told."""

    level: ClassVar[Level] = Level.WARN
    pipeline: str
    code: str
    error: str

    def sentence(self) -> str:
        """Say what may come of it."""
        return (
            f"{self.pipeline}: the note of who writes was not renewed: {self.error} [{self.code}]; "
            "a second blizzard may take this pipeline over"
        )
