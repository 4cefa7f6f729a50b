"""The origins of the rows of data files, source files and records, by journal entries. Pure.

A data file that takes the place of another has rows of that one in their order, and says which.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from lakebed.documents.entry import Entry
from lakebed.documents.records import FinishedFile


@dataclass(frozen=True, slots=True, kw_only=True)
class FileOrigins:
    """A data file with the origins of its rows."""

    file: FinishedFile
    entry: Entry
    """The entry that has read the rows, or compacted them: it says what the origins' keys mean."""


@dataclass(slots=True, kw_only=True)
class RowOrigins:
    """The origins of the rows of data files by some entries, taken in any order."""

    keeps: Callable[[Entry, FinishedFile], bool] = lambda _entry, _file: True
    """Whether the origins of a file that an entry wrote are of interest."""
    written: dict[str, FileOrigins] = field(default_factory=dict)
    """The files of batches, replays and compactions, by their paths."""
    traced: set[str] = field(default_factory=set)
    """Every data file of which an entry says where its rows came from, of interest or not."""
    steps: dict[str, tuple[str, FinishedFile]] = field(default_factory=dict)
    """The file that each replaced that took the place of one other, and itself."""

    def take(self, entry: Entry, *, in_effect: bool = True) -> None:
        """Add an entry; without effect, it has not put files in the place of others."""
        is_step = entry.operation != "rewrite"
        for file in entry.data_files if in_effect and not is_step else entry.files:
            self.traced.add(file.filename)
            if self.keeps(entry, file):
                self.written[file.filename] = FileOrigins(file=file, entry=entry)
        for one in entry.rewrites if in_effect and is_step else ():
            self.steps |= {new.filename: (one.old[0].path, new) for new in one.new}

    def first(self, path: str) -> str:
        """Return the file that had the rows of a data file first."""
        while path in self.steps:
            path = self.steps[path][0]
        return path

    def is_traced(self, path: str) -> bool:
        """Whether an entry says where the rows of a data file came from."""
        return self.first(path) in self.traced

    def file(self, path: str) -> FinishedFile | None:
        """Return a data file with the origins of its rows; None where they are unknown."""
        written = self.written.get(path)
        if path in self.steps:
            file = self.steps[path][1]
        elif written is not None:
            file = written.file
        else:
            return None
        return file if file.source_files else None

    def find(self, path: str) -> FileOrigins | None:
        """Return a data file with the origins of its rows, and the entry that has read them."""
        first, file = self.written.get(self.first(path)), self.file(path)
        return None if first is None or file is None else replace(first, file=file)
