"""Entries never outlive their journal: one that is in a journal it does not belong to is removed.

`blizzard journal new` puts another journal in the place of one. A process that read the old one and
was suspended in between could still create the entry that was next there, and so leave a gap in the
new one. The lease, which `journal new` takes, keeps a run from doing that. The commands that append
alongside a run have no lease. Both check afterwards: an entry that does not follow the one before
it is withdrawn. And a batch that comes after a clean-up names nothing that the clean-up deleted.
"""

from collections.abc import Callable
from typing import TypeVar

from lakebed import layout
from lakebed.documents.entry import Entry, digest, encode
from lakebed.errors import ColumnsPromoted, FilesCollected, JournalConflict, SourcesReplaced
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
