"""Journal entries: as stored, by the files they name, and as the origins of rows. Read-only."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import takewhile

from blizzard.handoff.held_rows import Fates, WithheldFiles, read_withheld
from lakebed import layout
from lakebed.documents.entry import Entry, Receipt, digest
from lakebed.documents.pending_meta import HeldState
from lakebed.documents.records import FinishedFile
from lakebed.errors import LakeError, Whose
from lakebed.journal import JournalReader
from lakebed.layout import file_name
from lakebed.listing.watermark import named_at
from lakebed.seek import seek
from lakebed.storage.objects import ahead
from lakebed.storage.store import Reader


class NoSuchEntry(LakeError, code="no_such_entry", whose=Whose.USER):
    """The journal has no entry of this number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryRecord:
    """One entry as it is stored."""

    entry: Entry
    path: str
    digest: str
    size: int
    committed: bool
    """By the receipt, which may briefly lag behind the log."""
    follows: bool
    """Whether the digests of this entry and its neighbours form a chain."""
    is_last: bool
    withheld: WithheldFiles
    """Its files whose rows are not in the table, even if the entry is committed."""
    rejected: bool = False
    """Whether it replaces files and penguin rejected it."""


def stored_entries(
    store: Reader, pipeline: str, fates: Fates, *, limit: int = 1, number: int | None = None
) -> list[EntryRecord]:
    """Return the last entries of a journal, newest first, or one by number.

    If there is no such entry, the error names the existing ones.
    """
    receipt = JournalReader(store, pipeline).receipt()
    journal = JournalReader(store, pipeline, full_paths=True)
    numbers = journal.numbers()
    if number is not None and number not in numbers:
        there = (
            f"there are entries {numbers[0]} to {numbers[-1]}"
            if numbers
            else "the journal is empty"
        )
        raise NoSuchEntry(
            f"the journal of pipeline {pipeline} has no entry {number}; {there}",
            path=store.describe(layout.journal_folder(pipeline)),
        )
    withheld = read_withheld(store, pipeline, fates)
    wanted = reversed(numbers[-limit:]) if number is None else [number]
    return [_kept(journal, one, numbers, receipt, withheld, fates) for one in wanted]


def _kept(
    journal: JournalReader,
    number: int,
    numbers: list[int],
    receipt: Receipt | None,
    withheld: WithheldFiles,
    fates: Fates,
) -> EntryRecord:
    stored = journal.listed(number)
    entry, own = stored.entry, stored.digest
    before = digest(journal.listed_body(number - 1)) if number - 1 in numbers else None
    follows = entry.previous == before
    if number + 1 in numbers:
        follows = follows and journal.listed(number + 1).entry.previous == own
    mine, rejected, mark = withheld.of(number), False, entry.replacement_mark
    try:
        rejected = entry.replaces and fates([mark]).get(mark) == HeldState.GONE
    except LakeError as trouble:
        mine = replace(mine, error=mine.error or str(trouble))
    return EntryRecord(
        entry=entry,
        path=journal.where(number),
        digest=own,
        size=len(stored.body),
        committed=receipt is not None
        and receipt.journal == entry.journal
        and number <= receipt.sequence,
        follows=follows,
        is_last=number == numbers[-1],
        withheld=mine,
        rejected=rejected,
    )


AROUND = 2
"""Entries to read on both sides of the likely one, since clocks differ."""
MOST_PARTS = 200
"""The most entries to search backwards for earlier parts of a file."""


def naming_data_file(journal: JournalReader, name: str, last: int) -> Entry | None:
    """Return the entry that a data file was written for, or that deletes it; None without one.

    The entry is sought by the time in the file's UUID. If that fails, every entry is searched.
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

    Only a few entries are read.
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
    """Return the data file with this name in an entry."""
    return next((file for file in entry.data_files if file_name(file.filename) == name), None)


def came_for(entry: Entry, path: str) -> tuple[str, ...]:
    """Return the data files that replace another one in an entry."""
    rewrites = (one for one in entry.rewrites if any(old.path == path for old in one.old))
    return tuple(file.filename for one in rewrites for file in one.new)


def mentioning(
    journal: JournalReader, text: str, last: int, accepts: Callable[[Entry], bool]
) -> Iterator[Entry]:
    """Yield the entries that contain a text, newest first; only those are decoded."""
    word = text.rpartition("/")[2].encode()
    return filter(accepts, _holding(journal, word, range(last, -1, -1)))


def dealing_with_lines(journal: JournalReader, first: int, last: int) -> Iterator[Entry]:
    """Yield the entries that resolve bad lines, oldest first; only those are decoded.

    They replay or discard them, or retract the rows of their file.
    """
    return _holding(journal, b'"resolved":[{', range(first, last + 1))


def _holding(journal: JournalReader, word: bytes, every: range) -> Iterator[Entry]:
    """Yield the entries that contain a word, in the order of `every`."""
    # A name with characters that JSON escapes cannot be found as bytes.
    is_escaped = b'"' in word or b"\\" in word
    for number, body in ahead(journal.body, every):
        entry = journal.entry(number) if body and (is_escaped or word in body) else None
        if entry is not None:
            yield entry


def reading(journal: JournalReader, key: str, last: int) -> Entry | None:
    """Return the newest entry up to `last` that read a source file; None without one."""
    path = key.partition(":")[2]
    return next(mentioning(journal, path, last, lambda entry: entry.has_read(key)), None)


def retracting(journal: JournalReader, key: str, last: int) -> Entry | None:
    """Return the retraction of a source file up to an entry; None if it was read since."""

    def names(entry: Entry) -> bool:
        return entry.kind in ("batch", "retract") and any(
            record.key == key and record.failure is None for record in entry.sources
        )

    newest = next(mentioning(journal, key.partition(":")[2], last, names), None)
    return newest if newest is not None and newest.kind == "retract" else None


def parts_until(journal: JournalReader, key: str, entry: Entry | None) -> tuple[Entry, ...]:
    """Return the entries that read a file in parts, up to `entry`; none without it.

    Each batch continues where the previous one stopped, so the entries are close together.
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
        # Content of a retraction is always read whole, never in parts.
        parts = before.readings if before.is_batch else ()
        record = next((each for each in parts if each.key == key), None)
        if record is None or record.failure is not None:
            continue
        found.append(before)
        skipped = record.skipped
    return tuple(reversed(found))


def last_part(journal: JournalReader, first: Entry, key: str) -> int:
    """Return the last entry that continued reading a file which `first` read in part."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class FileOrigins:
    """A data file with the origins of its rows."""

    file: FinishedFile
    entry: Entry
    """The entry that read or compacted the rows; it defines the keys of the origins."""


@dataclass(slots=True, kw_only=True)
class RowOrigins:
    """The origins of the rows of data files, from entries in any order.

    A file that replaces another one has its rows in the same order, and names it.
    """

    keeps: Callable[[Entry, FinishedFile], bool] = lambda _entry, _file: True
    """Whether to keep the origins of a file of an entry."""
    written: dict[str, FileOrigins] = field(default_factory=dict)
    """The files of batches, replays and compactions, by path."""
    traced: set[str] = field(default_factory=set)
    """Every data file whose origins some entry gives, kept or not."""
    steps: dict[str, tuple[str, FinishedFile]] = field(default_factory=dict)
    """For each replacement file, the path that it replaced, and the file itself."""

    def take(self, entry: Entry, *, in_effect: bool = True) -> None:
        """Add an entry; one that is not in effect replaced no files."""
        is_step = entry.operation != "rewrite"
        for file in entry.data_files if in_effect and not is_step else entry.files:
            self.traced.add(file.filename)
            if self.keeps(entry, file):
                self.written[file.filename] = FileOrigins(file=file, entry=entry)
        for one in entry.rewrites if in_effect and is_step else ():
            self.steps |= {new.filename: (one.old[0].path, new) for new in one.new}

    def first(self, path: str) -> str:
        """Return the original file of the rows of a data file."""
        while path in self.steps:
            path = self.steps[path][0]
        return path

    def is_traced(self, path: str) -> bool:
        """Whether an entry gives the origins of a data file's rows."""
        return self.first(path) in self.traced

    def file(self, path: str) -> FinishedFile | None:
        """Return a data file with the origins of its rows; None if unknown."""
        written = self.written.get(path)
        if path in self.steps:
            file = self.steps[path][1]
        elif written is not None:
            file = written.file
        else:
            return None
        return file if file.source_files else None

    def find(self, path: str) -> FileOrigins | None:
        """Return a data file with its origins and the entry that read the rows."""
        first, file = self.written.get(self.first(path)), self.file(path)
        return None if first is None or file is None else replace(first, file=file)
