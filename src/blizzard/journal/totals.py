"""The numbers of which the books of a journal are made, and how an entry changes them. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime

from lakebed.documents.entry import Entry
from lakebed.documents.source_record import SourceRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalTotals:
    """What the entries of a journal add up to."""

    batches: int = 0
    files: int = 0
    """Source files that were read to their end."""
    lines: int = 0
    blank: int = 0
    filtered: int = 0
    quarantined: int = 0
    rows: int = 0
    """Also those that lines in quarantine became later."""
    source_bytes: int = 0
    rescued: int = 0
    """Values that no column takes; they are in `_rescued`."""
    dropped: int = 0
    """Values of undeclared fields that were left out."""

    @classmethod
    def of(cls, records: Sequence[SourceRecord]) -> "JournalTotals":
        """Add up what was read of source files. Pure."""
        return cls(
            files=sum(record.complete for record in records),
            lines=sum(record.lines for record in records),
            blank=sum(record.blank for record in records),
            filtered=sum(record.filtered for record in records),
            quarantined=sum(record.quarantined for record in records),
            rows=sum(record.rows for record in records),
            source_bytes=sum(record.size for record in records if record.complete),
            rescued=sum(sum(record.rescued.values()) for record in records if record.rescued),
            dropped=sum(sum(record.dropped.values()) for record in records if record.dropped),
        )

    def plus(self, entry: Entry, source: str | None = None) -> "JournalTotals":
        """Add what was read for an entry, of all sources or of one. Pure."""
        # What is inherited was counted by the journal that it comes from.
        records = [
            record
            for record in entry.readings
            if record.failure is None and source in (None, record.source)
        ]
        is_batch = entry.is_batch and (source is None or bool(records))
        read = JournalTotals.of(records)
        rows = read.rows + replayed_rows(entry, source)
        return self._with(replace(read, batches=int(is_batch), rows=rows), 1)

    def minus(self, given_up: Sequence[SourceRecord]) -> "JournalTotals":
        """Take out what was read and then given up: it is read again, and counted then. Pure."""
        return self._with(JournalTotals.of(given_up), -1)

    def _with(self, other: "JournalTotals", sign: int) -> "JournalTotals":
        names = (each.name for each in fields(self))
        return JournalTotals(
            **{name: getattr(self, name) + sign * getattr(other, name) for name in names}
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class QuarantineTotals:
    """What has become of the lines in quarantine; together they are all that ever were in it."""

    waiting: int = 0
    replayed: int = 0
    """They are rows by now."""
    filtered: int = 0
    """They were read again, and `source.skip_records` passed them over."""
    discarded: int = 0

    def plus(self, entry: Entry) -> "QuarantineTotals":
        """Add what an entry says. Pure."""
        settled = sum(one.lines for one in entry.resolved)
        new = sum(file.record_count for file in entry.quarantine)
        rows, filtered = replayed_rows(entry), sum(one.passed_over for one in entry.resolved)
        # Lines of source files that are read again are counted again.
        discarded = 0 if entry.redone else settled - rows - filtered
        return QuarantineTotals(
            waiting=self.waiting + new - settled,
            replayed=self.replayed + rows,
            filtered=self.filtered + filtered,
            discarded=self.discarded + discarded,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EntrySummary:
    """An entry in a few numbers."""

    entry: int
    kind: str
    at: datetime
    run: str
    files: int
    failed: int
    rows: int
    parquet_files: int
    parquet_bytes: int
    gone: int = 0
    """Files that were not done, and are not in their source any more."""

    @classmethod
    def of(cls, entry: Entry) -> "EntrySummary":
        """Sum up an entry. Pure."""
        there = [record for record in entry.sources if not record.gone]
        done = [record for record in there if record.failure is None]
        return cls(
            entry=entry.sequence,
            kind=entry.kind,
            at=datetime.fromisoformat(entry.created),
            run=entry.run,
            files=len(done),
            failed=len(there) - len(done),
            rows=sum(record.rows for record in done if not record.retracted) + replayed_rows(entry),
            parquet_files=len(entry.files),
            parquet_bytes=sum(file.size for file in entry.files),
            gone=sum(record.gone and not record.discarded for record in entry.sources),
        )


def replayed_rows(entry: Entry, source: str | None = None) -> int:
    """Count the lines in quarantine, of all sources or of one, that an entry made rows of. Pure."""
    return sum(
        rows
        for one in entry.resolved
        for key, rows in one.replayed.items()
        if source in (None, key.partition(":")[0])
    )
