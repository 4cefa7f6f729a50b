"""When a row group is full, and when a file is. Pure."""

from dataclasses import dataclass

from blizzard.model.settings import RollingPolicy
from blizzard.model.source.forecast import FULL_ENOUGH


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenFile:
    """What is known of a file that is being written."""

    encoded: int
    """Bytes of the row groups that are closed."""
    buffered: int
    """Arrow bytes that wait for the next row group."""
    ratio: float
    """Encoded bytes per Arrow byte, as seen so far; 1 before the first row group."""
    age: float = 0.0
    """Seconds since it was opened."""


def row_group_is_full(file: OpenFile, policy: RollingPolicy) -> bool:
    """Close the row group when enough is buffered, or when the file is to be closed with it."""
    return file.buffered > 0 and (
        file.buffered >= policy.row_group_size
        or file.encoded + file.buffered * file.ratio >= policy.file_size
        or file.age >= policy.rollover
    )


def file_is_full(file: OpenFile, policy: RollingPolicy) -> bool:
    """Roll when what is encoded has reached the target, or when the file has been open too long.

    A file that lacks a twentieth of the target is full, too.
    """
    return file.encoded >= policy.file_size * FULL_ENOUGH or file.age >= policy.rollover
