"""One pipeline at work: a batch from discovery to hand-off."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from blizzard import batch_events, events
from blizzard.batch_events import Statistics
from blizzard.discover.filter import Finding
from blizzard.discover.schedule import Pace, Schedule
from blizzard.execute.attempts import Attempts
from blizzard.execute.bisect import (
    Portion,
    given_up,
    may_be_a_death,
    new_failures,
    portion,
    run_units,
)
from blizzard.execute.merge import left_over
from blizzard.execute.runner import Runner
from blizzard.handoff import dead_letters as dlq
from blizzard.handoff.commit_lag import check_commits
from blizzard.handoff.dead_letters import dlq_location_of
from blizzard.handoff.publish import Publisher
from blizzard.journal.compaction import SnapshotWriter
from blizzard.journal.ingested import KnownBroken
from blizzard.journal.journal import Journal, identity_of
from blizzard.journal.lease import Lease
from blizzard.journal.protocol import require_handoff
from blizzard.journal.state import read_history
from blizzard.model.bounds import Bounds
from blizzard.model.event_time import row_partitions_of
from blizzard.model.failure_basis import bases_of, with_basis
from blizzard.model.files import Effort, Limits, Location, SourceFile, Work, WorkUnit
from blizzard.model.locations import OpenReader, sink_location, source_location
from blizzard.model.settings import PipelineSettings, share_of
from blizzard.plan.recognise import planned
from blizzard.plan.trigger import Waiting, should_start
from lakebed.clock import Clock
from lakebed.documents.entry import Entry, SourceRecord, Started
from lakebed.errors import JournalConflict, LakeError, Whose
from lakebed.storage.store import Store
from lakebed.telemetry.events import Emit, Event, code_of
from lakebed.types import Handoff

DRIVER_DIED = "the process died each time it read this file alone; it may be too large for it"


class TooManyFailures(LakeError):
    """As many source files failed as `error_handling.max_failures` allows."""

    code = "max_failures_reached"
    whose = Whose.USER


OpenStore = Callable[[Location], Store]


@dataclass(slots=True, kw_only=True)
class Pipeline:
    """One pipeline at work. `step` runs one batch; the state is the journal's."""

    settings: PipelineSettings
    runner: Runner
    publisher: Publisher
    log_knows_pipeline: Callable[[], bool]
    clock: Clock
    emit: Emit
    once: bool
    run_id: str
    open_source: OpenReader
    open_sink: OpenStore
    check_schema: Callable[[], None] = lambda: None
    """Raises where the table would hold every file with the declared fields."""
    retention: Callable[[], timedelta] = lambda: timedelta.max
    """How long the table keeps files that its log does not name."""
    lease: Lease | None = None
    """This run's turn at the pipeline; None where nobody else can write it."""
    pause: Callable[[float], object] = time.sleep
    """Waits for a store to come back; a stop may end the wait."""
    pace: Pace | None = None
    """How often the sources are looked at; None for what `once` asks for."""
    total_concurrency: int | None = None
    """The most downloads, and uploads, at a time in all running tasks of all pipelines."""
    attempts: Attempts | None = None
    """What running units report; None where they cannot."""
    statistics: Statistics = field(default_factory=Statistics)
    _sink: Store | None = None
    _journal: Journal | None = None
    _opened: bool = False
    _tried: set[str] = field(default_factory=set)
    _failed: set[str] = field(default_factory=set)
    _told: set[str] = field(default_factory=set)
    _seen: dict[str, datetime] = field(default_factory=dict)
    _late: frozenset[str] = frozenset()
    _again: frozenset[str] = frozenset()
    _unpublished: bool = True
    _fresh: Entry | None = None
    _started: float = 0.0
    _effort: Effort = field(default_factory=Effort)
    _rest: bool = False
    """Whether the last batch has left files that it had begun with: no trigger is waited for."""
    _unbounded: bool = False
    """Whether the next batch may take as long as it wants: the last one got nowhere in its time."""
    _schedule: Schedule = field(init=False)
    _attempts: Attempts = field(init=False)

    def __post_init__(self) -> None:
        self._attempts = self.attempts or Attempts(self.settings.name, self.emit)
        self._schedule = Schedule(
            self.settings,
            self.open_source,
            clock=self.clock,
            pace=self.pace or Pace(drain=self.once),
            pause=self.pause,
            ahead=self.lease.ahead if self.lease is not None else timedelta,
        )

    def until_next_look(self) -> float:
        """Say how many seconds to wait for the next step where this one found nothing to do."""
        return self._schedule.wait()

    def close(self) -> None:
        """Leave no look ahead behind: the batch that it would be for does not come."""
        self._schedule.drop_ahead()

    def step(self) -> bool:
        """Run one batch from discovery to hand-off; say whether there was one."""
        journal = self._open_journal()
        if journal is None:
            return False  # A stop came while we watched another writer.
        if (earlier := journal.settle()) is not None:
            self._tell_end(earlier)
            self._count(earlier)
        with self._schedule.journal_lock:
            journal.catch_up()
        self._publish()
        self._check_failures()
        with self._timed(events.Step.DISCOVER):
            findings = self._discover(journal)
        # Not while a look ahead goes on: names that it has asked for would be moved away from it.
        self._write_snapshot(journal)
        self._tell(batch_events.listed(self.settings.name, findings))
        self._tell(batch_events.passed_over(self.settings.name, findings, self._told))
        files = tuple(file for finding in findings.values() for file in finding.take)
        misplaced = tuple(record for found in findings.values() for record in found.misplaced)
        gone = tuple(record for found in findings.values() for record in found.gone)
        if not files and not misplaced and not gone:
            self._rest = False
            self._count_failed(journal)
            resting = sum(finding.resting for finding in findings.values())
            self.emit(events.NothingNew(pipeline=self.settings.name, resting=resting))
            return False
        if files and not misplaced and not self._is_time(findings, files):
            return False
        journal.check_protocol()
        self._check_commits(journal)
        self._started = self.clock.seconds()
        may_fail = self._may_fail()
        misplaced = misplaced[:may_fail]
        part = portion(files, journal.started_before()) if files else Portion(take=())
        files, died = part.take, tuple(given_up(file, DRIVER_DIED) for file in part.died)
        failed_before = misplaced + died
        bounds = Bounds(
            seconds=None if self._unbounded else self.settings.sink.rolling.rollover,
            failures=None if may_fail is None else may_fail - len(failed_before),
            forgiven=frozenset(self._failed & {file.key for file in files}),
        )
        if bounds.failures is not None and bounds.failures <= 0:
            files = ()  # The last file that may fail has failed by its path alone.
        units = self._plan(files) if files else ()
        self._tell(batch_events.started(self.settings.name, journal.sequence + 1, files, units))
        failed_before += gone
        self._schedule.look_ahead(
            journal, frozenset(self._tried), running=files, failed=failed_before
        )
        try:
            return self._run(journal, units, failed_before, part.note, bounds)
        except BaseException as error:
            self._schedule.drop_ahead()
            if not may_be_a_death(error):
                journal.forget_start()
            raise

    def _run(
        self,
        journal: Journal,
        units: tuple[WorkUnit, ...],
        failed_before: tuple[SourceRecord, ...],
        note: Started,
        bounds: Bounds,
    ) -> bool:
        """Run the units of a batch, journal what came of them, and hand it off."""
        work, attempts = replace(self._work(journal), bounds=bounds), self._attempts
        with self._timed(events.Step.RUN), attempts.running(lambda: journal.note_start(note)):
            settled = run_units(units, work, self.runner, self.emit)
        self._effort = settled.effort
        left = left_over(units, settled)
        self._rest = left > 0
        self._unbounded = settled.handed_in and not settled.sources
        if not settled.sources and not failed_before:
            self._schedule.drop_ahead()
            journal.forget_start()
            # Either a stop was asked for before anything was read, or the time was too short.
            return settled.handed_in
        bases = {each.name: bases_of(self.settings, each) for each in self.settings.sources}
        sources = tuple(
            self._as_ingested_again(journal.with_attempts(with_basis(each, bases[each.source])))
            for each in failed_before + settled.sources
        )
        self._check_lease()
        dead_letters = self._write_dead_letters(journal.sequence + 1, sources)
        with self._timed(events.Step.JOURNAL), self._schedule.journal_lock:
            entry = journal.append(sources, settled.files, dead_letters)
        self._tell_end(entry)
        if settled.handed_in and left:
            age = self.clock.seconds() - self._started
            self.emit(
                events.BatchHandedIn(
                    pipeline=self.settings.name, entry=entry.sequence, left=left, seconds=age
                )
            )
        self._count(entry)
        self._publish()
        self._check_failures()
        return True

    @property
    def opened(self) -> bool:
        """Say whether the journal is open: from then on the table knows this pipeline."""
        return self._opened

    def _open_journal(self) -> Journal | None:
        """Open the journal at the first step, whatever state an earlier run left it in.

        Only one run may write it, so our turn comes first: what the one before us has written
        last is then there to be read. None if a stop came before it was our turn.
        """
        if self._journal is None:
            store = self._sink = self.open_sink(sink_location(self.settings))
            require_handoff(store, self.settings.sink.handoff)
            if self.lease is not None and not self.lease.take(store):
                return None
            snapshots = SnapshotWriter(store=store, pipeline=self.settings.name, clock=self.clock)
            history = read_history(store, self.settings.name, spill=snapshots.spill)
            if history.rebuilt is not None:
                self._tell_rebuilt(history.rebuilt)
            identity = identity_of(self.settings, self.run_id)
            self._journal = Journal(
                store,
                identity,
                history,
                self.clock,
                pause=self._pauses(events.Retried.JOURNAL),
                guard=self._check_lease,
            )
        if not self._opened:
            self.check_schema()
            self._journal.open_with(self.log_knows_pipeline)
            self._opened = True
        return self._journal

    def _discover(self, journal: Journal) -> dict[str, Finding]:
        """Look at every source that is due.

        Damaged names are built again from the entries, and not believed.
        """
        tried = frozenset(self._tried)
        try:
            findings = self._schedule.findings(journal, tried)
        except KnownBroken as broken:
            self._rebuild(journal, str(broken))
            findings = self._schedule.findings(journal, tried)
        uris = {source.name: source.uri for source in self.settings.sources}
        for name, finding in findings.items():
            for facts in finding.changed:
                if f"{name}:{facts.path}:{facts.etag}" not in self._told:
                    self._told.add(f"{name}:{facts.path}:{facts.etag}")
                    path = f"{uris[name].rstrip('/')}/{facts.path}"
                    self.emit(events.SourceFileOverwritten(pipeline=self.settings.name, path=path))
        self._late = frozenset(key for finding in findings.values() for key in finding.late)
        self._again = frozenset(key for finding in findings.values() for key in finding.again)
        return findings

    def _check_commits(self, journal: Journal) -> None:
        """Take no new work while files wait so long that somebody's VACUUM may take them."""
        if self._sink is not None:
            check_commits(
                self._sink,
                self.settings.name,
                last=journal.last.sequence,
                now=self.clock.now(),
                retention=self.retention,
            )

    def _as_ingested_again(self, record: SourceRecord) -> SourceRecord:
        """Note of a file that was ingested before, as another object, that this is so."""
        return replace(record, reingested=True) if record.key in self._again else record

    def _write_snapshot(self, journal: Journal) -> None:
        """Write a snapshot when one is due. One that cannot be written fails nothing."""
        if not journal.snapshot_is_due:
            return
        try:
            # A look ahead that nobody waits for may still be asking: between memory and segment a
            # name would be in neither, and its file would be taken for new.
            with self._schedule.journal_lock:
                journal.write_snapshot()
        except (LakeError, OSError) as error:  # Names are spooled to the local disk.
            self.emit(
                events.SnapshotFailed(
                    pipeline=self.settings.name, code=code_of(error), error=str(error)
                )
            )
            if isinstance(error, KnownBroken):
                self._rebuild(journal, str(error))

    def _rebuild(self, journal: Journal, why: str) -> None:
        self._tell_rebuilt(why)
        with self._schedule.journal_lock:
            journal.rebuild(why)

    def _tell_rebuilt(self, why: str) -> None:
        self.emit(events.HistoryRebuilt(pipeline=self.settings.name, reason=why))

    def _is_time(self, findings: Mapping[str, Finding], files: tuple[SourceFile, ...]) -> bool:
        """Whether the waiting files make a batch now; with `once`, they always do.

        So do those that a batch has left which was handed in: they have waited already.
        """
        now = self.clock.now()
        # A file has arrived when the store says so, or when we first saw it: a store's clock may
        # be ahead of ours.
        self._seen = {file.key: self._seen.get(file.key, now) for file in files}
        arrived = [min(file.modified, self._seen[file.key]) for file in files]
        waiting = Waiting(
            files=files,
            oldest=min(arrived),
            newest=max(arrived),
            more=any(finding.left_over for finding in findings.values()),
        )
        return (
            self.once
            or self._rest
            or should_start(
                waiting, self.settings.sink.rolling, parallelism=self.runner.parallelism, now=now
            )
        )

    def _plan(self, files: tuple[SourceFile, ...]) -> tuple[WorkUnit, ...]:
        return planned(self.settings, files, self.open_source, parallelism=self.runner.parallelism)

    def _work(self, journal: Journal) -> Work:
        settings = self.settings
        template = settings.sink.template
        upload = settings.sink.upload
        return Work(
            sources={source.name: source_location(source) for source in settings.sources},
            sink=sink_location(settings),
            file_schema=settings.schema.without(frozenset(template.keys if template else ())),
            row_partitions=row_partitions_of(settings),
            rolling=settings.sink.rolling,
            upload=replace(
                upload, max_concurrent_uploads=self._share_of(upload.max_concurrent_uploads)
            ),
            limits={
                source.name: Limits(
                    max_concurrent_files=self._share_of(source.max_concurrent_files),
                    batch_size=source.batch_size,
                )
                for source in settings.sources
            },
            marks={"pipeline": settings.name, "journal": journal.id},
            clock=self.clock,
            outbox=settings.name if settings.sink.handoff is Handoff.DIRECT else None,
            show_values=settings.show_values,
        )

    def _share_of(self, limit: int) -> int:
        """Give a task's share of what all pipelines together may transfer at a time."""
        return share_of(self.total_concurrency, limit=limit, tasks=self.runner.parallelism)

    def _write_dead_letters(self, entry: int, sources: tuple[SourceRecord, ...]) -> tuple[str, ...]:
        """Record the failures of a batch before its entry, which then names the object."""
        letters = dlq.letters(
            sources,
            pipeline=self.settings.name,
            batch=entry,
            source_uris={source.name: source.uri for source in self.settings.sources},
            at=self.clock.now(),
        )
        if not letters:
            return ()
        place = dlq_location_of(self.settings)
        store = self.open_sink(place.location)
        return (
            dlq.write(
                store,
                place.folder,
                dlq.encode(letters),
                clock=self.clock,
                pause=self._pauses(events.Retried.DLQ),
            ),
        )

    def _pauses(self, stage: events.Retried) -> Callable[[float], None]:
        """Give the pause between two tries of a write, which tells that there is one."""

        def pause(seconds: float) -> None:
            self.emit(
                events.WriteRetried(pipeline=self.settings.name, stage=stage, next_try_secs=seconds)
            )
            self.pause(seconds)

        return pause

    def _count(self, entry: Entry) -> None:
        """Enter a journaled batch into the statistics; it has yet to be handed on."""
        self._failed |= new_failures(entry.sources, forgiven=())
        if self.once:
            self._tried |= {record.key for record in entry.sources if record.failure is not None}
        self._schedule.journaled(
            {record.key for record in entry.sources},
            part_way={record.source for record in entry.sources if not record.complete},
        )
        self.statistics.count(entry)
        self.statistics.files_failed = len(self._failed)
        if self._journal is not None:
            self._count_failed(self._journal)
        self._unpublished = True
        self._fresh = entry

    def _count_failed(self, journal: Journal) -> None:
        """Count the files that are not in the table, also those that failed in earlier runs."""
        self.statistics.files_still_failed = sum(
            known.record.failure is not None and not known.record.gone
            for known in journal.unfinished.values()
        )

    def _publish(self) -> None:
        """Hand on what is journaled and not yet handed on, be it by an earlier run or step."""
        if self._sink is None or self._journal is None or not self._unpublished:
            return
        last = self._journal.last
        try:
            self._check_lease()
        except JournalConflict:
            if last is self._fresh:
                self._journal.withdraw(last)
            raise
        with self._timed(events.Step.PUBLISH):
            done = self.publisher.publish(self._sink, last, redo=last is not self._fresh)
        self.statistics.delta_commits += done.delta_commits
        self._unpublished = False
        if done.files:
            self.emit(
                events.FilesHandedOff(
                    pipeline=self.settings.name,
                    entry=last.sequence,
                    handoff=last.handoff.value,
                    files=done.files,
                )
            )

    def _check_lease(self) -> None:
        """Stop before anything becomes visible if another blizzard has taken over."""
        if self.lease is not None:
            self.lease.check()

    def _may_fail(self) -> int | None:
        """Count the files that may still fail before the pipeline stops; None for no limit."""
        limit = self.settings.max_failures
        return None if limit is None else limit - len(self._failed)

    def _check_failures(self) -> None:
        """Stop the pipeline once too many files have failed; what succeeded is handed on."""
        limit = self.settings.max_failures
        if limit is not None and len(self._failed) >= limit:
            raise TooManyFailures(
                f"{len(self._failed)} source files have failed and "
                f"error_handling.max_failures is {limit}; what succeeded is journaled"
            )

    @contextmanager
    def _timed(self, stage: events.Step) -> Iterator[None]:
        """Tell how long a part of a batch took, if it came to a good end."""
        started = self.clock.seconds()
        yield
        seconds = self.clock.seconds() - started
        self.emit(events.StageFinished(pipeline=self.settings.name, stage=stage, seconds=seconds))

    def _tell_end(self, entry: Entry) -> None:
        self._attempts.settle(self._effort.attempts, batch_events.in_journal(entry, self.settings))
        self._tell(
            batch_events.journaled(
                entry,
                self.settings,
                late=self._late,
                effort=self._effort,
                seconds=self.clock.seconds() - self._started,
            )
        )

    def _tell(self, told: Iterable[Event]) -> None:
        for event in told:
            self.emit(event)
