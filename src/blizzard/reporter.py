"""What one pipeline reports of its batches, as events."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from blizzard import batch_events, events
from blizzard.discover.finding import Finding
from blizzard.model.settings import PipelineSettings
from blizzard.proposal import Batch, Proposal
from blizzard.renewal import Renewed
from lakebed.clock import Clock
from lakebed.documents.entry import Entry
from lakebed.telemetry.events import Emit, Event, code_of

WATCHED, GATHERING = "that sources are watched", "that files gather"
"""What is told once; other things that are told once are keys of files."""


@dataclass(slots=True)
class Reporter:
    """Reports what happens to one pipeline; what does not change is reported once."""

    settings: PipelineSettings
    emit: Emit
    clock: Clock
    watches: bool = False
    """Whether the run goes on once everything is read."""
    _told: set[str] = field(default_factory=set)

    @property
    def pipeline(self) -> str:
        """Return the name of the pipeline."""
        return self.settings.name

    @contextmanager
    def timed(self, stage: events.Step) -> Iterator[None]:
        """Report how long a part of a batch took, if it succeeded."""
        began = self.clock.seconds()
        yield
        self.finished(stage, began)

    def finished(self, stage: events.Step, began: float) -> None:
        """Report how long a part of a batch took."""
        seconds = self.clock.seconds() - began
        self.emit(events.StageFinished(pipeline=self.pipeline, stage=stage, seconds=seconds))

    def pausing(
        self, stage: events.Retried, pause: Callable[[float], object]
    ) -> Callable[[float], None]:
        """Return the pause between two tries of a write, which tells that there is one."""

        def pause_and_tell(seconds: float) -> None:
            self.emit(
                events.WriteRetried(pipeline=self.pipeline, stage=stage, next_try_secs=seconds)
            )
            pause(seconds)

        return pause_and_tell

    def overwritten(self, findings: Mapping[str, Finding]) -> None:
        """Report ingested files that are different objects now."""
        self._tell(batch_events.overwritten(self.settings, findings, self._told))

    def listed(self, findings: Mapping[str, Finding], *, resting: int, bad_lines: int) -> None:
        """Report how much is waiting, and names that cannot be read."""
        self._tell(
            batch_events.listed(self.pipeline, findings, resting=resting, bad_lines=bad_lines)
        )
        self._tell(batch_events.passed_over(self.pipeline, findings, self._told))

    def nothing_new(self, resting: int) -> None:
        """Report that there is nothing to do, and how many failed files are not retried yet."""
        self.emit(events.NothingNew(pipeline=self.pipeline, resting=resting))
        if self.watches and WATCHED not in self._told:
            self._told.add(WATCHED)
            self.emit(
                events.SourcesWatched(
                    pipeline=self.pipeline,
                    places=tuple(source.uri for source in self.settings.sources),
                    every_secs=self.settings.poll_interval,
                )
            )

    def gathering(self, files: int, starts_in_secs: float) -> None:
        """Report that files wait for more of them: once for each batch, and quietly each time."""
        if GATHERING not in self._told:
            self._told.add(GATHERING)
            self.emit(
                events.FilesGather(
                    pipeline=self.pipeline, files=files, starts_in_secs=starts_in_secs
                )
            )
        self.emit(
            events.NextBatchDue(pipeline=self.pipeline, files=files, starts_in_secs=starts_in_secs)
        )

    def renewed(self, renewed: Renewed) -> None:
        """Report new content that took the place of rows, and what has to wait for that."""
        for entry in renewed.entries[:1]:
            self.emit(
                events.ContentReplaced(
                    pipeline=self.pipeline,
                    entry=entry,
                    files=len(renewed.keys),
                    rows=renewed.rows,
                    removed=renewed.removed,
                )
            )
        if renewed.waits is not None:
            self.emit(events.ReplacementWaits(pipeline=self.pipeline, reason=renewed.waits))

    def rebuilt(self, why: str) -> None:
        """Report that every entry is being read again."""
        self.emit(events.HistoryRebuilt(pipeline=self.pipeline, reason=why))

    def snapshot_failed(self, error: Exception) -> None:
        """Report that no snapshot could be written."""
        self.emit(
            events.SnapshotFailed(pipeline=self.pipeline, code=code_of(error), error=str(error))
        )

    def started(self, entry: int, proposal: Proposal, journal: str) -> None:
        """Report that a batch begins, and how much is in it."""
        self._told.discard(GATHERING)
        self._tell(
            batch_events.started(self.pipeline, entry, proposal.files, proposal.units, journal)
        )

    def journaled(self, entry: Entry, batch: Batch) -> None:
        """Report the outcome of a batch."""
        self._tell(
            batch_events.journaled(
                entry,
                self.settings,
                late=batch.proposal.late,
                noticed=batch.proposal.noticed,
                effort=batch.effort,
                seconds=self.clock.seconds() - batch.proposal.began,
                files=batch.proposal.files,
            )
        )

    def handed_in(self, entry: Entry, batch: Batch) -> None:
        """Report that a batch was journaled before all of its files were read."""
        age = self.clock.seconds() - batch.proposal.began
        self.emit(
            events.BatchHandedIn(
                pipeline=self.pipeline, entry=entry.sequence, left=batch.left, seconds=age
            )
        )

    def handed_off(self, entry: Entry, files: int) -> None:
        """Report how many files of an entry are handed off, if there are any."""
        if files:
            self.emit(
                events.FilesHandedOff(
                    pipeline=self.pipeline,
                    entry=entry.sequence,
                    handoff=entry.handoff.value,
                    files=files,
                )
            )

    def _tell(self, told: Iterable[Event]) -> None:
        for event in told:
            self.emit(event)
