"""How much is read, held in memory and listed at a time."""

from dataclasses import dataclass
from fractions import Fraction

from lakebed.units import plural

# Far below what Python's own parser can take, so that the answer never depends on the caller.
MAX_DEPTH = 500


MAX_LINE_BYTES = 128 << 20

BLOCK_BYTES = 1 << 20
COLUMNS_OF_A_BLOCK = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeLimits:
    """How much is decoded at a time, and how many names of values without a column are reported."""

    block_bytes: int = BLOCK_BYTES
    """About so many bytes of lines make a batch of few columns."""
    most_blocks: int = 4
    """A batch of many columns is made of the bytes of so many."""
    max_cells: int = 4_000_000
    """The most values in a batch."""
    short_bytes: int = 64 * 1024
    """Up to this much of lines the calls cost more than the bytes do."""
    most_together: int = 256
    """The most short files that are read together."""
    max_names: int = 100
    """The most names that are reported of a file; values of all others are counted under one."""
    max_name_characters: int = 200

    def batch_bytes(self, columns: int) -> int:
        """Return how many bytes of lines make a batch of so many columns, nested ones included.

        What a column costs beside its values is paid for every batch. Few columns have enough rows
        in a block that stays in the processor's cache; to many, that cost matters more.
        """
        return self.block_bytes * max(1, min(self.most_blocks, columns // COLUMNS_OF_A_BLOCK))


@dataclass(frozen=True, slots=True, kw_only=True)
class LookLimits:
    """What a quick look at a source may cost; beyond that, the source is listed whole."""

    names: int = 5000
    """Names that it may list of a folder."""
    ranges: int = 200
    """Ranges that it may list."""
    page: int = 1000
    """Names that one request lists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotLimits:
    """When what a journal says is written down, so that the next start need not read it all."""

    entries: int = 100
    """Entries after which a snapshot is written."""
    names: int = 5000
    """Names of ingested files that are held in memory before they are written to a segment."""
    block: int = 1000
    """Rows in a block of a segment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuarantineLimits:
    """What turns the quarantine of bad lines back into the failure of their file.

    Both count what one batch reads of a file; a file that several tasks share counts as one.
    """

    max_records: int | None = None
    """The most bad lines; None where there is no limit."""
    max_ratio: float | None = None
    """The highest share of lines that are bad, of those that are neither blank nor left out."""

    def too_many(self, bad: int) -> str | None:
        """Return which limit so many bad lines exceed in a file of any size."""
        if self.max_records is None or bad <= self.max_records:
            return None
        lines = plural(bad, "line")
        return f"{lines} cannot be read, and error_handling.max_bad_records is {self.max_records}"

    def exceeded(self, bad: int, records: int) -> str | None:
        """Return which limit so many bad lines of so many exceed; None where none does."""
        # A share is compared as it is written: 0.1 is a tenth.
        if self.max_ratio is None or bad <= Fraction(repr(self.max_ratio)) * records:
            return self.too_many(bad)
        share = f"{bad:,} of {plural(records, 'line')}"
        return f"{share} cannot be read, and error_handling.max_bad_ratio is {self.max_ratio}"
