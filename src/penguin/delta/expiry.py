"""Which files of a Delta log have expired, and what replaces them. Pure.

A version may be removed once it is older than the table's log retention, if there is a checkpoint
from which every version that stays can be read. A checkpoint in parts counts once all of its parts
are there.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from lakebed.dataclass import dataclass
from lakebed.layout import log_version_number
from lakebed.storage.store import ObjectFacts
from penguin.model.interval import parse_interval

CLEANS_UP = "delta.enableExpiredLogCleanup"
KEEPS_VERSIONS = "delta.logRetentionDuration"
DELTA_DEFAULT = timedelta(days=30)

CHECKPOINT = re.compile(
    r"(?P<version>\d{20})\.checkpoint(?:\.(?P<part>\d{10})\.(?P<of>\d{10}))?\.parquet"
)
BESIDE = re.compile(r"(?P<version>\d{20})\.crc|\d{20}\.(?P<last>\d{20})\.compacted\.json")
"""What is derived from versions: checksums, and several of them in one file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A checkpoint of which all parts are there."""

    version: int
    parts: tuple[ObjectFacts, ...]


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
    versions = {
        number: one for one in files if (number := log_version_number(one.path)) is not None
    }
    if not versions:
        return Expired()
    # The first version that is kept. Whatever follows it is kept, too, however old it looks.
    stays = next((n for n in sorted(versions) if versions[n].modified >= since), max(versions))
    standing = [one for one in checkpoints(files) if one.version <= stays]
    if not standing:
        return Expired()
    base = max(standing, key=lambda one: one.version)
    old = sorted(
        (number, one.path)
        for one in files
        if (number := number_of(one.path)) is not None
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


def checkpoints(listed: Iterable[ObjectFacts]) -> list[Checkpoint]:
    """Return the checkpoints that are whole: of one file, or with every one of their parts."""
    found: dict[tuple[int, int], dict[int, ObjectFacts]] = {}
    for one in listed:
        if named := CHECKPOINT.fullmatch(_name(one.path)):
            of = int(named["of"] or 0)
            found.setdefault((int(named["version"]), of), {})[int(named["part"] or 0)] = one
    return [
        Checkpoint(version=version, parts=tuple(parts[key] for key in sorted(parts)))
        for (version, of), parts in found.items()
        if set(parts) == (set(range(1, of + 1)) if of else {0})
        and all(one.size > 0 for one in parts.values())
    ]


def number_of(path: str) -> int | None:
    """Return the version that a file of a log belongs to; None for what must not be removed."""
    number = log_version_number(path)
    if number is not None:
        return number
    if named := CHECKPOINT.fullmatch(_name(path)):
        return int(named["version"])
    if named := BESIDE.fullmatch(_name(path)):
        return int(named["version"] or named["last"])
    return None


def _name(path: str) -> str:
    return path.rpartition("/")[2]
