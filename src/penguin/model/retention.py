"""How long a file may wait for its commit before a VACUUM may delete it. Pure.

VACUUM deletes what the log does not name once it is older than the table's retention of deleted
files. A file that waits is not named yet. At half of that time there is still time to do something.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from penguin.model.interval import MICROSECONDS, parse_interval

RETENTION_PROPERTY = "delta.deletedFileRetentionDuration"
DELTA_DEFAULT = timedelta(days=7)
READ_BY_ALL = re.compile(rf"interval \d+ ({'|'.join(MICROSECONDS)})s?")
"""The form that every engine reads. Some take any other for the default, and delete by it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Danger:
    """Files have been waiting so long that a VACUUM may soon delete them."""

    waiting_since: datetime
    retention: timedelta

    def sentence(self) -> str:
        """Return since when, what may happen when, and what to do."""
        days = self.retention.total_seconds() / 86_400
        return (
            f"files have been waiting for their commit since {self.waiting_since.isoformat()}; "
            f"the table keeps files that its log does not reference for {days:g} days, then a "
            "VACUUM may delete them: see `penguin held` and `penguin status`, or raise "
            "delta.deletedFileRetentionDuration (written as `interval 30 days`, which every "
            "engine reads)"
        )


def retention(configuration: Mapping[str, str]) -> timedelta:
    """Return how long a table keeps files that its log does not name, whoever runs VACUUM.

    An engine that cannot read the value takes the default, and so does this where nobody can.
    """
    text = configuration.get(RETENTION_PROPERTY, "")
    keeps = parse_interval(text)
    if keeps is None:
        return DELTA_DEFAULT
    return keeps if READ_BY_ALL.fullmatch(text) else min(keeps, DELTA_DEFAULT)


def danger(
    waiting_since: datetime | None, configuration: Mapping[str, str], now: datetime
) -> Danger | None:
    """Whether the file that waits longest has waited for half of the retention."""
    keeps = retention(configuration)
    if waiting_since is None or now - waiting_since < keeps / 2:
        return None
    return Danger(waiting_since=waiting_since, retention=keeps)


def instant(text: str) -> datetime | None:
    """Read a time; None for one that cannot be read, such as that of an edited meta."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)
