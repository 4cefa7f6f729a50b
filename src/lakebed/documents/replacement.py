"""A data file that is written anew, and the one in whose place it comes."""

from dataclasses import dataclass

from lakebed.documents.data_file import FinishedFile
from lakebed.layout import TablePath


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """A data file of the table, and the one with the same rows in their order in its place."""

    old: TablePath
    old_size: int
    new: FinishedFile
