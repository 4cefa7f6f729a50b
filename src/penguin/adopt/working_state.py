"""What one look at a folder has read of its footers, in a file outside of the folder.

A folder may have a million files. What is read of one is written once, in the order of the files'
names, and read again side by side with a listing, so that no more than one of them is in memory.
"""

import gzip
import pickle
from collections.abc import Iterable, Iterator
from pathlib import Path

from penguin.adopt.folder import FileRecord
from penguin.model.foreign_file import Candidate


def keep_records(path: Path, records: Iterable[FileRecord]) -> Iterator[FileRecord]:
    """Write what was read of each file to a file, and yield it."""
    with gzip.open(path, "wb", compresslevel=1) as kept:
        for record in records:
            pickle.dump(record, kept)
            yield record


class KnownFiles:
    """What a look has read, asked for in the order of the files' names."""

    def __init__(self, path: Path) -> None:
        self._records = _records(path)
        self._next = next(self._records, None)

    def of(self, one: Candidate) -> FileRecord | None:
        """Return what was read of this very content; None if it was not read."""
        known = None
        while self._next is not None and self._next.found.path <= one.path:
            known = self._next if self._next.found == one else None
            self._next = next(self._records, None)
        return known


def _records(path: Path) -> Iterator[FileRecord]:
    if not path.exists():
        return
    with gzip.open(path, "rb") as kept:
        while kept.peek(1):
            yield pickle.load(kept)  # noqa: S301 - this process has written it
