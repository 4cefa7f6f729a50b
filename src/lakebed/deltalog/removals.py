"""Since when a checkpoint names every file that was removed, where that can be proved. Pure.

A checkpoint drops a removal once it is older than the table's retention of deleted files, and at
once if the removal has no time. So what a checkpoint does not name proves nothing by itself. It
does where every version since a time was read while it existed: none of them changed the table's
metadata, and each removal in them had a time. Versions that are gone were read by the penguin that
made a commit which is still there: its note says since when, and up to which version. Where that
commit is gone, too, transactions in the checkpoint say the same, if no version between is missing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

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
    """What a commit of penguin's says of the versions before it.

    From the time on, up to the version, each removal has a time and the metadata is the same.
    """

    since: datetime
    until: int
    table: str = ""
    """The id of the table."""
    carried: datetime = NEVER
    """The same as `since` where a transaction counts, too, and not the versions alone."""

    @classmethod
    def of(cls, note: Mapping[str, Any]) -> "RemovalNote | None":
        """Read the note of a commit; None where it has none."""
        match note:
            case {"others": {"removals": {"since": int(since), "until": int(until)}}}:
                at = moment(since)
                return None if at is None else cls(since=at, until=until)
        return None

    def document(self) -> dict[str, int]:
        """Return the note as a commit has it; the time is never an earlier one."""
        return {"since": _after(self.since), "until": self.until}

    def transactions(self) -> tuple[tuple[str, int], ...]:
        """Return the same for the version that is written next, if it removes nothing.

        Checkpoints keep it when that version is gone.
        """
        since, until = removals_transactions(self.table)
        return (since, _after(self.carried)), (until, self.until + 1)


def _after(moment: datetime) -> int:
    return int(moment.timestamp() * 1000) + 1


@dataclass(slots=True, kw_only=True)
class RemovalEvidence:
    """What the versions that were read say about removals, and what checkpoints keep of them."""

    checkpointed: datetime = NEVER
    """When the checkpoint that was read was written, by the store; NEVER without one."""
    keeps: timedelta = timedelta()
    """How long every writer of checkpoints keeps a removal."""
    noted: datetime = NEVER
    """The earliest time that a note covers without a gap to the versions that were read."""
    doubtful: datetime = LONG_AGO
    """The newest version that changed the metadata, or removed a file without a proper time."""

    def take(self, actions: LogActions, modified: datetime, *, first: int) -> None:
        """Add a version, once the first of the versions that were read is known."""
        times = (moment(one.removed_at_ms) for one in actions.removes)
        timed = all(at is not None and abs(at - modified) <= CLOCKS_DIFFER for at in times)
        if actions.metadata is not None or not timed:
            self.doubtful = max(self.doubtful, modified)
        note = RemovalNote.of(actions.info.note)
        if note is not None and note.until >= first - 1:
            self.noted = min(self.noted, note.since)

    def seen_since(self, since: datetime | None) -> datetime:
        """Return since when all versions were read, by this process or by one that noted it."""
        return max(min(since or LONG_AGO, self.noted), self.doubtful)

    def complete_since(self, since: datetime | None) -> datetime:
        """Return the time after which every removed file is named; NEVER if none is proved.

        The clocks of a removal and of the checkpoint's writer may each be off.
        """
        if self.checkpointed == NEVER:
            return NEVER
        kept = self.checkpointed - self.keeps + 2 * CLOCKS_DIFFER
        return max(self.seen_since(since), kept)


def kept_by_all(configuration: Mapping[str, str]) -> timedelta:
    """Return how long checkpoints keep a removal, whichever engine writes them.

    An engine that cannot read the property takes the default. Where not all read it alike, nothing
    is sure.
    """
    text = configuration.get(RETENTION_PROPERTY)
    if text is not None and not READ_BY_ALL.fullmatch(text):
        return timedelta()
    return min(retention(configuration), DELTA_DEFAULT)
