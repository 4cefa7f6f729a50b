"""What was read of a Delta log about files, and what follows of it for one file. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from lakebed import layout
from lakebed.deltalog.actions import LogActions, moment
from lakebed.deltalog.removals import CLOCKS_DIFFER, LONG_AGO, NEVER, RemovalEvidence, RemovalNote
from lakebed.listing.watermark import named_at
from lakebed.storage.objects import ObjectFacts

SAME_CLOCK = timedelta(minutes=5)
"""How far a version's own time may be from its object's, for it to be where it was written."""


@dataclass(slots=True, kw_only=True)
class LogContents:
    """Everything that a log says up to one version: files that are or were in the table."""

    table: str
    """The id of the table."""
    version: int
    paths: set[str]
    transactions: dict[str, int]
    """Penguin's own alone: those of foreign files."""
    since: datetime | None
    """The store's time of the oldest version; None: every version since the first was read.

    A file that is older may have been removed without a trace.
    """
    first: int = 0
    """The first of the versions that were read; all that follow it were read, too."""
    told_since: datetime | None = None
    """The same by what versions say of themselves, and later by as much as clocks may differ."""
    same_clock: bool = False
    """Whether the oldest version says of itself what the store says: it is where it was written."""
    copied: bool = False
    """Whether versions are younger than they say: then their times, and files', are of a copy."""
    last: ObjectFacts | None = None
    """The object of the version; None where it is not sure that it is the one that was read."""
    deep: bool = False
    """Whether no older versions are there to be read."""
    removals: RemovalEvidence = field(default_factory=RemovalEvidence)
    _named: dict[str, str] | None = None
    """The paths by their transactions, once they were asked for."""

    @property
    def scan(self) -> int | None:
        """Return how many commits hold files of other programs; None where there is none."""
        return self.transaction(layout.SCAN_TRANSACTION)

    @property
    def scanned(self) -> int | None:
        """Return the highest time in the names of the files that scans committed."""
        return self.transaction(layout.SCANNED_TRANSACTION)

    def may_be_scanned(self, path: str) -> bool:
        """Whether a scan may have committed a file, as far as its name says."""
        at, scanned = named_at(path), self.scanned
        return at is not None and scanned is not None and at <= scanned

    def is_leftover(self, path: str, modified: datetime) -> bool:
        """Whether a forgotten file lay here before what the log remembers, and was scanned."""
        reaches = self.since is not None and self.since != NEVER and modified > self.since
        return not reaches and self.may_be_scanned(path)

    def transaction(self, app_id: str) -> int | None:
        """Return the version of one of our transactions."""
        return self.transactions.get(app_id)

    def namesake(self, path: str) -> str | None:
        """Return another file that the log knows and whose transaction has the same name."""
        if path in self.paths:
            return None
        if self._named is None:
            self._named = {layout.stranger_transaction(known): known for known in self.paths}
        return self._named.get(layout.stranger_transaction(path))

    def alike(self, paths: Iterable[str]) -> dict[str, str]:
        """Return, by its UUID, a file that the log knows for each of some others that have one."""
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
        """Whether a file that is not known may have been in the table, and be forgotten.

        The store's times of files and of versions are of one clock. What was copied has the times
        of the copy, and is compared by its name, which is of another.
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
        """Return the time after which every removed file is named, by the state of the table.

        A copied directory has this, too, but not the versions that show that it was copied. So it
        is evidence for files with a time in their names alone, and clocks may be apart.
        """
        evidence = replace(self.removals, noted=min(self.removals.noted, self._carried()))
        complete = evidence.complete_since(self.since)
        return NEVER if complete == NEVER else complete + CLOCKS_DIFFER

    def _carried(self) -> datetime:
        """Return since when the versions were read that are gone, by penguin's transactions."""
        since, until = map(self.transaction, layout.removals_transactions(self.table))
        if until is None or not self.first - 1 <= until <= self.version:
            return NEVER
        return moment(since) or NEVER

    def removal_note(self) -> RemovalNote | None:
        """Return what a commit says of the removals up to here, for when the versions are gone."""
        since = self.removals.seen_since(self.since)
        if not self.is_certain or since in (LONG_AGO, NEVER):
            return None
        carried = max(min(since, self._carried()), self.removals.doubtful)
        return RemovalNote(since=since, until=self.version, table=self.table, carried=carried)

    @property
    def is_certain(self) -> bool:
        """Whether the versions are where they were written, so that their times are the store's."""
        return self.same_clock and not self.copied

    def oldest(self, path: str, modified: datetime) -> datetime:
        """Return the earliest time that a file may be from.

        A copied file has a new time in the store, and keeps the one in its name.
        """
        named = named_at(path)
        if named is None:
            return LONG_AGO if self.copied else modified
        return min(modified, moment(named) or modified)

    def take(self, paths: Iterable[str], transactions: Mapping[str, int]) -> None:
        """Add files and, of some transactions, ours."""
        self.see(paths)
        ours = (one for one in transactions.items() if one[0].startswith(layout.OUR_TRANSACTIONS))
        self.transactions.update(ours)

    def see(self, paths: Iterable[str]) -> None:
        """Add more files."""
        self.paths.update(paths)
        self._named = None

    def weigh(self, actions: LogActions, modified: datetime) -> None:
        """Add what a version says about removals; the versions up to it were read."""
        self.removals.take(actions, modified, first=self.first)

    def reach_back(self, actions: LogActions, modified: datetime) -> None:
        """Add what a version older than all that were read says, and when it was written."""
        self.see(actions.paths)
        at = moment(actions.info.at_ms)
        if actions.version < self.first:
            self.first = actions.version
            self.same_clock = at is not None and abs(modified - at) <= SAME_CLOCK
        self.weigh(actions, modified)
        self.copied = self.copied or (at is not None and modified > at + CLOCKS_DIFFER)
        self.since = None if self.first == 0 else min(self.since or modified, modified)
        told = min(modified, at or modified) + CLOCKS_DIFFER
        self.told_since = None if self.first == 0 else min(self.told_since or told, told)


NOTHING = LogContents(table="", version=-1, paths=set(), transactions={}, since=None)
"""What is known where there is no table yet. Never written to."""
