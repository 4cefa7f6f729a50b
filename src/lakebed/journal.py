"""Reading a journal, in use or kept aside: its entries, the receipt, the protocol. Read-only.

An entry that is missing is None; one that cannot be read is an error for every caller.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

from lakebed import layout
from lakebed.clock import Clock
from lakebed.documents.entry import (
    DirectoryProtocol,
    Entry,
    Kind,
    Receipt,
    decode,
    decode_entry,
    digest,
)
from lakebed.documents.losses import Accepted, decode_accepted
from lakebed.errors import DocumentUnreadable, StoreUnavailable
from lakebed.storage.store import Reader


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredEntry:
    """An entry with the bytes that it was read from."""

    entry: Entry
    body: bytes

    @property
    def digest(self) -> str:
        """Return what the next entry repeats as `previous`."""
        return digest(self.body)

    def successor(self, kind: Kind, clock: Clock) -> Entry:
        """Return the entry that a command appends after this one, without any action yet."""
        run, created = str(clock.fresh_id()), clock.now().isoformat()
        return self.entry.successor(kind, previous=self.digest, run=run, created=created)


def journals_aside(store: Reader, pipeline: str) -> list[str]:
    """List the folders of a pipeline's journals that others have taken the place of."""
    folders = store.folders(f"{layout.OURS}/{pipeline}")
    return sorted(folder.rstrip("/") for folder in folders if layout.is_journal_aside(folder))


class JournalReader:
    """One journal of a table directory."""

    def __init__(
        self,
        store: Reader,
        pipeline: str,
        *,
        folder: str | None = None,
        full_paths: bool = False,
    ) -> None:
        """`folder` is where a journal is kept aside; else it is the one in use.

        With `full_paths` an error names what cannot be read by its URI, not by its path below the
        table.
        """
        self._store = store
        self._receipt = layout.receipt(pipeline)
        self._folder = folder or layout.journal_folder(pipeline)
        self._name = store.describe if full_paths else str

    def where(self, sequence: int) -> str:
        """Return how errors name an entry, whether it exists or not."""
        return self._name(layout.entry_in(self._folder, sequence))

    def body(self, sequence: int) -> bytes | None:
        """Return an entry as it is stored; None where there is none."""
        return self._store.get(layout.entry_in(self._folder, sequence))

    def stored(self, sequence: int) -> StoredEntry | None:
        """Return an entry with its bytes; None where there is none."""
        body = self.body(sequence)
        return None if body is None else self._decoded(sequence, body)

    def entry(self, sequence: int) -> Entry | None:
        """Return an entry; None where there is none."""
        stored = self.stored(sequence)
        return None if stored is None else stored.entry

    def listed_body(self, sequence: int) -> bytes:
        """Return an entry that a listing has named as it is stored; raise where it is not there."""
        body = self.body(sequence)
        if body is None:
            path = layout.entry_in(self._folder, sequence)
            raise StoreUnavailable("an entry that was listed cannot be read", path=path)
        return body

    def listed(self, sequence: int) -> StoredEntry:
        """Return an entry that a listing has named; raise where it is not there."""
        return self._decoded(sequence, self.listed_body(sequence))

    def numbers(self, after: int = -1) -> list[int]:
        """List which entries there are past a number, in their order."""
        start = layout.entry_in(self._folder, after) if after >= 0 else None
        return sorted(
            number
            for facts in self._store.objects(self._folder, after=start)
            if (number := layout.entry_sequence(facts.path)) is not None and number > after
        )

    def last(self) -> Entry | None:
        """Return the last entry; None where there is none."""
        numbers = self.numbers()
        return self.listed(numbers[-1]).entry if numbers else None

    def stored_entries(self, after: int = -1) -> Iterator[StoredEntry]:
        """Yield the entries past a number in their order, up to the last one; a gap is an error."""
        for number in count(after + 1):
            stored = self.stored(number) or self._written_since(number)
            if stored is None:
                return
            yield stored

    def entries(self, after: int = -1) -> Iterator[Entry]:
        """Yield what `stored_entries` does, without the bytes."""
        return (stored.entry for stored in self.stored_entries(after))

    def until_missing(self, after: int) -> Iterator[Entry]:
        """Yield the entries past a number, up to the first that is missing; nothing is listed."""
        for number in count(after + 1):
            entry = self.entry(number)
            if entry is None:
                return
            yield entry

    def receipt(self) -> Receipt | None:
        """Return what penguin has committed last; None before the first commit."""
        body = self._store.get(self._receipt)
        return None if body is None else decode(Receipt, body, self._name(self._receipt))

    def _decoded(self, sequence: int, body: bytes) -> StoredEntry:
        return StoredEntry(entry=decode_entry(body, self.where(sequence)), body=body)

    def _written_since(self, missing: int) -> StoredEntry | None:
        """Return an entry that is there after all; with only a later one there, it is a gap."""
        # The missing one is listed, too, if it is there by now.
        listed = self.numbers(missing - 1)
        if not listed:
            return None
        if listed[0] != missing:
            raise DocumentUnreadable(
                f"entry {missing} is missing, but this one exists; restore the missing one from "
                "a backup, or start a new journal with blizzard journal new",
                path=layout.entry_in(self._folder, listed[0]),
            )
        return self.listed(missing)


def entries_in(
    store: Reader, pipeline: str, folder: str, *, before_empty: bool = False
) -> Iterator[StoredEntry]:
    """Yield the entries of a journal's folder in their order; a gap is an error.

    With `before_empty` a last entry without content ends the journal; else it is an error, too.
    """
    journal = JournalReader(store, pipeline, folder=folder, full_paths=True)
    numbers = journal.numbers()
    if before_empty and numbers and journal.body(numbers[-1]) == b"":
        del numbers[-1]
    before: str | None = None
    for place, number in enumerate(numbers):
        stored = journal.stored(place) if place == number else None
        if stored is None:
            raise DocumentUnreadable(
                f"entry {place} of a journal is missing, so it is not known which files it "
                "references",
                path=journal.where(place),
            )
        if stored.entry.previous != before:
            raise DocumentUnreadable(
                "this entry does not follow the one before it: the journal was changed by hand",
                path=journal.where(place),
            )
        before = stored.digest
        yield stored


def latest_protocol(store: Reader) -> DirectoryProtocol | None:
    """Read the protocol in force: the document with the highest number."""
    number = latest_protocol_number(store)
    if number is None:
        return None
    path = layout.protocol(number)
    body = store.get(path)
    return None if body is None else decode(DirectoryProtocol, body, path)


def latest_protocol_number(store: Reader) -> int | None:
    """Return the highest number of a protocol document; None where there is none yet."""
    listed = (layout.protocol_number(facts.path) for facts in store.objects(layout.PROTOCOL))
    return max((number for number in listed if number is not None), default=None)


def accepted_losses(store: Reader) -> dict[int, Accepted]:
    """Return the losses of rows that an operator has accepted, by the versions that caused them."""
    listed = sorted(one.path for one in store.objects(layout.ACCEPTED))
    bodies = ((path, store.get(path)) for path in listed)
    found = [decode_accepted(body, path) for path, body in bodies if body is not None]
    return {one.version: one for one in found}
