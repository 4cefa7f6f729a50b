"""Guards of the journal: who runs, which batch was begun, and entries that must be withdrawn.

`blizzard journal new` puts another journal in the place of one. A process that read the old one and
was suspended in between could still create the entry that was next there, and so leave a gap in the
new one. The lease, which `journal new` takes, keeps a run from doing that. The commands that append
alongside a run have no lease. Both check afterwards: an entry that does not follow the one before
it is withdrawn. And a batch that comes after a clean-up names nothing that the clean-up deleted.

A note is written before a batch opens its first file and deleted when the batch is journaled. A
later process that finds one knows that its predecessor died. The note is advisory: one that stays
behind makes later batches take fewer files, and loses nothing.
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


def append_what_is_found(
    store: Store, pipeline: str, look: Callable[[], tuple[Found, Entry | None]]
) -> tuple[Found, Entry | None]:
    """Append the operator's entry that a look calls for, if any; return what was found, and it.

    Where a batch was first, what was found may not hold any more: look again.
    """
    for _try in range(TRIES):
        found, entry = look()
        if entry is None or append_beside(store, entry):
            return found, entry
    raise JournalConflict(
        "batches are being journaled faster than this can be recorded; nothing was done, try again",
        path=store.describe(layout.journal_folder(pipeline)),
    )


def append_beside(store: Store, entry: Entry) -> bool:
    """Write an operator's entry in its place; return False where another entry stands there.

    Where the journal was replaced since it was read, the entry is taken back: a JournalConflict.
    """
    path, body = layout.journal_entry(entry.pipeline, entry.sequence), encode(entry)
    # One that is there may be our own, whose answer was lost inside of the store's client.
    if isinstance(store.create(path, body), AlreadyThere) and store.get(path) != body:
        return False
    if withdraw_stray(store, entry):
        raise JournalConflict(
            "the journal was replaced while this command was running; nothing was done, try again",
            path=store.describe(layout.journal_folder(entry.pipeline)),
        )
    return True


def withdraw_stray(store: Store, entry: Entry) -> bool:
    """Withdraw an entry of ours if it follows nothing; return whether it was withdrawn.

    Nothing can have been built on it: the next entry would have to follow it, and both programs
    refuse a journal in which one does not follow the other.
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
    """Raise if a batch names a file that a clean-up has announced to delete. Pure."""
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
    """Raise if a clean-up after entry `sequence` has deleted files that an entry is to name."""
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
    """Raise if a batch was written without a column that somebody has added meanwhile. Pure.

    It may have found the same column with another type, and the next batch would go on without it.
    What the configuration declares needs no such care: no batch finds it.
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
    """Raise if a batch has read what somebody has put in the place of other rows. Pure."""
    again = {record.key for record in first.readings} & {record.key for record in ours.readings}
    if again:
        raise SourcesReplaced(
            f"blizzard retract (entry {first.sequence}) has read {min(again)} while a batch read "
            "it, too; the batch's other source files are read again",
            entry=first.sequence,
        )


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


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryColumns:
    """The columns of a batch's files."""

    table_schema: dict[str, Any]
    """As Delta writes them."""
    found: Schema | None = None
    """As the next batch is to know them; None where the configuration says them all."""


def identity_of(settings: PipelineSettings, run_id: str) -> Entry:
    """Return what a run puts into each of its entries: pipeline, sources, schema.

    Journal, time, number and actions are those of the entry that is made of it.
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
    """Return the columns for an entry without data files: those that were found stay known.

    `last` is the last entry with data files, `declared` the table's schema as it is configured.
    """
    if last is not None and last.columns is not None:
        return EntryColumns(table_schema=last.table_schema, found=last.columns)
    return EntryColumns(table_schema=declared)
