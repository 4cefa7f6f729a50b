"""A journal to look into: its last entries, or one with everything that it says. It looks only."""

from dataclasses import dataclass

from blizzard.handoff.held_rows import Aside, Fates, read_aside
from blizzard.journal.state import entry_numbers, read_receipt
from lakebed import layout
from lakebed.documents.entry import Entry, Receipt, decode_entry, digest
from lakebed.errors import LakeError, StoreUnavailable, Whose
from lakebed.storage.store import Reader


class NoSuchEntry(LakeError):
    """The journal has no entry of this number."""

    code = "no_such_entry"
    whose = Whose.USER


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """One entry as it is stored."""

    entry: Entry
    path: str
    digest: str
    size: int
    committed: bool
    """True where the receipt says so; the receipt may lag behind the log for a moment."""
    follows: bool
    """Whether it names the digest of the entry before, and the entry after names its own."""
    is_last: bool
    aside: Aside
    """Its files whose rows are not in the table, though the entry may be committed."""


def last_entries(store: Reader, pipeline: str, limit: int, fates: Fates) -> list[Kept]:
    """Give the last entries of a journal, the newest first."""
    receipt = read_receipt(store, pipeline)
    numbers = entry_numbers(store, pipeline)
    aside = read_aside(store, pipeline, fates)
    return [
        _kept(store, pipeline, number, numbers, receipt, aside)
        for number in reversed(numbers[-limit:])
    ]


def entry_of(store: Reader, pipeline: str, number: int, fates: Fates) -> Kept:
    """Give one entry; where there is none of this number, say which there are."""
    receipt = read_receipt(store, pipeline)
    numbers = entry_numbers(store, pipeline)
    if number not in numbers:
        there = (
            f"there are entries {numbers[0]} to {numbers[-1]}"
            if numbers
            else "the journal is empty"
        )
        raise NoSuchEntry(
            f"the journal of pipeline {pipeline} has no entry {number}; {there}",
            path=store.describe(layout.journal_folder(pipeline)),
        )
    aside = read_aside(store, pipeline, fates)
    return _kept(store, pipeline, number, numbers, receipt, aside)


def is_committed(receipt: Receipt | None, entry: Entry) -> bool:
    """Say whether a receipt covers an entry. Pure."""
    return (
        receipt is not None
        and receipt.journal == entry.journal
        and entry.sequence <= receipt.sequence
    )


def _kept(
    store: Reader,
    pipeline: str,
    number: int,
    numbers: list[int],
    receipt: Receipt | None,
    aside: Aside,
) -> Kept:
    path, body = _body(store, pipeline, number)
    entry = decode_entry(body, path)
    own = digest(body)
    before = digest(_body(store, pipeline, number - 1)[1]) if number - 1 in numbers else None
    follows = entry.previous == before
    if number + 1 in numbers:
        path_after, after = _body(store, pipeline, number + 1)
        follows = follows and decode_entry(after, path_after).previous == own
    return Kept(
        entry=entry,
        path=path,
        digest=own,
        size=len(body),
        committed=is_committed(receipt, entry),
        follows=follows,
        is_last=number == numbers[-1],
        aside=aside.of(number),
    )


def _body(store: Reader, pipeline: str, number: int) -> tuple[str, bytes]:
    path = layout.journal_entry(pipeline, number)
    body = store.get(path)
    if body is None:
        raise StoreUnavailable("an entry that was listed cannot be read", path=path)
    return store.describe(path), body
