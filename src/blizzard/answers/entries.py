"""A view of a journal: its last entries, or one with everything in it. Read-only."""

from dataclasses import dataclass, replace

from blizzard.handoff.held_rows import GONE, Aside, Fates, read_aside
from lakebed import layout
from lakebed.documents.entry import Entry, Receipt, digest
from lakebed.errors import LakeError, Whose
from lakebed.journal import JournalReader
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
    passed_over: bool = False
    """Whether it is a promotion that penguin settled without effect."""


def last_entries(store: Reader, pipeline: str, limit: int, fates: Fates) -> list[Kept]:
    """Return the last entries of a journal, the newest first."""
    receipt = JournalReader(store, pipeline).receipt()
    journal = JournalReader(store, pipeline, full_paths=True)
    numbers = journal.numbers()
    aside = read_aside(store, pipeline, fates)
    found = [
        _kept(journal, number, numbers, receipt, aside) for number in reversed(numbers[-limit:])
    ]
    return _with_fates(found, fates)


def entry_of(store: Reader, pipeline: str, number: int, fates: Fates) -> Kept:
    """Return one entry; if there is none of this number, the error says which there are."""
    receipt = JournalReader(store, pipeline).receipt()
    journal = JournalReader(store, pipeline, full_paths=True)
    numbers = journal.numbers()
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
    (kept,) = _with_fates([_kept(journal, number, numbers, receipt, aside)], fates)
    return kept


def is_committed(receipt: Receipt | None, entry: Entry) -> bool:
    """Whether a receipt covers an entry. Pure."""
    return (
        receipt is not None
        and receipt.journal == entry.journal
        and entry.sequence <= receipt.sequence
    )


def _with_fates(found: list[Kept], fates: Fates) -> list[Kept]:
    """Say of promotions whether they had an effect; if the log cannot be read, that is shown."""
    marks = {kept.entry.replacement_mark for kept in found if kept.entry.replaces}
    if not marks:
        return found
    try:
        decided = fates(marks)
    except LakeError as trouble:
        return [
            replace(kept, aside=replace(kept.aside, error=kept.aside.error or str(trouble)))
            if kept.entry.replaces
            else kept
            for kept in found
        ]
    return [
        replace(kept, passed_over=decided.get(kept.entry.replacement_mark) == GONE)
        if kept.entry.replaces
        else kept
        for kept in found
    ]


def _kept(
    journal: JournalReader,
    number: int,
    numbers: list[int],
    receipt: Receipt | None,
    aside: Aside,
) -> Kept:
    stored = journal.listed(number)
    entry, own = stored.entry, stored.digest
    before = digest(journal.listed_body(number - 1)) if number - 1 in numbers else None
    follows = entry.previous == before
    if number + 1 in numbers:
        follows = follows and journal.listed(number + 1).entry.previous == own
    return Kept(
        entry=entry,
        path=journal.where(number),
        digest=own,
        size=len(stored.body),
        committed=is_committed(receipt, entry),
        follows=follows,
        is_last=number == numbers[-1],
        aside=aside.of(number),
    )
