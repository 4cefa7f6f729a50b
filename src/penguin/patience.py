"""How long a file may wait for its commit before somebody's VACUUM may take it. Pure.

VACUUM deletes what the log does not name once it is older than the table's retention of deleted
files. A file that waits is not named yet. At half of that time there is still time to do something.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

RETENTION_PROPERTY = "delta.deletedFileRetentionDuration"
DELTA_DEFAULT = timedelta(days=7)
UNITS = {"week": 7 * 86_400, "day": 86_400, "hour": 3600, "minute": 60, "second": 1}
PART = re.compile(r"(\d{1,18})\s+(week|day|hour|minute|second)s?")
FOR_EVER = timedelta(days=365_000)
"""What a longer retention counts as: a time so long ago can still be written down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Danger:
    """Files have waited for so long that a VACUUM comes near."""

    waiting_since: datetime
    retention: timedelta

    def sentence(self) -> str:
        """Say since when, what may happen when, and what to do."""
        days = self.retention.total_seconds() / 86_400
        return (
            f"files wait for their commit since {self.waiting_since.isoformat()}; the table keeps "
            f"files that its log does not name for {days:g} days, then a VACUUM may take them: see "
            "`penguin held` and `penguin status`, or raise delta.deletedFileRetentionDuration"
        )


def retention(configuration: Mapping[str, str]) -> timedelta:
    """Say how long a table keeps files that its log does not name.

    A value that cannot be read counts as the default, which is the shortest that VACUUM accepts.
    """
    text = configuration.get(RETENTION_PROPERTY, "").lower().strip()
    parts = PART.findall(text)
    if not parts or PART.sub("", text.removeprefix("interval")).strip():
        return DELTA_DEFAULT
    seconds = sum(int(count) * UNITS[unit] for count, unit in parts)
    return timedelta(seconds=min(seconds, FOR_EVER.total_seconds()))


def danger(
    waiting_since: datetime | None, configuration: Mapping[str, str], now: datetime
) -> Danger | None:
    """Say whether the file that waits longest has waited for half of the retention."""
    keeps = retention(configuration)
    if waiting_since is None or now - waiting_since < keeps / 2:
        return None
    return Danger(waiting_since=waiting_since, retention=keeps)


def instant(text: str) -> datetime | None:
    """Read a time; None for one that nobody can read, such as of a meta that was edited."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)
