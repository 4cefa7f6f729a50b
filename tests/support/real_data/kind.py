"""A kind of file that people have, made from a seed: its bytes, and the records that are in them.

The shapes are those of the real thing, with its oddities; the values are made up. The same seed and
size give the same records in the same files.
"""

import gzip
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

Record = dict[str, Any]
Records = Callable[[int, int], list[Record]]
Files = Callable[[Sequence[Record]], Mapping[str, bytes]]

FIRST_DAY = datetime(2024, 5, 10, tzinfo=UTC)
HEX = "0123456789abcdef"
LETTERS = "abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of file: who writes it, in which form, and what is in it."""

    name: str
    records: Records
    """Made from a seed and a number of records, in the order of the files' names."""
    written: Files
    """How records are spread over files."""
    source: Mapping[str, Any] = field(default_factory=dict)
    """Settings of `source` beyond its path that such files need."""

    def files(self, seed: int, size: int) -> Mapping[str, bytes]:
        """Return the files with the records of the same seed and size."""
        return self.written(self.records(seed, size))


def line(record: Record) -> str:
    """Return a record as most programs write it: compact, with characters beyond ASCII as such."""
    return json.dumps(record, ensure_ascii=False, separators=(",", ":"))


def lines(records: Sequence[Record]) -> bytes:
    """Return records as NDJSON."""
    return "".join(line(record) + "\n" for record in records).encode()


def halves(records: Sequence[Record]) -> tuple[Sequence[Record], Sequence[Record]]:
    """Return records as two files have them."""
    middle = (len(records) + 1) // 2
    return records[:middle], records[middle:]


def as_lines(*names: str) -> Files:
    """Spread records evenly over NDJSON files, whose names are in order."""

    def written(records: Sequence[Record]) -> Mapping[str, bytes]:
        each = -(-len(records) // len(names))
        return {
            name: squeezed(name, lines(records[at * each : (at + 1) * each]))
            for at, name in enumerate(names)
        }

    return written


def squeezed(name: str, data: bytes) -> bytes:
    """Compress what a file's name says is compressed; without a time, which would differ."""
    return gzip.compress(data, mtime=0) if name.endswith(".gz") else data


def moment(random: Random, *, days: int = 30) -> datetime:
    """Return a moment with microseconds within some days."""
    return FIRST_DAY + timedelta(microseconds=random.randrange(days * 86_400 * 10**6))


def zulu(at: datetime, *, digits: int = 0) -> str:
    """Write a moment as `2024-05-10T01:02:03Z`, with digits of a fraction."""
    fraction = f".{at.microsecond:06}"[: digits + 1] if digits else ""
    return f"{at:%Y-%m-%dT%H:%M:%S}{fraction}Z"


def hexadecimal(random: Random, digits: int) -> str:
    """Return so many hexadecimal digits."""
    return "".join(random.choices(HEX, k=digits))


def word(random: Random, letters: int) -> str:
    """Return so many letters."""
    return "".join(random.choices(LETTERS, k=letters))


def uuid(random: Random) -> str:
    """Return a UUID of version 4."""
    digits = hexadecimal(random, 30)
    return f"{digits[:8]}-{digits[8:12]}-4{digits[12:15]}-a{digits[15:18]}-{digits[18:]}"


def ipv4(random: Random) -> str:
    """Return an address of version 4."""
    return ".".join(str(random.randrange(1, 255)) for _ in range(4))


def is_one_in(random: Random, count: int) -> bool:
    """Whether this is the one case in so many."""
    return random.randrange(count) == 0
