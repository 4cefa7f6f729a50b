"""Find one journal entry, or a few data files, in a long Delta log with few requests.

The search reads the versions after the newest checkpoint, some columns of that checkpoint, and of
the versions before it only those that removed the files in question, which it finds by the times of
the removals. It loads neither the whole log nor the table's list of files.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.deltalog.actions import FileAction, LogActions, moment
from lakebed.deltalog.checkpoint import checkpoint_batches, read_checkpoint
from lakebed.deltalog.file_names import path_resolver
from lakebed.deltalog.lineage import BEFORE, RESTORE, Lineage
from lakebed.deltalog.segment import LogSegment, fetch_actions, find_segment
from lakebed.deltalog.snapshot import LogReader, Snapshot
from lakebed.deltalog.versions import Commit, commit_of, reasons_against
from lakebed.layout import held_transaction, journal_transaction
from lakebed.listing.watermark import named_at
from lakebed.seek import seek
from lakebed.storage.store import Reader

REMOVALS = (
    *("remove.path", "remove.deletionTimestamp", "remove.partitionValues"),
    "remove.deletionVector",
)
ADDS = ("add.path", "add.partitionValues", "add.deletionVector")
GONE = -1
"""Marks a version that was cleaned up: it is older than all others."""
NEAR = 8
"""Versions that are read at once in the search for a removal around its time."""
CLOCKS_DIFFER_MS = 3_600_000
"""How much the times of a removal and of its commit may differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryInLog:
    """The state of one journal entry in a log."""

    committed: bool
    commit: Commit | None = None
    """The version that committed it; None if it is not committed, or the version is cleaned up."""
    held: frozenset[str] = frozenset()
    """The files that this version did not commit."""
    is_forgotten: bool = False
    """Whether this version settled it without its files, since the log had lost them."""
    reasons_against: tuple[str, ...] = ()
    """Why this version settled the entry without effect, if it was to replace files."""

    @property
    def version(self) -> int | None:
        """Return the number of the version that committed it; None if that is not known."""
        return None if self.commit is None else self.commit.version

    @property
    def at(self) -> datetime | None:
        """Return when it was committed, by the committer's clock; None if that is not known."""
        return None if self.commit is None else self.commit.at


@dataclass(slots=True)
class LogSearch:
    """Searches in one version of a table's log, which share all that was read.

    Later versions are ignored: the files of an entry that they commit are not in this version, and
    would count as removed.
    """

    store: Reader
    _versions: dict[int, LogActions | None] = field(default_factory=dict)
    """The versions that were read; None for one that was cleaned up."""
    _tail_read: LogSegment | None = None
    _opened: Snapshot | None = None
    _lineage: Lineage | None = None
    _older: dict[int, LogActions] = field(default_factory=dict)
    """The versions before the checkpoint that removed the files of a search."""
    _located: set[tuple[str, int | None]] = field(default_factory=set)
    """The removals whose versions are known."""
    _traced_back: set[tuple[str, int]] = field(default_factory=set)
    """The files and the RESTOREs that removed them, of which earlier removals were sought."""
    _cleaned_up: set[int | None] = field(default_factory=set)
    """The times of removals whose versions no longer exist."""
    _tombstones: dict[str, list[FileAction]] | None = None
    """The tombstones of the checkpoint, by file name."""
    _checkpointed: dict[str, FileAction] = field(default_factory=dict)
    """The files of the checkpoint, among those looked up."""
    _looked_up: set[str] = field(default_factory=set)
    """The file names that were looked up in the checkpoint."""
    _has_changed: bool = False
    """Whether the files with deleted rows were looked up in it, too."""

    def entry(self, pipeline: str, journal: str, sequence: int) -> EntryInLog:
        """Return whether an entry is committed, and in which version."""
        tail, last = self._tail(), self.committed(pipeline, journal)
        if tail is None or last is None or last < sequence:
            return EntryInLog(committed=False)
        app = journal_transaction(pipeline, journal)
        sought = seek(
            sequence,
            0,
            tail.version,
            partial(self._values, value=lambda each: each.transactions.get(app)),
            known={-1: 0, tail.version: last},
        )
        actions = None if sought is None else self._actions(sought)
        commit = None if actions is None else commit_of(actions)
        if actions is None or commit is None:
            return EntryInLog(committed=True)
        first, last = actions.info.range_of("forgotten", pipeline) or (0, -1)
        is_forgotten = first <= sequence <= last
        if not is_forgotten and not _commits_entry(commit, pipeline, sequence):
            return EntryInLog(committed=True)
        return EntryInLog(
            committed=True,
            commit=commit,
            held=frozenset(actions.info.names("held")),
            is_forgotten=is_forgotten,
            reasons_against=reasons_against(actions, pipeline, sequence),
        )

    def transaction(self, app_id: str) -> int | None:
        """Return the version of an app transaction; None without one."""
        tail = self._tail()
        if tail is not None and self._opened is None:
            self._opened = LogReader(self.store).at(tail.version)
        return None if self._opened is None else self._opened.transaction(app_id)

    def committed(self, pipeline: str, journal: str) -> int | None:
        """Return the last committed entry of a journal; None if none is committed."""
        return self.transaction(journal_transaction(pipeline, journal))

    def fates(self, names: Iterable[str]) -> dict[str, int | None]:
        """Return the decision on each held file: 0 held, 1 released, 2 discarded, None if none."""
        return {name: self.transaction(held_transaction(name)) for name in names}

    def commit(self, version: int | None) -> Commit | None:
        """Return a version that added or removed files; None if it was cleaned up."""
        actions = None if version is None or version == BEFORE else self._actions(version)
        return None if actions is None else commit_of(actions)

    def removed_at(self, path: str) -> datetime | None:
        """Return when a followed file was removed; None if the log no longer says."""
        version = self.follow(()).removed.get(path, BEFORE)
        actions = None if version == BEFORE else self._actions(version)
        named = self._removals().get(_last(path), ()) if actions is None else actions.removes
        return next((moment(one.removed_at_ms) for one in named if one.path == path), None)

    def follow(self, files: Iterable[str] | None) -> Lineage:
        """Return the lineage of some data files and of all files that took over their rows.

        Files are compared by name, without folders. None means all removed files in the log.
        """
        tail = self._tail()
        if tail is None:
            return Lineage()
        gone = self._removals()
        names = set(gone) if files is None else set(map(_last, files))
        changed = files is None and not self._has_changed
        if self._lineage is None or changed or not names <= self._looked_up:
            older, waiting = len(self._older), names
            while waiting:
                versions = list(self._removing(tail, waiting))
                waiting = {_last(add.path) for each in versions for add in each.adds} - names
                names |= waiting
            new = self._in_checkpoint(tail, names - self._looked_up, changed=changed)
            self._has_changed |= changed
            self._checkpointed |= {add.path: add for add in new}
            self._looked_up |= names
            if self._lineage is None or older < len(self._older):
                self._lineage = self._folded(tail)
            else:
                self._lineage.recall(self._checkpointed.values())
        return self._lineage

    def _folded(self, tail: LogSegment) -> Lineage:
        """Fold the known versions, with the checkpoint in between."""
        steps = {} if self._lineage is None else self._lineage.steps
        lineage = Lineage(first=tail.first, is_sparse=True, steps=steps)
        for number in sorted(self._older):
            lineage.take(self._older[number])
        lineage.forget(path for path in list(lineage.active) if path not in self._checkpointed)
        removals = (remove for removes in self._removals().values() for remove in removes)
        known = lineage.removed.keys() | self._checkpointed.keys()
        checkpoint = LogActions(version=tail.first - 1, is_checkpoint=True)
        checkpoint.files = [
            *(removal for removal in removals if removal.path not in known),
            *(
                add
                for path, add in self._checkpointed.items()
                if path not in lineage.active or lineage.active[path].deleted != add.deleted_rows
            ),
        ]
        lineage.take(checkpoint)
        for number in self._numbers(tail):
            version = self._actions(number)
            if version is not None:
                lineage.take(version)
        return lineage

    def _removals(self) -> dict[str, list[FileAction]]:
        """Return the tombstones of the checkpoint, by file name."""
        if self._tombstones is None:
            self._tombstones = {}
            tail = self._tail()
            base = None if tail is None else tail.checkpoint
            for batch in () if base is None else read_checkpoint(self.store, base, REMOVALS):
                for remove in batch.removes:
                    self._tombstones.setdefault(_last(remove.path), []).append(remove)
        return self._tombstones

    def _removing(self, tail: LogSegment, names: set[str]) -> Iterator[LogActions]:
        """Yield the versions before the checkpoint that removed files and are new to the search."""
        removals = self._removals()
        for remove in (each for name in names for each in removals.get(name, ())):
            at = remove.removed_at_ms
            if at in self._cleaned_up or (remove.path, at) in self._located:
                continue
            version = self._removed_by(remove, tail.first - 1)
            if version is None:
                self._cleaned_up.add(at)
                continue
            located = (remove, *version.removes)
            self._located |= {(each.path, each.removed_at_ms) for each in located}
            if version.version not in self._older:
                self._older[version.version] = version
                yield version
        yield from self._removed_before_restores(tail, names)

    def _removed_before_restores(self, tail: LogSegment, names: set[str]) -> Iterator[LogActions]:
        """Yield the versions that had removed files before a RESTORE removed them again.

        One RESTORE may bring back a file whose rows an earlier version moved, the next what holds
        them.
        """
        read = (*self._older.values(), *map(self._actions, self._numbers(tail)))
        found = (one for one in read if one is not None and one.info.operation == RESTORE)
        restores = sorted(found, key=lambda one: one.version)
        gone: set[str] = set()
        for restore in restores:
            gone |= {one.path for one in restore.removes if _last(one.path) in names}
            new = {path for path in gone if (path, restore.version) not in self._traced_back}
            self._traced_back |= {(path, restore.version) for path in new}
            for version in self._removed_before(restore, new):
                if version.version < tail.first:
                    restores += [version] if version.info.operation == RESTORE else []
                    self._older[version.version] = version
                    yield version

    def _removed_before(self, restore: LogActions, paths: set[str]) -> Iterator[LogActions]:
        """Yield the last versions, up to the one restored, that removed some files.

        The times in the files' names limit the search.
        """
        named = {path: at for path in paths if (at := named_at(path)) is not None}
        last = restore.info.restored if named else None
        for start in range(-1 if last is None else last, -1, -NEAR):
            numbers = range(start, max(-1, start - NEAR), -1)
            self._fetch(numbers)
            for version in map(self._actions, numbers):
                at = -1 if version is None else version.info.at_ms or 0
                named = {path: since for path, since in named.items() if since <= at}
                if version is None or not named:
                    return
                found = named.keys() & {remove.path for remove in version.removes}
                named = {path: since for path, since in named.items() if path not in found}
                if found:
                    yield version

    def _removed_by(self, removal: FileAction, last: int) -> LogActions | None:
        """Find the version of a removal by its time."""
        at = removal.removed_at_ms
        if at is None:
            return None
        times = partial(self._values, value=lambda each: each.info.at_ms)
        sought = seek(at, 0, last, times)
        first = last if sought is None else sought
        for numbers in (range(first, last + 1), range(first - 1, -1, -1)):
            for version in self._around(numbers, at):
                if any(remove.path == removal.path for remove in version.removes):
                    return version
        return None

    def _around(self, numbers: Sequence[int], at_ms: int) -> Iterator[LogActions]:
        """Yield versions in order until they are an hour away from a time."""
        for start in range(0, len(numbers), NEAR):
            self._fetch(numbers[start : start + NEAR])
            at = None
            for version in map(self._actions, numbers[start : start + NEAR]):
                if version is None:
                    return
                at = version.info.at_ms
                yield version
            if abs((at or 0) - at_ms) > CLOCKS_DIFFER_MS:
                return

    def _in_checkpoint(
        self, tail: LogSegment, names: set[str], *, changed: bool
    ) -> Iterator[FileAction]:
        """Yield the files of the checkpoint with some names, and perhaps all with deleted rows."""
        if tail.checkpoint is None or not (names or changed):
            return
        resolve = path_resolver(self.store)
        for batch in checkpoint_batches(self.store, tail.checkpoint, ADDS):
            for add in _adds_named(batch, names, changed=changed):
                yield FileAction.of(add, resolve, added=True)

    def _tail(self) -> LogSegment | None:
        """Find the segment of the newest version, and read the versions after its checkpoint."""
        if self._tail_read is None:
            self._tail_read = find_segment(self.store)
            if self._tail_read is not None:
                self._fetch(self._numbers(self._tail_read))
        return self._tail_read

    def _numbers(self, tail: LogSegment) -> list[int]:
        return sorted(number for number in tail.objects if tail.first <= number)

    def _values(
        self, numbers: Sequence[int], value: Callable[[LogActions], int | None]
    ) -> list[int | None]:
        """Return a value of each version; GONE for one that was cleaned up."""
        self._fetch(numbers)
        versions = map(self._actions, numbers)
        return [GONE if found is None else value(found) for found in versions]

    def _actions(self, number: int) -> LogActions | None:
        self._fetch((number,))
        return self._versions[number]

    def _fetch(self, numbers: Sequence[int]) -> None:
        """Read versions, several at a time, that are not read yet."""
        new = [number for number in numbers if number not in self._versions]
        if new:
            versions = fetch_actions(self.store, new, may_be_empty=True)
            self._versions |= zip(new, versions, strict=True)


def _commits_entry(commit: Commit, pipeline: str, sequence: int) -> bool:
    """Whether a version commits an entry: the search may end at a later version."""
    return any(
        settled.pipeline == pipeline and settled.first <= sequence <= settled.last
        for settled in commit.entries
    )


def _last(path: str) -> str:
    return path.rpartition("/")[2]


def _adds_named(
    batch: pa.RecordBatch, names: Container[str], *, changed: bool
) -> Iterator[Mapping[str, Any]]:
    """Yield the adds with some file names, or with deleted rows; all others stay columns."""
    if "add" not in batch.schema.names:
        return
    adds = batch.column("add")
    marked: list[bool] = []
    if changed and adds.type.get_field_index("deletionVector") >= 0:
        kinds = pc.struct_field(adds, ["deletionVector", "storageType"])
        marked = kinds.is_valid().to_pylist()
    for place, path in enumerate(pc.struct_field(adds, "path").to_pylist()):
        if path is not None and (_last(unquote(path)) in names or (marked and marked[place])):
            yield adds[place].as_py()
