"""When a batch starts: big loads give big files, small loads give bounded delay. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from blizzard.model.files import SourceFile
from blizzard.model.settings import RollingPolicy
from blizzard.plan.units import PARQUET_PER_NDJSON, weight


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """Source files that are listed and not yet read."""

    files: Sequence[SourceFile]
    oldest: datetime
    """When the first of them arrived."""
    newest: datetime
    """When the last of them arrived."""
    more: bool
    """Whether there are more than one batch may hold."""


def should_start(
    waiting: Waiting, policy: RollingPolicy, *, parallelism: int, now: datetime
) -> bool:
    """Start when the files fill a file on every core, have waited enough, or no more come."""
    expected = sum(weight(file) for file in waiting.files) * PARQUET_PER_NDJSON
    return (
        waiting.more
        or expected >= policy.file_size * parallelism
        or (now - waiting.oldest).total_seconds() >= policy.rollover
        or (now - waiting.newest).total_seconds() >= policy.inactivity
    )
