"""The status of a pipeline and its sources, as values. Pure."""

from dataclasses import dataclass, field
from datetime import datetime

from blizzard.answers.answer import AwaitingRedo, FailedSource
from blizzard.discover.finding import SkipSummary
from blizzard.journal.lease import WriterStatus
from blizzard.journal.standings import EntrySummary, JournalTotals, QuarantineTotals
from blizzard.model.settings import PipelineSettings
from lakebed.documents.pending_meta import HeldFileCounts
from lakebed.types import CommitMode, Handoff
from lakebed.units import plural

POLLS = 3
"""The polls that a program may take before its backlog is late."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueStatus:
    """The status of one queue; without numbers if it does not answer."""

    queue: str
    messages: int | None = None
    """About how many are not done with; None if the queue does not say."""
    error: str | None = None

    def sentence(self) -> str:
        """Describe the status."""
        if self.error is not None:
            return f"the queue of notices cannot be asked: {self.error}; files are found by listing"
        if self.messages is None:
            return f"the queue of notices answers: {self.queue}; it does not tell how many it has"
        return f"{plural(self.messages, 'notice')} waiting or being followed in {self.queue}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceStatus:
    """The status of one source; facts from a listing are None if it cannot be listed."""

    source: str
    uri: str
    pending_files: int | None = None
    pending_bytes: int | None = None
    """The bytes of the next batch only; further files are counted but not sized."""
    oldest_pending: datetime | None = None
    lag_secs: float | None = None
    """The age of the oldest waiting file; 0 without one."""
    failed_files: int = 0
    lost_files: int = 0
    """Files that failed and were deleted from the source, and are not given up."""
    failures: tuple[FailedSource, ...] = ()
    """Some of the failures, newest first."""
    changed_files: int = 0
    """Ingested files that are other objects now, which are reported and not read."""
    skipped_names: tuple[SkipSummary, ...] = ()
    """Unreadable names, by reason."""
    totals: JournalTotals = field(default_factory=JournalTotals)
    error: str | None = None
    notifications: QueueStatus | None = None
    """The queue that announces new files."""


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
    lost_entry: int | None
    """The last committed entry by the receipt, if the log has lost its version."""
    last_batch: EntrySummary | None
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
    held: tuple[HeldFileCounts, ...] = ()
    """Why they are held."""
    discarded_files: int = 0
    discarded_rows: int = 0
    """Rows of journaled files that were discarded, or of replacements that penguin rejected."""
    awaiting_redo: tuple[AwaitingRedo, ...] = ()
    """Data files that `penguin fsck` took out, whose sources are not ordered to be read again."""
    withheld_error: str | None = None
    """Why the held rows, or those that await a redo, are unknown."""
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


def commit_patience(settings: PipelineSettings) -> float:
    """Return the seconds after which an uncommitted entry is late."""
    sink = settings.sink
    poll = settings.poll_interval if sink.commit is CommitMode.INLINE else sink.commit_poll
    return min(POLLS * poll, sink.late_after)
