"""What has become of the data files of an entry: in the table, held, removed, rewritten."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from blizzard.handoff.held_rows import GONE, HELD
from blizzard.inspect.why.answer import DataFile, State
from blizzard.inspect.why.entries import mentioning
from blizzard.inspect.why.table_log import LogEntry, LogFile, LogVersion, TableLog
from lakebed import layout
from lakebed.documents.data_file import FinishedFile
from lakebed.documents.entry import Entry
from lakebed.documents.pending_meta import HeldMeta, decode_held
from lakebed.errors import DocumentUnreadable
from lakebed.journal import JournalReader
from lakebed.storage.store import Reader

MOST_ENTRIES = 100
"""Entries of one commit that are looked at for what took the place of a file."""
MOST_HEIRS = 10
"""How often the rows of a file may have moved on for it to be told where they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One pipeline's part of a table: its journal, and the table's log."""

    store: Reader
    pipeline: str
    journal: JournalReader
    last: int
    """The last entry of the journal."""
    log: TableLog

    def committed(self, entry: Entry) -> LogEntry:
        """Return whether an entry is committed, and in which version."""
        return self.log.entry(self.pipeline, entry.journal, entry.sequence)

    def data_files(self, entry: Entry, files: Sequence[FinishedFile]) -> tuple[DataFile, ...]:
        """Return how some data files of an entry stand."""
        bare = [
            DataFile(
                path=file.filename,
                rows=file.record_count,
                bytes=file.size,
                entry=entry.sequence,
                sources=len(file.source_files) or 1,
                state=State.UNCOMMITTED,
            )
            for file in files
        ]
        if not bare:
            return ()
        told = self.committed(entry)
        if not told.committed:
            return tuple(bare)
        named = self.log.files(one.path for one in bare)
        return tuple(self._standing(one, named[one.path], told) for one in bare)

    def _standing(self, one: DataFile, named: LogFile, told: LogEntry) -> DataFile:
        name = layout.file_name(one.path)
        # A file that was held at first came with a later version than the rest of its entry.
        first = None if name in told.held else told.version
        if named.in_table:
            return replace(one, state=State.COMMITTED, version=_number(named.added_by or first))
        if named.removed:
            heirs = self._heirs(one.path, named.removed_by)
            moved = bool(heirs) or named.rows_moved
            lost = self._lost(heirs)
            last = lost or named
            return replace(
                one,
                state=State.REWRITTEN if moved and lost is None else State.REMOVED,
                version=_number(first),
                removed_version=_number(last.removed_by),
                removed_at=last.removed_at,
                removed_by=None if last.removed_by is None else last.removed_by.who,
                replaced_by=" or ".join(heirs) or None,
            )
        return self._aside(one, name)

    def _aside(self, one: DataFile, name: str) -> DataFile:
        """Return how a file stands that a committed entry names and the log does not."""
        fate = self.log.fates([name]).get(name)
        if fate == HELD:
            meta = _meta(self.store, layout.held_meta(name))
            reasons = () if meta is None else meta.reasons
            code = None if meta is None else meta.code
            return replace(one, state=State.HELD, code=code, reasons=reasons)
        if fate == GONE:
            again = mentioning(self.journal, name, self.last, lambda entry: name in entry.redone)
            is_redone = next(again, None) is not None
            return replace(one, state=State.GIVEN_UP if is_redone else State.DISCARDED)
        return replace(one, state=State.REMOVED)

    def _lost(self, heirs: tuple[str, ...]) -> LogFile | None:
        """Return how one of the files that hold rows now was taken out, and nothing came for it."""
        for _ in range(MOST_HEIRS):
            named = self.log.files(heirs) if heirs else {}
            gone = {path: one for path, one in named.items() if one.removed}
            later: list[str] = []
            for path, one in gone.items():
                moved = self._heirs(path, one.removed_by)
                by = None if moved or one.rows_moved else one.removed_by
                if by is not None and not self._takes_out(by, path):
                    return one
                later += moved
            heirs = tuple(later)
        return None

    def _heirs(self, path: str, removed: LogVersion | None) -> tuple[str, ...]:
        """Return the files that have taken the place of another: several where rows were sorted."""
        for entry in self._entries(removed):
            for pair in entry.replaced:
                if pair.old == path and pair.new is not None:
                    return (pair.new.filename,)
            for merge in entry.merged:
                if any(one.path == path for one in merge.old):
                    return tuple(one.filename for one in merge.new)
        return ()

    def _takes_out(self, version: LogVersion, path: str) -> bool:
        """Whether an entry took a file out whole: that is told of the source files themselves."""
        return any(pair.old == path for one in self._entries(version) for pair in one.replaced)

    def _entries(self, version: LogVersion | None) -> Iterator[Entry]:
        """Yield the entries of this pipeline that a version commits."""
        none = (0, -1)
        first, last = none if version is None else version.entries.get(self.pipeline, none)
        for number in range(first, min(last, first + MOST_ENTRIES) + 1):
            entry = self.journal.entry(number)
            if entry is not None:
                yield entry


def _number(version: LogVersion | None) -> int | None:
    return None if version is None else version.version


def _meta(store: Reader, path: str) -> HeldMeta | None:
    body = store.get(path)
    try:
        return None if body is None else decode_held(body, path)
    except DocumentUnreadable:
        return None  # penguin reports it; that the file is held is known without it.
