"""Finished Parquet files with the facts of their footers, and the files that replace others."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, NamedTuple

from pydantic import PlainSerializer

from lakebed.columns.row_tracking import RowColumns
from lakebed.layout import TablePath

Bound = str | int | float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnStatistics:
    """What is known of one column of one file.

    `minimum` and `maximum` are as the Delta protocol writes them and never exclude a row: a long
    string is cut so that the bound still holds, a timestamp is rounded outwards to milliseconds, a
    decimal is a text of all its digits.
    Both are None where no sound bound is known (booleans, binary, all-null columns, and floats
    that may be NaN).
    """

    null_count: int
    minimum: Bound = None
    maximum: Bound = None


class Run(NamedTuple):
    """Rows that follow each other in a data file, and the records of the source they come from.

    Written as `[source, first, rows, records]`: the next `rows` rows come, in order, from the
    records `first` to `first + records - 1`. If both counts are equal, each record gave one row and
    the number of a row's record is known. If there are fewer rows, they come from some of these
    records: to find which, the source has to be read again.

    A task that reads a part of a large plain file does not know how many lines come before it.
    Where it is unknown at the time of the entry, `first` is null and two numbers follow:
    `[source, null, rows, records, byte, nth]`. The first record is then the `nth` of the lines that
    start at or after that byte. Without those two numbers, nothing but the source is known of the
    rows.
    """

    source: int
    """The place of the source file in `source_files`, from 0."""
    first: int | None
    """The number of the first record in the source file, from 1; every line counts."""
    rows: int
    records: int
    byte: int | None = None
    nth: int | None = None

    @property
    def is_exact(self) -> bool:
        """Whether each record gave one row."""
        return self.rows == self.records

    def after(self, lines: int) -> "Run":
        """Return the run with the records numbered, once the lines before its byte are counted."""
        if self.first is not None or self.nth is None:
            return self
        return self._replace(first=lines + self.nth, byte=None, nth=None)


def _written(runs: Sequence[Run]) -> list[Sequence[Any]]:
    return [run[:4] if run.byte is None else tuple(run) for run in runs]


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
    runs: Annotated[tuple[Run, ...], PlainSerializer(_written)] = ()
    """Which rows came from which records, in the order of the rows; nothing where unknown."""
    unit: str
    """The work unit; its outputs stand or fall together."""
    statistics: Mapping[str, ColumnStatistics] = field(default_factory=dict)
    """By column or, inside structs, by path: `user.id`. A name with a dot in it is in backticks."""
    modification_time: int
    """Milliseconds since the epoch, as Delta writes it."""
    row_columns: RowColumns | None = None
    """The columns in which rows that were in other files keep their ids; None where none do."""
    vector: str | None = None
    """The key of its deletion vector, if it has one and leaves the table; new files have none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OldFile:
    """A data file of the table that a rewrite takes out of it."""

    path: TablePath
    size: int
    rows: int
    """Those that are not deleted."""
    left_out: int = 0
    """The rows of these that leave the table."""
    vector: str | None = None
    """The key of its deletion vector."""
    deleted: int = 0
    """The rows that the vector deletes: the new files do not hold them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewrite:
    """Data files of one partition, and those with the rest of their rows, in their order.

    A new file that holds all rows of one old file has them from the same sources, and need not name
    these. Any other says itself where its rows came from. With `sorted_by` the rows are in another
    order, and say it themselves, in the column `_file`.
    """

    old: tuple[OldFile, ...]
    new: tuple[FinishedFile, ...] = ()
    """None if no row is left."""
    sorted_by: tuple[str, ...] = ()
    partition_values: Mapping[str, str | None] = field(default_factory=dict)
    """Those of the old files if there is no new one."""

    @property
    def rows(self) -> int:
        """Count the rows of the old files that are not deleted."""
        return sum(one.rows for one in self.old)

    @property
    def left_out(self) -> int:
        """Count the rows that leave the table."""
        return sum(one.left_out for one in self.old)

    @property
    def has_fewer_rows(self) -> bool:
        """Whether the new files lack rows of the old ones."""
        return any(one.left_out or one.deleted for one in self.old)

    def old_files(self) -> tuple[FinishedFile, ...]:
        """Return the old files with what their removal records."""
        return tuple(
            FinishedFile(
                filename=one.path,
                size=one.size,
                record_count=one.rows,
                partition_values=(
                    self.new[0].partition_values if self.new else self.partition_values
                ),
                source_file=None,
                unit="",
                modification_time=0,
                vector=one.vector,
            )
            for one in self.old
        )
