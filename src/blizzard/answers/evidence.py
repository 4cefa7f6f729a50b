"""What has become of the data files of an entry: in the table, held, removed, rewritten."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from blizzard.answers.answer import DataFile
from blizzard.answers.entry_search import came_for, mentioning
from blizzard.answers.lifecycle import FileState
from blizzard.answers.progress import repaired
from blizzard.answers.table_log import LogEntry, LogFile, LogVersion, TableLog
from blizzard.handoff.held_rows import GONE, HELD
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
class _Now:
    """Where the rows of a file are that has left the table."""

    files: tuple[str, ...]
    """The files of the table that have them."""
    moved: bool
    """Whether another writer has put them into files that no journal names."""
    ends: LogFile
    """What the log says of the last file that had them, where none has."""
    through: tuple[Entry, ...]
    """The entries that put one file in the place of another, on the way."""


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
                state=FileState.JOURNALED,
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
            return replace(one, state=FileState.IN_TABLE, version=_number(named.added_by or first))
        if named.removed:
            now = self._now(one.path, named)
            own = replace(one, version=_number(first), replaced_by=" or ".join(now.files) or None)
            told_by = named if now.files or now.moved else now.ends
            lost = FileState.ALTERED if told_by.rewritten else FileState.REMOVED
            return replace(
                own,
                state=FileState.REWRITTEN if now.files or now.moved else lost,
                removed_version=_number(told_by.removed_by),
                removed_at=told_by.removed_at,
                removed_by=None if told_by.removed_by is None else told_by.removed_by.who,
            )
        return self._aside(one, name)

    def _aside(self, one: DataFile, name: str) -> DataFile:
        """Return how a file stands that a committed entry names and the log does not."""
        fate = self.log.fates([name]).get(name)
        if fate == HELD:
            meta = _meta(self.store, layout.held_meta(name))
            reasons = () if meta is None else meta.reasons
            code = None if meta is None else meta.code
            return replace(one, state=FileState.HELD, code=code, reasons=reasons)
        if fate == GONE:
            again = mentioning(self.journal, name, self.last, lambda entry: name in entry.redone)
            is_redone = next(again, None) is not None
            return replace(one, state=FileState.GIVEN_UP if is_redone else FileState.DISCARDED)
        return replace(one, state=FileState.REMOVED)

    def is_there_past(self, paths: Sequence[str], takes: Callable[[Entry], bool]) -> list[str]:
        """Return those of some data files whose rows are in the table and were never taken out.

        `takes` says of an entry that such rows are not in the files that it put in the place of
        others.
        """
        named = self.log.files(paths)
        found = []
        for path in paths:
            now = self._now(path, named[path])
            if (now.files or now.moved) and not any(takes(entry) for entry in now.through):
                found.append(path)
        return found

    def _now(self, path: str, named: LogFile) -> _Now:
        """Follow a file to those that have its rows now, however often it was replaced."""
        files: list[str] = []
        ends: list[LogFile] = []
        through: list[Entry] = []
        seen, waiting = {path}, {path: named}
        while waiting:
            after: list[str] = []
            for name, told in waiting.items():
                if told.in_table:
                    files.append(name)
                    continue
                entry, new = self._heirs(name, told.removed_by)
                if entry is not None:
                    through.append(entry)
                after += (one for one in new if one not in seen)
                if not new:
                    ends.append(self._repaired(name, told) if told.rows_moved else told)
                seen.update(new)
            waiting = dict(self.log.files(after)) if after else {}
        return _Now(
            files=tuple(files),
            moved=any(one.rows_moved for one in ends),
            ends=ends[0] if ends else named,
            through=tuple(through),
        )

    def _repaired(self, path: str, told: LogFile) -> LogFile:
        """Return what the log says of the last file that had the rows of one.

        Another program had put them into a file of its own. Where a repair took that out since, the
        repair has written down whose rows were in it.
        """
        into = [one for one in repaired(self.store) if one.written == path]
        named = self.log.files(one.path for one in into) if into else {}
        for one in into:
            now = named[one.path]
            is_out = now.removed and now.removed_by is not None and now.removed_by.is_repair
            if is_out:
                return replace(now, rewritten=not one.whole)
        return told

    def _heirs(self, path: str, removed: LogVersion | None) -> tuple[Entry | None, tuple[str, ...]]:
        """Return the entry that took a file out, and what came in its place."""
        none = (0, -1)
        first, last = none if removed is None else removed.entries.get(self.pipeline, none)
        for number in range(first, min(last, first + MOST_ENTRIES) + 1):
            entry = self.journal.entry(number)
            if entry is not None and any(one.filename == path for one in entry.outgoing):
                return entry, came_for(entry, path)
        return None, ()


def _number(version: LogVersion | None) -> int | None:
    return None if version is None else version.version


def _meta(store: Reader, path: str) -> HeldMeta | None:
    body = store.get(path)
    try:
        return None if body is None else decode_held(body, path)
    except DocumentUnreadable:
        return None  # penguin reports it; that the file is held is known without it.
