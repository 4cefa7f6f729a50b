"""Audit one table: receipts first, then the log, then the journals entry by entry. Read-only.

This order tolerates running programs: the log contains what a receipt says, entries name what the
log contains, and later entries count as waiting. One listing shows the objects of the table's
files; footers are read on request, rows never.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import cache

import pyarrow.parquet as pq

from blizzard.inspect.audit.file_books import FileBooks
from blizzard.inspect.audit.findings import (
    Audit,
    AuditTotals,
    Difference,
    FindingKind,
    WaitingDataFile,
    spans,
)
from blizzard.inspect.audit.journal_books import JournalBooks, QuarantineBooks, waiting_trouble
from blizzard.inspect.audit.log_books import LogBooks
from lakebed import layout
from lakebed.deltalog.actions import LogHistory
from lakebed.deltalog.file_names import is_elsewhere
from lakebed.deltalog.lineage import Active
from lakebed.documents.entry import Entry, Receipt, decode_entry, digest
from lakebed.errors import DocumentUnreadable, ObjectMissing
from lakebed.journal import JournalReader, accepted_losses, replaced_journals
from lakebed.storage.lister import objects
from lakebed.storage.objects import ahead
from lakebed.storage.options import ObjectFacts
from lakebed.storage.parquet_tail import footer_of
from lakebed.storage.store import Reader

ReadLog = Callable[[], LogHistory | None]
"""Opens the table's log; None if there is none."""
OpenFolder = Callable[[str], Reader]
"""Opens the folder of a URI."""


def audit_table(
    store: Reader, read_log: ReadLog, open_folder: OpenFolder, *, deep: bool = False
) -> Audit:
    """Audit a table directory: cross-check receipts, log, journals and objects."""
    return _Audit(store, open_folder, deep=deep).run(read_log)


class _Audit:
    def __init__(self, store: Reader, open_folder: OpenFolder, *, deep: bool) -> None:
        self.store = store
        self.deep = deep
        self.open_folder = cache(open_folder)
        self.differences: list[Difference] = []
        self.log = LogBooks()
        self.totals = AuditTotals()
        self.files = FileBooks(self.log)
        self.seen: set[tuple[str, str]] = set()

    def run(self, read_log: ReadLog) -> Audit:
        known = layout.pipelines(self.store.folders(layout.OURS))
        receipts = {name: self._receipt(name) for name in known}
        history = read_log()
        # List again: the log may have entries of a pipeline that began meanwhile.
        pipelines = layout.pipelines(self.store.folders(layout.OURS))
        readable = history is None or not history.gone
        self.log.accepted = accepted_losses(self.store)
        if history is not None:
            self._read_log(history)
        for pipeline in pipelines:
            current = layout.journal_folder(pipeline)
            for folder in (*replaced_journals(self.store, pipeline), current):
                in_use = folder == current
                receipt = receipts.get(pipeline) if in_use else None
                self._read_journal(pipeline, folder, receipt, with_log=readable)
        if readable:
            self.differences += self.log.differences
            self._check_journals()
            self.differences += self.files.finish()
            self.differences += check_objects(self.store, self.files, deep=self.deep)
        return Audit(
            version=None if history is None else history.last,
            history_since=None if history is None else _begins(history),
            deep=self.deep,
            totals=self.totals,
            places=self.files.places,
            active=self.log.totals(),
            by_others=self.files.by_others(),
            adopted=self.files.adopted(),
            unknown=self.files.unknown(),
            others=tuple(self.log.commits.values()),
            accepted=tuple(self.log.accepted.values()),
            applied=frozenset(self.log.applied),
            losses=tuple(self.log.losses),
            differences=tuple(self.differences),
            elsewhere=sum(is_elsewhere(path) for path in self.log.active),
        )

    def _receipt(self, pipeline: str) -> Receipt | None:
        try:
            return JournalReader(self.store, pipeline).receipt()
        except DocumentUnreadable as why:
            self._add(FindingKind.RECEIPT_DIFFERS, f"the receipt of {pipeline}: {why}", pipeline)
            return None

    def _read_log(self, history: LogHistory) -> None:
        self.log.first = self.log.lineage.first = history.first
        for version in history.versions:
            self.log.take(version)
        if history.gone:
            some = len(history.gone) > 1
            self.differences.append(
                Difference(
                    kind=FindingKind.LOG_VERSION_MISSING,
                    message=f"version{'s' if some else ''} {spans(history.gone)} of the Delta log "
                    f"{'are' if some else 'is'} gone, so nothing after can be read; the journals "
                    "were not compared with the log",
                    version=history.gone[0],
                )
            )

    def _read_journal(
        self, pipeline: str, folder: str, receipt: Receipt | None, *, with_log: bool
    ) -> None:
        reader = JournalReader(self.store, pipeline, folder=folder)
        books = JournalBooks(pipeline, receipt if with_log else None, self.log)
        numbers = reader.numbers()
        if not numbers:
            if receipt is not None and with_log:
                message = (
                    f"the receipt names entry {receipt.sequence} of journal {receipt.journal} of "
                    f"{pipeline}, but there is no journal"
                )
                self._add(FindingKind.JOURNAL_MISSING, message, pipeline, entry=receipt.sequence)
            return
        for number, body in ahead(reader.listed_body, numbers):
            try:
                entry = decode_entry(body, reader.where(number))
            except DocumentUnreadable as why:
                self.differences += books.unreadable(number, str(why))
                continue
            self.differences += books.take(number, entry, digest(body))
            if with_log:
                self.differences += self.files.take(entry, books)
            self._check_dead_letters(entry)
        self.differences += books.finish() if with_log else ()
        if folder == layout.journal_folder(pipeline) and not books.quarantine.is_closed:
            self._check_quarantine(pipeline, books.quarantine)
        self.totals.add(books.totals)
        self.seen.add(books.name)

    def _check_journals(self) -> None:
        """Report missing journals with committed entries in the log."""
        for app_id, last in self.log.transactions.items():
            match app_id.split("/"):
                case ["blizzard", pipeline, journal] if (pipeline, journal) not in self.seen:
                    message = (
                        f"the log has committed entries up to {last} of journal {journal} of "
                        f"{pipeline}, which is not here"
                    )
                    self._add(FindingKind.JOURNAL_MISSING, message, pipeline, entry=last)

    def _check_dead_letters(self, entry: Entry) -> None:
        for uri in entry.dlq:
            if not self._is_there(entry.pipeline, uri):
                message = f"the dead letters of entry {entry.sequence} are gone: {uri}"
                self._add(
                    FindingKind.DEAD_LETTERS_GONE, message, entry.pipeline, entry=entry.sequence
                )

    def _check_quarantine(self, pipeline: str, books: QuarantineBooks) -> None:
        """Report waiting bad lines in missing or, with `deep`, damaged objects."""
        # An inherited journal has files in the folder of the original pipeline.
        folders = {path.rpartition("/")[0] for path in books.waiting}
        there = {one.path: one for folder in folders for one in self.store.objects(folder)}
        for entry, file in books.waiting.values():
            books.totals.bad_lines_waiting += file.record_count
            facts = there.get(file.filename)
            size = None if facts is None else facts.size
            rows = None
            if facts is not None and size == file.size and self.deep:
                footer = footer_of(self.store, facts)
                rows = -1 if footer is None else footer.num_rows
            found = waiting_trouble(entry, pipeline, file, size, rows)
            if found is not None:
                self.differences.append(found)

    def _is_there(self, pipeline: str, uri: str) -> bool:
        """Whether a dead letter object exists, even if its table was moved."""
        folder, _, name = uri.rpartition("/")
        if self.store.head(f"{layout.dead_letter_folder(pipeline)}/{name}") is not None:
            return True
        try:
            return self.open_folder(folder).head(name) is not None
        except ObjectMissing:
            return False  # The whole folder was deleted.

    def _add(
        self, kind: FindingKind, message: str, pipeline: str, *, entry: int | None = None
    ) -> None:
        found = Difference(kind=kind, message=message, pipeline=pipeline, entry=entry)
        self.differences.append(found)


def _begins(history: LogHistory) -> int:
    """Return the version at which the history begins: its checkpoint's, or 0."""
    return history.first if history.gone else max(0, history.first - 1)


def check_objects(store: Reader, files: FileBooks, *, deep: bool) -> Iterator[Difference]:
    """Compare every active or waiting file with its object.

    One listing gives existence and size; only objects missing from it are requested by name. `deep`
    also reads the footer of every file in the table.
    """
    active = files.log.active
    unseen = {path for path in active if not is_elsewhere(path)}
    waiting: dict[str, WaitingDataFile] = {one.file.filename: one for one in files.waiting}
    there = _objects(store, unseen, waiting)
    unread = ((facts, None) for facts in there)
    for facts, footer in ahead(lambda one: footer_of(store, one), there) if deep else unread:
        one = active[facts.path]
        if facts.size != one.size:
            message = f"the log says {one.size} bytes, but the object has {facts.size}"
            yield _differs(FindingKind.FILE_SIZE_DIFFERS, facts.path, message)
        elif deep:
            yield from compare(facts.path, one, footer)
    for path in sorted(unseen):
        yield _differs(
            FindingKind.FILE_GONE,
            path,
            "it is in the table, but the object is gone; see penguin fsck",
        )
    yield from _not_listed(store, waiting.values())


def _objects(
    store: Reader, unseen: set[str], waiting: dict[str, WaitingDataFile]
) -> Iterator[ObjectFacts]:
    """Yield the objects of active files, removing existing ones from both collections."""
    for facts in objects(store, odd=lambda _name, _fault: None, into_links=False):
        name = _final_name(facts.path)
        if name in waiting and waiting[name].file.size == facts.size:
            del waiting[name]
        if facts.path in unseen:
            unseen.discard(facts.path)
            yield facts
    # An object missing from the listing may be behind a link, or newer.
    for path, found in ahead(store.head, sorted(unseen)):
        if found is not None:
            unseen.discard(path)
            yield found


def compare(path: str, one: Active, footer: pq.FileMetaData | None) -> Iterator[Difference]:
    """Compare a footer with the log's statistics. Pure."""
    if footer is None:
        yield _differs(FindingKind.FILE_DAMAGED, path, "its footer cannot be read")
    elif one.rows is not None and footer.num_rows != one.rows:
        message = f"the log's statistics say {one.rows} rows, but its footer {footer.num_rows}"
        yield _differs(FindingKind.FILE_ROWS_DIFFER, path, message)


def _final_name(path: str) -> str:
    """Return a file's name in the table, even if it waits in an outbox."""
    is_ours = path.startswith(f"{layout.OURS}/")
    return path.partition("/outbox/")[2] if is_ours else path


def _not_listed(store: Reader, files: Iterable[WaitingDataFile]) -> Iterator[Difference]:
    """Check again for missing waiting files, which may have been moved meanwhile."""

    def find(one: WaitingDataFile) -> ObjectFacts | None:
        name = layout.TablePath(one.file.filename)
        outbox = layout.outbox(one.pipeline, name)
        return store.head(name) or store.head(outbox) or store.head(name)

    for one, found in ahead(find, files):
        pipeline, entry, path, size = one.pipeline, one.entry, one.file.filename, one.file.size
        if found is not None and found.size == size:
            continue
        message = (
            "it waits for penguin, but is gone"
            if found is None
            else f"it waits for penguin with {size} bytes, but the object has {found.size}"
        )
        yield Difference(
            kind=FindingKind.FILE_GONE if found is None else FindingKind.FILE_SIZE_DIFFERS,
            message=f"{path} of entry {entry}: {message}",
            pipeline=pipeline,
            entry=entry,
            file=path,
        )


def _differs(kind: FindingKind, path: str, message: str) -> Difference:
    return Difference(kind=kind, message=f"{path}: {message}", file=path)
