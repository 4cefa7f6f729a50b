"""Run one pipeline: a batch from discovery to hand-off."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta

from blizzard import events, outcomes
from blizzard.discover.filter import bases_of, with_basis
from blizzard.discover.schedule import Pace, Schedule
from blizzard.events.batch import PipelineEmitter
from blizzard.execute.bisect import may_be_a_death
from blizzard.execute.merge import left_over
from blizzard.execute.runner import Runner, RunStopped, StartNotice
from blizzard.handoff.dead_letters import DeadLetterWriter
from blizzard.handoff.publish import Publisher, check_commits
from blizzard.ingest import Ingest
from blizzard.journal.checkpoint import SnapshotWriter, read_ledger
from blizzard.journal.checks import require_handoff
from blizzard.journal.fence import identity_of
from blizzard.journal.journal import Journal
from blizzard.journal.lease import Lease
from blizzard.journal.segments import SegmentBroken
from blizzard.model.notices import Hints
from blizzard.model.settings import PipelineSettings
from blizzard.model.stores import OpenReader, OpenStore, sink_location
from blizzard.outcomes import RunTotals, Statistics
from blizzard.pipeline_log import PipelineLog
from blizzard.plan.trigger import Timing
from blizzard.proposal import BatchProposal, BatchRun, plan_batch
from blizzard.rewrite.compact import Compactor
from blizzard.rewrite.replace import Replacer
from lakebed.clock import Clock
from lakebed.documents.entry import Entry
from lakebed.documents.records import SourceRecord
from lakebed.errors import JournalConflict, LakeError
from lakebed.journal import JournalReader
from lakebed.telemetry.events import Emit, code_of


@dataclass(slots=True, kw_only=True)
class Pipeline:
    """A running pipeline. `step` runs one batch; durable state is in the journal."""

    settings: PipelineSettings
    runner: Runner
    publisher: Publisher
    log: PipelineLog
    clock: Clock
    emit: Emit
    pace: Pace
    """How often to list the sources, and whether to end when nothing is left."""
    run_id: str
    open_source: OpenReader
    open_sink: OpenStore
    lease: Lease | None = None
    """This run's lease on the pipeline; None if no other process can write it."""
    check_schema: Callable[[], None] = lambda: None
    """Raises if penguin would hold every file with the declared fields."""
    pause: Callable[[float], object] = time.sleep
    """Waits between retries; a stop may end the wait."""
    total_concurrency: int | None = None
    """Limit on concurrent downloads, and uploads, over all running tasks of all pipelines."""
    start: StartNotice = field(default_factory=StartNotice)
    hints: Hints = field(default_factory=Hints)
    """New files announced by queues."""
    _journal: Journal | None = None
    _last: BatchRun = field(default_factory=lambda: BatchRun(handed_off=False))
    """The previous batch. Its entry may be in doubt, and one of an earlier run may not be handed
    off."""
    totals: RunTotals = field(init=False)
    _events: PipelineEmitter = field(init=False)
    _timing: Timing = field(init=False)
    _schedule: Schedule = field(init=False)
    _dead_letters: DeadLetterWriter = field(init=False)
    _compactor: Compactor = field(init=False)
    _replacer: Replacer = field(default_factory=Replacer)

    def __post_init__(self) -> None:
        self.totals = RunTotals(once=self.pace.drain)
        self._events = PipelineEmitter(self.settings.name, self.emit, self.clock)
        self._timing = Timing(settings=self.settings)
        self._dead_letters = DeadLetterWriter(self.settings, self.clock, self.open_sink)
        compacts_every = self.settings.sink.compact.every
        self._compactor = Compactor(self.clock.seconds() + compacts_every)
        self._schedule = Schedule(
            self.settings,
            self.open_source,
            clock=self.clock,
            pace=self.pace,
            ahead=self.lease.ahead if self.lease is not None else timedelta,
            hints=self.hints,
        )

    @property
    def statistics(self) -> Statistics:
        """Return what this run has done so far."""
        return self.totals.statistics

    @property
    def opened(self) -> bool:
        """Whether the journal is open: from then on the table knows this pipeline."""
        return self._journal is not None and self._journal.is_open

    def until_next_listing(self) -> float:
        """Return the seconds to wait for the next step if this one found nothing to do."""
        return self._schedule.wait()

    def step(self) -> bool:
        """Run one batch from discovery to hand-off; return whether there was one."""
        try:
            return self._step()
        except RunStopped:
            return False

    def _step(self) -> bool:
        journal = self._open_journal()
        if journal is None:
            return False  # A stop was requested while waiting for another writer.
        if (earlier := journal.settle()) is not None:
            self._journaled(journal, earlier, self._last)
        self._catch_up(journal)
        self.totals.check_failures(self.settings.max_failures)
        self._compact(journal)
        found = self._found(journal)
        if found.is_empty:
            self._found_nothing(journal, found)
            return False
        if found.files and not found.misplaced and not self._is_time(found):
            return False
        self._check_start(journal)
        proposal = plan_batch(
            found,
            self.settings,
            self.open_source,
            parallelism=self.runner.parallelism,
            clock=self.clock,
            started=journal.start_note.read,
            unbounded=self._last.got_nowhere,
            forecast=self._timing.forecast,
            hurry=found.more or self.pace.drain or self._last.left > 0,
        )
        if proposal.renew:
            proposal, done = self._renew(journal, proposal)
            if not (proposal.units or proposal.failed):
                return done
        self._events.started(
            events.BatchStarted(
                pipeline=self.settings.name,
                entry=journal.sequence + 1,
                files=len(proposal.files),
                bytes=sum(file.to_read for file in proposal.files),
                units=len(proposal.units),
                planned=tuple(
                    (unit.name, len(unit.files), unit.to_read) for unit in proposal.units
                ),
                journal=journal.id,
            )
        )
        try:
            return self._run(journal, proposal)
        except BaseException as error:
            if isinstance(error, RunStopped):
                self._stopped(journal)
            self._schedule.batch_failed()
            if not may_be_a_death(error):
                journal.start_note.take_back()
            raise

    def _found_nothing(self, journal: Journal, proposal: BatchProposal) -> None:
        """Report that there is nothing to do, and compact meanwhile."""
        self._compact(journal, at_end=self.pace.drain)
        self._last = replace(self._last, left=0)
        self.totals.count_failed(_unfinished(journal))
        resting = outcomes.resting(proposal.findings, _unfinished(journal))
        self.emit(events.NothingNew(pipeline=self.settings.name, resting=resting))
        if not self.pace.drain:
            places = tuple(source.uri for source in self.settings.sources)
            every = self.settings.poll_interval
            self._events.once(
                events.SourcesWatched(pipeline=self.settings.name, places=places, every_secs=every)
            )

    def _renew(self, journal: Journal, proposal: BatchProposal) -> tuple[BatchProposal, bool]:
        """Supersede the rows of changed files; unreadable ones fail."""
        self._check_lease()
        renewed = self._replacer.renew(
            journal.store, proposal.renew, self._ingest, self.open_source
        )
        self._schedule.journaled(renewed.keys)
        if renewed.keys:
            self._catch_up(journal)
        entries = JournalReader(journal.store, self.settings.name)
        for number in renewed.entries:
            if (entry := entries.entry(number)) is not None:
                self.totals.add(entry, outcomes.work_of(entry, self.settings))
        return proposal.after(renewed.failed), bool(renewed.keys)

    def _compact(self, journal: Journal, *, at_end: bool = False) -> None:
        """Merge small data files if that is due; a batch never waits for it."""
        if not self.settings.sink.compact.enabled:
            return
        self._check_lease()
        if self._compactor.compact(journal.store, self._ingest, at_end=at_end) is not None:
            self._catch_up(journal)

    def _run(self, journal: Journal, proposal: BatchProposal) -> bool:
        """Run the units of a batch, journal the outcome and hand it off."""
        with (
            self._events.timed(events.BatchStep.RUN),
            self.start.running(lambda: journal.start_note.write(proposal.note)),
        ):
            ingested = self._ingest(
                proposal.units,
                known=journal.ledger.columns,
                journal=journal.id,
                entry=journal.sequence + 1,
                mapping=self.log.mapping(),
                max_seconds=proposal.max_seconds,
                publishes=True,
            )
        settled = ingested.settled
        batch = self._last = BatchRun(
            proposal=proposal,
            effort=settled.effort,
            left=left_over(proposal.units, settled),
            got_nowhere=settled.handed_in and not settled.sources,
        )
        if not settled.sources and not proposal.failed:
            settled.require_room()
            journal.start_note.take_back()
            if not settled.handed_in:  # Otherwise the time limit was too short.
                self._stopped(journal)
            return settled.handed_in
        bases = {each.name: bases_of(self.settings, each) for each in self.settings.sources}
        sources = proposal.noted(
            journal.with_attempts(with_basis(each, bases[each.source]))
            for each in proposal.failed + settled.sources
        )
        self._check_lease()
        dead_letters = self._dead_letters.record(
            sources,
            batch=journal.sequence + 1,
            pause=self.pause,
        )
        with self._events.timed(events.BatchStep.JOURNAL):
            written = ingested.columns.entry(settled.files)
            entry = journal.append(
                sources, settled.files, dead_letters, written, settled.quarantine, proposal.began
            )
        self._journaled(journal, entry, batch)
        if settled.handed_in and batch.left:
            age = self.clock.seconds() - proposal.began
            cut = events.BatchCutShort(
                pipeline=entry.pipeline, entry=entry.sequence, left=batch.left, seconds=age
            )
            self.emit(cut)
        self._publish()
        settled.require_room()
        self.totals.check_failures(self.settings.max_failures)
        return True

    def _stopped(self, journal: Journal) -> None:
        """Report a stop before anything of a batch was read."""
        entry = journal.sequence + 1
        self.emit(events.BatchStopped(pipeline=self.settings.name, entry=entry))

    @property
    def _ingest(self) -> Ingest:
        return Ingest(
            settings=self.settings,
            runner=self.runner,
            clock=self.clock,
            of_table=self.log.columns,
            emit=self.emit,
            total_concurrency=self.total_concurrency,
        )

    def _open_journal(self) -> Journal | None:
        """Open the journal at the first step, in any state that an earlier run left.

        The lease comes first, so that the previous run's last writes are visible. Return None if a
        stop was requested before that.
        """
        journal = self._journal
        if journal is None:
            store = self.open_sink(sink_location(self.settings))
            require_handoff(store, self.settings.sink.handoff)
            if self.lease is not None and not self.lease.take(store):
                return None
            name, limits = self.settings.name, self.settings.sizing.snapshots
            writer = SnapshotWriter(store=store, pipeline=name, clock=self.clock, limits=limits)
            history = read_ledger(store, name, rejections=self.log.rejections, spill=writer.spill)
            if history.rebuilt is not None:
                self.emit(events.HistoryRebuilt(pipeline=name, reason=history.rebuilt))
            journal = self._journal = Journal(
                store,
                identity_of(self.settings, self.run_id),
                history,
                self.clock,
                pause=self.pause,
                guard=self._check_lease,
                limits=limits,
            )
        if not journal.is_open:
            self.check_schema()
            self._dead_letters.check()
            journal.open_with(self.log.knows_pipeline)
            self._timing.learn(journal.last)
        return journal

    def _found(self, journal: Journal) -> BatchProposal:
        """List the sources, report the findings, and keep the snapshot up to date."""
        began, tried = self.clock.seconds(), frozenset(self.totals.tried)
        try:
            findings = self._schedule.findings(journal.ledger, tried)
        except SegmentBroken as broken:
            self._rebuild(journal, str(broken))
            findings = self._schedule.findings(journal.ledger, tried)
        self._events.once(*outcomes.overwritten(self.settings, findings))
        self._events.finished(events.BatchStep.DISCOVER, began)
        self._write_snapshot(journal)
        bad_lines = journal.ledger.bad_lines
        self.emit(outcomes.listed(self.settings.name, findings, _unfinished(journal), bad_lines))
        self._events.once(*outcomes.names_skipped(self.settings.name, findings))
        return BatchProposal.of(findings)

    def _check_start(self, journal: Journal) -> None:
        """Refuse new work while files have waited so long that a VACUUM may delete them."""
        journal.check_protocol()
        self._dead_letters.check()
        check_commits(
            journal.store,
            self.settings.name,
            last=journal.last.sequence,
            now=self.clock.now(),
            retention=self.log.retention,
        )

    def _write_snapshot(self, journal: Journal) -> None:
        """Write a snapshot if one is due; an error only costs time at the next start."""
        if not journal.snapshot_is_due:
            return
        try:
            journal.write_snapshot()
        except (LakeError, OSError) as error:  # Names are spooled to the local disk.
            name, code = self.settings.name, code_of(error)
            self.emit(events.SnapshotFailed(pipeline=name, code=code, error=str(error)))
            if isinstance(error, SegmentBroken):
                self._rebuild(journal, str(error))

    def _rebuild(self, journal: Journal, why: str) -> None:
        self.emit(events.HistoryRebuilt(pipeline=self.settings.name, reason=why))
        journal.rebuild(why)

    def _is_time(self, found: BatchProposal) -> bool:
        """Whether the waiting files make a batch now; always when draining the sources.

        Files left over by a batch that ended early have waited enough.
        """
        if self.pace.drain:
            return True
        cores, now = self.runner.parallelism, self.clock.now()
        due = self._timing.is_time(found.files, more=found.more, cores=cores, now=now)
        if due or self._last.left > 0:
            return True
        self._events.delayed(len(found.files), self._timing.due_in)
        return False

    def _journaled(self, journal: Journal, entry: Entry, batch: BatchRun) -> None:
        """Report and count a journaled batch, which has yet to be handed off."""
        work = outcomes.work_of(entry, self.settings)
        seconds = self.clock.seconds() - batch.proposal.began
        for event in outcomes.journaled(entry, self.settings, batch, work, seconds):
            self.emit(event)
        self._schedule.journaled(
            {record.key for record in entry.sources},
            partly_read={record.source for record in entry.sources if not record.complete},
        )
        self.totals.add(entry, work)
        self.totals.count_failed(_unfinished(journal))
        self._timing.learn(entry)
        self._last = replace(batch, entry=entry, handed_off=False)

    def _catch_up(self, journal: Journal) -> None:
        """Read and hand off entries that commands appended, as no batch may follow soon."""
        learned = journal.catch_up()
        journal.ledger.settle()
        if learned:
            self._last = replace(self._last, handed_off=False)
        self._publish()

    def _publish(self) -> None:
        """Hand off what is journaled but not handed off, also by an earlier run."""
        journal, batch = self._journal, self._last
        if journal is None or batch.handed_off:
            return
        last = journal.last
        try:
            self._check_lease()
        except JournalConflict:
            if last is batch.entry:
                journal.withdraw(last)
            raise
        with self._events.timed(events.BatchStep.PUBLISH):
            done = self.publisher.publish(journal.store, last, redo=last is not batch.entry)
        self.statistics.delta_commits += done.delta_commits
        self._last = replace(batch, handed_off=True)
        if done.files:
            self.emit(
                events.FilesHandedOff(
                    pipeline=last.pipeline,
                    entry=last.sequence,
                    handoff=last.handoff.value,
                    files=done.files,
                )
            )

    def _check_lease(self) -> None:
        """Stop before anything becomes visible if another blizzard has taken over."""
        if self.lease is not None:
            self.lease.check()


def _unfinished(journal: Journal) -> Iterator[SourceRecord]:
    return (known.record for known in journal.ledger.unfinished.values())
