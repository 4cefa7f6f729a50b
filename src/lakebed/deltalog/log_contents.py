"""Files and transactions of a Delta log, and what they prove about a file. Pure.

A checkpoint drops a removal that is older than the table's retention of deleted files, and one
without a time at once. So a file that it does not list may still have been removed. It was not if
every version since it was written is there: an older file counts as forgotten.

Engines differ in the intervals that they understand, and some use the default for any other, so
every decision that depends on an interval uses the parser of this module.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from lakebed import layout
from lakebed.deltalog.actions import LogActions, moment
from lakebed.listing.watermark import named_at
from lakebed.storage.options import ObjectFacts

MICROSECONDS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
"""Delta rejects months and years, whose lengths vary."""
PART = re.compile(rf"(\d{{1,18}})\s+({'|'.join(MICROSECONDS)})s?(?:\s+|$)", re.ASCII)
INTERVAL = re.compile(rf"(?:interval \s*)?(?:{PART.pattern})+", re.ASCII)
FOR_EVER = timedelta(days=365_000)
"""The cap of an interval: a time that long ago is still representable."""
RETENTION_PROPERTY = "delta.deletedFileRetentionDuration"
DELTA_DEFAULT = timedelta(days=7)
READ_BY_ALL = re.compile(rf"interval \d+ ({'|'.join(MICROSECONDS)})s?")
"""The form that every engine parses. Some use the default for any other, and delete files by it."""


def retention(configuration: Mapping[str, str]) -> timedelta:
    """Return the retention of files that a log does not name, valid for VACUUM by any engine.

    An engine that cannot parse the value uses the default, so the shorter of both counts.
    """
    text = configuration.get(RETENTION_PROPERTY, "")
    keeps = parse_interval(text)
    if keeps is None:
        return DELTA_DEFAULT
    return keeps if READ_BY_ALL.fullmatch(text) else min(keeps, DELTA_DEFAULT)


def parse_interval(text: str) -> timedelta | None:
    """Parse an interval; None if it is not understood.

    `interval 30 days`, `30 days`, `INTERVAL 1 week 2 days`. Spark reads signs and fractions, too.
    """
    plain = text.strip().lower()
    if not INTERVAL.fullmatch(plain):
        return None
    total = sum(int(number) * MICROSECONDS[unit] for number, unit in PART.findall(plain))
    return timedelta(microseconds=min(total, FOR_EVER // timedelta(microseconds=1)))


CLOCKS_DIFFER = timedelta(hours=1)
"""How much the clocks of writers, of engines that remove files and of the store may differ."""
LONG_AGO = datetime.min.replace(tzinfo=UTC)
NEVER = datetime.max.replace(tzinfo=UTC)
"""The time since which removals are known if no version was read."""


SAME_CLOCK = timedelta(minutes=5)
"""How much the times of a version and of its object may differ if the object is not a copy."""


@dataclass(slots=True, kw_only=True)
class LogContents:
    """The files that are or were in the table up to one version, and penguin's transactions."""

    table: str
    """The id of the table."""
    version: int
    paths: set[str]
    transactions: dict[str, int]
    """Only penguin's own, for foreign files."""
    since: datetime | None
    """The store's time of the oldest version; None if every version since the first was read.

    An older file may have been removed without a trace.
    """
    first: int = 0
    """The first version that was read; all later ones were read, too."""
    stated_since: datetime | None = None
    """`since` by the versions' own timestamps, later by the largest difference of clocks."""
    same_clock: bool = False
    """Whether the oldest version's timestamp and the store's agree: the object is not a copy."""
    copied: bool = False
    """Whether objects are younger than their versions: their times are those of a copy."""
    last: ObjectFacts | None = None
    """The object of the version; None if it may not be the one that was read."""
    is_exhausted: bool = False
    """Whether there are no older versions to read."""
    _by_transaction: dict[str, str] | None = None
    """The paths by their transactions, built on demand."""

    @property
    def scan(self) -> int | None:
        """Return how many commits have files of other programs; None if no commit has."""
        return self.transaction(layout.SCAN_TRANSACTION)

    @property
    def scanned(self) -> int | None:
        """Return the latest time in the names of files that scans committed."""
        return self.transaction(layout.SCANNED_TRANSACTION)

    def may_be_scanned(self, path: str) -> bool:
        """Whether a scan may have committed a file, by the time in its name."""
        at, scanned = named_at(path), self.scanned
        return at is not None and scanned is not None and at <= scanned

    def is_leftover(self, path: str, modified: datetime) -> bool:
        """Whether a forgotten file is older than the known versions and was scanned."""
        reaches = self.since is not None and self.since != NEVER and modified > self.since
        return not reaches and self.may_be_scanned(path)

    def transaction(self, app_id: str) -> int | None:
        """Return the version of a transaction of penguin's."""
        return self.transactions.get(app_id)

    def namesake(self, path: str) -> str | None:
        """Return another known file with the same transaction name; None without one."""
        if path in self.paths:
            return None
        if self._by_transaction is None:
            self._by_transaction = {
                layout.foreign_transaction(known): known for known in self.paths
            }
        return self._by_transaction.get(layout.foreign_transaction(path))

    def alike(self, paths: Iterable[str]) -> dict[str, str]:
        """Return the known files that share a UUID name with some others, by that name."""
        wanted = {
            name
            for path in paths
            if layout.file_id(path) is not None and (name := layout.file_name(path))
        }
        if not wanted:
            return {}
        return {
            name: known
            for known in self.paths
            if (name := layout.file_name(known)) in wanted and layout.file_id(known) is not None
        }

    def may_have_lost(self, path: str, modified: datetime) -> bool:
        """Whether an unknown file may have been in the table and is forgotten.

        The store's times of files and versions come from one clock. Copied objects have the times
        of the copy; they are compared by the time in the name, which comes from another clock.
        """
        if self.since is None or self.since == NEVER:
            return self.since == NEVER
        reaches = self.since if self.is_certain else self.since + CLOCKS_DIFFER
        return self.oldest(path, modified) <= reaches

    @property
    def is_certain(self) -> bool:
        """Whether the log is not a copy: then the store's times are those of the versions."""
        return self.same_clock and not self.copied

    def oldest(self, path: str, modified: datetime) -> datetime:
        """Return the earliest time at which a file may have been written.

        A copied file has a new time in the store and keeps the one in its name.
        """
        named = named_at(path)
        if named is None:
            return LONG_AGO if self.copied else modified
        return min(modified, moment(named) or modified)

    def take(self, paths: Iterable[str], transactions: Mapping[str, int]) -> None:
        """Add files and penguin's transactions."""
        self.add_paths(paths)
        ours = {
            app_id: version
            for app_id, version in transactions.items()
            if app_id.startswith(layout.OUR_TRANSACTIONS)
        }
        self.transactions.update(ours)

    def add_paths(self, paths: Iterable[str]) -> None:
        """Add files."""
        self.paths.update(paths)
        self._by_transaction = None

    def reach_back(self, actions: LogActions, modified: datetime) -> None:
        """Add a version that is older than all known ones, written at `modified`."""
        self.add_paths(actions.paths)
        at = moment(actions.info.at_ms)
        if actions.version < self.first:
            self.first = actions.version
            self.same_clock = at is not None and abs(modified - at) <= SAME_CLOCK
        self.copied = self.copied or (at is not None and modified > at + CLOCKS_DIFFER)
        self.since = None if self.first == 0 else min(self.since or modified, modified)
        stated = min(modified, at or modified) + CLOCKS_DIFFER
        self.stated_since = None if self.first == 0 else min(self.stated_since or stated, stated)


NOTHING = LogContents(table="", version=-1, paths=set(), transactions={}, since=None)
"""The contents of no log, for a table that does not exist yet. Never modified."""
