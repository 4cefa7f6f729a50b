"""Since when a checkpoint names every file that was removed, where that can be proved. Pure.

A checkpoint drops a removal once it is older than the table's retention of deleted files, and at
once if the removal has no time. So what a checkpoint does not name proves nothing by itself. It
does where every version since a time was read while it existed: none of them changed the table's
metadata, and each removal in them had a time. Versions that are gone were read by the penguin that
committed the one after them: app transactions of its commit say since when, and up to which
version. They outlast it: checkpoints have them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from lakebed.deltalog.actions import LogActions, moment
from lakebed.deltalog.retention import DELTA_DEFAULT, READ_BY_ALL, RETENTION_PROPERTY, retention
from lakebed.layout import removals_transactions

CLOCKS_DIFFER = timedelta(hours=1)
"""How far clocks may be apart: those of writers, of engines that remove files, the store's."""
LONG_AGO = datetime.min.replace(tzinfo=UTC)
NEVER = datetime.max.replace(tzinfo=UTC)
"""Since when removals are known where no version shows any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovalNote:
    """What a penguin knows of the versions up to one.

    From the time on, up to the version, each removal has a time and the metadata is the same.
    """

    table: str
    """The id of the table."""
    since: datetime
    """By versions that were read, and by notes of versions that were."""
    carried: datetime
    """The same, also by a note whose own version is gone."""
    until: int

    def transactions(self) -> tuple[tuple[str, int], ...]:
        """Return it for the version that is written next, if it removes nothing.

        The time is never an earlier one.
        """
        times = (int(at.timestamp() * 1000) + 1 for at in (self.since, self.carried))
        return tuple(zip(removals_transactions(self.table), (*times, self.until + 1), strict=True))


@dataclass(slots=True, kw_only=True)
class RemovalEvidence:
    """What the versions that were read say about removals, and what checkpoints keep of them."""

    checkpointed: datetime = NEVER
    """When the checkpoint that was read was written, by the store; NEVER without one."""
    keeps: timedelta = timedelta()
    """How long every writer of checkpoints keeps a removal."""
    doubtful: datetime = LONG_AGO
    """The newest version that changed the metadata, or removed a file without a proper time."""

    def take(self, actions: LogActions, modified: datetime) -> None:
        """Add a version."""
        times = (moment(one.removed_at_ms) for one in actions.removes)
        timed = all(at is not None and abs(at - modified) <= CLOCKS_DIFFER for at in times)
        if actions.metadata is not None or not timed:
            self.doubtful = max(self.doubtful, modified)

    def complete_since(self, since: datetime) -> datetime:
        """Return the time after which every removed file is named; NEVER if none is proved.

        Every version since then was read, by this process or by one that noted it. The clocks of a
        removal and of the checkpoint's writer may each be off.
        """
        if self.checkpointed == NEVER:
            return NEVER
        kept = self.checkpointed - self.keeps + 2 * CLOCKS_DIFFER
        return max(since, self.doubtful, kept)


def kept_by_all(configuration: Mapping[str, str]) -> timedelta:
    """Return how long checkpoints keep a removal, whichever engine writes them.

    An engine that cannot read the property takes the default. Where not all read it alike, nothing
    is sure.
    """
    text = configuration.get(RETENTION_PROPERTY)
    if text is not None and not READ_BY_ALL.fullmatch(text):
        return timedelta()
    return min(retention(configuration), DELTA_DEFAULT)
