"""Events of Spark and its work units, of the journal and its writer, and of compactions."""

from collections.abc import Iterable

from blizzard.events.batch import PipelineEvent
from lakebed.telemetry.events import Event, Level
from lakebed.telemetry.health import HealthChange, Mark
from lakebed.telemetry.measures import Measure


class SparkStarting(Event):
    """The Spark session is being started; this takes some seconds."""

    master: str

    says = "starting Spark on {master}"


class SparkWarningLogged(Event, level=Level.WARN):
    """Spark, or its Java virtual machine, printed a line that may matter."""

    line: str

    says = "spark: {line}"


class SparkErrorLogged(SparkWarningLogged, level=Level.ERROR):
    """Spark printed an error."""


class SparkDebugLogged(SparkWarningLogged, level=Level.DEBUG):
    """Spark printed one of the lines that it prints at every start."""


class DriverNotReached(Event, level=Level.WARN):
    """No unit of a job could reach the driver; the work was done nevertheless."""

    host: str
    port: int

    says = (
        "executors cannot reach the driver at {host}:{port}: work continues, but progress is not "
        "shown and a stop waits for running units; set spark.driver.host to an address that they "
        "can reach and open spark.line_port, see docs/cluster.md"
    )


class BatchProgress(PipelineEvent, level=Level.TRACE):
    """The progress of a batch's running units, and their current activity."""

    files_read: int = 0
    files_failed: int = 0
    records: int = 0
    bytes_read: int = 0
    parquet_files: int = 0
    bytes_written: int = 0
    bad_lines: int = 0
    active_uploads: int = 0
    active_parts: int = 0

    says = "{files_read:#file} read, {records:#record}, {parquet_files:#Parquet file} uploaded"

    def measures(self) -> Iterable[Measure]:
        """Yield the current activity; `BatchJournaled` counts the finished work."""
        yield self.reading("blizzard_batch_bytes_read", self.bytes_read)
        yield self.reading("blizzard_active_uploads", self.active_uploads)
        yield self.reading("blizzard_active_multipart_parts", self.active_parts)


class UnitReported(PipelineEvent, level=Level.TRACE):
    """The progress of one attempt at a unit."""

    unit: str
    files_read: int = 0
    files_failed: int = 0
    bytes_read: int = 0
    records: int = 0
    parquet_files: int = 0
    bytes_written: int = 0
    bad_lines: int = 0
    worker: str | None = None
    """Where it runs: the host and the process."""

    says = "unit {unit}: {files_read:#file} read, {records:#record}"


class InferenceEnded(PipelineEvent, level=Level.TRACE):
    """All units were read to infer columns; their conversion begins."""

    says = "the files were read for their columns; converting them"


class UnitsEnded(PipelineEvent, level=Level.TRACE):
    """No unit of the batch is running any more."""

    says = "all units have ended"


class UnitsNotRun(PipelineEvent, level=Level.WARN):
    """Some units of a batch could not be run; the work of the others is journaled."""

    units: int
    reason: str

    says = (
        "{units:#unit} could not be run: {reason}; the next batch reads what is left of their "
        "files, and values without a column stay in _rescued"
    )


class JobSplit(PipelineEvent, level=Level.WARN, counts="blizzard_jobs_split_total"):
    """A job failed; its units are run again in halves, to find the file that kills the workers."""

    units: int
    reason: str

    says = "{reason}; running its {units:#unit} again in halves, to find the file that causes it"


class CompactionStarted(PipelineEvent, level=Level.DEBUG):
    """A run looks for small data files to compact."""

    says = "looking for small data files to compact"

    def health_changes(self) -> Iterable[HealthChange]:
        """Yield the health change: the pipeline is at work, for as long as it takes."""
        yield HealthChange(Mark.WORKING, self.part)


class FilesCompacted(PipelineEvent):
    """Small data files were merged; this takes effect once it is committed."""

    entry: int
    files: int
    into: int
    bytes: int

    says = "entry {entry} compacts {files:#data file} into {into:,} ({bytes:size})"

    def measures(self) -> Iterable[Measure]:
        """Count them."""
        yield self.count("blizzard_compactions_total")
        yield self.count("blizzard_files_compacted_total", self.files)
        yield self.count("blizzard_compacted_bytes_total", self.bytes)


class CompactionConflicted(PipelineEvent, counts="blizzard_compaction_conflicts_total"):
    """Nothing was compacted, because another writer came first; a later run tries again."""

    reason: str

    says = "no files were compacted this time: {reason}"


class CompactionFailed(
    PipelineEvent, level=Level.WARN, counts="blizzard_compaction_failures_total"
):
    """Files could not be compacted; the table is unchanged, and batches continue."""

    code: str
    error: str

    says = (
        "files could not be compacted: {error} [{code}]; the table is unchanged, and a later run "
        "tries again"
    )


class HistoryRebuilt(PipelineEvent, level=Level.WARN, counts="blizzard_history_rebuilt_total"):
    """Data derived from the journal is missing or damaged; every entry is read instead."""

    reason: str

    says = (
        "reading every journal entry again, because a snapshot or an index of known names cannot "
        "be used: {reason}"
    )


class SnapshotFailed(PipelineEvent, level=Level.WARN, counts="blizzard_snapshot_failures_total"):
    """A snapshot could not be written; nothing is lost, and it is retried."""

    code: str
    error: str

    says = (
        "no snapshot of the journal was written: {error}; starts take longer until one is written"
    )


class OtherWriterWatched(PipelineEvent):
    """Another blizzard may be running the pipeline; its lease is watched."""

    other: str
    seconds: float

    says = (
        "another blizzard may still be running: {other}; watching for up to {seconds:.0f} s to see "
        "whether it is alive"
    )

    def health_changes(self) -> Iterable[HealthChange]:
        """Yield the health change: the wait is normal."""
        yield HealthChange(Mark.WORKING, self.part)


class TakenOver(PipelineEvent, level=Level.WARN):
    """This blizzard continues where another one left off."""

    other: str
    why: str

    says = "taking over from {other}: {why}"


class RenewFailed(PipelineEvent, level=Level.WARN):
    """The lease could not be renewed; it is advisory, so nothing else depends on it."""

    code: str
    error: str

    says = (
        "the lease was not renewed: {error} [{code}]; a second blizzard may take over this pipeline"
    )
