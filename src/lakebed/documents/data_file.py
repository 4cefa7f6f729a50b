"""One finished Parquet file, and the facts that its footer gives."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from lakebed.layout import TablePath

Bound = str | int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnStatistics:
    """What is known of one column of one file.

    `minimum` and `maximum` are as the Delta protocol writes them and never exclude a row: a long
    string is cut so that the bound still holds, a timestamp is rounded outwards to milliseconds, a
    decimal is a text of all its digits.
    Both are None where no sound bound is known (floats, booleans, binary, all-null columns).
    """

    null_count: int
    minimum: Bound = None
    maximum: Bound = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedFile:
    """One Parquet file under its final name, complete in the store."""

    filename: TablePath
    size: int
    record_count: int
    partition_values: Mapping[str, str | None]
    source_file: str | None
    """The source file's URI, or None where several small ones share the file."""
    source_files: tuple[str, ...] = ()
    """All source files with rows in it, as keys of the entry's `sources`."""
    unit: str
    """The work unit; its outputs stand or fall together."""
    statistics: Mapping[str, ColumnStatistics] = field(default_factory=dict)
    """By column or, inside structs, by path: `user.id`. A name with a dot in it is in backticks."""
    modification_time: int
    """Milliseconds since the epoch, as Delta writes it."""
