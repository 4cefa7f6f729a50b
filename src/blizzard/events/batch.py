"""A batch from its start to its hand-off, and the time between batches, as events."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from lakebed.documents.entry import Entry
from lakebed.telemetry.events import Event, Level
from lakebed.telemetry.health import Part, PartKind, Sign, Working
from lakebed.telemetry.measures import Count, Measure, Observe, Reading
from lakebed.units import in_words, plural, span, took


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcesWatched(Event):
    """Nothing is left to do for now; the sources are looked at again and again."""

    level: ClassVar[Level] = Level.INFO
    pipeline: str
    places: tuple[str, ...]
    every_secs: float

    def sentence(self) -> str:
        """Return what is watched, and how often."""
        where = ", ".join(self.places)
        return f"{self.pipeline}: watching {where} every {span(self.every_secs)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesGather(Event):
    """New files wait for more of them before they become a batch."""

    level: ClassVar[Level] = Level.INFO
    pipeline: str
    files: int
    starts_in_secs: float

    def sentence(self) -> str:
        """Return how many, and when the batch starts at the latest."""
        files = plural(self.files, "file")
        return (
            f"{self.pipeline}: {files} waiting, next batch in {span(self.starts_in_secs)} at the "
            "latest"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NextBatchDue(Event):
    """How many files wait now, and when the batch starts at the latest."""

    level: ClassVar[Level] = Level.TRACE
    pipeline: str
    files: int
    starts_in_secs: float

    def sentence(self) -> str:
        """Return both."""
        files = plural(self.files, "file")
        return f"{self.pipeline}: {files} waiting, next batch in {span(self.starts_in_secs)}"


class Step(StrEnum):
    """The parts of a batch that are timed at the driver."""

    DISCOVER = "discover"
    RUN = "run"
    JOURNAL = "journal"
    PUBLISH = "publish"


class Retried(StrEnum):
    """The requests to a store that are retried when the trouble may pass."""

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
        """Return what is written again, and when."""
        return (
            f"{self.pipeline}: the store did not accept a write of the {self.stage.value}; "
            f"trying again in {took(self.next_try_secs)}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchStarted(Event):
    """Source files were planned into units, and the units are on their way to Spark."""

    pipeline: str
    entry: int
    files: int
    bytes: int
    units: int
    planned: tuple[tuple[str, int, int], ...] = ()
    """Each unit: its name, its files and their bytes."""
    journal: str = ""
    """The journal that the entry will be in."""

    def facts(self) -> dict[str, object]:
        """Return what is in hand: of the units how many; the journal only ties traces together."""
        told = Event.facts(self)
        del told["planned"], told["journal"]
        return told

    def sentence(self) -> str:
        """Return how much is in hand."""
        return (
            f"{self.pipeline}: batch {self.entry}: reading {plural(self.files, 'source file')} "
            f"({in_words(self.bytes)}) in {plural(self.units, 'unit')}"
        )

    def signs(self) -> Iterable[Sign]:
        """Yield a sign that the pipeline is at work, for as long as it takes."""
        yield Working(Part(PartKind.PIPELINE, self.pipeline))


@dataclass(frozen=True, slots=True, kw_only=True)
class StageFinished(Event):
    """A part of a batch is done."""

    level: ClassVar[Level] = Level.TRACE
    pipeline: str
    stage: Step
    seconds: float

    def sentence(self) -> str:
        """Return how long it took."""
        return f"{self.pipeline}: {self.stage} took {self.seconds:.3f} s"

    def measures(self) -> Iterable[Measure]:
        """Yield the time it took."""
        labels = {"pipeline": self.pipeline, "stage": self.stage.value}
        yield Observe("blizzard_stage_duration_seconds", self.seconds, labels)


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
    filtered: int = 0
    quarantined: int = 0
    source_bytes: int = 0
    failed_bytes: int = 0
    multipart_uploads: int = 0
    download_retries: int = 0
    upload_retries: int = 0
    write_seconds: tuple[float, ...] = ()
    """How long each Parquet file took to be encoded and written."""
    delays: tuple[float, ...] = ()
    """How long ago each source file that was read to its end had arrived."""
    document: Entry | None = None
    """The entry itself."""

    def facts(self) -> dict[str, object]:
        """Return the fields; of many durations, their sum, or the longest."""
        told = {**Event.facts(self), "write_seconds": round(sum(self.write_seconds), 3)}
        del told["delays"], told["document"]
        return {**told, "longest_delay": round(max(self.delays, default=0.0), 3)}

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
        for delay in self.delays:
            yield Observe("blizzard_ingest_delay_seconds", delay, labels)
        yield Observe("blizzard_batch_duration_seconds", self.seconds, labels)
        yield Reading("blizzard_journal_entry", self.entry, labels)

    def sentence(self) -> str:
        """Return what the batch gave."""
        failed = f", {plural(self.failed, 'source file')} failed" if self.failed else ""
        if self.quarantined:
            failed += f", {plural(self.quarantined, 'bad line')} set aside"
        return (
            f"{self.pipeline}: batch {self.entry}: {plural(self.rows, 'row')} from "
            f"{plural(self.files, 'source file')} in "
            f"{plural(self.parquet_files, 'Parquet file')} ({in_words(self.bytes)}) in "
            f"{took(self.seconds)}{failed}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchHandedIn(Event):
    """A batch was journaled before all of its files were read; the next one reads the rest."""

    pipeline: str
    entry: int
    left: int
    seconds: float

    def sentence(self) -> str:
        """Return how old it was, and how much is left."""
        return (
            f"{self.pipeline}: batch {self.entry} was closed after {took(self.seconds)} "
            "(rollover_timeout_secs); the next one continues with "
            f"{plural(self.left, 'source file')}, or with what is left to read in them"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FailuresRecorded(Event):
    """The failures of a batch are in the dead letter queue."""

    pipeline: str
    entry: int
    object: str

    def sentence(self) -> str:
        """Return where."""
        return f"{self.pipeline}: batch {self.entry}: the failures are recorded in {self.object}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesHandedOff(Event):
    """The files of a journaled batch are handed off: penguin may commit them."""

    level: ClassVar[Level] = Level.DEBUG
    pipeline: str
    entry: int
    handoff: str
    files: int

    def sentence(self) -> str:
        """Return how many, and in which way."""
        return (
            f"{self.pipeline}: batch {self.entry}: {plural(self.files, 'file')} "
            f"handed off ({self.handoff})"
        )

    def measures(self) -> Iterable[Measure]:
        """Count them, whatever the hand-off."""
        labels = {"pipeline": self.pipeline}
        yield Count("blizzard_staging_file_written_total", self.files, labels)
