"""The entries of a journal that name a file, found without reading all of them where possible."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from itertools import takewhile

from lakebed.documents.entry import Entry
from lakebed.documents.records import FinishedFile
from lakebed.journal import JournalReader
from lakebed.layout import file_name
from lakebed.listing.watermark import named_at
from lakebed.seek import seek
from lakebed.storage.ahead import ahead

AROUND = 2
"""Entries before and after the likely one that are looked at, too: clocks differ a little."""
MOST_PARTS = 200
"""Entries that are gone back through for the earlier parts of a file."""


def naming_data_file(journal: JournalReader, name: str, last: int) -> Entry | None:
    """Return the entry that a data file was written for, or the one that deletes it; else None.

    The UUID in its name says when it was begun, and the entries when they were written. Only where
    that does not lead to it, every entry is looked through: nothing less shows that none names it.
    """
    entry = likely_naming(journal, name, last)
    if entry is not None:
        return entry

    def mentions(entry: Entry) -> bool:
        is_deleted = any(file_name(path) == name for path in entry.deleted)
        return is_deleted or data_file_of(entry, name) is not None

    return next(mentioning(journal, name, last, mentions), None)


def likely_naming(journal: JournalReader, name: str, last: int) -> Entry | None:
    """Return the entry that a data file was written for, by the time in its name; None if unsure.

    A few entries are read, however many there are.
    """
    at = named_at(f"{name}.parquet")
    if at is None or last <= 0:
        return None
    sought = seek(at, 0, last, lambda numbers: _created(journal, numbers))
    middle = last if sought is None else sought
    near = range(max(0, middle - AROUND), min(middle + AROUND, last) + 1)
    entries = filter(None, map(journal.entry, near))
    return next((entry for entry in entries if data_file_of(entry, name) is not None), None)


def data_file_of(entry: Entry, name: str) -> FinishedFile | None:
    """Return the data file of a name that was written for an entry."""
    return next((file for file in entry.data_files if file_name(file.filename) == name), None)


def came_for(entry: Entry, path: str) -> tuple[str, ...]:
    """Return the data files that an entry puts in the place of another."""
    rewrites = (one for one in entry.rewrites if any(old.path == path for old in one.old))
    return tuple(file.filename for one in rewrites for file in one.new)


def became(journal: JournalReader, path: str, entries: range) -> set[str]:
    """Return a data file and all that some entries put in its place, directly or not."""
    found, waiting = {path}, [path]
    while waiting:
        old = waiting.pop()
        for entry in _holding(journal, file_name(old).encode(), entries):
            new = set(came_for(entry, old)) - found
            found |= new
            waiting += new
    return found


def mentioning(
    journal: JournalReader, text: str, last: int, accepts: Callable[[Entry], bool]
) -> Iterator[Entry]:
    """Yield the entries in which a text stands, the newest first; only those are decoded."""
    word = text.rpartition("/")[2].encode()
    return filter(accepts, _holding(journal, word, range(last, -1, -1)))


def dealing_with_lines(journal: JournalReader, first: int, last: int) -> Iterator[Entry]:
    """Yield the entries after which bad lines wait no more, the oldest first.

    They replay them, discard them, or give them up with the rows of their file. Only these entries
    are decoded.
    """
    return _holding(journal, b'"resolved":[{', range(first, last + 1))


def _holding(journal: JournalReader, word: bytes, every: range) -> Iterator[Entry]:
    """Yield the entries in which a word stands, in the order of their numbers."""
    # A name with a character that JSON escapes stands there in another way.
    is_escaped = b'"' in word or b"\\" in word
    for number, body in ahead(journal.body, every):
        entry = journal.entry(number) if body and (is_escaped or word in body) else None
        if entry is not None:
            yield entry


def reading(journal: JournalReader, key: str, last: int) -> Entry | None:
    """Return the newest entry, up to one, that read a source file; None where none did."""
    path = key.partition(":")[2]
    return next(mentioning(journal, path, last, lambda entry: entry.has_read(key)), None)


def retracting(journal: JournalReader, key: str, last: int) -> Entry | None:
    """Return the retraction of a source file, up to an entry; None where it was read since."""

    def names(entry: Entry) -> bool:
        return entry.kind in ("batch", "retract") and any(
            record.key == key and record.failure is None for record in entry.sources
        )

    newest = next(mentioning(journal, key.partition(":")[2], last, names), None)
    return newest if newest is not None and newest.kind == "retract" else None


def parts_until(journal: JournalReader, key: str, entry: Entry | None) -> tuple[Entry, ...]:
    """Return the entries that read the lines of a file, up to one of them; none without one.

    One batch goes on where the one before has stopped, so they stand close together.
    """
    if entry is None:
        return ()
    found = [entry]
    skipped = _skipped(entry, key)
    number = entry.sequence - 1
    while skipped and number > max(0, entry.sequence - MOST_PARTS):
        before = journal.entry(number)
        number -= 1
        if before is None:
            break
        # What comes with a retraction is read whole: it is no part of anything.
        parts = before.readings if before.is_batch else ()
        record = next((each for each in parts if each.key == key), None)
        if record is None or record.failure is not None:
            continue
        found.append(before)
        skipped = record.skipped
    return tuple(reversed(found))


def last_part(journal: JournalReader, first: Entry, key: str) -> int:
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


def _skipped(entry: Entry, key: str) -> int:
    return max((each.skipped for each in entry.readings if each.key == key), default=0)


def _created(journal: JournalReader, numbers: Sequence[int]) -> list[int | None]:
    return [
        None if entry is None else round(datetime.fromisoformat(entry.created).timestamp() * 1000)
        for _number, entry in ahead(journal.entry, numbers)
    ]
