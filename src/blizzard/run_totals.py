"""What one run of a pipeline adds up to, batch after batch."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from blizzard.execute.bisect import new_failures
from blizzard.model.progress import Done
from lakebed.documents.entry import Entry
from lakebed.documents.source_record import SourceRecord
from lakebed.errors import (
    LakeError,
    MachineTrouble,
    StoreDenied,
    StoreFull,
    StoreMisconfigured,
    StoreUnavailable,
    Whose,
)
from lakebed.units import plural


class TooManyFailures(LakeError, code="max_failures_reached", whose=Whose.USER):
    """As many source files failed as `error_handling.max_failures` allows."""


class BatchFailed(LakeError, code="batch_failed", whose=Whose.EXTERNAL):
    """Every source file of a batch failed, and not through a fault of its own."""


NO_FAULT_OF_FILES = frozenset(
    kind.code
    for kind in (StoreUnavailable, StoreDenied, StoreMisconfigured, StoreFull, MachineTrouble)
)


@dataclass(slots=True)
class Statistics:
    """What one run of a pipeline has done so far; only what is journaled counts."""

    files_processed: int = 0
    records_processed: int = 0
    bytes_written: int = 0
    parquet_files_written: int = 0
    delta_commits: int = 0
    checkpoints_saved: int = 0
    lines_quarantined: int = 0
    files_failed: int = 0
    files_still_failed: int = 0
    """Files that have failed and are not in the table, those of earlier runs included."""


@dataclass(slots=True, kw_only=True)
class RunTotals:
    """The statistics of a run, and the files that have failed in it."""

    once: bool
    """Whether the run ends when nothing is left: it tries a file that has failed only once."""
    statistics: Statistics = field(default_factory=Statistics)
    failed: set[str] = field(default_factory=set)
    """The files that count against `max_failures`."""
    tried: set[str] = field(default_factory=set)
    """The files that this run does not try again."""
    trouble: BatchFailed | None = None
    """Why a run that ends when nothing is left is incomplete, if it is: a store or a machine kept
    it from reading, or writing, any file of a batch."""

    def add(self, entry: Entry, work: Done) -> None:
        """Add a journaled batch and the work that it holds."""
        self.failed |= new_failures(entry.sources, forgiven=())
        if self.once:
            self.tried |= {record.key for record in entry.sources if record.failure is not None}
            self.trouble = self.trouble or _trouble_of(entry)
        totals = self.statistics
        totals.files_processed += work.source_files
        totals.records_processed += work.rows
        totals.lines_quarantined += work.quarantined
        totals.bytes_written += work.bytes_written
        totals.parquet_files_written += work.parquet_files
        totals.checkpoints_saved += 1
        totals.files_failed = len(self.failed)

    def count_failed(self, unfinished: Iterable[SourceRecord]) -> None:
        """Count the files that are not in the table, also those that failed in earlier runs."""
        self.statistics.files_still_failed = sum(
            record.failure is not None and not record.gone for record in unfinished
        )

    def check_failures(self, limit: int | None) -> None:
        """Stop the pipeline once too many files have failed; what succeeded is handed on."""
        if limit is not None and len(self.failed) >= limit:
            count = plural(len(self.failed), "source file")
            raise TooManyFailures(
                f"{count} failed so far and "
                f"error_handling.max_failures is {limit}; what succeeded is journaled"
            )


def _trouble_of(entry: Entry) -> BatchFailed | None:
    """Return what kept a batch from taking any of its files, if it was no fault of theirs."""
    sources = [record for record in entry.sources if not record.gone]
    failures = [record.failure for record in sources if record.failure is not None]
    if not failures or len(failures) < len(sources):
        return None
    if any(failure.code not in NO_FAULT_OF_FILES for failure in failures):
        return None
    first = failures[0]
    return BatchFailed(
        f"every source file of batch {entry.sequence} failed, and not through a fault of its own: "
        f"{first.message} [{first.code}]"
    )
