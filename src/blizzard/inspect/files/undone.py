"""Retractions that penguin has passed over: the old rows stay, and no new ones have come."""

from collections.abc import Callable, Iterable, Iterator

from blizzard.model.files import IngestedFile
from lakebed.dataclass import dataclass
from lakebed.documents.entry import Entry
from lakebed.journal import JournalReader

NOT_APPLIED = "not_applied"
"""The reason of a file whose rows were to come in the place of others, and did not."""
ReadIn = Callable[[str, int], int | None]
"""Answers which entry, before another, read a source file last; None where none did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
    """What an entry that was passed over says of one source file."""

    entry: int
    is_read: bool
    """Whether rows of it were to come in the place of others."""
    old: IngestedFile | None
    """What is in the table of it; None where nothing was before the entry."""


def undone(entries: Iterable[Entry], read_in: ReadIn) -> dict[str, Undone]:
    """Return the source files that entries without effect name, by key; the newest entry counts."""
    found: dict[str, Undone] = {}
    for entry in entries:
        for record in entry.sources:
            if record.failure is not None:
                continue
            before = found.get(record.key)
            old = None if before is None else before.old
            if record.retracted:
                at = read_in(record.key, entry.sequence)
                old = IngestedFile(key=record.key, size=record.size, etag=record.etag, entry=at)
            found[record.key] = Undone(
                entry=entry.sequence, is_read=entry.has_read(record.key), old=old
            )
    return found


def read_before(journal: JournalReader, without_effect: frozenset[int]) -> ReadIn:
    """Return the way to find the entry with the rows of a file; it is asked for seldom."""

    def read_in(key: str, number: int) -> int | None:
        return next((one.sequence for one in _readings(key, number)), None)

    def _readings(key: str, number: int) -> Iterator[Entry]:
        for before in range(number - 1, -1, -1):
            entry = None if before in without_effect else journal.entry(before)
            if entry is not None and entry.has_read(key):
                yield entry

    return read_in
