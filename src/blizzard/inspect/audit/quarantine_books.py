"""The bad lines of one journal: each is counted once, and waits in a file or was dealt with. Pure.

Of quarantine files only those are remembered whose lines are waiting.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from blizzard.inspect.audit.findings import Difference, Kind, Totals
from lakebed.documents.entry import Entry
from lakebed.documents.quarantine_file import QuarantineFile, Resolved
from lakebed.units import plural


@dataclass(slots=True)
class QuarantineBooks:
    """What one journal says of bad lines, up to the entry that was taken last."""

    totals: Totals
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
                yield _differs(
                    f"entry {entry.sequence}: {one.filename} holds "
                    f"{plural(one.record_count, 'bad line')}, but {counted} by source files",
                    entry,
                    one.filename,
                )
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
                yield _differs(
                    f"entry {entry.sequence}: {record.key} has "
                    f"{plural(record.quarantined, 'bad line')}, but its quarantine files hold "
                    f"{found}",
                    entry,
                    source=record.key,
                )
        for source, found in held.items():
            yield _differs(
                f"entry {entry.sequence}: quarantine files hold {plural(found, 'bad line')} of "
                f"{source}, which the entry has not read",
                entry,
                source=source,
            )

    def _resolve(self, entry: Entry, done: Resolved) -> Iterator[Difference]:
        _, before = self.waiting.pop(done.old, (0, None))
        remaining = 0 if done.left is None else done.left.record_count
        deals = f"entry {entry.sequence} ({entry.kind}) deals with"
        deals += f" {plural(done.lines, 'bad line')} of {done.old}"
        if before is None:
            yield _differs(f"{deals}, which no longer waits", entry, done.old)
        elif before.record_count != done.lines + remaining:
            holds = f"and leaves {remaining}, but the file holds {before.record_count}"
            yield _differs(f"{deals} {holds}", entry, done.old)
        elif entry.kind == "replay" and done.lines != done.rows + done.passed_over:
            became = f"but {done.rows} became rows and {done.passed_over} were passed over"
            yield _differs(f"{deals}, {became}", entry, done.old)
        if done.left is not None:
            self.waiting[done.left.filename] = entry.sequence, done.left


def gone(entry: int, pipeline: str, file: QuarantineFile, size: int | None) -> Difference | None:
    """Return what is wrong with the object of a file whose lines wait; `size` is what it has."""
    if size == file.size:
        return None
    told = "is gone" if size is None else f"has {size} bytes, but the entry says {file.size}"
    return Difference(
        kind=Kind.QUARANTINE_GONE,
        message=f"{file.filename} of entry {entry} with {plural(file.record_count, 'bad line')} "
        + told,
        pipeline=pipeline,
        entry=entry,
        file=file.filename,
    )


def damaged(entry: int, pipeline: str, file: QuarantineFile, rows: int | None) -> Difference | None:
    """Return what is wrong with a file whose lines wait; `rows` is what its footer says."""
    if rows == file.record_count:
        return None
    told = "its footer cannot be read" if rows is None else f"its footer says {rows}"
    return Difference(
        kind=Kind.QUARANTINE_GONE,
        message=f"{file.filename} of entry {entry} should hold "
        f"{plural(file.record_count, 'bad line')}, but {told}",
        pipeline=pipeline,
        entry=entry,
        file=file.filename,
    )


def _differs(
    message: str, entry: Entry, file: str | None = None, *, source: str | None = None
) -> Difference:
    return Difference(
        kind=Kind.BAD_LINES_DIFFER,
        message=message,
        pipeline=entry.pipeline,
        entry=entry.sequence,
        file=file,
        source=source,
    )
