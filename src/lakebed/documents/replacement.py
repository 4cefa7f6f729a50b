"""A data file that goes out of the table, and the one that comes in its place."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from lakebed.documents.data_file import FinishedFile
from lakebed.layout import TablePath


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """A data file of the table, and the one with its rows, or the rest of them, in its place.

    The rows that stay are in the order in which they were. Where the new file has all rows of the
    old one it has them from the same sources; otherwise it says itself where they came from.
    """

    old: TablePath
    old_size: int
    new: FinishedFile | None = None
    """None where no row is left."""
    left_out: int = 0
    """The rows that leave the table."""
    partition_values: Mapping[str, str | None] = field(default_factory=dict)
    """Those of the old file; nothing where the new one says them."""
    vector: str | None = None
    """The key of the old file's deletion vector."""
    deleted: int = 0
    """The rows that the vector deleted before: the old file has them, the new one does not."""

    @property
    def has_fewer_rows(self) -> bool:
        """Whether the new file lacks rows of the old one."""
        return bool(self.left_out or self.deleted)

    def is_taken_by(self, path: str) -> bool:
        """Whether this is the file that comes in its place."""
        return self.new is not None and self.new.filename == path

    @property
    def old_file(self) -> FinishedFile:
        """Return the old file, as far as its removal must say what it was."""
        new = self.new
        return FinishedFile(
            filename=self.old,
            size=self.old_size,
            record_count=self.left_out + (0 if new is None else new.record_count),
            partition_values=self.partition_values if new is None else new.partition_values,
            source_file=None,
            unit="",
            modification_time=0,
            vector=self.vector,
        )
