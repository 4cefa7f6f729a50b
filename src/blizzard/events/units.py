"""What Spark and the units of a batch do while they run, as events."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from lakebed.telemetry.events import Event, Level
from lakebed.telemetry.measures import Count, Measure, Observe, Reading
from lakebed.units import in_words, plural


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkStarting(Event):
    """The Spark session is being started; this takes some seconds."""

    master: str

    def sentence(self) -> str:
        """Return where Spark runs."""
        return f"starting Spark on {self.master}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkSaid(Event):
    """Spark, or the Java that it runs in, has printed a line that may matter."""

    level: ClassVar[Level] = Level.WARN
    line: str

    def sentence(self) -> str:
        """Return the line, and whose words they are."""
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
    """No unit of a job could call the driver; the work was done anyway."""

    level: ClassVar[Level] = Level.WARN
    host: str
    port: int

    def sentence(self) -> str:
        """Return what is missing and what to look at."""
        return (
            f"executors cannot reach the driver at {self.host}:{self.port}: work continues, but "
            "progress is not shown and a stop waits for running units; set spark.driver.host to "
            "an address that they can reach and open spark.line_port, see docs/cluster.md"
        )


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
        """Return how far it is."""
        return (
            f"{self.pipeline}: {plural(self.files_read, 'file')} read, "
            f"{plural(self.records, 'record')}, "
            f"{plural(self.parquet_files, 'Parquet file')} uploaded"
        )

    def measures(self) -> Iterable[Measure]:
        """Yield what is going on now; what was done counts once it is journaled."""
        labels = {"pipeline": self.pipeline}
        yield Reading("blizzard_active_uploads", self.active_uploads, labels)
        yield Reading("blizzard_active_multipart_parts", self.active_parts, labels)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitReported(Event):
    """What one attempt at a unit has done so far."""

    level: ClassVar[Level] = Level.TRACE
    pipeline: str
    unit: str
    files_read: int = 0
    files_failed: int = 0
    bytes_read: int = 0
    records: int = 0
    bad_lines: int = 0
    worker: str | None = None
    """Where it runs: the host and the process."""

    def sentence(self) -> str:
        """Return how far it is."""
        return (
            f"{self.pipeline}: unit {self.unit}: {plural(self.files_read, 'file')} read, "
            f"{plural(self.records, 'record')}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    """What units have finished; no event by itself."""

    pipeline: str
    rows: int = 0
    blank: int = 0
    filtered: int = 0
    quarantined: int = 0
    source_files: int = 0
    source_bytes: int = 0
    parquet_files: int = 0
    bytes_written: int = 0
    multipart_uploads: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkDone(Event, _Work):
    """Running units have finished something more: source files read, data files uploaded."""

    level: ClassVar[Level] = Level.TRACE
    write_seconds: tuple[float, ...] = ()

    def sentence(self) -> str:
        """Return how much."""
        return (
            f"{self.pipeline}: {plural(self.source_files, 'more source file')} read, "
            f"{plural(self.rows, 'row')} in {plural(self.parquet_files, 'more Parquet file')} "
            f"({in_words(self.bytes_written)})"
        )

    def facts(self) -> dict[str, object]:
        """Return the fields; of many durations, their sum."""
        return {**Event.facts(self), "write_seconds": round(sum(self.write_seconds), 3)}

    def measures(self) -> Iterable[Measure]:
        """Count it now; if it never reaches the journal, it is counted as discarded, too."""
        labels = {"pipeline": self.pipeline}
        ingested = {**labels, "outcome": "ingested"}
        yield Count("blizzard_source_files_total", self.source_files, ingested)
        yield Count("blizzard_source_bytes_total", self.source_bytes, ingested)
        yield Count("blizzard_records_total", self.rows, ingested)
        yield Count("blizzard_records_total", self.blank, {**labels, "outcome": "blank"})
        filtered = {**labels, "outcome": "filtered"}
        yield Count("blizzard_records_total", self.filtered, filtered)
        quarantined = {**labels, "outcome": "quarantined"}
        yield Count("blizzard_records_total", self.quarantined, quarantined)
        yield Count("blizzard_bytes_written_total", self.bytes_written, labels)
        yield Count("blizzard_parquet_files_written_total", self.parquet_files, labels)
        yield Count("blizzard_multipart_uploads_total", self.multipart_uploads, labels)
        for seconds in self.write_seconds:
            yield Observe("blizzard_parquet_write_duration_seconds", seconds, labels)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkDiscarded(Event, _Work):
    """Work that was counted as done did not reach the journal."""

    level: ClassVar[Level] = Level.DEBUG

    def sentence(self) -> str:
        """Return how much."""
        return (
            f"{self.pipeline}: discarded because they are not in the journal: "
            f"{plural(self.rows, 'row')} from {plural(self.source_files, 'source file')} in "
            f"{plural(self.parquet_files, 'Parquet file')} ({in_words(self.bytes_written)})"
        )

    def measures(self) -> Iterable[Measure]:
        """Count it: what was done, less this, is what the journal says."""
        labels = {"pipeline": self.pipeline}
        ingested = {**labels, "outcome": "ingested"}
        yield Count("blizzard_source_files_discarded_total", self.source_files, labels)
        yield Count("blizzard_source_bytes_discarded_total", self.source_bytes, labels)
        yield Count("blizzard_records_discarded_total", self.rows, ingested)
        yield Count("blizzard_records_discarded_total", self.blank, {**labels, "outcome": "blank"})
        filtered = {**labels, "outcome": "filtered"}
        yield Count("blizzard_records_discarded_total", self.filtered, filtered)
        quarantined = {**labels, "outcome": "quarantined"}
        yield Count("blizzard_records_discarded_total", self.quarantined, quarantined)
        yield Count("blizzard_bytes_discarded_total", self.bytes_written, labels)
        yield Count("blizzard_parquet_files_discarded_total", self.parquet_files, labels)
        yield Count("blizzard_multipart_uploads_discarded_total", self.multipart_uploads, labels)


@dataclass(frozen=True, slots=True, kw_only=True)
class InferenceEnded(Event):
    """All units were read to infer columns; their conversion begins, and their reports with it."""

    level: ClassVar[Level] = Level.TRACE
    pipeline: str

    def sentence(self) -> str:
        """Return what comes next."""
        return f"{self.pipeline}: the files were read for their columns; converting them"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitsEnded(Event):
    """No unit of the batch is running any more, for whatever reason."""

    level: ClassVar[Level] = Level.TRACE
    pipeline: str

    def sentence(self) -> str:
        """Return that all have ended."""
        return f"{self.pipeline}: all units have ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitsLeft(Event):
    """Some units of a batch could not be run; what the others have done is journaled."""

    level: ClassVar[Level] = Level.WARN
    pipeline: str
    units: int
    reason: str
    ran_before: bool = False
    """Whether they were to run once more, with columns for values that they had met."""

    def sentence(self) -> str:
        """Return what is left, and why."""
        left = "not run and left to the next batch"
        if self.ran_before:
            left = "not run again with new columns, whose values stay in _rescued in this batch"
        return f"{self.pipeline}: {left}: {plural(self.units, 'unit')}: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSplit(Event):
    """A job failed; its units are run again in halves, to find the file that kills the workers."""

    level: ClassVar[Level] = Level.WARN
    pipeline: str
    units: int
    reason: str

    def sentence(self) -> str:
        """Return what failed and what happens now."""
        return (
            f"{self.pipeline}: {self.reason}; running its {plural(self.units, 'unit')} again in "
            "halves, to find the file that causes it"
        )

    def measures(self) -> Iterable[Measure]:
        """Count it."""
        yield Count("blizzard_jobs_split_total", 1, {"pipeline": self.pipeline})
