"""Data files to rewrite, the transform to apply to them, and the outcome. Pure.

These values cross from the driver to Spark's executors and back, so they are frozen and pickle.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from blizzard.model.bad_lines import steps
from blizzard.model.predicate import Predicate
from blizzard.model.settings import UploadSettings
from lakebed.clock import Clock
from lakebed.columns.column_mapping import ColumnMapping
from lakebed.columns.schema import Field, Schema
from lakebed.documents.deletion_vector import DeletionVector
from lakebed.documents.records import FinishedFile, FirstRow, RowColumns, Run
from lakebed.layout import TablePath
from lakebed.storage.options import Location
from lakebed.types import ParquetCodec


@dataclass(frozen=True, slots=True)
class FillTarget:
    """The column to fill."""

    field: Field

    @property
    def name(self) -> str:
        """Return the name of the column."""
        return self.field.name

    @property
    def source(self) -> tuple[str, ...]:
        """Return the path of its values in a record."""
        return self.field.path

    def alone(self) -> Schema:
        """Return the columns of a record that has only this field.

        It is not required, since a value that does not fit must be kept.
        """
        return Schema((replace(self.field, nullable=True),))

    def holds(self, path: str) -> bool:
        """Whether a value at a path of `_rescued` is or contains the field's value."""
        found = steps(path)
        return bool(found) and tuple(found) == self.source[: len(found)]


def find_target(schema: Schema, name: str) -> FillTarget | None:
    """Find a column by its name or by the path of its values in a record; None without one."""
    wanted = steps(name)
    by_name = (one for one in schema.fields if [one.name] == wanted)
    by_path = (one for one in schema.fields if list(one.path) == wanted)
    found = next(by_name, None) or next(by_path, None)
    return None if found is None else FillTarget(found)


def with_target(schema: Mapping[str, Any], target: FillTarget) -> dict[str, Any]:
    """Return a table's Delta schema with the column as rewritten files have it."""
    kind = target.field.delta_type()
    fields = [
        {**one, "type": kind} if one["name"] == target.name else one for one in schema["fields"]
    ]
    new: Any = target.alone().delta()
    is_there = target.name in {one["name"] for one in fields}
    return {**schema, "fields": fields if is_there else [*fields, *new["fields"]]}


@dataclass(frozen=True, slots=True)
class RowRanges:
    """Rows of a data file by half-open ranges of row indexes, counted from 0."""

    ranges: tuple[tuple[int, int], ...]
    """In order, without overlaps."""

    @property
    def rows(self) -> int:
        """Count the rows."""
        return sum(end - start for start, end in self.ranges)


@dataclass(frozen=True, slots=True)
class RowsWhere:
    """Rows of a data file for which a condition is true; one that depends on a null is not."""

    predicate: Predicate


Rows = RowRanges | RowsWhere


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveFile:
    """A data file in the table's current snapshot."""

    path: TablePath
    size: int
    rows: int | None
    """All rows in it, including deleted ones."""
    partition_values: Mapping[str, str | None]
    first_row: FirstRow | None = None
    """The base of its row ids, if the table tracks rows."""
    vector: DeletionVector | None = None
    """The deleted rows, which a rewritten file does not have."""
    without: Rows | None = None
    """The rows to remove."""
    source_files: tuple[str, ...] = ()
    runs: tuple[Run, ...] = ()
    """The records that its rows came from, according to the journal; empty if unknown."""

    def with_origins(self, file: FinishedFile) -> "ActiveFile":
        """Return the file with the origins of its rows from the journal."""
        return replace(self, source_files=file.source_files, runs=file.runs)

    @property
    def deleted(self) -> int:
        """Count the rows that its deletion vector deletes."""
        return 0 if self.vector is None else self.vector.rows

    @property
    def live_rows(self) -> int | None:
        """Count the rows that are not deleted; None if the log has no row count."""
        return None if self.rows is None else self.rows - self.deleted

    @property
    def vector_key(self) -> str | None:
        """Return the key of its deletion vector."""
        return None if self.vector is None else self.vector.key


@dataclass(frozen=True, slots=True)
class FillColumn:
    """Fill a field from `_rescued`; all rows stay, in the same order."""

    target: FillTarget


@dataclass(frozen=True, slots=True)
class DropRows:
    """Remove each file's `without` rows; the others stay unchanged, in the same order."""


@dataclass(frozen=True, slots=True)
class Concatenate:
    """Merge the files of each group into one; no row changes."""

    row_group_size: int
    """Arrow bytes."""


Transform = FillColumn | DropRows | Concatenate
NO_COLUMNS = Schema(())


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewriting:
    """What all tasks of one rewrite share."""

    sink: Location
    codec: ParquetCodec
    upload: UploadSettings
    marks: Mapping[str, str]
    """Footer metadata of every file: the pipeline and the journal's id."""
    clock: Clock
    transform: Transform = DropRows()
    columns: Schema = NO_COLUMNS
    """The columns of the table; a file has those that existed when it was written, except for
    partition columns."""
    mapping: ColumnMapping | None = None
    """The physical names of the columns in data files; None without column mapping."""
    row_columns: RowColumns | None = None
    """The columns that hold row ids; None without row tracking."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileGroup:
    """Files of one partition that one task rewrites; several only for `Concatenate`."""

    files: tuple[ActiveFile, ...]
    """In the order of their rows."""

    @property
    def file(self) -> ActiveFile:
        """Return the file of a group of one."""
        (file,) = self.files
        return file


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewritten:
    """The outcome of one group."""

    group: FileGroup
    new: tuple[FinishedFile, ...] = ()
    """The files that supersede the group; none if nothing in it changes, or no row is left."""
    removed: int = 0
    """Rows that were dropped."""
    removed_from: Mapping[str, int] = field(default_factory=dict)
    """Dropped rows by the URI of their source object, if the rows name it."""
    taken: int = 0
    """Rows whose value moved to the column."""
    left: int = 0
    """Rows whose value stays in `_rescued`: it does not fit, or the column already has one."""

    @property
    def old(self) -> ActiveFile:
        """Return the file of a group of one."""
        return self.group.file


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteFailed:
    """Why one group could not be rewritten."""

    group: FileGroup
    code: str
    message: str
    retryable: bool


RewriteOutcome = Rewritten | RewriteFailed
