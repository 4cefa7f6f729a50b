"""Data files that become fewer: the same rows, in the files that take their place."""

from collections.abc import Mapping
from dataclasses import dataclass

from lakebed.documents.data_file import FinishedFile
from lakebed.layout import TablePath


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedFile:
    """A data file of the table whose rows are in another one from then on."""

    path: TablePath
    size: int
    rows: int
    """Those that are not deleted."""
    vector: str | None = None
    """The key of its deletion vector."""
    deleted: int = 0
    """The rows that the vector deletes: they are in none of the new files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """Data files of one partition, and those with all of their rows that are not deleted.

    Without `sorted_by` there is one new file, which has the rows of the old ones one after the
    other, and its runs say where they came from. With it, the rows are in another order: they say
    themselves, in the column `_file`, which source file they came from.
    """

    old: tuple[MergedFile, ...]
    new: tuple[FinishedFile, ...]
    sorted_by: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        """Count the rows of the old files that are not deleted."""
        return sum(one.rows for one in self.old)

    @property
    def partition_values(self) -> Mapping[str, str | None]:
        """Return the partition of all of them."""
        return self.new[0].partition_values if self.new else {}

    def old_files(self) -> tuple[FinishedFile, ...]:
        """Return the old files, as far as their removal must say what they were."""
        return tuple(
            FinishedFile(
                filename=one.path,
                size=one.size,
                record_count=one.rows,
                partition_values=self.partition_values,
                source_file=None,
                unit="",
                modification_time=0,
                vector=one.vector,
            )
            for one in self.old
        )
