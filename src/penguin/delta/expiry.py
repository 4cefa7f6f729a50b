"""Which files of a Delta log have expired, and what replaces them. Pure.

A version may be removed once it is older than the table's log retention, if there is a checkpoint
from which every version that stays can be read. A checkpoint in parts counts once all of its parts
are there.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from lakebed.deltalog.retention import parse_interval
from lakebed.deltalog.segment import (
    Checkpoint,
    checkpoints,
    newest,
    removable_version,
    versions_in,
)
from lakebed.storage.store import ObjectFacts

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
    base: Checkpoint | None = None
    """What stands for them."""


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
    since = min(now, max((one.modified for one in files), default=now)) - keep_for
    versions = versions_in(files)
    if not versions:
        return Expired()
    # The first version that is kept. Whatever follows it is kept, too, however old it looks.
    stays = next((n for n in sorted(versions) if versions[n].modified >= since), max(versions))
    base = newest((one for one in checkpoints(files) if one.is_classic), stays)
    if base is None:
        return Expired()
    old = sorted(
        (number, one.path)
        for one in files
        if (number := removable_version(one.path)) is not None
        and number < base.version
        and one.modified < since
    )
    gone = {path for _, path in old}
    left = [number for number in versions if versions[number].path not in gone]
    return Expired(
        files=tuple(path for _, path in old),
        versions=len(versions) - len(left),
        first=min(left, default=None),
        base=base,
    )
