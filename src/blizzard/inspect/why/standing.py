"""What has become of the data files of an entry: in the table, held, removed, rewritten."""

from collections.abc import Sequence
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
            heir = self._heir(one.path, named.removed_by)
            moved = heir is not None or named.rows_moved
            return replace(
                one,
                state=State.REWRITTEN if moved else State.REMOVED,
                version=_number(first),
                removed_version=_number(named.removed_by),
                removed_at=named.removed_at,
                removed_by=None if named.removed_by is None else named.removed_by.who,
                replaced_by=heir,
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

    def _heir(self, path: str, removed: LogVersion | None) -> str | None:
        """Return the file that has taken the place of another; those, where rows were sorted."""
        none = (0, -1)
        first, last = none if removed is None else removed.entries.get(self.pipeline, none)
        for number in range(first, min(last, first + MOST_ENTRIES) + 1):
            entry = self.journal.entry(number)
            if entry is None:
                continue
            for pair in entry.replaced:
                if pair.old == path and pair.new is not None:
                    return pair.new.filename
            for merge in entry.merged:
                if any(one.path == path for one in merge.old):
                    return " or ".join(one.filename for one in merge.new)
        return None


def _number(version: LogVersion | None) -> int | None:
    return None if version is None else version.version


def _meta(store: Reader, path: str) -> HeldMeta | None:
    body = store.get(path)
    try:
        return None if body is None else decode_held(body, path)
    except DocumentUnreadable:
        return None  # penguin reports it; that the file is held is known without it.
