"""Where a Delta log says something of one entry, or of a few data files, found by few requests.

A log of a hundred thousand versions is not read for that, and the table's files are not loaded: the
versions after the newest checkpoint are read, two columns of that checkpoint, and a few versions
before it, each chosen by what the others say.
"""

import json
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from itertools import accumulate
from typing import Any
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.deltalog.actions import LogActions, moment, read_actions
from lakebed.deltalog.checkpoint import checkpoint_batches
from lakebed.deltalog.file_names import naming
from lakebed.deltalog.lineage import RESTORE
from lakebed.deltalog.segment import Checkpoint, LogSegment, find_segment
from lakebed.deltalog.snapshot import LogReader, Snapshot
from lakebed.deltalog.versions import REPAIR, Commit, commit_of, read_commit, reasons_against
from lakebed.layout import (
    DELTA_LOG,
    PARQUET_SUFFIX,
    file_name,
    held_transaction,
    journal_transaction,
    log_version,
)
from lakebed.seek import AT_ONCE, seek
from lakebed.storage.store import Reader

COLUMNS = ("add.path", "remove.path", "remove.deletionTimestamp")
GONE = -1
"""What stands for a version that was cleaned up: it is older than all that are there."""
WHOLE_FILES = (REPAIR, RESTORE)
"""Operations that take files out, and put none with some of their rows in."""
NEAR = 8
"""Versions that are read at once where a removal is looked for around its time."""
CLOCKS_DIFFER_MS = 3_600_000
"""How far the time of a removal may be from that of its commit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryInLog:
    """What a log says of one entry of a journal."""

    committed: bool
    commit: Commit | None = None
    """The version that has it; None where it is not committed, or that version was cleaned up."""
    held: frozenset[str] = frozenset()
    """The names of files that this version left out."""
    reasons_against: tuple[str, ...] = ()
    """Why this version settled it without effect, where it was to replace files."""


class Standing(StrEnum):
    """Whether a data file is in a table."""

    IN_TABLE = "in_table"
    REMOVED = "removed"
    UNNAMED = "unnamed"
    """The log does not name it: it was never in the table, or was removed long ago."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileInLog:
    """What a log says of one data file."""

    standing: Standing = Standing.UNNAMED
    added: Commit | None = None
    """The version that added it, where it was met."""
    removed: Commit | None = None
    """The version that removed it; None where it is not known any more."""
    removed_at_ms: int | None = None
    rows_moved: bool = False
    """Whether its rows are in other files since: it was rewritten, as by OPTIMIZE."""
    followed: bool = False
    """Whether `removed` took out files that its rows had been moved to, with other rows."""
    moved_to: tuple[str, ...] = ()
    """The files that its rows had been moved to, where `removed` took those out."""
    is_partial: bool = False
    """Whether `removed` took out a file of another writer that held only some of its rows."""

    @property
    def may_have_moved(self) -> bool:
        """Whether it was removed in a way that may have left rows of it in other files."""
        by = self.removed
        if self.standing is not Standing.REMOVED or by is None:
            return self.rows_moved
        is_whole = by.operation in WHOLE_FILES or (by.is_penguins and not by.files_rewritten)
        return self.rows_moved or not is_whole

    @property
    def in_table(self) -> bool:
        """Whether the file itself is in the table."""
        return self.standing is Standing.IN_TABLE

    @property
    def is_removed(self) -> bool:
        """Whether the log says that it was removed."""
        return self.standing is Standing.REMOVED

    @property
    def removed_at(self) -> datetime | None:
        """Return when it was removed."""
        return moment(self.removed_at_ms)

    @property
    def is_altered(self) -> bool:
        """Whether another writer replaced it with files that may hold some of its rows.

        What penguin puts in the place of a file that a journal names, the journal says.
        """
        by = self.removed
        if self.is_partial or not self.may_have_moved or by is None or not by.files_added:
            return self.is_partial
        return self.followed or not by.is_penguins

    @property
    def may_hold_rows(self) -> bool:
        """Whether rows of it may be in the table, in any file."""
        return self.in_table or self.rows_moved or self.is_altered

    def is_back_after(self, version: int | None) -> bool:
        """Whether it came back after a version took it out, even if it was rewritten since."""
        was_back = (
            version is not None and self.removed is not None and self.removed.version > version
        )
        return self.in_table or (was_back and self.may_hold_rows)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Files that are asked for, and how names in the log are compared with theirs."""

    paths: frozenset[str]
    naming: Callable[[str], str]
    by_name: bool = False

    def path_of(self, written: str) -> str:
        """Return the path of a file that the log writes so, as it would be asked for."""
        return self.key(self.naming(unquote(written)))

    def key(self, path: str) -> str:
        """Return what is compared of a path."""
        return path.rpartition("/")[2] if self.by_name else path


@dataclass(slots=True)
class LogSearch:
    """Answers of one version of a table's log; what was read for one is not read again for another.

    A later version is not looked at. Of an entry that it commits no file would be found in this
    one, and they would be taken for removed.
    """

    store: Reader
    _bodies: dict[int, bytes | None] = field(default_factory=dict)
    _entries: dict[tuple[str, str, int], EntryInLog] = field(default_factory=dict)
    _read: dict[int, LogActions] = field(default_factory=dict)
    _tail_read: LogSegment | None = None
    _opened: Snapshot | None = None

    def entry(self, pipeline: str, journal: str, sequence: int) -> EntryInLog:
        """Return whether an entry is committed, and in which version."""
        key = pipeline, journal, sequence
        if key not in self._entries:
            self._entries[key] = self._entry(*key)
        return self._entries[key]

    def _entry(self, pipeline: str, journal: str, sequence: int) -> EntryInLog:
        tail = self._tail()
        if tail is None:
            return EntryInLog(committed=False)
        app = journal_transaction(pipeline, journal)
        known = self._newest(app, tail.version, 1) or self._newest(app, tail.version, AT_ONCE)
        if not known:
            last = self.transaction(app)
            known = {} if last is None else {tail.version: last}
        if not known or max(known.values()) < sequence:
            return EntryInLog(committed=False)
        sought = seek(
            sequence,
            0,
            tail.version,
            lambda numbers: self._transactions(app, numbers),
            known={-1: 0, **known},
        )
        actions = self._actions(sought.number)
        commit = None if actions is None else commit_of(actions)
        if actions is None or commit is None or not _settles(commit, pipeline, sequence):
            return EntryInLog(committed=True)
        return EntryInLog(
            committed=True,
            commit=commit,
            held=frozenset(actions.info.names("held")),
            reasons_against=reasons_against(actions, pipeline, sequence),
        )

    def transaction(self, app_id: str) -> int | None:
        """Return the version of an app transaction; None where the log has none."""
        tail = self._tail()
        return None if tail is None else self._table(tail).transaction(app_id)

    def committed(self, pipeline: str, journal: str) -> int | None:
        """Return the last entry of a journal that the log has; None where it has none."""
        return self.transaction(journal_transaction(pipeline, journal))

    def fates(self, names: Iterable[str]) -> dict[str, int | None]:
        """Return what is decided of held files: 0 held, 1 released, 2 gone; None: nothing."""
        return {name: self.transaction(held_transaction(name)) for name in names}

    def _table(self, tail: LogSegment) -> Snapshot:
        if self._opened is None:
            self._opened = LogReader(self.store).at(tail.version)
        return self._opened

    def _newest(self, app: str, last: int, count: int) -> dict[int, int]:
        """Return the transactions that some of the newest versions carry, by version."""
        newest = range(max(0, last - count + 1), last + 1)
        told = zip(newest, self._transactions(app, newest), strict=True)
        return {number: entry for number, entry in told if entry is not None and entry != GONE}

    def named(self, names: Iterable[str]) -> dict[str, FileInLog]:
        """Return what the log says of some data files, by their names alone, without folders."""
        found = self.files((f"{name}{PARQUET_SUFFIX}" for name in names), by_name=True)
        return {file_name(path): told for path, told in found.items()}

    def files(self, paths: Iterable[str], *, by_name: bool = False) -> dict[str, FileInLog]:
        """Return what the log says of some data files, by their paths below the table.

        With `by_name` the folders do not count, neither in what is asked for nor in the log.
        """
        wanted = Wanted(frozenset(paths), naming(self.store), by_name=by_name)
        found = dict.fromkeys(wanted.paths, FileInLog())
        tail = self._tail()
        if tail is None or not wanted.paths:
            return found
        if tail.checkpoint is not None:
            found |= self._in_checkpoint(tail.checkpoint, wanted)
        for number in self._numbers(tail):
            for path, told in self._in_version(number, wanted):
                found[path] = replace(told, added=told.added or found[path].added)
        return {
            path: self._followed(
                path, self._with_version(replace(wanted, paths=frozenset({path})), told, tail)
            )
            for path, told in found.items()
        }

    def removed_by_others(self) -> dict[str, FileInLog]:
        """Return the files with rows that other writers took out, as far as the log still says.

        Only the versions that removed files are read, and none where no file was removed.
        """
        tail, found = self._tail(), dict[str, FileInLog]()
        gone = {} if tail is None else self._removed_since(tail)
        for version in self._removing(tail, gone) if tail is not None and gone else ():
            commit = commit_of(version)
            if commit.is_penguins:
                continue
            is_followed = any(one.path in gone for one in version.adds)
            for one in version.removes:
                told = FileInLog(
                    standing=Standing.REMOVED,
                    removed=commit,
                    removed_at_ms=one.removed_at_ms,
                    rows_moved=not one.data_change,
                )
                if one.path in gone and (is_followed or not told.rows_moved):
                    found[one.path] = self._followed(one.path, told)
        return {path: told for path, told in found.items() if not told.rows_moved}

    def _removed_since(self, tail: LogSegment) -> dict[str, int | None]:
        """Return the files that the log names as removed, and when that was."""
        named, gone = naming(self.store), dict[str, int | None]()
        if tail.checkpoint is not None:
            for batch in checkpoint_batches(self.store, tail.checkpoint, COLUMNS[1:]):
                removes = (
                    batch.column("remove").to_pylist() if "remove" in batch.schema.names else ()
                )
                for row in filter(None, removes):
                    gone[named(unquote(row["path"]))] = row.get("deletionTimestamp")
        for number in self._numbers(tail):
            version = self._actions(number)
            for one in (
                () if version is None else sorted(version.files, key=lambda each: each.added)
            ):
                if one.added:
                    gone.pop(one.path, None)
                else:
                    gone[one.path] = one.removed_at_ms
        return gone

    def _removing(self, tail: LogSegment, gone: Mapping[str, int | None]) -> Iterator[LogActions]:
        """Yield the versions that removed files, in their order, as far as they are still there."""
        found: dict[int, LogActions] = {}
        for number in self._numbers(tail):
            version = self._actions(number)
            if version is not None and version.removes:
                found[number] = version
        met = {one.removed_at_ms for version in found.values() for one in version.removes}
        for at in sorted({at for at in gone.values() if at is not None} - met):
            sought = seek(at, 0, tail.version, self._times).number
            first = tail.version if sought is None else sought
            for number in (*range(first, min(first + NEAR, tail.version) + 1), first - 1):
                version = self._actions(number) if number >= 0 else None
                if version is not None and any(one.removed_at_ms == at for one in version.removes):
                    found[number] = version
                    break
        return (version for _number, version in sorted(found.items()))

    def _followed(self, path: str, told: FileInLog) -> FileInLog:
        """Follow rows that another engine moved: if the files that took them are gone, say by what.

        What penguin moves, the journal follows.
        """
        if told.removed is None or told.removed.is_penguins:
            return told
        if told.removed.operation == RESTORE:
            return self._restored(path, told)
        if not told.rows_moved:
            return told
        files = self._moved_to(path, told.removed.version)
        found = self.files(files) if files else {}
        if not found or any(one.standing is not Standing.REMOVED for one in found.values()):
            return told
        if any(one.rows_moved for one in found.values()):
            return told
        last = max(found.values(), key=lambda one: one.removed_at_ms or 0)
        return replace(
            told,
            removed=last.removed,
            removed_at_ms=last.removed_at_ms,
            rows_moved=False,
            followed=True,
            moved_to=tuple(files),
        )

    def _restored(self, path: str, told: FileInLog) -> FileInLog:
        """Follow rows of a file that a RESTORE took out to files that it brought back instead.

        Only the versions after the newest checkpoint are followed.
        """
        tail, until = self._tail(), -1 if told.removed is None else told.removed.version
        names, rewrites = {_last(path)}, dict[str, LogActions]()
        for number in () if tail is None else self._numbers(tail):
            version = self._actions(number) if number < until else None
            if version is None or version.info.operation == RESTORE:
                continue
            if names.intersection(_last(one.path) for one in version.removes):
                new = [_last(one.path) for one in version.adds]
                names.update(new)
                rewrites |= dict.fromkeys(new, version)
        found = self.files(rewrites, by_name=True)
        there = [rewrites[name] for name, one in found.items() if one.in_table]
        if not there:
            return told
        moved = not any(one.data_change for version in rewrites.values() for one in version.files)
        by = max(there, key=lambda version: version.version)
        return replace(told, removed=commit_of(by), rows_moved=moved, followed=True)

    def _moved_to(self, path: str, version: int) -> list[str]:
        """Return the files of the same partition that a version without data change added."""
        where, name = self.store.describe(log_version(version)), path.rpartition("/")[2]
        actions = read_actions(version, self._body(version) or b"", where, naming(self.store))
        added = [(one.path, one.partition_values) for one in actions.adds]
        gone = (one for one in actions.removes if one.path.rpartition("/")[2] == name)
        partition = next((one.partition_values for one in gone), ())
        same = [one for one, values in added if values == partition]
        return same or [one for one, _values in added]

    def _with_version(self, wanted: Wanted, told: FileInLog, tail: LogSegment) -> FileInLog:
        """Find the version that removed a file before the checkpoint, by when that was."""
        at = told.removed_at_ms
        if told.standing is not Standing.REMOVED or told.removed is not None or at is None:
            return told
        sought = seek(at, 0, tail.version, self._times).number
        first = tail.version if sought is None else sought
        after = range(first, tail.version + 1)
        for numbers in (after, range(first - 1, -1, -1)):
            for number in self._around(numbers, at):
                for _path, again in self._in_version(number, wanted):
                    if again.standing is Standing.REMOVED:
                        return again
        return told

    def _around(self, numbers: Sequence[int], at_ms: int) -> Iterator[int]:
        """Yield versions in their order, until they are an hour away from a time."""
        for start in range(0, len(numbers), NEAR):
            some = numbers[start : start + NEAR]
            self._fetch(some)
            yield from some
            last = self._actions(some[-1])
            if last is None or abs((last.info.at_ms or 0) - at_ms) > CLOCKS_DIFFER_MS:
                return

    def _in_checkpoint(
        self, checkpoint: Checkpoint, wanted: Wanted
    ) -> Iterator[tuple[str, FileInLog]]:
        ends = _strings(_spelled(wanted.paths))
        for batch in checkpoint_batches(self.store, checkpoint, COLUMNS):
            for kind, standing in (("add", Standing.IN_TABLE), ("remove", Standing.REMOVED)):
                for row in _rows(batch, kind, ends):
                    path = wanted.path_of(row["path"])
                    if path in wanted.paths:
                        # What a checkpoint says of data change is its writer's, not the removal's.
                        at = row.get("deletionTimestamp")
                        yield path, FileInLog(standing=standing, removed_at_ms=at)

    def _in_version(self, number: int, wanted: Wanted) -> Iterator[tuple[str, FileInLog]]:
        """Yield the wanted files that a version adds or removes; a removal comes before its add."""
        body = self._body(number)
        names = [name.encode() for name in _spelled(wanted.paths)]
        if body is None or not any(name in body for name in names):
            return
        commit = read_commit(number, body)
        where = self.store.describe(log_version(number))
        actions = read_actions(
            number, body, where, only=lambda line: any(name in line for name in names)
        )
        for action in sorted(actions.files, key=lambda one: one.added):
            path = wanted.path_of(action.written)
            if path not in wanted.paths:
                continue
            if action.added:
                yield path, FileInLog(standing=Standing.IN_TABLE, added=commit)
            else:
                yield (
                    path,
                    FileInLog(
                        standing=Standing.REMOVED,
                        removed=commit,
                        removed_at_ms=action.removed_at_ms,
                        rows_moved=not action.data_change,
                    ),
                )

    def _tail(self) -> LogSegment | None:
        """Find what the newest version is read from, and read the versions after the checkpoint."""
        if self._tail_read is None:
            self._tail_read = find_segment(self.store)
            if self._tail_read is not None:
                self._fetch(self._numbers(self._tail_read))
        return self._tail_read

    def _numbers(self, tail: LogSegment) -> list[int]:
        return sorted(number for number in tail.objects if tail.first <= number)

    def _transactions(self, app: str, numbers: Sequence[int]) -> list[int | None]:
        """Return the last entry that each of some versions commits; none of one cleaned up."""
        self._fetch(numbers)
        bodies = (self._bodies[number] for number in numbers)
        return [GONE if body is None else _transaction(body, app) for body in bodies]

    def _times(self, numbers: Sequence[int]) -> list[int | None]:
        self._fetch(numbers)
        versions = (self._actions(number) for number in numbers)
        return [GONE if found is None else found.info.at_ms for found in versions]

    def _actions(self, number: int | None) -> LogActions | None:
        body = None if number is None else self._body(number)
        if number is None or body is None:
            return None
        if number not in self._read:
            self._read[number] = read_actions(
                number, body, DELTA_LOG, naming(self.store), lenient=True
            )
        return self._read[number]

    def _body(self, number: int) -> bytes | None:
        self._fetch((number,))
        return self._bodies[number]

    def _fetch(self, numbers: Sequence[int]) -> None:
        """Read versions that were not read yet, several at a time."""
        new = [number for number in numbers if number not in self._bodies]
        if len(new) == 1:
            self._bodies[new[0]] = self.store.get(log_version(new[0]))
        elif new:
            with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="log") as pool:
                bodies = pool.map(lambda number: self.store.get(log_version(number)), new)
                self._bodies |= dict(zip(new, bodies, strict=True))


def _settles(commit: Commit, pipeline: str, sequence: int) -> bool:
    """Whether a version commits an entry: with older ones cleaned up, it may be a later one."""
    return any(
        one.pipeline == pipeline and one.first <= sequence <= one.last for one in commit.entries
    )


def _transaction(body: bytes, app: str) -> int | None:
    """Return the version of an app transaction that a version of a log carries. Pure."""
    word = json.dumps(app).encode()
    found = read_actions(0, body, DELTA_LOG, kinds=("txn",), only=lambda line: word in line)
    return found.transactions.get(app)


def _last(path: str) -> str:
    return path.rpartition("/")[2]


def _spelled(paths: Iterable[str]) -> list[str]:
    """Return the last parts of paths, as they are and as a log writes them, with escapes."""
    names = {path.rpartition("/")[2] for path in paths}
    return sorted(names | {quote(name, safe="=") for name in names})


def _strings(values: Sequence[str]) -> pa.StringArray:
    """Return an array of strings; `pa.array` would import pandas, which takes half a second."""
    bodies = [value.encode() for value in values]
    offsets = accumulate(map(len, bodies), initial=0)
    buffers = (pa.py_buffer(array("i", offsets)), pa.py_buffer(b"".join(bodies)))
    found: pa.StringArray = pa.StringArray.from_buffers(len(bodies), *buffers)
    return found


def _rows(batch: pa.RecordBatch, kind: str, ends: pa.StringArray) -> Iterator[Mapping[str, Any]]:
    """Yield the actions of a kind whose files have one of some names."""
    if kind not in batch.schema.names:
        return
    actions = batch.column(kind)
    paths = pc.struct_field(actions, "path")
    last = pc.replace_substring_regex(paths, "^.*/", "")
    for row in actions.filter(pc.is_in(last, value_set=ends)).to_pylist():
        if row is not None:
            yield row
