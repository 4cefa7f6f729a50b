"""Guards of the journal: stray entries, overtaken entries and start notes of batches.

`blizzard journal new` replaces a journal. A process that read the old one and was suspended could
still create the entry that was next there, leaving a gap in the new journal. The lease, which
`journal new` takes, prevents that for runs, but commands that append alongside a run have no lease.
So both check afterwards and withdraw an entry that does not follow its predecessor. A batch that
follows a clean-up must not name files that the clean-up deleted.

A start note is written before a batch opens its first file and deleted when the batch is journaled.
A later process that finds it knows that its predecessor died. The note is advisory: a stale one
makes later batches smaller, and loses nothing.
"""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from blizzard.model.settings import PipelineSettings
from blizzard.model.stores import source_uris_of
from lakebed import layout
from lakebed.columns.schema import Schema
from lakebed.documents.entry import Entry, Started, decode, digest, encode
from lakebed.errors import (
    ColumnsPromoted,
    FilesCollected,
    JournalConflict,
    LakeError,
    SourcesReplaced,
)
from lakebed.journal import JournalReader
from lakebed.storage.store import AlreadyThere, Reader, Store
from lakebed.units import plural

TRIES = 3

Found = TypeVar("Found")


def append_planned(
    store: Store, pipeline: str, plan: Callable[[], tuple[Found, Entry | None]]
) -> tuple[Found, Entry | None]:
    """Append the entry that `plan` returns, if any; return the plan and the entry.

    If a batch was appended first, the plan may be outdated, so plan again.
    """
    for _try in range(TRIES):
        found, entry = plan()
        if entry is None or append_beside(store, entry):
            return found, entry
    raise JournalConflict(
        "batches are being journaled faster than this can be recorded; nothing was done, try again",
        path=store.describe(layout.journal_folder(pipeline)),
    )


def append_beside(store: Store, entry: Entry) -> bool:
    """Write an operator's entry; return False if another entry has its number.

    If the journal was replaced since it was read, withdraw the entry and raise JournalConflict.
    """
    path, body = layout.journal_entry(entry.pipeline, entry.sequence), encode(entry)
    # An existing entry may be ours, if the store's client lost the response.
    if isinstance(store.create(path, body), AlreadyThere) and store.get(path) != body:
        return False
    if withdraw_stray(store, entry):
        raise JournalConflict(
            "the journal was replaced while this command was running; nothing was done, try again",
            path=store.describe(layout.journal_folder(entry.pipeline)),
        )
    return True


def withdraw_stray(store: Store, entry: Entry) -> bool:
    """Withdraw our entry if it does not follow its predecessor; return whether it was withdrawn.

    Nothing can build on it, since both programs refuse a journal with a broken chain.
    """
    if entry.sequence == 0:
        return False
    journal = JournalReader(store, entry.pipeline)
    before = journal.body(entry.sequence - 1)
    if before is not None and digest(before) == entry.previous:
        return False
    if journal.body(entry.sequence) != encode(entry):
        return False
    store.delete(layout.journal_entry(entry.pipeline, entry.sequence))
    return True


def refuse_collected(first: Entry, ours: Entry) -> None:
    """Raise if a batch names a file that a clean-up is about to delete. Pure."""
    taken = set(first.deleted) & {
        *(file.filename for file in ours.data_files),
        *(layout.outbox(ours.pipeline, file.filename) for file in ours.files),
        *(file.filename for file in ours.quarantine_files),
    }
    letters = {uri.rpartition("/")[2] for uri in ours.dlq}
    taken |= {path for path in first.deleted if path.rpartition("/")[2] in letters}
    if taken:
        raise FilesCollected(
            f"blizzard gc (entry {first.sequence}) has deleted {plural(len(taken), 'file')} of a "
            "batch that was not journaled yet; its source files are read again. Make gc leave "
            "younger files alone: --older-than must be longer than a batch takes",
            file=min(taken),
        )


def refuse_collected_since(store: Reader, sequence: int, entry: Entry) -> None:
    """Raise if a clean-up after entry `sequence` deleted files that the entry names."""
    for first in JournalReader(store, entry.pipeline).entries(sequence):
        try:
            refuse_collected(first, entry)
        except FilesCollected as collected:
            raise JournalConflict(
                f"blizzard gc (entry {first.sequence}) has deleted what was written for this "
                "command; nothing was done, try again, and give gc a longer --older-than",
                path=store.describe(layout.journal_folder(entry.pipeline)),
            ) from collected


def refuse_promoted(first: Entry, ours: Entry) -> None:
    """Raise if a batch was written without a column that was promoted meanwhile. Pure.

    The batch may have found the same column with another type, and later batches would continue
    without the promoted one. Declared columns are not affected.
    """
    if not ours.files or first.columns is None:
        return
    known = () if ours.columns is None else ours.columns.fields
    adds = first.files and not set(first.columns.fields) <= set(known)
    fills = first.operation == "overwrite" and not first.left_out and first.columns != ours.columns
    if not (adds or fills):
        return
    raise ColumnsPromoted(
        f"a command (entry {first.sequence}, {first.kind}) has added a column while a batch ran; "
        "the batch's source files are read again with that column",
        entry=first.sequence,
    )


def refuse_replaced(first: Entry, ours: Entry) -> None:
    """Raise if a batch read source files that replaced other rows meanwhile. Pure."""
    again = {record.key for record in first.readings} & {record.key for record in ours.readings}
    if again:
        raise SourcesReplaced(
            f"blizzard retract (entry {first.sequence}) read {min(again)} at the same time as a "
            "batch; the batch's other source files are read again",
            entry=first.sequence,
        )


def started_before(store: Reader, pipeline: str, entry: int) -> Started:
    """Return how often a batch was started by processes that died with it."""
    path = layout.batch_started(pipeline, entry)
    body = store.get(path)
    return Started() if body is None else decode(Started, body, path)


class StartNote:
    """A pipeline's note that it started a batch."""

    def __init__(self, store: Store, pipeline: str, entry: Callable[[], int]) -> None:
        """`entry` returns the number of the next batch."""
        self._store = store
        self._pipeline = pipeline
        self._entry = entry
        self._noted = -1
        """The batch whose start this process has noted."""
        self._left = -1
        """The batch with a stored note, from this process or an earlier one."""

    def read(self) -> Started:
        """Return how often the next batch was started by processes that died with it."""
        entry = self._entry()
        found = started_before(self._store, self._pipeline, entry)
        if found != Started():
            self._left = entry
        return found

    def write(self, note: Started) -> None:
        """Note that the next batch is about to read files, once per process."""
        entry = self._entry()
        if self._noted != entry:
            self._store.replace(layout.batch_started(self._pipeline, entry), encode(note))
            self._noted = self._left = entry

    def take_back(self) -> None:
        """Withdraw this process's note, since the batch did not kill it."""
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
                # Deletion works on a full disk, which may be why the batch failed.
                self._store.delete(path)
                self._left = -1
            self._noted = -1

    def remove(self) -> None:
        """Remove the note of a journaled batch; a stale one is never read again."""
        if self._left >= 0:
            with contextlib.suppress(LakeError):
                self._store.delete(layout.batch_started(self._pipeline, self._left))
        self._noted = self._left = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryColumns:
    """The columns of a batch's files."""

    table_schema: dict[str, Any]
    """As a Delta schema."""
    found: Schema | None = None
    """The columns that the next batch starts with; None if all are declared."""


def identity_of(settings: PipelineSettings, run_id: str) -> Entry:
    """Return the common part of a run's entries: pipeline, sources, schema.

    Journal, time, number and actions are filled in for each entry.
    """
    template = settings.sink.template
    return Entry(
        kind="open",
        pipeline=settings.name,
        journal="",
        sequence=0,
        run=run_id,
        created="",
        previous=None,
        handoff=settings.sink.handoff,
        source_uris=source_uris_of(settings),
        table_schema=settings.table_schema.delta(),
        partition_columns=template.keys if template else (),
    )


def columns_after(last: Entry | None, declared: dict[str, Any]) -> EntryColumns:
    """Return the columns for an entry without data files, keeping those found so far.

    `last` is the last entry with data files, `declared` the configured schema.
    """
    if last is not None and last.columns is not None:
        return EntryColumns(table_schema=last.table_schema, found=last.columns)
    return EntryColumns(table_schema=declared)
