"""Read a journal, current or replaced: its entries, the receipt, the protocol. Read-only.

A missing entry is None; an unreadable one raises for every caller.
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
    """An entry with its stored bytes."""

    entry: Entry
    body: bytes

    @property
    def digest(self) -> str:
        """Return the digest that the next entry repeats as `previous`."""
        return digest(self.body)

    def successor(self, kind: Kind, clock: Clock) -> Entry:
        """Return the entry that a command appends after this one, without any action yet."""
        run, created = str(clock.fresh_id()), clock.now().isoformat()
        return self.entry.successor(kind, previous=self.digest, run=run, created=created)


def replaced_journals(store: Reader, pipeline: str) -> list[str]:
    """List the folders of a pipeline's replaced journals."""
    folders = store.folders(f"{layout.OURS}/{pipeline}")
    return sorted(folder.rstrip("/") for folder in folders if layout.is_replaced_journal(folder))


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
        """`folder` is that of a replaced journal; None for the current one.

        With `full_paths` errors name objects by URI, not by path below the table.
        """
        self._store = store
        self._receipt = layout.receipt(pipeline)
        self._folder = folder or layout.journal_folder(pipeline)
        self._name = store.describe if full_paths else str

    def where(self, sequence: int) -> str:
        """Return how errors name an entry, existing or not."""
        return self._name(layout.entry_in(self._folder, sequence))

    def body(self, sequence: int) -> bytes | None:
        """Return an entry's stored bytes; None without one."""
        return self._store.get(layout.entry_in(self._folder, sequence))

    def stored(self, sequence: int) -> StoredEntry | None:
        """Return an entry with its bytes; None without one."""
        body = self.body(sequence)
        return None if body is None else self._decoded(sequence, body)

    def entry(self, sequence: int) -> Entry | None:
        """Return an entry; None without one."""
        stored = self.stored(sequence)
        return None if stored is None else stored.entry

    def listed_body(self, sequence: int) -> bytes:
        """Return a listed entry's stored bytes; raise if it is missing."""
        body = self.body(sequence)
        if body is None:
            path = layout.entry_in(self._folder, sequence)
            raise StoreUnavailable("an entry that was listed cannot be read", path=path)
        return body

    def listed(self, sequence: int) -> StoredEntry:
        """Return a listed entry; raise if it is missing."""
        return self._decoded(sequence, self.listed_body(sequence))

    def numbers(self, after: int = -1) -> list[int]:
        """List the numbers of entries after a number, in order."""
        start = layout.entry_in(self._folder, after) if after >= 0 else None
        return sorted(
            number
            for facts in self._store.objects(self._folder, after=start)
            if (number := layout.entry_sequence(facts.path)) is not None and number > after
        )

    def last(self) -> Entry | None:
        """Return the last entry; None without one."""
        numbers = self.numbers()
        return self.listed(numbers[-1]).entry if numbers else None

    def stored_entries(self, after: int = -1) -> Iterator[StoredEntry]:
        """Yield the entries after a number in order, up to the last one; raise for a gap."""
        for number in count(after + 1):
            stored = self.stored(number) or self._written_since(number)
            if stored is None:
                return
            yield stored

    def entries(self, after: int = -1) -> Iterator[Entry]:
        """Yield the entries after a number in order, up to the last one; raise for a gap."""
        return (stored.entry for stored in self.stored_entries(after))

    def until_missing(self, after: int) -> Iterator[Entry]:
        """Yield the entries after a number, up to the first missing one, without a listing."""
        for number in count(after + 1):
            entry = self.entry(number)
            if entry is None:
                return
            yield entry

    def receipt(self) -> Receipt | None:
        """Return the receipt of the last commit; None before the first."""
        body = self._store.get(self._receipt)
        return None if body is None else decode(Receipt, body, self._name(self._receipt))

    def _decoded(self, sequence: int, body: bytes) -> StoredEntry:
        return StoredEntry(entry=decode_entry(body, self.where(sequence)), body=body)

    def _written_since(self, missing: int) -> StoredEntry | None:
        """Return an entry that was just written, None without one; raise for a gap."""
        # An entry written meanwhile is listed, too.
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
    """Yield the entries in a journal's folder in order; raise for a gap or a broken chain.

    With `before_empty` an empty last entry ends the journal; otherwise it raises, too.
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
    """Return the highest number of a protocol document; None without one."""
    listed = (layout.protocol_number(facts.path) for facts in store.objects(layout.PROTOCOL))
    return max((number for number in listed if number is not None), default=None)


def accepted_losses(store: Reader) -> dict[int, Accepted]:
    """Return the losses of rows that an operator accepted, by version."""
    listed = sorted(one.path for one in store.objects(layout.ACCEPTED))
    bodies = ((path, store.get(path)) for path in listed)
    found = [decode_accepted(body, path) for path, body in bodies if body is not None]
    return {one.version: one for one in found}
