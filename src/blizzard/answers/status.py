"""The status of a pipeline: what is waiting, failed, done and committed. Read-only.

The journal says what was done, the sources say what waits, the receipt says how far penguin is.
Nothing here needs a running blizzard, and none is disturbed by it.
"""

from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime

from blizzard.answers.progress import PipelineEvidence
from blizzard.answers.source_status import SourceStatus, source_status
from blizzard.journal.books import Retraction
from blizzard.journal.checkpoint import past_damage
from blizzard.journal.lease import WriterStatus, this_machine, writer_status
from blizzard.journal.ledger import NEWEST, Ledger
from blizzard.journal.standings import EntrySummary, JournalTotals, PassedOver, QuarantineTotals
from blizzard.model.settings import PipelineSettings
from blizzard.model.stores import OpenReader, open_reader
from blizzard.notices.queue import OpenQueue
from blizzard.pipeline_log import PipelineLog
from lakebed.clock import Clock
from lakebed.documents.pending_meta import FilesAside, by_reason
from lakebed.errors import LakeError, StoreUnavailable
from lakebed.journal import JournalReader, latest_protocol
from lakebed.types import CommitMode, Handoff

POLLS = 3
"""Polls that a program may need before what waits for it is late."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineStatus:
    """One pipeline; `last_entry` is None before its journal is begun."""

    pipeline: str
    table_uri: str
    handoff: Handoff | None
    journal: str | None
    last_entry: int | None
    committed_entry: int | None
    """The last entry that the log has; None before the first commit."""
    uncommitted_entries: int
    receipt_fits: bool
    """False where the receipt names an entry that the journal does not have."""
    last_batch: EntrySummary | None
    last_written: EntrySummary | None
    """The last entry of any kind: who wrote, and when."""
    writer: WriterStatus | None
    sources: tuple[SourceStatus, ...]
    totals: JournalTotals
    parquet_files: int
    parquet_bytes: int
    quarantine: QuarantineTotals = field(default_factory=QuarantineTotals)
    """Bad lines that were set aside, and what has become of them."""
    held_files: int = 0
    held_rows: int = 0
    """Journaled, perhaps committed as an entry, and not in the table: penguin holds them."""
    held: tuple[FilesAside, ...] = ()
    """Why."""
    discarded_files: int = 0
    discarded_rows: int = 0
    """Journaled, but never to be in the table: they were discarded."""
    unapplied_files: int = 0
    unapplied_rows: int = 0
    """Among these: they were to come in the place of others, and penguin could not apply that."""
    retracted_rows: int = 0
    """Rows that blizzard retract has taken out of the table."""
    erased_rows: int = 0
    """Rows that blizzard erase has taken out of the table."""
    aside_error: str | None = None
    """Why it is not known what is held."""
    uncommitted_rows: int | None = 0
    """Rows of the entries that wait for their commit; None where they are not added up."""
    uncommitted_since: datetime | None = None
    """When the first of these entries was written."""
    last_commit_at: datetime | None = None
    """When entries of it were committed last; looked up only where others have waited for long."""

    @property
    def lag_secs(self) -> float:
        """Return the age of the oldest file that waits in any source."""
        return max((one.lag_secs or 0.0 for one in self.sources), default=0.0)


TRIES = 3


@dataclass(slots=True)
class StatusReader:
    """Repeated statuses of one pipeline; no entry is read twice."""

    settings: PipelineSettings
    clock: Clock
    log: PipelineLog | None = None
    _ledger: Ledger = field(default_factory=Ledger)

    def read(
        self,
        opening: OpenReader = open_reader,
        *,
        open_queue: OpenQueue | None = None,
        listed: bool = True,
    ) -> tuple[PipelineEvidence, PipelineStatus]:
        """Return the status; read again if objects vanish meanwhile because a batch ends."""
        for attempt in range(TRIES):
            # After an error no ledger is kept: it may be of another journal.
            ledger, self._ledger = self._ledger, Ledger()
            try:
                evidence = PipelineEvidence.read(
                    self.settings, self.clock, opening=opening, ledger=ledger, log=self.log
                )
                found = pipeline_status(evidence, open_queue=open_queue, listed=listed)
            except StoreUnavailable:
                if attempt == TRIES - 1:
                    raise
            else:
                self._ledger = ledger
                return evidence, found
        raise AssertionError("unreachable")


def pipeline_status(
    evidence: PipelineEvidence, *, open_queue: OpenQueue | None, listed: bool
) -> PipelineStatus:
    """Return the status of a pipeline. It is handed readers only, so it cannot write.

    Without `listed` the sources are not listed, and what waits in them is not known.
    """
    aside, handoff, writer = evidence.aside, None, None
    settings, store, log = evidence.settings, evidence.store, evidence.log
    history, sums = evidence.history, evidence.history.books.sums
    if store is not None:
        protocol = latest_protocol(store)
        handoff = None if protocol is None else protocol.handoff
        writer = writer_status(store, settings.name, this_machine())
    last = evidence.last_committed(log.committed)
    uncommitted = max(0, history.sequence - (last.entry or 0)) * last.receipt_fits
    rows, since = (None, None) if last.unsure else _waiting_rows(evidence, uncommitted)
    with suppress(LakeError):  # What cannot be asked is reported where retractions are counted.
        history.settle(log.passed_over)

    def sources() -> tuple[SourceStatus, ...]:
        return tuple(
            source_status(evidence, source, open_queue=open_queue, listed=listed)
            for source in settings.sources
        )

    counts = aside.counts()
    done, error = _retractions(history, log.passed_over)
    not_applied = _not_applied(history)
    return PipelineStatus(
        pipeline=settings.name,
        table_uri=settings.sink.table_uri,
        handoff=handoff,
        journal=history.journal,
        last_entry=history.sequence if history.sequence >= 0 else None,
        committed_entry=last.entry,
        uncommitted_entries=uncommitted,
        receipt_fits=last.receipt_fits,
        last_batch=sums.last_batch,
        last_written=sums.last_written,
        writer=writer,
        sources=past_damage(history, sources),
        totals=sums.totals,
        parquet_files=sums.parquet_files,
        parquet_bytes=sums.parquet_bytes,
        quarantine=sums.quarantine,
        held_files=counts.held_files,
        held_rows=counts.held_rows,
        held=by_reason(aside.held),
        discarded_files=counts.discarded_files + sum(one.files for one in not_applied),
        discarded_rows=counts.discarded_rows + sum(one.read for one in not_applied),
        unapplied_files=sum(one.files for one in not_applied),
        unapplied_rows=sum(one.read for one in not_applied),
        retracted_rows=sum(one.rows for one in done if not one.erased),
        erased_rows=sum(one.rows for one in done if one.erased),
        aside_error=aside.error or error or (last.unsure if last.receipt_fits else None),
        uncommitted_rows=rows,
        uncommitted_since=since,
        last_commit_at=None if since is None else _last_commit_at(evidence, since),
    )


def _waiting_rows(evidence: PipelineEvidence, count: int) -> tuple[int | None, datetime | None]:
    """Return the rows of the last entries of a journal, and when the first was written."""
    if evidence.store is None or not count:
        return 0, None
    last, known = evidence.history.sequence, evidence.history.newest
    journal = JournalReader(evidence.store, evidence.settings.name)
    waiting = range(last - count + 1, last + 1)
    for number in waiting if count <= NEWEST else waiting[:1]:
        if number not in known:
            with suppress(LakeError):
                entry = journal.entry(number)
                known |= {} if entry is None else {number: EntrySummary.of(entry)}
    first = known.get(waiting[0])
    rows = sum(known[number].rows for number in waiting) if known.keys() >= {*waiting} else None
    return rows, None if first is None else first.at


def commit_patience(settings: PipelineSettings) -> float:
    """Return the seconds after which an entry that is not committed is late."""
    sink = settings.sink
    poll = settings.poll_interval if sink.commit is CommitMode.INLINE else sink.commit_poll
    return min(POLLS * poll, sink.late_after)


def _last_commit_at(evidence: PipelineEvidence, since: datetime) -> datetime | None:
    """Return when entries of the pipeline were committed last, if one waits longer than usual."""
    waited = (evidence.clock.now() - since).total_seconds()
    with suppress(LakeError):
        return (
            evidence.log.last_commit_at() if waited > commit_patience(evidence.settings) else None
        )
    return None


def _retractions(history: Ledger, passed_over: PassedOver) -> tuple[list[Retraction], str | None]:
    """Return the retractions with an effect, or why that is not known."""
    made = {int(entry): one for entry, one in history.books.retractions.items()}
    try:
        rejected = passed_over(
            history.journal or "", {entry: one.mark for entry, one in made.items()}
        )
    except LakeError as trouble:
        return [], str(trouble)
    return [made[entry] for entry, is_over in rejected.items() if not is_over], None


def _not_applied(history: Ledger) -> list[Retraction]:
    """Return the replacements without effect that were not repeated since."""
    entries = {one.entry for one in history.undecided.passed_over if one.not_applied}
    return [one for entry, one in history.books.retractions.items() if int(entry) in entries]
