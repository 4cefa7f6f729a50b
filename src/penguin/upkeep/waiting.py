"""Which data files nobody has committed yet and somebody still needs, whatever their age.

Files of entries that are not committed, files that metas name, files that are held. What cannot be
read is an error: a file that an unread document names is never taken for one that nobody needs.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lakebed import layout
from lakebed.documents.pending_meta import decode_meta
from lakebed.errors import DocumentUnreadable
from lakebed.journal import JournalReader, journals_aside
from lakebed.listing.sort import Oddity
from lakebed.storage.ahead import ahead
from lakebed.storage.store import Reader
from lakebed.storage.tolerant import objects
from penguin.model.commit import HeldState
from penguin.upkeep.names import Names


@dataclass(frozen=True, slots=True, kw_only=True)
class Journal:
    """One journal of a table directory, in use or kept aside."""

    reader: JournalReader
    numbers: tuple[int, ...]
    committed: int
    """The last entry that the log has; -1 where it has none."""


def named_by_metas(store: Reader) -> frozenset[str]:
    """Name the files that metas name, waiting or held. They are read before the log is."""
    names = set()
    for folder in (layout.PENDING, layout.HELD):
        for facts in objects(store, folder, odd=_ignore):
            body = store.get(facts.path) if layout.is_meta(facts.path, folder) else None
            # One that is gone was committed meanwhile; its file is in the log, which is read later.
            if body is not None:
                names.add(decode_meta(body, store.describe(facts.path)).filename)
    return frozenset(names)


def read_journals(store: Reader, transactions: Mapping[str, int]) -> tuple[Journal, ...]:
    """Find every journal of a table, and how far the log has it."""
    found = []
    for pipeline in layout.pipelines(store.folders(layout.OURS)):
        for folder in (*journals_aside(store, pipeline), layout.journal_folder(pipeline)):
            reader = JournalReader(store, pipeline, folder=folder, full_paths=True)
            numbers = tuple(reader.numbers())
            if not numbers:
                continue
            if numbers != tuple(range(len(numbers))):
                gap = next(place for place, number in enumerate(numbers) if place != number)
                raise DocumentUnreadable(
                    f"entry {gap} of a journal is missing, so it is not known which files it "
                    "references",
                    path=reader.where(gap),
                )
            app_id = layout.journal_transaction(pipeline, reader.listed(0).entry.journal)
            found.append(
                Journal(reader=reader, numbers=numbers, committed=transactions.get(app_id, -1))
            )
    return tuple(found)


def waiting_files(journals: tuple[Journal, ...]) -> frozenset[str]:
    """Name the files of all entries that the log does not have."""
    return frozenset(
        name
        for journal in journals
        for name in _files(journal, (n for n in journal.numbers if n > journal.committed))
    )


def settled_files(journals: tuple[Journal, ...]) -> Names:
    """Return the files of all entries that the log has: in the table once, held or given up."""
    names = Names()
    for journal in journals:
        names.add(_files(journal, (n for n in journal.numbers if n <= journal.committed)))
    return names


def held_names(transactions: Mapping[str, int]) -> frozenset[str]:
    """Return the names, without folders, of the files that the log says are held."""
    return frozenset(
        app_id.removeprefix(layout.HELD_TRANSACTIONS)
        for app_id, state in transactions.items()
        if app_id.startswith(layout.HELD_TRANSACTIONS) and state == HeldState.HELD
    )


def _files(journal: Journal, numbers: Iterator[int]) -> Iterator[str]:
    for _number, stored in ahead(journal.reader.listed, numbers):
        yield from (file.filename for file in stored.entry.data_files)


def _ignore(_name: str, _oddity: Oddity) -> None:
    """Pass over a name that cannot be used: no program has given it to a meta."""
