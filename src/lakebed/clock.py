"""Time, waiting and new ids, injected so that a test can control them."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import UUID


def uuid7(milliseconds: int, random: bytes) -> UUID:
    """Build the UUIDv7 of an instant: it sorts by time, and ten random bytes keep it unique."""
    number = (milliseconds & (1 << 48) - 1) << 80 | int.from_bytes(random[:10], "big")
    number = number & ~(0xF << 76) | 0x7 << 76
    number = number & ~(0x3 << 62) | 0x2 << 62
    return UUID(int=number)


@dataclass(frozen=True, slots=True)
class Clock:
    """The time, waiting and new ids. It can be pickled: Spark tasks carry their own copy."""

    seconds: Callable[[], float] = field(default=time.time)
    randomness: Callable[[int], bytes] = field(default=os.urandom)
    sleep: Callable[[float], object] = field(default=time.sleep)
    """Sleeps for a number of seconds."""

    def now(self) -> datetime:
        """Return the time, in UTC."""
        return datetime.fromtimestamp(self.seconds(), UTC)

    def milliseconds(self) -> int:
        """Return the time as Delta writes it."""
        return int(self.seconds() * 1000)

    def fresh_id(self) -> UUID:
        """Return a unique id that sorts after earlier ones."""
        return uuid7(self.milliseconds(), self.randomness(10))


def rfc3339(at: datetime) -> str:
    """Return a time in UTC with milliseconds, as `2026-01-02T03:04:05.678Z`."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
