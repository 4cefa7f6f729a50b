"""Events of a batch from its start to its hand-off, and of the time between batches."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar

from lakebed.clock import Clock
from lakebed.documents.entry import Entry
from lakebed.telemetry.events import Emit, Event, Level, PartEvent
from lakebed.telemetry.health import HealthChange, Mark, PartKind
from lakebed.telemetry.measures import Measure
from lakebed.units import in_words, plural, took


class PipelineEvent(PartEvent):
    """An event of a pipeline."""

    part_kind: ClassVar[PartKind] = PartKind.PIPELINE
    pipeline: str


class SourcesWatched(PipelineEvent):
    """There is nothing to do for now; the sources are listed at an interval."""

    places: tuple[str, ...]
    every_secs: float

    says = "watching {places:list} every {every_secs:span}"


class BatchDelayed(PipelineEvent):
    """New files are waiting for more of them before they become a batch."""

    files: int
    starts_in_secs: float

    says = "{files:#file} waiting, next batch in {starts_in_secs:span} at the latest"


class BatchStep(StrEnum):
    """The stages of a batch that the driver times."""

    DISCOVER = "discover"
    RUN = "run"
    JOURNAL = "journal"
    PUBLISH = "publish"


class BatchStarted(PipelineEvent):
    """Source files were planned into units, and the units were submitted to Spark."""

    entry: int
    files: int
    bytes: int
    units: int
    planned: tuple[tuple[str, int, int], ...] = ()
    """Per unit: its name, the number of its files, and their bytes."""
    journal: str = ""
    """The journal of the entry."""

    def facts(self) -> dict[str, object]:
        """Return the counts, without the single units and the journal."""
        facts = Event.facts(self)
        del facts["planned"], facts["journal"]
        return facts

    says = "batch {entry}: reading {files:#source file} ({bytes:size}) in {units:#unit}"

    def health_changes(self) -> Iterable[HealthChange]:
        """Yield the health change: the pipeline is at work, for as long as it takes."""
        yield HealthChange(Mark.WORKING, self.part)


class StageFinished(PipelineEvent, level=Level.TRACE):
    """A stage of a batch is done."""

    stage: BatchStep
    seconds: float

    says = "{stage} took {seconds:.3f} s"

    def measures(self) -> Iterable[Measure]:
        """Observe the duration."""
        yield self.observe("blizzard_stage_duration_seconds", self.seconds, stage=self.stage.value)


class BatchJournaled(PipelineEvent):
    """A batch is in the journal, which is its commit point."""

    entry: int
    files: int
    failed: int
    rows: int
    parquet_files: int
    bytes: int
    seconds: float
    files_complete: int = 0
    """The files that were read to their end."""
    blank: int = 0
    filtered: int = 0
    quarantined: int = 0
    source_bytes: int = 0
    failed_bytes: int = 0
    multipart_uploads: int = 0
    download_retries: int = 0
    upload_retries: int = 0
    write_seconds: tuple[float, ...] = ()
    """The time to encode and write each Parquet file."""
    delays: tuple[float, ...] = ()
    """The time since the arrival of each source file that was read to its end."""
    document: Entry | None = None
    """The entry itself."""

    def facts(self) -> dict[str, object]:
        """Return the fields, with durations summed up and only the longest delay."""
        facts = {**Event.facts(self), "write_seconds": round(sum(self.write_seconds), 3)}
        del facts["delays"], facts["document"]
        return {**facts, "longest_delay": round(max(self.delays, default=0.0), 3)}

    def measures(self) -> Iterable[Measure]:
        """Count the work, and observe its durations."""
        for outcome, files, size in (
            ("ingested", self.files_complete, self.source_bytes),
            ("failed", self.failed, self.failed_bytes),
        ):
            yield self.count("blizzard_source_files_total", files, outcome=outcome)
            yield self.count("blizzard_source_bytes_total", size, outcome=outcome)
        for outcome, lines in (
            ("ingested", self.rows),
            ("blank", self.blank),
            ("filtered", self.filtered),
            ("quarantined", self.quarantined),
        ):
            yield self.count("blizzard_records_total", lines, outcome=outcome)
        yield self.count("blizzard_bytes_written_total", self.bytes)
        yield self.count("blizzard_parquet_files_written_total", self.parquet_files)
        yield self.count("blizzard_multipart_uploads_total", self.multipart_uploads)
        for seconds in self.write_seconds:
            yield self.observe("blizzard_parquet_write_duration_seconds", seconds)
        yield self.count("blizzard_retries_total", self.download_retries, stage="download")
        yield self.count("blizzard_retries_total", self.upload_retries, stage="upload")
        for delay in self.delays:
            yield self.observe("blizzard_ingest_delay_seconds", delay)
        yield self.observe("blizzard_batch_duration_seconds", self.seconds)
        yield self.reading("blizzard_journal_entry", self.entry)

    def message(self) -> str:
        """Return the result of the batch."""
        failed = f", {plural(self.failed, 'source file')} failed" if self.failed else ""
        if self.quarantined:
            failed += f", {plural(self.quarantined, 'bad line')} quarantined"
        return (
            f"batch {self.entry}: {plural(self.rows, 'row')} from "
            f"{plural(self.files, 'source file')} in "
            f"{plural(self.parquet_files, 'Parquet file')} ({in_words(self.bytes)}) in "
            f"{took(self.seconds)}{failed}"
        )


class BatchCutShort(PipelineEvent):
    """A batch was journaled before all of its files were read; the next one reads the rest."""

    entry: int
    left: int
    seconds: float

    says = (
        "batch {entry} was closed after {seconds:took} (rollover_timeout_secs); the next one "
        "continues with {left:#source file}, or with what is left to read in them"
    )


class BatchStopped(PipelineEvent):
    """A batch was stopped on request before it had read any file; nothing is journaled."""

    entry: int

    says = "batch {entry}: stopped before any file was read; the next start reads them"


class FailuresRecorded(PipelineEvent):
    """The failures of a batch were written to the dead letter queue."""

    entry: int
    object: str

    says = "batch {entry}: the failures are recorded in {object}"


class FilesHandedOff(
    PipelineEvent, level=Level.DEBUG, counts="blizzard_staging_file_written_total", amount="files"
):
    """The files of a journaled batch were handed off: penguin may commit them."""

    entry: int
    handoff: str
    files: int

    says = "batch {entry}: {files:#file} handed off ({handoff})"


@dataclass(slots=True)
class PipelineEmitter:
    """Emits the events of one pipeline."""

    pipeline: str
    emit: Emit
    clock: Clock
    _emitted: set[PipelineEvent] = field(default_factory=set)
    _delayed: bool = False
    """Whether waiting files have been logged since the last batch."""

    def once(self, *events: PipelineEvent) -> None:
        """Emit these events, except those already emitted with the same facts."""
        for event in events:
            if event not in self._emitted:
                self._emitted.add(event)
                self.emit(event)

    def delayed(self, files: int, due_in: float) -> None:
        """Report waiting files, once per batch."""
        if not self._delayed:
            self.emit(BatchDelayed(pipeline=self.pipeline, files=files, starts_in_secs=due_in))
        self._delayed = True

    def started(self, batch: BatchStarted) -> None:
        """Report the start of a batch; files that wait from now on are logged again."""
        self._delayed = False
        self.emit(batch)

    @contextmanager
    def timed(self, stage: BatchStep) -> Iterator[None]:
        """Report the duration of a stage, if it succeeds."""
        began = self.clock.seconds()
        yield
        self.finished(stage, began)

    def finished(self, stage: BatchStep, began: float) -> None:
        """Report the duration of a stage."""
        seconds = self.clock.seconds() - began
        self.emit(StageFinished(pipeline=self.pipeline, stage=stage, seconds=seconds))
