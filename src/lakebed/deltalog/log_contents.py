"""The files and transactions read from a Delta log, and what they prove about one file. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from lakebed import layout
from lakebed.deltalog.actions import LogActions, moment
from lakebed.deltalog.removals import CLOCKS_DIFFER, LONG_AGO, NEVER, RemovalEvidence, RemovalNote
from lakebed.listing.watermark import named_at
from lakebed.storage.facts import ObjectFacts

SAME_CLOCK = timedelta(minutes=5)
"""How much the times of a version and of its object may differ if the object is no copy."""


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
    """Whether the oldest version's timestamp and the store's agree: the object is no copy."""
    copied: bool = False
    """Whether objects are younger than their versions: their times are those of a copy."""
    last: ObjectFacts | None = None
    """The object of the version; None if it may not be the one that was read."""
    is_exhausted: bool = False
    """Whether there are no older versions to read."""
    removals: RemovalEvidence = field(default_factory=RemovalEvidence)
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
        oldest = self.oldest(path, modified)
        if self.since is None or self.since == NEVER:
            return self.since == NEVER
        if not self.is_certain:
            return oldest <= self.since + CLOCKS_DIFFER
        proved = min(self.since, self.removals.complete_since(self.since))
        if named_at(path) is not None:
            proved = min(proved, self._complete_by_transaction())
        return oldest <= proved

    def _complete_by_transaction(self) -> datetime:
        """Return the time after which every removal is recorded, by the table's transactions.

        A copied directory has these, too, but not the versions that reveal the copy. So this is
        evidence only for files with a time in their names, and allows for clocks that differ.
        """
        evidence = replace(self.removals, noted=min(self.removals.noted, self._carried()))
        complete = evidence.complete_since(self.since)
        return NEVER if complete == NEVER else complete + CLOCKS_DIFFER

    def _carried(self) -> datetime:
        """Return since when penguin has read the versions that are gone, by its transactions."""
        since, until = map(self.transaction, layout.removals_transactions(self.table))
        if until is None or not self.first - 1 <= until <= self.version:
            return NEVER
        return moment(since) or NEVER

    def removal_note(self) -> RemovalNote | None:
        """Return what a commit records about earlier removals, for when the versions are gone."""
        since = self.removals.seen_since(self.since)
        if not self.is_certain or since in (LONG_AGO, NEVER):
            return None
        carried = max(min(since, self._carried()), self.removals.doubtful)
        return RemovalNote(since=since, until=self.version, table=self.table, carried=carried)

    @property
    def is_certain(self) -> bool:
        """Whether the log is no copy, so that the store's times are those of the versions."""
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

    def weigh(self, actions: LogActions, modified: datetime) -> None:
        """Add a version's evidence about removals; all versions before it were read."""
        self.removals.take(actions, modified, first=self.first)

    def reach_back(self, actions: LogActions, modified: datetime) -> None:
        """Add a version that is older than all known ones, written at `modified`."""
        self.add_paths(actions.paths)
        at = moment(actions.info.at_ms)
        if actions.version < self.first:
            self.first = actions.version
            self.same_clock = at is not None and abs(modified - at) <= SAME_CLOCK
        self.weigh(actions, modified)
        self.copied = self.copied or (at is not None and modified > at + CLOCKS_DIFFER)
        self.since = None if self.first == 0 else min(self.since or modified, modified)
        stated = min(modified, at or modified) + CLOCKS_DIFFER
        self.stated_since = None if self.first == 0 else min(self.stated_since or stated, stated)


NOTHING = LogContents(table="", version=-1, paths=set(), transactions={}, since=None)
"""The contents of no log, for a table that does not exist yet. Never modified."""
