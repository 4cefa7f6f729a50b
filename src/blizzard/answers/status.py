"""The status of a pipeline: what is waiting, failed, done and committed. Read-only.

The journal says what was done, the sources what waits, and the log or the receipt what penguin
committed. It neither needs nor disturbs a running blizzard.
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
"""The polls that a program may take before its backlog is late."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineStatus:
    """The status of one pipeline; `last_entry` is None before its journal exists."""

    pipeline: str
    table_uri: str
    handoff: Handoff | None
    journal: str | None
    last_entry: int | None
    committed_entry: int | None
    """The last committed entry by the log; None before the first commit."""
    uncommitted_entries: int
    receipt_fits: bool
    """False if the receipt names an entry that the journal does not have."""
    last_batch: EntrySummary | None
    last_written: EntrySummary | None
    """The last entry of any kind."""
    writer: WriterStatus | None
    sources: tuple[SourceStatus, ...]
    totals: JournalTotals
    parquet_files: int
    parquet_bytes: int
    quarantine: QuarantineTotals = field(default_factory=QuarantineTotals)
    """Quarantined lines by outcome."""
    held_files: int = 0
    held_rows: int = 0
    """Rows of journaled files that penguin holds, so they are not in the table."""
    held: tuple[FilesAside, ...] = ()
    """Why they are held."""
    discarded_files: int = 0
    discarded_rows: int = 0
    """Rows of journaled files that were discarded, so they never reach the table."""
    unapplied_files: int = 0
    unapplied_rows: int = 0
    """Of these, rows of replacements that penguin rejected."""
    retracted_rows: int = 0
    """Rows that `blizzard retract` took out of the table."""
    erased_rows: int = 0
    """Rows that `blizzard erase` took out of the table."""
    aside_error: str | None = None
    """Why the held rows are unknown."""
    uncommitted_rows: int | None = 0
    """Rows of uncommitted entries; None if not summed."""
    uncommitted_since: datetime | None = None
    """When the first uncommitted entry was written."""
    last_commit_at: datetime | None = None
    """When entries were last committed; looked up only if others have waited long."""

    @property
    def lag_secs(self) -> float:
        """The age of the oldest waiting file in any source."""
        return max((one.lag_secs or 0.0 for one in self.sources), default=0.0)


TRIES = 3


@dataclass(slots=True)
class StatusReader:
    """Reads the status of one pipeline repeatedly; no entry is read twice."""

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
        """Return the status; retry if objects vanish because a batch ends meanwhile."""
        for attempt in range(TRIES):
            # Drop the ledger after an error: it may belong to another journal.
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
    """Return the status of a pipeline. Only readers are passed in, so nothing can be written.

    Without `listed`, the sources are not listed and their waiting files are unknown.
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
    with suppress(LakeError):  # `_retractions` reports the error.
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
    """Return the rows of the last `count` entries, and when the first was written."""
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
    """Return the seconds after which an uncommitted entry is late."""
    sink = settings.sink
    poll = settings.poll_interval if sink.commit is CommitMode.INLINE else sink.commit_poll
    return min(POLLS * poll, sink.late_after)


def _last_commit_at(evidence: PipelineEvidence, since: datetime) -> datetime | None:
    """Return when entries were last committed, if one has waited longer than usual."""
    waited = (evidence.clock.now() - since).total_seconds()
    with suppress(LakeError):
        return (
            evidence.log.last_commit_at() if waited > commit_patience(evidence.settings) else None
        )
    return None


def _retractions(history: Ledger, passed_over: PassedOver) -> tuple[list[Retraction], str | None]:
    """Return the retractions that took effect, or why that is unknown."""
    made = {int(entry): one for entry, one in history.books.retractions.items()}
    try:
        rejected = passed_over(
            history.journal or "", {entry: one.mark for entry, one in made.items()}
        )
    except LakeError as trouble:
        return [], str(trouble)
    return [made[entry] for entry, is_over in rejected.items() if not is_over], None


def _not_applied(history: Ledger) -> list[Retraction]:
    """Return the rejected replacements that were not repeated since."""
    entries = {one.entry for one in history.undecided.passed_over if one.not_applied}
    return [one for entry, one in history.books.retractions.items() if int(entry) in entries]
