"""The origins of the rows of data files, source files and records, by journal entries. Pure.

A data file that takes the place of another has the rows of that one in their order, or says itself
where its rows came from.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from lakebed.documents.entry import Entry
from lakebed.documents.records import FinishedFile, Rewrite


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
    told: set[str] = field(default_factory=set)
    """Every data file of which an entry says where its rows came from, of interest or not."""
    steps: dict[str, tuple[Rewrite, FinishedFile]] = field(default_factory=dict)
    """The rewrites of one file each, by the file that took its place."""

    def take(self, entry: Entry, *, in_effect: bool = True) -> None:
        """Add an entry; without effect, it has not put files in the place of others."""
        is_step = entry.operation != "rewrite"
        for file in entry.data_files if in_effect and not is_step else entry.files:
            self.told.add(file.filename)
            if self.keeps(entry, file):
                self.written[file.filename] = FileOrigins(file=file, entry=entry)
        for one in entry.rewrites if in_effect and is_step else ():
            self.steps |= {new.filename: (one, new) for new in one.new}

    def first(self, path: str) -> str:
        """Return the file that had the rows of a data file first."""
        while path in self.steps:
            path = self.steps[path][0].old[0].path
        return path

    def teller(self, path: str) -> str:
        """Return the file whose entry says where the rows of a data file came from."""
        while path in self.steps and not self.steps[path][1].source_files:
            path = self.steps[path][0].old[0].path
        return path

    def is_told(self, path: str) -> bool:
        """Whether an entry says where the rows of a data file came from."""
        return self.first(path) in self.told

    def file(self, path: str) -> FinishedFile | None:
        """Return a data file with the origins of its rows; None where they are not known."""
        if path not in self.steps:
            return self.written[path].file if path in self.written else None
        rewrite, new = self.steps[path]
        if new.source_files:
            return new
        old = self.file(rewrite.old[0].path)
        if old is None:
            return None
        return replace(
            new,
            source_file=old.source_file,
            source_files=old.source_files,
            runs=() if rewrite.has_fewer_rows else old.runs,
        )

    def find(self, path: str) -> FileOrigins | None:
        """Return a data file with the origins of its rows, and the entry that has read them."""
        first, file = self.written.get(self.first(path)), self.file(path)
        return None if first is None or file is None else replace(first, file=file)
