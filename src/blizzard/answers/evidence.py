"""What has become of the data files of an entry: in the table, held, removed, rewritten."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from blizzard.answers.answer import DataFile
from blizzard.answers.entries import (
    came_for,
    data_file_of,
    last_part,
    likely_naming,
    mentioning,
    parts_until,
)
from blizzard.answers.lifecycle import FileState
from blizzard.handoff.held_rows import GONE, HELD
from lakebed import layout
from lakebed.deltalog.versions import Commit
from lakebed.documents.data_file import FinishedFile
from lakebed.documents.entry import Entry
from lakebed.documents.losses import TakenOut, decode_repair
from lakebed.documents.pending_meta import HeldMeta, decode_held
from lakebed.errors import DocumentUnreadable
from lakebed.journal import JournalReader, accepted_losses
from lakebed.storage.store import Reader

if TYPE_CHECKING:
    from lakebed.deltalog.search import EntryInLog, FileInLog, LogSearch

MOST_ENTRIES = 100
"""Entries of one commit that are looked at for what took the place of a file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Now:
    """Where the rows of a file are that has left the table."""

    files: tuple[str, ...]
    """The files of the table that have them."""
    moved: bool
    """Whether another writer has put them into files that no journal names."""
    ends: "FileInLog"
    """What the log says of the last file that had them, where none has."""
    through: tuple[Entry, ...]
    """The entries that put one file in the place of another, on the way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalEvidence:
    """One journal of a table, and one version of the table's log."""

    store: Reader
    pipeline: str
    journal: JournalReader
    last: int
    """The last entry of the journal."""
    log: "LogSearch"
    _entries: dict[int, Entry | None] = field(default_factory=dict)
    _standings: dict[int, tuple[DataFile, ...]] = field(default_factory=dict)

    def committed(self, entry: Entry) -> "EntryInLog":
        """Return whether an entry is committed, and in which version."""
        return self.log.entry(self.pipeline, entry.journal, entry.sequence)

    def data_files(
        self, entry: Entry, files: Sequence[FinishedFile], key: str | None = None
    ) -> tuple[DataFile, ...]:
        """Return how some data files of an entry stand; `key` is the source file asked about."""
        bare = [
            DataFile(
                path=file.filename,
                rows=file.record_count,
                bytes=file.size,
                entry=entry.sequence,
                sources=len(file.source_files) or 1,
                state=FileState.JOURNALED,
                own_rows=None if key is None else _rows_of(file, key),
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

    def _standing(self, one: DataFile, named: "FileInLog", told: "EntryInLog") -> DataFile:
        name = layout.file_name(one.path)
        # A file that was held at first came with a later version than the rest of its entry.
        first = None if name in told.held else told.commit
        if named.in_table:
            return replace(one, state=FileState.IN_TABLE, version=_number(named.added or first))
        if named.is_removed:
            now = self._now(one.path, named)
            own = replace(one, version=_number(first), replaced_by=" or ".join(now.files) or None)
            told_by = named if now.files or now.moved else now.ends
            lost = FileState.ALTERED if told_by.is_altered else FileState.REMOVED
            if lost is FileState.REMOVED and self._is_accepted(told_by.removed):
                lost = FileState.DISCARDED
            return replace(
                own,
                state=FileState.REWRITTEN if now.files or now.moved else lost,
                removed_version=_number(told_by.removed),
                removed_at=told_by.removed_at,
                removed_by=None if told_by.removed is None else told_by.removed.who,
            )
        return self._aside(one, name)

    def _is_accepted(self, removed: Commit | None) -> bool:
        """Whether an operator has accepted that another writer removed rows."""
        if removed is None or removed.is_repair:
            return False
        return removed.version in accepted_losses(self.store)

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

    def _now(self, path: str, named: "FileInLog") -> _Now:
        """Follow a file to those that have its rows now, however often it was replaced."""
        files: list[str] = []
        ends: list[FileInLog] = []
        through: list[Entry] = []
        seen, waiting = {path}, {path: named}
        while waiting:
            after: list[str] = []
            for name, told in waiting.items():
                if told.in_table:
                    files.append(name)
                    continue
                new: list[str] = []
                for old in (name, *told.moved_to):
                    entry, heirs = self._heirs(old, told.removed)
                    through += [] if entry is None else [entry]
                    new += heirs
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

    def _repaired(self, path: str, told: "FileInLog") -> "FileInLog":
        """Return what the log says of the last file that had the rows of one.

        Another program had put them into a file of its own. Where a repair took that out since, the
        repair has written down whose rows were in it.
        """
        into = [one for one in repaired(self.store) if one.written == path]
        named = self.log.files(one.path for one in into) if into else {}
        for one in into:
            now = named[one.path]
            if now.is_removed and now.removed is not None and now.removed.is_repair:
                return replace(now, is_partial=not one.whole)
        return told

    def _heirs(self, path: str, removed: Commit | None) -> tuple[Entry | None, tuple[str, ...]]:
        """Return the entry that took a file out, and what came in its place."""
        settled = () if removed is None else removed.entries
        for part in (one for one in settled if one.pipeline == self.pipeline):
            for number in range(part.first, min(part.last, part.first + MOST_ENTRIES) + 1):
                entry = self.journal.entry(number)
                if entry is not None and any(one.filename == path for one in entry.outgoing):
                    return entry, came_for(entry, path)
        return None, ()

    def states_of(self, key: str, number: int) -> set[FileState]:
        """Return the states of the data files with the rows that an entry read of a source file."""
        found = set()
        for entry in parts_until(self.journal, key, self._entry(number)):
            if entry.sequence not in self._standings:
                self._standings[entry.sequence] = self.data_files(entry, entry.files)
            for file, one in zip(entry.files, self._standings[entry.sequence], strict=True):
                if key in file.source_files:
                    found.add(one.state)
        return found

    def _entry(self, number: int) -> Entry | None:
        if number not in self._entries:
            self._entries[number] = self.journal.entry(number)
        return self._entries[number]

    def altered_sources(self) -> set[str]:
        """Return the source files with rows in data files that other writers took out, by key."""
        found, known = set[str](), dict[str, FinishedFile]()
        for path in self.log.removed_by_others():
            name = layout.file_name(path)
            if name not in known and layout.file_id(path) is not None:
                entry = likely_naming(self.journal, name, self.last)
                files = () if entry is None else entry.data_files
                known |= {layout.file_name(file.filename): file for file in files}
            if name in known:
                found.update(known[name].source_files)
        return found

    def repaired_sources(self) -> dict[str, int]:
        """Return the source files with rows in files that a repair took out, by key.

        The number is the last entry whose rows are gone: a file that a later entry has read is in
        the table. Where nothing was ever repaired, this costs one listing.
        """
        files = [one for one in repaired(self.store) if one.pipeline == self.pipeline]
        paths = {path for one in files for path in (one.path, one.written) if path is not None}
        named = self.log.files(paths) if files else {}
        found: dict[str, int] = {}
        for one in files:
            told, entry = named[one.path], self._entry(one.entry)
            name = layout.file_name(one.written or one.path)
            # A file that another version removed since was in the table again before.
            is_back = told.in_table or (told.removed is not None and not told.removed.is_repair)
            is_back |= one.written is not None and named[one.written].in_table
            file = None if entry is None else data_file_of(entry, name)
            if entry is None or file is None or is_back:
                continue
            for key in file.source_files:
                found[key] = max(last_part(self.journal, entry, key), found.get(key, 0))
        return found


def repaired(store: Reader) -> list[TakenOut]:
    """Return all files that repairs took out, in their order."""
    listed = sorted(one.path for one in store.objects(layout.REPAIRED))
    bodies = ((path, store.get(path)) for path in listed)
    return [
        file
        for path, body in bodies
        if body is not None
        for file in decode_repair(body, path).files
    ]


def _rows_of(file: FinishedFile, key: str) -> int | None:
    """Count the rows of a source file in a data file; None where the journal does not say it."""
    if not file.runs:
        return file.record_count if len(file.source_files) == 1 else None
    return sum(run.rows for run in file.runs if file.source_files[run.source] == key)


def _number(commit: Commit | None) -> int | None:
    return None if commit is None else commit.version


def _meta(store: Reader, path: str) -> HeldMeta | None:
    body = store.get(path)
    try:
        return None if body is None else decode_held(body, path)
    except DocumentUnreadable:
        return None  # penguin reports it; that the file is held is known without it.
