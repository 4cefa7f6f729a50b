"""Audit one journal: its digest chain, its sources and its bad lines. Pure.

Entries are streamed. Only partly read source files and quarantine files with waiting lines are kept
in memory; all others are counted.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from blizzard.inspect.audit.findings import AuditTotals, Difference, FindingKind
from blizzard.inspect.audit.log_books import JournalName, LogBooks
from lakebed.documents.entry import Entry, Receipt, digest_number
from lakebed.documents.pending_meta import HeldState
from lakebed.documents.records import QuarantineFile, Resolved, SourceRecord
from lakebed.layout import digest_transaction, held_transaction
from lakebed.units import entries_from, is_are, plural


@dataclass(slots=True)
class QuarantineBooks:
    """The bad lines of one journal up to the last entry taken."""

    totals: AuditTotals
    waiting: dict[str, tuple[int, QuarantineFile]] = field(default_factory=dict)
    """The files with waiting lines, and the entries that name them."""
    is_closed: bool = False
    """Whether another pipeline took over the journal with its lines."""

    def take(self, entry: Entry) -> Iterator[Difference]:
        """Take the next entry; yield its differences."""
        self.is_closed = entry.kind == "closed"
        if entry.kind in ("batch", "retract"):
            yield from self._check_sources(entry)
        for one in entry.quarantine_files:
            counted = sum(each.lines for each in one.sources)
            if counted != one.record_count:
                message = (
                    f"entry {entry.sequence}: {one.filename} holds "
                    f"{plural(one.record_count, 'bad line')}, but {counted} by source files"
                )
                yield Difference.of(entry, FindingKind.BAD_LINES_DIFFER, message, file=one.filename)
        for done in entry.resolved:
            yield from self._resolve(entry, done)
        for one in entry.quarantine:
            self.waiting[one.filename] = entry.sequence, one
        lines = sum(one.lines for one in entry.resolved)
        filtered = sum(one.filtered_lines for one in entry.resolved)
        self.totals.replayed += sum(one.rows for one in entry.resolved)
        self.totals.filtered_on_replay += filtered
        self.totals.discarded += lines if entry.kind in ("discard", "retract") else 0

    def _check_sources(self, entry: Entry) -> Iterator[Difference]:
        """Check that quarantine files hold the lines that the source records lack."""
        held: Counter[str] = Counter()
        for file in entry.quarantine:
            for each in file.sources:
                held[each.source] += each.lines
        for record in entry.readings:
            found = held.pop(record.key, 0)
            if found != record.quarantined:
                message = (
                    f"entry {entry.sequence}: {record.key} has "
                    f"{plural(record.quarantined, 'bad line')}, but its quarantine files hold "
                    f"{found}"
                )
                yield Difference.of(entry, FindingKind.BAD_LINES_DIFFER, message, source=record.key)
        for source, found in held.items():
            message = (
                f"entry {entry.sequence}: quarantine files hold {plural(found, 'bad line')} of "
                f"{source}, which the entry has not read"
            )
            yield Difference.of(entry, FindingKind.BAD_LINES_DIFFER, message, source=source)

    def _resolve(self, entry: Entry, done: Resolved) -> Iterator[Difference]:
        _, before = self.waiting.pop(done.old, (0, None))
        remaining = 0 if done.left is None else done.left.record_count
        deals = f"entry {entry.sequence} ({entry.kind}) deals with"
        deals += f" {plural(done.lines, 'bad line')} of {done.old}"
        wrong = ""
        if before is None:
            wrong = ", which no longer waits"
        elif before.record_count != done.lines + remaining:
            wrong = f" and leaves {remaining}, but the file holds {before.record_count}"
        elif entry.kind == "replay" and done.lines != done.rows + done.filtered_lines:
            wrong = f", but {done.rows} became rows and {done.filtered_lines} were filtered"
        if wrong:
            yield Difference.of(entry, FindingKind.BAD_LINES_DIFFER, deals + wrong, file=done.old)
        if done.left is not None:
            self.waiting[done.left.filename] = entry.sequence, done.left


def waiting_trouble(
    entry: int, pipeline: str, file: QuarantineFile, size: int | None, rows: int | None
) -> Difference | None:
    """Return the difference of a file with waiting lines; None if it is fine.

    `size` is its object's size, None if missing. `rows` is the footer's row count, -1 if unreadable
    and None if not read.
    """
    lines = plural(file.record_count, "bad line")
    if size is None:
        wrong = f"with {lines} is gone"
    elif size != file.size:
        wrong = f"with {lines} has {size} bytes, but the entry says {file.size}"
    elif rows not in (None, file.record_count):
        message = "its footer cannot be read" if rows == -1 else f"its footer says {rows}"
        wrong = f"should hold {lines}, but {message}"
    else:
        return None
    return Difference(
        kind=FindingKind.QUARANTINE_GONE,
        message=f"{file.filename} of entry {entry} {wrong}",
        pipeline=pipeline,
        entry=entry,
        file=file.filename,
    )


@dataclass(slots=True)
class JournalBooks:
    """The state of one journal up to the last entry taken."""

    pipeline: str
    receipt: Receipt | None
    """The receipt, if the journal is in use and has one."""
    log: LogBooks
    journal: str | None = None
    totals: AuditTotals = field(default_factory=lambda: AuditTotals(journals=1))
    last: int = -1
    quarantine: QuarantineBooks = field(init=False)
    _digest: str | None = None
    _partly_read: dict[str, int] = field(default_factory=dict)
    """The lines read so far of each partly read source file."""
    _done: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Create the quarantine books, which share the totals."""
        self.quarantine = QuarantineBooks(self.totals)

    @property
    def name(self) -> JournalName:
        """The journal's name in the log."""
        return self.pipeline, self.journal or ""

    @property
    def position(self) -> int:
        """The last committed entry by the log; 0 without one."""
        return self.log.position(self.name) or 0

    def is_committed(self, entry: Entry) -> bool:
        """Whether the log says that an entry is committed."""
        return entry.sequence <= self.position

    def is_rejected(self, entry: Entry) -> bool:
        """Whether the log rejects an entry that replaces files."""
        mark = held_transaction(entry.replacement_mark)
        is_over = entry.replaces and self.is_committed(entry)
        return is_over and self.log.transactions.get(mark) == HeldState.GONE

    def has_effect(self, entry: Entry) -> bool:
        """Whether the log has committed an entry, and has not rejected it."""
        return self.is_committed(entry) and not self.is_rejected(entry)

    def version_of(self, entry: Entry) -> int:
        """Return the version that committed an entry, or the one before the known history."""
        settled = self.log.settling(self.name, entry.sequence)
        return self.log.first - 1 if settled is None else settled.version

    def is_forgotten(self, entry: Entry) -> bool:
        """Whether an operator ordered to leave out the entry's files."""
        settled = self.log.settling(self.name, entry.sequence)
        forgotten = None if settled is None else settled.forgotten
        return forgotten is not None and forgotten[0] <= entry.sequence <= forgotten[1]

    def unreadable(self, number: int, why: str) -> Iterator[Difference]:
        """Skip an unreadable entry."""
        yield from self._gap(number)
        yield self._differs(FindingKind.ENTRY_UNREADABLE, f"entry {number}: {why}", number)
        self.last, self._digest = number, None

    def take(self, number: int, entry: Entry, digest: str) -> Iterator[Difference]:
        """Take the next entry, stored under `number`; yield its differences."""
        if self.journal is None:
            self.journal = entry.journal
        yield from self._gap(number)
        yield from self._check_place(number, entry)
        if self._digest is not None and entry.previous != self._digest:
            yield self._differs(
                FindingKind.CHAIN_BROKEN,
                f"entry {number} does not follow entry {number - 1}: it names another digest, so "
                "one of the two was changed",
                number,
            )
        yield from self._check_digest(number, digest)
        self.last, self._digest = number, digest
        yield from self._check_books(number, entry)
        yield from self.quarantine.take(entry)
        self._count(entry)

    def finish(self) -> Iterator[Difference]:
        """Yield the differences of the journal as a whole."""
        if self.position > self.last:
            yield self._differs(
                FindingKind.ENTRY_MISSING,
                f"the log says that entry {self.position} is committed, but the journal ends "
                f"with entry {self.last}",
                self.position,
            )
        if self.receipt is None:
            return
        if self.receipt.journal != self.journal:
            yield self._differs(
                FindingKind.RECEIPT_DIFFERS,
                f"the receipt names entry {self.receipt.sequence} of journal "
                f"{self.receipt.journal}, but the journal in use is {self.journal}",
                self.receipt.sequence,
            )
        elif self.receipt.sequence > self.position:
            yield self._differs(
                FindingKind.RECEIPT_AHEAD,
                f"the receipt of {self.pipeline} says that entry {self.receipt.sequence} is "
                f"committed, but the log says {self.position or 'that none is'}; "
                "see penguin replay",
                self.receipt.sequence,
            )

    def _gap(self, number: int) -> Iterator[Difference]:
        missing = range(self.last + 1, number)
        if missing:
            self._digest = None
            yield self._differs(
                FindingKind.ENTRY_MISSING,
                f"{entries_from(missing[0], missing[-1])} {is_are(len(missing))} missing, but "
                f"entry {number} is there",
                missing[0],
            )

    def _check_place(self, number: int, entry: Entry) -> Iterator[Difference]:
        is_first = entry.kind == "open"
        wrong = ""
        if (entry.sequence, entry.pipeline) != (number, self.pipeline) or is_first != (number == 0):
            wrong = (
                f"where entry {number} belongs is entry {entry.sequence} ({entry.kind}) of "
                f"pipeline {entry.pipeline}"
            )
        elif entry.journal != self.journal:
            wrong = (
                f"entry {number} is of journal {entry.journal}, those before it are of "
                f"{self.journal}"
            )
        if wrong:
            yield self._differs(FindingKind.ENTRY_MISPLACED, wrong, number)

    def _check_digest(self, number: int, digest: str) -> Iterator[Difference]:
        settled = self.log.settling(self.name, number)
        version, kept = self.log.first - 1, None
        if settled is not None and settled.last == number:
            version, kept = settled.version, settled.digest
        elif number == self.position:
            kept = self.log.transactions.get(digest_transaction(*self.name))
        if kept is not None and kept != digest_number(digest):
            yield self._differs(
                FindingKind.DIGEST_DIFFERS,
                f"entry {number} is not the committed one: the log has another digest",
                number,
                version=version,
            )
        named = self.receipt
        is_named = named is not None and (named.journal, named.sequence) == (self.journal, number)
        if named is not None and is_named and named.digest != digest:
            yield self._differs(
                FindingKind.RECEIPT_DIFFERS,
                f"entry {number} is not the one in the receipt: its digest differs",
                number,
            )

    def _check_books(self, number: int, entry: Entry) -> Iterator[Difference]:
        for record in entry.sources:
            yield from self._check_lines(number, entry, record)
        is_replay = entry.kind == "replay"
        given = sum(record.rows for record in entry.readings)
        given += sum(one.rows for one in entry.resolved)
        held = sum(file.record_count for file in entry.files)
        taken = sum(record.rows for record in entry.sources if record.retracted)
        taken += sum(entry.erased.values())
        # The origins of erased rows are not all known.
        if taken != entry.left_out and not (entry.kind == "erase" and taken < entry.left_out):
            yield self._differs(
                FindingKind.BOOKS_DIFFER,
                f"entry {number} takes {plural(taken, 'row')} of source files out of the table, "
                f"but {entry.left_out} out of data files",
                number,
            )
        if given != held:
            what = "bad lines" if is_replay else "source files"
            yield self._differs(
                FindingKind.BOOKS_DIFFER,
                f"the {what} of entry {number} gave {plural(given, 'row')}, but its data "
                f"files hold {held}",
                number,
            )

    def _check_lines(self, number: int, entry: Entry, record: SourceRecord) -> Iterator[Difference]:
        counted = record.rows + record.blank + record.filtered + record.quarantined
        is_read = entry.kind in ("batch", "retract")
        if is_read and (record.rows if record.failure else record.lines != counted):
            yield self._differs(
                FindingKind.BOOKS_DIFFER,
                f"entry {number}: {record.key} has {plural(record.lines, 'line')}, of which "
                f"{record.rows} rows, {record.blank} blank, {record.filtered} filtered and "
                f"{record.quarantined} quarantined" + (", and failed" if record.failure else ""),
                number,
                source=record.key,
            )
        before = self._partly_read.get(record.key)
        if entry.kind == "batch" and record.skipped and record.skipped != before:
            yield self._differs(
                FindingKind.BOOKS_DIFFER,
                f"entry {number}: {record.key} goes on after {plural(record.skipped, 'line')}, "
                f"but earlier entries have read {before or 'none'}",
                number,
                source=record.key,
            )
        yield from self._remember(number, entry, record)

    def _remember(self, number: int, entry: Entry, record: SourceRecord) -> Iterator[Difference]:
        """Record how far a source file was read; report a second reading."""
        if self.is_rejected(entry):
            return  # A rejected entry changes nothing.
        place = hash(record.key)
        if record.redo:
            self._done.discard(place)
        if record.failure is not None or record.gone or not record.complete:
            if record.records_read:
                self._partly_read[record.key] = record.records_read
            return
        self._partly_read.pop(record.key, None)
        # A retracted file still counts as read.
        is_known = entry.kind == "retract" and not record.retracted
        if not (is_known or entry.kind in ("batch", "inherited")) or record.gave_no_row:
            return
        if entry.kind == "batch" and place in self._done and not record.reingested:
            yield self._differs(
                FindingKind.SOURCE_TWICE,
                f"entry {number} has read {record.key}, which an earlier entry had read to its end",
                number,
                source=record.key,
            )
        self._done.add(place)

    def _count(self, entry: Entry) -> None:
        totals = self.totals
        totals.entries += 1
        totals.waiting += not self.is_committed(entry) and entry.sequence > 0
        for record in entry.readings:
            if record.failure is None:
                # A file read by several batches counts with its first lines.
                is_begun = record.complete or record.lines > 0
                totals.source_files += is_begun and not record.skipped
                totals.lines += record.lines
                totals.blank += record.blank
                totals.filtered += record.filtered
                totals.quarantined += record.quarantined
                totals.rows += record.rows

    def _differs(self, kind: FindingKind, message: str, entry: int, **where: Any) -> Difference:  # noqa: ANN401
        return Difference(kind=kind, message=message, pipeline=self.pipeline, entry=entry, **where)
