"""The time since which a checkpoint provably lists every removed file. Pure.

A checkpoint drops a removal that is older than the table's retention of deleted files, and one
without a time at once. So a file that it does not list may still have been removed. It was not if
every version since some time was read while it existed, none changed the table's metadata, and each
removal had a time. For versions that are gone, the note of a later commit records since when, and
up to which version, penguin has read them. If that commit is gone, too, transactions in the
checkpoint record the same, provided that no version in between is missing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from lakebed.deltalog.actions import LogActions, moment
from lakebed.deltalog.retention import DELTA_DEFAULT, READ_BY_ALL, RETENTION_PROPERTY, retention
from lakebed.layout import removals_transactions

CLOCKS_DIFFER = timedelta(hours=1)
"""How much the clocks of writers, of engines that remove files and of the store may differ."""
LONG_AGO = datetime.min.replace(tzinfo=UTC)
NEVER = datetime.max.replace(tzinfo=UTC)
"""The time since which removals are known if no version proves any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovalNote:
    """What a commit of penguin's records about the versions before it.

    From `since` up to `until`, each removal has a time and the metadata did not change.
    """

    since: datetime
    until: int
    table: str = ""
    """The id of the table."""
    carried: datetime = NEVER
    """`since` by the versions and the transactions."""

    @classmethod
    def of(cls, note: Mapping[str, Any]) -> "RemovalNote | None":
        """Parse the note of a commit; None without one."""
        match note:
            case {"others": {"removals": {"since": int(since), "until": int(until)}}}:
                at = moment(since)
                return None if at is None else cls(since=at, until=until)
        return None

    def document(self) -> dict[str, int]:
        """Return the note as a commit stores it; the time is rounded up."""
        return {"since": _after(self.since), "until": self.until}

    def transactions(self) -> tuple[tuple[str, int], ...]:
        """Return the transactions of the next version, if it removes nothing.

        Checkpoints keep them when that version is gone.
        """
        since, until = removals_transactions(self.table)
        return (since, _after(self.carried)), (until, self.until + 1)


def _after(moment: datetime) -> int:
    return int(moment.timestamp() * 1000) + 1


@dataclass(slots=True, kw_only=True)
class RemovalEvidence:
    """What the known versions prove about removals, and which of these checkpoints keep."""

    checkpointed: datetime = NEVER
    """When the checkpoint was written, by the store's clock; NEVER without one."""
    keeps: timedelta = timedelta()
    """How long every writer of checkpoints keeps a removal."""
    noted: datetime = NEVER
    """The earliest time that a note covers without a gap to the known versions."""
    doubtful: datetime = LONG_AGO
    """The newest version that changed the metadata, or removed a file without a valid time."""

    def take(self, actions: LogActions, modified: datetime, *, first: int) -> None:
        """Add a version; `first` is the first known version."""
        times = (moment(remove.removed_at_ms) for remove in actions.removes)
        timed = all(at is not None and abs(at - modified) <= CLOCKS_DIFFER for at in times)
        if actions.metadata is not None or not timed:
            self.doubtful = max(self.doubtful, modified)
        note = RemovalNote.of(actions.info.note)
        if note is not None and note.until >= first - 1:
            self.noted = min(self.noted, note.since)

    def seen_since(self, since: datetime | None) -> datetime:
        """Return since when all versions were read, by this process or by the author of a note."""
        return max(min(since or LONG_AGO, self.noted), self.doubtful)

    def complete_since(self, since: datetime | None) -> datetime:
        """Return the time after which every removed file is listed; NEVER if that is unproven.

        The clocks of a removal and of the checkpoint's writer may each be wrong.
        """
        if self.checkpointed == NEVER:
            return NEVER
        kept = self.checkpointed - self.keeps + 2 * CLOCKS_DIFFER
        return max(self.seen_since(since), kept)


def kept_by_all(configuration: Mapping[str, str]) -> timedelta:
    """Return how long checkpoints of every engine keep a removal.

    An engine that cannot parse the property uses the default. If engines may disagree, it is zero.
    """
    text = configuration.get(RETENTION_PROPERTY)
    if text is not None and not READ_BY_ALL.fullmatch(text):
        return timedelta()
    return min(retention(configuration), DELTA_DEFAULT)
