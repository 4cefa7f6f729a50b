"""A note that a batch was begun, so that a batch that kills its process is noticed.

It is written before the first file is opened and taken away when the batch is journaled. One that
a later process finds is of a process that died. It is advisory: one that stays behind makes later
batches take fewer files, and loses nothing by itself.
"""

import contextlib
from collections.abc import Callable
from dataclasses import replace

from lakebed import layout
from lakebed.documents.entry import Started, decode, encode
from lakebed.errors import LakeError
from lakebed.storage.store import Reader, Store


def started_before(store: Reader, pipeline: str, entry: int) -> Started:
    """Return how often a batch was started by processes that died with it."""
    path = layout.batch_started(pipeline, entry)
    body = store.get(path)
    return Started() if body is None else decode(Started, body, path)


class StartNote:
    """One pipeline's note of the batch that it has begun."""

    def __init__(self, store: Store, pipeline: str, entry: Callable[[], int]) -> None:
        """`entry` returns the number of the next batch."""
        self._store = store
        self._pipeline = pipeline
        self._entry = entry
        self._noted = -1
        """The batch whose start this process has written down."""
        self._left = -1
        """The batch of which there is a note, from this process or an earlier one."""

    def read(self) -> Started:
        """Return how often the next batch was started by processes that died with it."""
        entry = self._entry()
        found = started_before(self._store, self._pipeline, entry)
        if found != Started():
            self._left = entry
        return found

    def write(self, note: Started) -> None:
        """Write down that files of the next batch are about to be read, once in a process."""
        entry = self._entry()
        if self._noted != entry:
            self._store.replace(layout.batch_started(self._pipeline, entry), encode(note))
            self._noted = self._left = entry

    def take_back(self) -> None:
        """Withdraw the note of this process's start of the next batch: it did not die with it."""
        entry = self._entry()
        if self._noted != entry:
            return
        with contextlib.suppress(LakeError):
            found = self.read()
            note = replace(
                found,
                starts=max(0, found.starts - 1),
                alone_starts=max(0, found.alone_starts - 1),
            )
            path = layout.batch_started(self._pipeline, entry)
            if note.starts:
                self._store.replace(path, encode(note))
            else:
                # Deleting takes no room: a full disk may be why the batch came to nothing.
                self._store.delete(path)
                self._left = -1
            self._noted = -1

    def remove(self) -> None:
        """Remove the note of a batch that is journaled; one that stays is never read again."""
        if self._left >= 0:
            with contextlib.suppress(LakeError):
                self._store.delete(layout.batch_started(self._pipeline, self._left))
        self._noted = self._left = -1
