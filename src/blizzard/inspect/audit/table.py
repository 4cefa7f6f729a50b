"""The audit of one table: the receipts, then the log, then the journals, an entry at a time.

In this order a program that is at work meanwhile changes nothing: what a receipt says the log
says, what the log has an entry names, and an entry that comes later waits. Nothing here writes.
"""

from collections.abc import Callable, Iterator

from blizzard.inspect.audit.file_books import FileBooks
from blizzard.inspect.audit.findings import (
    AcceptedLoss,
    Audit,
    Difference,
    Kind,
    Totals,
    spans,
)
from blizzard.inspect.audit.journal_books import JournalBooks
from blizzard.inspect.audit.log_books import LogBooks
from blizzard.inspect.audit.objects import is_elsewhere, look_at_objects
from blizzard.inspect.audit.quarantine_books import QuarantineBooks, waiting_trouble
from lakebed import layout
from lakebed.deltalog.actions import LogHistory
from lakebed.documents.entry import Entry, Receipt, decode_entry, digest
from lakebed.errors import DocumentUnreadable, ObjectMissing
from lakebed.journal import JournalReader, accepted_losses, journals_aside
from lakebed.storage.ahead import ahead
from lakebed.storage.parquet_tail import footer_of
from lakebed.storage.store import Reader

ReadLog = Callable[[], LogHistory | None]
"""Opens the table's log; None where there is none."""
OpenFolder = Callable[[str], Reader]
"""Opens the folder of a URI."""


def audit_table(
    store: Reader, read_log: ReadLog, open_folder: OpenFolder, *, deep: bool = False
) -> Audit:
    """Compare everything that a table directory says of its rows with everything else."""
    return _Audit(store, open_folder, deep=deep).run(read_log)


class _Audit:
    def __init__(self, store: Reader, open_folder: OpenFolder, *, deep: bool) -> None:
        self.store = store
        self.deep = deep
        self.open_folder = open_folder
        self.differences: list[Difference] = []
        self.log = LogBooks()
        self.totals = Totals()
        self.files = FileBooks(self.log)
        self.seen: set[tuple[str, str]] = set()
        self.folders: dict[str, Reader | None] = {}
        self.pipelines: list[str] = []

    def run(self, read_log: ReadLog) -> Audit:
        known = layout.pipelines(self.store.folders(layout.OURS))
        receipts = {name: self._receipt(name) for name in known}
        history = read_log()
        # Listed again: the log may have entries of a pipeline that began in between.
        pipelines = layout.pipelines(self.store.folders(layout.OURS))
        readable = history is None or not history.gone
        self.log.accepted = accepted_losses(self.store)
        if history is not None:
            self._read_log(history)
        for pipeline in pipelines:
            for folder in self._folders(pipeline):
                in_use = folder == layout.journal_folder(pipeline)
                receipt = receipts.get(pipeline) if in_use else None
                self._read_journal(pipeline, folder, receipt, with_log=readable)
        if readable:
            self.differences += self.log.differences
            self._check_journals()
            self.differences += self.files.finish()
            self.differences += look_at_objects(self.store, self.files, deep=self.deep)
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
            accepted=tuple(
                AcceptedLoss.of(one, applies=one.version in self.log.applied)
                for one in self.log.accepted.values()
            ),
            losses=tuple(self.log.losses),
            differences=tuple(self.differences),
            pipelines=tuple(self.pipelines),
            elsewhere=sum(is_elsewhere(path) for path in self.log.active),
        )

    def _receipt(self, pipeline: str) -> Receipt | None:
        try:
            return JournalReader(self.store, pipeline).receipt()
        except DocumentUnreadable as why:
            self._add(Kind.RECEIPT_DIFFERS, f"the receipt of {pipeline}: {why}", pipeline)
            return None

    def _read_log(self, history: LogHistory) -> None:
        self.log.first = self.log.lineage.first = history.first
        for version in history.versions:
            self.log.take(version)
        if history.gone:
            some = len(history.gone) > 1
            self.differences.append(
                Difference(
                    kind=Kind.LOG_VERSION_MISSING,
                    message=f"version{'s' if some else ''} {spans(history.gone)} of the Delta log "
                    f"{'are' if some else 'is'} gone, so nothing after can be read; the journals "
                    "were not compared with the log",
                    version=history.gone[0],
                )
            )

    def _folders(self, pipeline: str) -> Iterator[str]:
        """Yield the journals of a pipeline, those that were replaced first."""
        yield from journals_aside(self.store, pipeline)
        yield layout.journal_folder(pipeline)

    def _read_journal(
        self, pipeline: str, folder: str, receipt: Receipt | None, *, with_log: bool
    ) -> None:
        reader = JournalReader(self.store, pipeline, folder=folder)
        books = JournalBooks(pipeline, receipt if with_log else None, self.log)
        numbers = reader.numbers()
        if not numbers:
            if receipt is not None and with_log:
                told = (
                    f"the receipt names entry {receipt.sequence} of journal {receipt.journal} of "
                    f"{pipeline}, but there is no journal"
                )
                self._add(Kind.JOURNAL_MISSING, told, pipeline, entry=receipt.sequence)
            return
        for number, body in ahead(reader.listed_body, numbers):
            try:
                entry = decode_entry(body, reader.where(number))
            except DocumentUnreadable as why:
                self.differences += books.unreadable(number, str(why))
                continue
            is_first = books.journal is None
            self.differences += books.take(number, entry, digest(body))
            if is_first:
                self.files.begin(books)
            if with_log:
                self.differences += self.files.take(entry, books)
            self._check_dead_letters(entry)
        self.differences += books.finish() if with_log else ()
        if folder == layout.journal_folder(pipeline) and not books.quarantine.is_closed:
            self.pipelines.append(pipeline)
            self._check_quarantine(pipeline, books.quarantine)
        self.totals.add(books.totals)
        self.seen.add(books.name)

    def _check_journals(self) -> None:
        """Report journals that the log has committed entries of, and that are not here."""
        for app_id, last in self.log.transactions.items():
            match app_id.split("/"):
                case ["blizzard", pipeline, journal] if (pipeline, journal) not in self.seen:
                    told = (
                        f"the log has committed entries up to {last} of journal {journal} of "
                        f"{pipeline}, which is not here"
                    )
                    self._add(Kind.JOURNAL_MISSING, told, pipeline, entry=last)

    def _check_dead_letters(self, entry: Entry) -> None:
        for uri in entry.dlq:
            if not self._is_there(entry.pipeline, uri):
                told = f"the dead letters of entry {entry.sequence} are gone: {uri}"
                self._add(Kind.DEAD_LETTERS_GONE, told, entry.pipeline, entry=entry.sequence)

    def _check_quarantine(self, pipeline: str, books: QuarantineBooks) -> None:
        """Report bad lines that wait in objects which are gone or, looked at deeply, damaged."""
        # A journal that took over from another pipeline's has files in the folder of that one.
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
        """Whether an object of a dead letter queue is there, also if its table was moved."""
        folder, _, name = uri.rpartition("/")
        if self.store.head(f"{layout.dead_letter_folder(pipeline)}/{name}") is not None:
            return True
        if folder not in self.folders:
            try:
                self.folders[folder] = self.open_folder(folder)
            except ObjectMissing:
                self.folders[folder] = None  # The whole folder was cleared away.
        there = self.folders[folder]
        return there is not None and there.head(name) is not None

    def _add(self, kind: Kind, message: str, pipeline: str, *, entry: int | None = None) -> None:
        found = Difference(kind=kind, message=message, pipeline=pipeline, entry=entry)
        self.differences.append(found)


def _begins(history: LogHistory) -> int:
    """Return the version with whose state the history begins: that of its checkpoint, or 0."""
    return history.first if history.gone else max(0, history.first - 1)
