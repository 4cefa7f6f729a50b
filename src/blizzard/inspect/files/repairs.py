"""Source files whose rows `penguin fsck --repair` took out of the table. Read-only."""

from collections.abc import Callable, Collection, Iterable
from itertools import takewhile

from blizzard.inspect.files.entry_rows import MOST_PARTS
from lakebed import layout
from lakebed.documents.entry import Entry
from lakebed.documents.repaired import TakenOut, decode_repair
from lakebed.journal import JournalReader
from lakebed.storage.store import Reader

StillOut = Callable[[Iterable[str]], Collection[str]]
"""Answers which of some data files that a repair took out have not come back since."""


def taken_out(store: Reader, pipeline: str, still_out: StillOut) -> dict[str, int]:
    """Return the source files with rows in files that a repair took out, by key.

    The number is the last entry whose rows are gone: a file that a later entry has read is in the
    table. Where nothing was ever repaired, this costs one listing.
    """
    files = [one for one in repaired(store) if one.pipeline == pipeline]
    out = still_out([one.path for one in files]) if files else ()
    journal = JournalReader(store, pipeline)
    entries: dict[int, Entry | None] = {}
    found: dict[str, int] = {}
    for one in files:
        if one.path not in out:
            continue
        if one.entry not in entries:
            entries[one.entry] = journal.entry(one.entry)
        entry = entries[one.entry]
        for file in () if entry is None else entry.data_files:
            if file.filename == (one.written or one.path):
                for key in file.source_files:
                    last = _last_part(journal, entry, key) if entry is not None else one.entry
                    found[key] = max(last, found.get(key, 0))
    return found


def _last_part(journal: JournalReader, first: Entry, key: str) -> int:
    """Return the entry up to which a file was read on that an entry has read in part."""
    last, entry, until = first.sequence, first, first.sequence + MOST_PARTS
    while any(one.key == key and not one.complete for one in entry.readings):
        following = (journal.entry(number) for number in range(last + 1, until))
        parts = (one for one in takewhile(bool, following) if one is not None and one.has_read(key))
        later = next(parts, None)
        if later is None or not any(one.key == key and one.skipped for one in later.readings):
            break
        last, entry = later.sequence, later
    return last


def repaired(store: Reader) -> list[TakenOut]:
    """Return all files that repairs took out, in their order."""
    listed = sorted(one.path for one in store.objects(layout.REPAIRED))
    bodies = ((path, store.get(path)) for path in listed)
    return [
        file
        for path, body in bodies
        if body is not None
        for file in decode_repair(body, path).files
    ]
