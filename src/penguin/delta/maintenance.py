"""Maintenance of a Delta log: checkpoints when due, and removal of expired versions.

Both run beside the commits, in a thread of their own; no commit waits for them. Failures are
reported and retried later, and affect no commit.

This module decides what may be removed, not the library: the library reads an invalid interval as
30 days, and on a local disk it removes versions before the checkpoint that replaces them is synced.
"""

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

from lakebed.clock import Clock
from lakebed.deltalog import segment
from lakebed.deltalog.actions import Checkpoint
from lakebed.deltalog.log_contents import parse_interval
from lakebed.errors import LakeError, TableUnreadable
from lakebed.layout import DELTA_LOG, LAST_CHECKPOINT, log_version
from lakebed.storage.options import ObjectFacts
from lakebed.storage.store import Store
from lakebed.telemetry.events import Emit
from penguin.delta.table import Log, WritableTable
from penguin.events.commits import (
    CheckpointFailed,
    CheckpointWritten,
    LogCleanedUp,
    LogCleanUpFailed,
    LogKept,
)


@dataclass(slots=True)
class OnDisk:
    """The version up to which one table's log is known to be synced. It only saves syncs."""

    _version: int = -1
    _last: ObjectFacts | None = None
    """The object of that version."""

    def up_to(self, store: Store, version: int) -> None:
        """Sync all log files that a version is read from; object stores need no sync."""
        if store.local_root is None:
            return
        if self._last is not None and store.head(log_version(self._version)) == self._last:
            numbers = range(self._version + 1, version + 1)
            wanted: list[str] = [log_version(number) for number in numbers]
        else:
            wanted = [*_read_from(store, version), LAST_CHECKPOINT]
        for path in wanted:
            if store.head(path) is not None:
                store.sync(path)
        self._version, self._last = version, store.head(log_version(version))


def _read_from(store: Store, version: int) -> list[str]:
    """Return the log files that a version is read from: a checkpoint, and the versions after it."""
    _, listed = store.level(DELTA_LOG)
    base = segment.newest(
        (checkpoint for checkpoint in segment.checkpoints(listed) if checkpoint.is_classic), version
    )
    first = 0 if base is None else base.version
    versions = segment.versions_in(listed, version)
    return [
        *(part.path for part in (base.parts if base is not None else ())),
        *(versions[number].path for number in sorted(versions) if number >= first),
    ]


CLEANS_UP = "delta.enableExpiredLogCleanup"
KEEPS_VERSIONS = "delta.logRetentionDuration"
DELTA_DEFAULT = timedelta(days=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpiredFiles:
    """Log files that may be removed, in the order of removal."""

    files: tuple[str, ...] = ()
    versions: int = 0
    """How many of these files are versions."""
    first: int | None = None
    """The first version of the log after the removal."""
    base: Checkpoint | None = None
    """The checkpoint that covers them."""


def removes_expired(configuration: Mapping[str, str]) -> bool:
    """Whether writers of a table remove old versions, which is Delta's default."""
    return configuration.get(CLEANS_UP, "true").strip().lower() == "true"


def log_retention(configuration: Mapping[str, str]) -> timedelta | None:
    """Return how long a table keeps versions; None if the value cannot be read."""
    text = configuration.get(KEEPS_VERSIONS)
    return DELTA_DEFAULT if text is None else parse_interval(text)


def find_expired(listed: Iterable[ObjectFacts], keep_for: timedelta, now: datetime) -> ExpiredFiles:
    """Choose the log files that may be removed.

    Times are the store's. Its newest file bounds the current time, so a clock of ours that is ahead
    removes nothing early.
    """
    files = list(listed)
    since = min(now, max((file.modified for file in files), default=now)) - keep_for
    versions = segment.versions_in(files)
    if not versions:
        return ExpiredFiles()
    # The first version to keep. All later ones stay, too, at any age.
    stays = next((n for n in sorted(versions) if versions[n].modified >= since), max(versions))
    base = segment.newest(
        (checkpoint for checkpoint in segment.checkpoints(files) if checkpoint.is_classic), stays
    )
    if base is None:
        return ExpiredFiles()
    old = sorted(
        (number, file.path)
        for file in files
        if (number := segment.removable_version(file.path)) is not None
        and number < base.version
        and file.modified < since
    )
    gone = {path for _, path in old}
    left = [number for number in versions if versions[number].path not in gone]
    return ExpiredFiles(
        files=tuple(path for _, path in old),
        versions=len(versions) - len(left),
        first=min(left, default=None),
        base=base,
    )


ACTIONS_PER_VERSION = 10_000
"""One version more between checkpoints for this many actions."""
FEWEST_VERSIONS = 10
MOST_VERSIONS = 100
"""Bounds of the versions between two checkpoints."""
CLEAN_UP_SECS = 86_400.0
"""Interval between clean-ups of a table: each lists the whole log."""

Work = Callable[[], None]
Begin = Callable[[Work], Work]
"""Starts work, and returns a function that waits for its end."""


def at_once(work: Work) -> Work:
    """Do the work synchronously."""
    work()
    return lambda: None


def beside(work: Work) -> Work:
    """Do the work in a thread of its own.

    The interpreter waits for it on exit: the library must not be interrupted in a call. A killed
    process leaves at most an invisible, unfinished upload.
    """
    thread = threading.Thread(target=work, name="checkpoint", daemon=False)
    thread.start()
    return thread.join


@dataclass(slots=True, kw_only=True)
class Maintenance:
    """Checkpoints and clean-ups of one table's log."""

    table: str
    checkpoint_interval: int | None
    emit: Emit
    clock: Clock
    begin: Begin = at_once
    _on_disk: OnDisk = field(default_factory=OnDisk)
    """Separate from the commits', which run concurrently."""
    _under_way: bool = False
    _wait: Work = lambda: None
    _cleaned_up: float | None = None
    _not_due: int | None = None
    """The last version checked and found not due."""

    def start_if_due(self, log: Log, store: Store, version: int) -> None:
        """Start a checkpoint of the last version if one is due, then remove what has expired.

        Only one runs at a time: the next commit after its end checks again.
        """
        if version == self._not_due or self._under_way:
            return
        try:
            note = segment.read_checkpoint_hint(store)
            if version - note.version < spacing(self.checkpoint_interval, note.actions):
                self._not_due = version
                return
            table = log.open()
            if table is None:
                return
            self._not_due, self._under_way = version, True
            self._wait = self.begin(partial(self._maintain, table, store))
        except (LakeError, RuntimeError) as error:
            # RuntimeError: no thread can be started.
            self._not_due, self._under_way = None, False
            self.emit(CheckpointFailed(table=self.table, version=version, error=str(error)))

    def finish(self) -> None:
        """Wait for the maintenance in progress."""
        self._wait()

    def _maintain(self, table: WritableTable, store: Store) -> None:
        """Write the checkpoint and clean up; report any error without ending the run."""
        began = self.clock.seconds()
        try:
            table.checkpoint()
            took = self.clock.seconds() - began
            self.emit(CheckpointWritten(table=self.table, version=table.version, seconds=took))
            if removes_expired(table.facts.configuration) and self._is_clean_up_due():
                self._clean_up(table, store)
        except Exception as error:  # noqa: BLE001 - in a thread of its own it would be lost
            self._not_due = None
            text = str(error) or type(error).__name__
            self.emit(CheckpointFailed(table=self.table, version=table.version, error=text))
        finally:
            table.release_files()
            self._under_way = False

    def _is_clean_up_due(self) -> bool:
        now = self.clock.seconds()
        return self._cleaned_up is None or now - self._cleaned_up >= CLEAN_UP_SECS

    def _clean_up(self, table: WritableTable, store: Store) -> None:
        keep_for = log_retention(table.facts.configuration)
        if keep_for is None:
            self._cleaned_up = self.clock.seconds()
            value = table.facts.configuration[KEEPS_VERSIONS]
            self.emit(LogKept(table=self.table, name=KEEPS_VERSIONS, value=value))
            return
        try:
            if table.leaves_clean_up_to_others():
                return
            expired = find_expired(store.level(DELTA_LOG)[1], keep_for, self.clock.now())
            self._remove(expired, table, store)
        except LakeError as error:
            self.emit(LogCleanUpFailed(table=self.table, error=str(error)))
            return
        self._cleaned_up = self.clock.seconds()
        if expired.versions and expired.first is not None:
            self.emit(LogCleanedUp(table=self.table, first=expired.first, removed=expired.versions))

    def _remove(self, expired: ExpiredFiles, table: WritableTable, store: Store) -> None:
        """Remove log files once all that replaces them is readable and synced."""
        if expired.base is None or not expired.files:
            return
        from lakebed.deltalog.checkpoint import is_whole  # noqa: PLC0415 - it loads Arrow

        for part in expired.base.parts:
            if not is_whole(store, part):
                raise TableUnreadable(
                    "the checkpoint that should replace older versions cannot be read",
                    path=store.describe(part.path),
                )
            store.sync(part.path)
        self._on_disk.up_to(store, table.version)
        for path in expired.files:
            store.delete(path)


def spacing(interval: int | None, actions: int) -> int:
    """Return the versions between two checkpoints of a table with this many actions.

    A checkpoint costs time and memory for every file, so large tables get fewer; a reader reads at
    most MOST_VERSIONS more. A configured interval overrides this.
    """
    if interval is not None:
        return interval
    return max(FEWEST_VERSIONS, min(MOST_VERSIONS, actions // ACTIONS_PER_VERSION))
