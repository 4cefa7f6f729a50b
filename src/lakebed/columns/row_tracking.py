"""The columns of data files in which rows keep the ids that they had in other files. Pure.

A Delta table that tracks its rows numbers those of a file from the file's first id on, unless the
file says it of a row itself: in two columns that no schema names, whose names are properties of the
table. A row that is moved to another file keeps its id, and the version that wrote it, by them.
"""

from collections.abc import Mapping
from dataclasses import dataclass

FIRST_ROW_ID = "baseRowId"
ROW_VERSION = "defaultRowCommitVersion"
"""What the action of a file calls the two."""
ROW_IDS = "delta.rowTracking.materializedRowIdColumnName"
ROW_VERSIONS = "delta.rowTracking.materializedRowCommitVersionColumnName"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowColumns:
    """What the two columns are called in files."""

    ids: str
    versions: str

    @property
    def names(self) -> tuple[str, str]:
        """Name both."""
        return self.ids, self.versions


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstRow:
    """What a log says of the rows of a file that does not say it itself."""

    id: int
    """The id of the first row; those of the others follow it, in their order."""
    version: int
    """The version that wrote them."""


def row_columns(configuration: Mapping[str, str]) -> RowColumns | None:
    """Return what the columns are called; None where a table does not say."""
    ids, versions = configuration.get(ROW_IDS), configuration.get(ROW_VERSIONS)
    return RowColumns(ids=ids, versions=versions) if ids and versions else None
