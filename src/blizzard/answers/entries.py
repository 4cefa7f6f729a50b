"""The journals of a table, and the entries of one as they are stored: the last, or one by number.

Read-only.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from blizzard.handoff.held_rows import Aside, Fates, read_aside
from blizzard.journal.checkpoint import read_ledger
from blizzard.journal.ledger import Ledger
from lakebed import layout
from lakebed.documents.entry import Entry, Receipt, digest
from lakebed.documents.pending_meta import HeldState
from lakebed.errors import LakeError, Whose
from lakebed.journal import JournalReader, journals_aside
from lakebed.storage.store import Reader


def journals_of(
    store: Reader, mark: tuple[str, str] | None, known: Mapping[str, Ledger] | None = None
) -> Iterator[tuple[str, JournalReader, int]]:
    """Yield the journals that may name a data file: the one of its mark, or else all of them.

    Each comes with its pipeline and its last entry. Pipelines whose ledgers are known come first.
    """
    ledgers = known or {}
    pipelines = layout.pipelines(store.folders(layout.OURS)) if mark is None else [mark[0]]
    for pipeline in sorted(pipelines, key=lambda name: (name not in ledgers, name)):
        ledger = ledgers.get(pipeline) or read_ledger(store, pipeline)
        is_in_use = mark is None or ledger.journal == mark[1]
        if is_in_use:
            yield pipeline, JournalReader(store, pipeline), ledger.sequence
        for folder in journals_aside(store, pipeline) if mark is None or not is_in_use else ():
            if mark is None or folder == layout.journal_aside(*mark):
                journal = JournalReader(store, pipeline, folder=folder)
                yield pipeline, journal, max(journal.numbers(), default=-1)


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
    """True where the receipt says so; the receipt may lag behind the log for a moment."""
    follows: bool
    """Whether it names the digest of the entry before, and the entry after names its own."""
    is_last: bool
    aside: Aside
    """Its files whose rows are not in the table, though the entry may be committed."""
    passed_over: bool = False
    """Whether it is a promotion that penguin settled without effect."""


def stored_entries(
    store: Reader, pipeline: str, fates: Fates, *, limit: int = 1, number: int | None = None
) -> list[EntryRecord]:
    """Return the last entries of a journal, the newest first, or the one of a number.

    If there is none of this number, the error says which there are.
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
    aside = read_aside(store, pipeline, fates)
    wanted = reversed(numbers[-limit:]) if number is None else [number]
    return [_kept(journal, one, numbers, receipt, aside, fates) for one in wanted]


def _kept(
    journal: JournalReader,
    number: int,
    numbers: list[int],
    receipt: Receipt | None,
    aside: Aside,
    fates: Fates,
) -> EntryRecord:
    stored = journal.listed(number)
    entry, own = stored.entry, stored.digest
    before = digest(journal.listed_body(number - 1)) if number - 1 in numbers else None
    follows = entry.previous == before
    if number + 1 in numbers:
        follows = follows and journal.listed(number + 1).entry.previous == own
    mine, passed_over, mark = aside.of(number), False, entry.replacement_mark
    try:
        passed_over = entry.replaces and fates([mark]).get(mark) == HeldState.GONE
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
        aside=mine,
        passed_over=passed_over,
    )
