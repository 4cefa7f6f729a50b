"""Maintenance of a Delta log: checkpoints when due, and removal of expired versions.

Both run beside the commits, in a thread of their own; no commit waits for them. Failures are
reported and retried later, and affect no commit.

The library removes expired versions, and only where every engine reads the table's retention alike:
it takes an interval that it cannot read for 30 days.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from lakebed.clock import Clock
from lakebed.deltalog import segment
from lakebed.deltalog.log_contents import READ_BY_ALL
from lakebed.errors import LakeError
from lakebed.layout import DELTA_LOG, LAST_CHECKPOINT, log_version
from lakebed.storage.options import ObjectFacts
from lakebed.storage.store import Store
from lakebed.telemetry.events import Emit
from penguin.delta.table import Log, WritableTable
from penguin.events.commits import (
    CheckpointFailed,
    CheckpointWritten,
    LogCleanUpFailed,
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
            self._clean_up_if_due(table, store)
        except Exception as error:  # noqa: BLE001 - in a thread of its own it would be lost
            self._not_due = None
            text = str(error) or type(error).__name__
            self.emit(CheckpointFailed(table=self.table, version=table.version, error=text))
        finally:
            table.release_files()
            self._under_way = False

    def _clean_up_if_due(self, table: WritableTable, store: Store) -> None:
        """Remove expired versions once all that the newest one is read from is synced."""
        now, configuration = self.clock.seconds(), table.facts.configuration
        is_due = self._cleaned_up is None or now - self._cleaned_up >= CLEAN_UP_SECS
        is_on = configuration.get(CLEANS_UP, "true").strip().lower() == "true"
        if not (is_due and is_on) or table.leaves_clean_up_to_others():
            return
        keeps = configuration.get(KEEPS_VERSIONS)
        if keeps is not None and not READ_BY_ALL.fullmatch(keeps):
            self._cleaned_up = now
            why = f"{KEEPS_VERSIONS} is {keeps!r}; set it to an interval such as `interval 30 days`"
            self.emit(LogCleanUpFailed(table=self.table, error=why))
            return
        try:
            self._on_disk.up_to(store, table.version)
            table.remove_expired_versions()
            self._cleaned_up = now
        except LakeError as error:
            self.emit(LogCleanUpFailed(table=self.table, error=str(error)))


def spacing(interval: int | None, actions: int) -> int:
    """Return the versions between two checkpoints of a table with this many actions.

    A checkpoint costs time and memory for every file, so large tables get fewer; a reader reads at
    most MOST_VERSIONS more. A configured interval overrides this.
    """
    if interval is not None:
        return interval
    return max(FEWEST_VERSIONS, min(MOST_VERSIONS, actions // ACTIONS_PER_VERSION))
