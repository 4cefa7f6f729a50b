"""How long a file may wait for its commit before somebody's VACUUM may take it. Pure.

VACUUM deletes what the log does not name once it is older than the table's retention of deleted
files. A file that waits is not named yet. At half of that time there is still time to do something.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

RETENTION_PROPERTY = "delta.deletedFileRetentionDuration"
DELTA_DEFAULT = timedelta(days=7)
UNITS = {"week": 7 * 86_400, "day": 86_400, "hour": 3600, "minute": 60, "second": 1}
PART = re.compile(r"(\d+)\s+(week|day|hour|minute|second)s?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Danger:
    """Files have waited for so long that a VACUUM comes near."""

    waiting_since: datetime
    retention: timedelta


def retention(configuration: Mapping[str, str]) -> timedelta:
    """Say how long a table keeps files that its log does not name.

    A value that cannot be read counts as the default, which is the shortest that VACUUM accepts.
    """
    text = configuration.get(RETENTION_PROPERTY, "").lower().strip()
    parts = PART.findall(text)
    if not parts or PART.sub("", text.removeprefix("interval")).strip():
        return DELTA_DEFAULT
    return timedelta(seconds=sum(int(count) * UNITS[unit] for count, unit in parts))


def danger(
    waiting_since: datetime | None, configuration: Mapping[str, str], now: datetime
) -> Danger | None:
    """Say whether the file that waits longest has waited for half of the retention."""
    keeps = retention(configuration)
    if waiting_since is None or now - waiting_since < keeps / 2:
        return None
    return Danger(waiting_since=waiting_since, retention=keeps)
