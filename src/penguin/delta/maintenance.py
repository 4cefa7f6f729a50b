"""Maintenance of a Delta log: a checkpoint when one is due, and removal of expired versions.

Neither is part of a commit, and none waits for them: they are done beside the commits, in a thread
of their own. What fails here is reported, tried again later, and affects no commit.
What may be removed is decided here, not by the library: it takes an interval that it cannot read
for 30 days, and on a local disk it removes versions before the checkpoint that replaces them is on
disk.
"""

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

from lakebed.clock import Clock
from lakebed.deltalog import segment
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
    """How far one table's log is known to be on disk. It saves syncs, and nothing else."""

    _version: int = -1
    _last: ObjectFacts | None = None
    """The object of that version."""

    def up_to(self, store: Store, version: int) -> None:
        """Put all on disk that the table is read from, up to a version; elsewhere it is already."""
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
    """Name the files of a log that a version is read from: a checkpoint, and versions since."""
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
class Expired:
    """What may be removed, in the order in which it may go."""

    files: tuple[str, ...] = ()
    versions: int = 0
    """How many of these files are versions."""
    first: int | None = None
    """The version that the log begins with when they are gone."""
    base: segment.Checkpoint | None = None
    """The checkpoint that covers them."""


def removes_expired(configuration: Mapping[str, str]) -> bool:
    """Whether a table lets its writers remove old versions, which is Delta's default."""
    return configuration.get(CLEANS_UP, "true").strip().lower() == "true"


def log_retention(configuration: Mapping[str, str]) -> timedelta | None:
    """Return how long a table keeps versions; None where the value cannot be read."""
    text = configuration.get(KEEPS_VERSIONS)
    return DELTA_DEFAULT if text is None else parse_interval(text)


def find_expired(listed: Iterable[ObjectFacts], keep_for: timedelta, now: datetime) -> Expired:
    """Choose the files of a log that may be removed.

    Times are the store's. Its own newest file bounds what time it can be, so that a clock of ours
    that is ahead removes nothing before its time.
    """
    files = list(listed)
    since = min(now, max((file.modified for file in files), default=now)) - keep_for
    versions = segment.versions_in(files)
    if not versions:
        return Expired()
    # The first version that is kept. All that follow it are kept, too, however old they look.
    stays = next((n for n in sorted(versions) if versions[n].modified >= since), max(versions))
    base = segment.newest(
        (checkpoint for checkpoint in segment.checkpoints(files) if checkpoint.is_classic), stays
    )
    if base is None:
        return Expired()
    old = sorted(
        (number, file.path)
        for file in files
        if (number := segment.removable_version(file.path)) is not None
        and number < base.version
        and file.modified < since
    )
    gone = {path for _, path in old}
    left = [number for number in versions if versions[number].path not in gone]
    return Expired(
        files=tuple(path for _, path in old),
        versions=len(versions) - len(left),
        first=min(left, default=None),
        base=base,
    )


ACTIONS_PER_VERSION = 10_000
"""Actions of a checkpoint for which one more version is waited for."""
FEWEST_VERSIONS = 10
MOST_VERSIONS = 100
"""What is waited for at least, and at most on that account."""
CLEAN_UP_SECS = 86_400.0
"""Between two clean-ups of a table: each lists the whole log."""

Work = Callable[[], None]
Begin = Callable[[Work], Work]
"""Begins some work, and returns what waits for its end."""


def at_once(work: Work) -> Work:
    """Do the work before anything else is done."""
    work()
    return lambda: None


def beside(work: Work) -> Work:
    """Do the work in a thread of its own.

    The interpreter waits for it when it ends: the library must not be left in the middle of a
    call. A process that is killed meanwhile leaves at most an invisible, unfinished upload.
    """
    thread = threading.Thread(target=work, name="checkpoint", daemon=False)
    thread.start()
    return thread.join


@dataclass(slots=True, kw_only=True)
class Maintenance:
    """What a table's log needs besides its commits."""

    table: str
    checkpoint_interval: int | None
    emit: Emit
    clock: Clock
    begin: Begin = at_once
    _on_disk: OnDisk = field(default_factory=OnDisk)
    """Not that of the commits: they go on meanwhile."""
    _under_way: bool = False
    _wait: Work = lambda: None
    _cleaned_up: float | None = None
    _not_due: int | None = None
    """The version at which no checkpoint was due: it is not asked for again."""

    def see_to(self, log: Log, store: Store, version: int) -> None:
        """Begin a checkpoint of the last version if one is due, then remove what has expired.

        While one is under way no other is begun: the next commit after its end asks again.
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
            # A RuntimeError says that no thread can be started.
            self._not_due, self._under_way = None, False
            self.emit(CheckpointFailed(table=self.table, version=version, error=str(error)))

    def finish(self) -> None:
        """Wait for the end of what is under way."""
        self._wait()

    def _maintain(self, table: WritableTable, store: Store) -> None:
        """Write the checkpoint and clean up; report any error without ending the run."""
        began = self.clock.seconds()
        try:
            table.checkpoint()
            took = self.clock.seconds() - began
            self.emit(CheckpointWritten(table=self.table, version=table.version, seconds=took))
            if removes_expired(table.facts.configuration) and self._is_time():
                self._clean_up(table, store)
        except Exception as error:  # noqa: BLE001 - in a thread of its own it would be lost
            self._not_due = None
            text = str(error) or type(error).__name__
            self.emit(CheckpointFailed(table=self.table, version=table.version, error=text))
        finally:
            table.release_files()
            self._under_way = False

    def _is_time(self) -> bool:
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

    def _remove(self, expired: Expired, table: WritableTable, store: Store) -> None:
        """Remove files of the log once all that replaces them can be read and is on disk."""
        if expired.base is None or not expired.files:
            return
        from lakebed.deltalog.checkpoint import is_whole  # noqa: PLC0415 - it loads Arrow

        for part in expired.base.parts:
            if not is_whole(store, part):
                raise TableUnreadable(
                    "the checkpoint that should stand for older versions cannot be read",
                    path=store.describe(part.path),
                )
            store.sync(part.path)
        self._on_disk.up_to(store, table.version)
        for path in expired.files:
            store.delete(path)


def spacing(interval: int | None, actions: int) -> int:
    """Return how many versions are between two checkpoints of a table with so many actions.

    A checkpoint costs time and memory for every file, so that a large table has fewer of them; a
    reader reads no more than some versions besides. An interval that is configured counts alone.
    """
    if interval is not None:
        return interval
    return max(FEWEST_VERSIONS, min(MOST_VERSIONS, actions // ACTIONS_PER_VERSION))
