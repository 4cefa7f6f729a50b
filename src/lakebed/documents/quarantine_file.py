"""One quarantine file: Parquet below `_blizzard/` with lines that could not be read."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from lakebed.layout import TablePath


@dataclass(frozen=True, slots=True, kw_only=True)
class BadLines:
    """The bad lines of one source file in one quarantine file."""

    source: str
    """The source file, as a key of the entry's `sources`."""
    lines: int
    first: int | None
    """The number of the first one in the source file; None while lines before it are unread."""
    code: str
    """What is wrong with the first one."""
    message: str
    """The same in words, which show nothing of the data unless that is asked for."""
    field: str | None = None
    """Where in the record it is wrong, if it is not all of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuarantineFile:
    """Bad lines under a name that is used once, complete in the store."""

    filename: TablePath
    size: int
    record_count: int
    unit: str
    """The work unit; it stands or falls together with the data files of the unit."""
    sources: tuple[BadLines, ...]
    lines_before: int | None = 0
    """How many lines of the source file come before the one that the file counts as its first:
    0 unless it is of a part of a large file, None while some lines before that part are unread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """A quarantine file that counts no longer: its lines were dealt with, but for some."""

    old: TablePath
    lines: int
    """How many of its lines wait no longer: the kind of the entry says why."""
    left: QuarantineFile | None = None
    """The file with the lines that go on waiting; None where none does."""
    replayed: Mapping[str, int] = field(default_factory=dict)
    """How many of these became rows, one each, by their source files."""
    filtered: Mapping[str, int] = field(default_factory=dict)
    """How many of these gave no row, by their source files, because `source.skip_records` passes
    them over by now."""

    @property
    def rows(self) -> int:
        """Return how many rows its lines gave."""
        return sum(self.replayed.values())

    @property
    def passed_over(self) -> int:
        """Return how many of its lines were passed over."""
        return sum(self.filtered.values())
