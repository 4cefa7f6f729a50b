"""The bad lines of one journal: each is counted once, and waits in a file or was dealt with. Pure.

Of quarantine files only those are remembered whose lines are waiting.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from blizzard.inspect.audit.findings import AuditTotals, Difference, FindingKind
from lakebed.documents.entry import Entry
from lakebed.documents.source_record import QuarantineFile, Resolved
from lakebed.units import plural


@dataclass(slots=True)
class QuarantineBooks:
    """What one journal says of bad lines, up to the entry that was taken last."""

    totals: AuditTotals
    waiting: dict[str, tuple[int, QuarantineFile]] = field(default_factory=dict)
    """The files whose lines are waiting, with the entries that name them."""
    is_closed: bool = False
    """Whether another pipeline has taken the journal over, and the lines with it."""

    def take(self, entry: Entry) -> Iterator[Difference]:
        """Go on by one entry; yield what is wrong with it."""
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
        passed_over = sum(one.passed_over for one in entry.resolved)
        self.totals.replayed += sum(one.rows for one in entry.resolved)
        self.totals.passed_over += passed_over
        self.totals.discarded += lines if entry.kind in ("discard", "retract") else 0

    def _check_sources(self, entry: Entry) -> Iterator[Difference]:
        """Check that the lines in the files are those that the source files have too few."""
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
        elif entry.kind == "replay" and done.lines != done.rows + done.passed_over:
            wrong = f", but {done.rows} became rows and {done.passed_over} were passed over"
        if wrong:
            yield Difference.of(entry, FindingKind.BAD_LINES_DIFFER, deals + wrong, file=done.old)
        if done.left is not None:
            self.waiting[done.left.filename] = entry.sequence, done.left


def waiting_trouble(
    entry: int, pipeline: str, file: QuarantineFile, size: int | None, rows: int | None
) -> Difference | None:
    """Return what is wrong with a file whose lines wait; None if nothing is.

    `size` is that of its object, None if there is none; `rows` is what its footer says, -1 if that
    cannot be read and None if it was not read.
    """
    lines = plural(file.record_count, "bad line")
    if size is None:
        wrong = f"with {lines} is gone"
    elif size != file.size:
        wrong = f"with {lines} has {size} bytes, but the entry says {file.size}"
    elif rows not in (None, file.record_count):
        told = "its footer cannot be read" if rows == -1 else f"its footer says {rows}"
        wrong = f"should hold {lines}, but {told}"
    else:
        return None
    return Difference(
        kind=FindingKind.QUARANTINE_GONE,
        message=f"{file.filename} of entry {entry} {wrong}",
        pipeline=pipeline,
        entry=entry,
        file=file.filename,
    )
