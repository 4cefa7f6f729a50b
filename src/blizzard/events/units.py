"""Events of Spark and its work units, of the journal and its writer, and of compactions."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict

from blizzard.events.batch import PipelineEvent
from blizzard.model.progress import Done
from lakebed.telemetry.events import Event, Level
from lakebed.telemetry.health import Mark, Sign
from lakebed.telemetry.measures import Measure
from lakebed.units import plural


class SparkStarting(Event):
    """The Spark session is being started; this takes some seconds."""

    master: str

    says = "starting Spark on {master}"


class SparkSaid(Event, level=Level.WARN):
    """Spark, or the Java that it runs in, has printed a line that may matter."""

    line: str

    says = "spark: {line}"


class SparkComplained(SparkSaid, level=Level.ERROR):
    """Spark has printed an error."""


class SparkMurmured(SparkSaid, level=Level.DEBUG):
    """Spark has printed what it prints at every start."""


class DriverNotReached(Event, level=Level.WARN):
    """No unit of a job could call the driver; the work was done anyway."""

    host: str
    port: int

    says = (
        "executors cannot reach the driver at {host}:{port}: work continues, but progress is not "
        "shown and a stop waits for running units; set spark.driver.host to an address that they "
        "can reach and open spark.line_port, see docs/cluster.md"
    )


class BatchProgress(PipelineEvent, level=Level.TRACE):
    """What the running units of a batch have done so far, and what they are doing now."""

    files_read: int = 0
    files_failed: int = 0
    records: int = 0
    bytes_read: int = 0
    parquet_files: int = 0
    bytes_written: int = 0
    active_uploads: int = 0
    active_parts: int = 0

    says = "{files_read:#file} read, {records:#record}, {parquet_files:#Parquet file} uploaded"

    def measures(self) -> Iterable[Measure]:
        """Yield what is going on now; what was done counts once it is journaled."""
        yield self.reading("blizzard_active_uploads", self.active_uploads)
        yield self.reading("blizzard_active_multipart_parts", self.active_parts)


class UnitReported(PipelineEvent, level=Level.TRACE):
    """What one attempt at a unit has done so far."""

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


class WorkDone(PipelineEvent, level=Level.TRACE):
    """Running units have finished something more: source files read, data files uploaded."""

    done: Done

    says = (
        "{done.source_files:#more source file} read, {done.rows:#row} in "
        "{done.parquet_files:#more Parquet file} ({done.bytes_written:size})"
    )

    def facts(self) -> dict[str, object]:
        """Return what was done; of many durations, their sum."""
        seconds = round(sum(self.done.write_seconds), 3)
        return {"pipeline": self.pipeline, **asdict(self.done), "write_seconds": seconds}

    def measures(self) -> Iterable[Measure]:
        """Count it now; if it never reaches the journal, it is counted as discarded, too."""
        done, ingested = self.done, {"outcome": "ingested"}
        yield self.count("blizzard_source_files_total", done.source_files, **ingested)
        yield self.count("blizzard_source_bytes_total", done.source_bytes, **ingested)
        for outcome, lines in _records(done):
            yield self.count("blizzard_records_total", lines, outcome=outcome)
        yield self.count("blizzard_bytes_written_total", done.bytes_written)
        yield self.count("blizzard_parquet_files_written_total", done.parquet_files)
        yield self.count("blizzard_multipart_uploads_total", done.multipart_uploads)
        for seconds in done.write_seconds:
            yield self.observe("blizzard_parquet_write_duration_seconds", seconds)


class WorkDiscarded(PipelineEvent, level=Level.DEBUG):
    """Work that was counted as done did not reach the journal."""

    done: Done

    says = (
        "discarded because they are not in the journal: {done.rows:#row} from "
        "{done.source_files:#source file} in {done.parquet_files:#Parquet file} "
        "({done.bytes_written:size})"
    )

    def facts(self) -> dict[str, object]:
        """Return what was done, without durations."""
        facts = {"pipeline": self.pipeline, **asdict(self.done)}
        del facts["write_seconds"]
        return facts

    def measures(self) -> Iterable[Measure]:
        """Count it: what was done, less this, is what the journal says."""
        done = self.done
        yield self.count("blizzard_source_files_discarded_total", done.source_files)
        yield self.count("blizzard_source_bytes_discarded_total", done.source_bytes)
        for outcome, lines in _records(done):
            yield self.count("blizzard_records_discarded_total", lines, outcome=outcome)
        yield self.count("blizzard_bytes_discarded_total", done.bytes_written)
        yield self.count("blizzard_parquet_files_discarded_total", done.parquet_files)
        yield self.count("blizzard_multipart_uploads_discarded_total", done.multipart_uploads)


def _records(done: Done) -> Iterator[tuple[str, int]]:
    yield "ingested", done.rows
    yield "blank", done.blank
    yield "filtered", done.filtered
    yield "quarantined", done.quarantined


class InferenceEnded(PipelineEvent, level=Level.TRACE):
    """All units were read to infer columns; their conversion begins, and their reports with it."""

    says = "the files were read for their columns; converting them"


class UnitsEnded(PipelineEvent, level=Level.TRACE):
    """No unit of the batch is running any more, for any reason."""

    says = "all units have ended"


class UnitsLeft(PipelineEvent, level=Level.WARN):
    """Some units of a batch could not be run; what the others have done is journaled."""

    units: int
    reason: str
    ran_before: bool = False
    """Whether they were to run once more, with columns for values that they had met."""

    def message(self) -> str:
        """Return what is left, and why."""
        left = "not run and left to the next batch"
        if self.ran_before:
            left = "not run again with new columns, whose values stay in _rescued in this batch"
        return f"{left}: {plural(self.units, 'unit')}: {self.reason}"


class JobSplit(PipelineEvent, level=Level.WARN, counts="blizzard_jobs_split_total"):
    """A job failed; its units are run again in halves, to find the file that kills the workers."""

    units: int
    reason: str

    says = "{reason}; running its {units:#unit} again in halves, to find the file that causes it"


class CompactionStarted(PipelineEvent, level=Level.DEBUG):
    """A run looks for small data files to put together."""

    says = "looking for small data files to compact"

    def signs(self) -> Iterable[Sign]:
        """Yield a sign that the pipeline is at work, for as long as it takes."""
        yield Sign(Mark.WORKING, self.part)


class FilesCompacted(PipelineEvent):
    """Small data files became fewer, once that is committed."""

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


class CompactionGaveWay(PipelineEvent, counts="blizzard_compactions_gave_way_total"):
    """Nothing was compacted, because another writer came first; a later run tries again."""

    reason: str

    says = "no files were compacted this time: {reason}"


class CompactionFailed(
    PipelineEvent, level=Level.WARN, counts="blizzard_compaction_failures_total"
):
    """Files could not be compacted. They stay as they are, and batches go on."""

    code: str
    error: str

    says = (
        "files could not be compacted: {error} [{code}]; the table stays as it is, and it is "
        "tried again later"
    )


class HistoryRebuilt(PipelineEvent, level=Level.WARN, counts="blizzard_history_rebuilt_total"):
    """What was derived from the journal is missing or damaged; every entry is read instead."""

    reason: str

    says = (
        "reading every journal entry again, because a snapshot or an index of known names cannot "
        "be used: {reason}"
    )


class SnapshotFailed(PipelineEvent, level=Level.WARN, counts="blizzard_snapshot_failures_total"):
    """A snapshot could not be written; nothing is lost, and it is tried again."""

    code: str
    error: str

    says = (
        "no snapshot of the journal was written: {error}; the next start reads more entries until"
        " one is"
    )


class OtherWriterWatched(PipelineEvent):
    """Another blizzard seems to run the pipeline; whether it is alive is being checked."""

    other: str
    seconds: float

    says = (
        "another blizzard may still be running: {other}; watching for up to {seconds:.0f} s to see "
        "whether it is alive"
    )

    def signs(self) -> Iterable[Sign]:
        """Yield a sign that the wait is no trouble."""
        yield Sign(Mark.WORKING, self.part)


class TakenOver(PipelineEvent, level=Level.WARN):
    """This blizzard continues where another one left off."""

    other: str
    why: str

    says = "taking over from {other}: {why}"


class BeatFailed(PipelineEvent, level=Level.WARN):
    """The lease could not be renewed; it is advisory, so nothing else depends on it."""

    code: str
    error: str

    says = (
        "the lease was not renewed: {error} [{code}]; a second blizzard may take over this pipeline"
    )
