"""Files that a log, journals and metas still need, and files removed long enough ago.

A version is needed if it was the newest at any moment since the cutoff. Needed versions refer to
the files of the newest version and to those removed since the cutoff. The time of a removal is the
store's time of its version or the removal's own timestamp, whichever is later. If a version is
gone, only the removal in a checkpoint counts; but then no earlier version is readable either.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from lakebed import layout
from lakebed.deltalog.actions import FileAction, FileKey, LogActions
from lakebed.deltalog.file_names import linked_name
from lakebed.deltalog.segment import read_versions, unbroken, versions_in, whole_segment
from lakebed.deltalog.snapshot import Snapshot, checkpointed_files
from lakebed.deltalog.table_features import BY_NAME, LAST_KNOWN_READER, LAST_KNOWN_WRITER
from lakebed.documents.pending_meta import HeldState, decode_meta
from lakebed.errors import DocumentUnreadable, TableUnsupported
from lakebed.layout import DELTA_LOG, HELD_TRANSACTIONS
from lakebed.listing.sort import NameFault
from lakebed.storage.lister import Odd, level, objects
from lakebed.storage.objects import ahead
from lakebed.storage.options import ObjectFacts
from lakebed.storage.store import Reader
from penguin.backlog.journals import all_journals


def list_data(store: Reader, enters: Callable[[str], bool], odd: Odd) -> Iterator[ObjectFacts]:
    """List the objects in the root and in folders with data; links are not followed."""
    folders, files = level(store, "", odd=odd)
    yield from files
    for name in (folder.rstrip("/") for folder in folders):
        if enters(name):
            yield from objects(store, name, odd=odd, enters=enters, into_links=False)


def ignore(_name: str, _fault: NameFault) -> None:
    """Ignore an unusable name: no log or meta names it."""


BLIZZARDS = "blizzard/"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogNeeds:
    """The files that a log needs."""

    version: int
    kept: set[str]
    """Files that a needed version refers to: data, deletion vectors, change data."""
    removed: set[str]
    """Files that were removed before the cutoff, as far as the log still says so."""
    transactions: Mapping[str, int]
    """The transactions of pipelines and of held files."""
    begins: datetime | None
    """The store's time of the oldest version; None if the log begins with version 0."""


def refuse_unknown(table: Snapshot) -> None:
    """Raise if the table has a feature by which it may need unknown files.

    `vacuumProtocolCheck` asks for this check; it is made for every table.
    """
    protocol = table.protocol
    reasons = [f"table feature {name}" for name in sorted(protocol.features) if name not in BY_NAME]
    if protocol.reader > LAST_KNOWN_READER or protocol.writer > LAST_KNOWN_WRITER:
        reasons.append(f"protocol {protocol.reader}/{protocol.writer}")
    if reasons:
        raise TableUnsupported(
            "this version of penguin does not support the table, so it cannot tell which files the "
            f"table needs: {'; '.join(reasons)}; use the engine that made the table",
            table=table.store.uri,
        )


def read_needs(store: Reader, cutoff: datetime, *, whole: bool = False) -> LogNeeds:
    """Return the files that a log needs since a cutoff. `whole` reads every existing version."""
    tail = whole_segment(store)
    listed = versions_in(store.level(DELTA_LOG)[1], tail.version)
    oldest = unbroken(listed, tail.version)
    window = next((n for n in sorted(listed) if listed[n].modified >= cutoff), tail.version + 1)
    window = max(window, oldest)
    reading = _Reading(
        real_name=linked_name(store), cutoff_ms=int(cutoff.timestamp() * 1000), window=window
    )
    first = oldest if whole else min(tail.first, window)
    for version in read_versions(store, range(first, tail.version + 1)):
        reading.take(version, in_tail=version.version >= tail.first)
    # Every removal since the cutoff was read from its version, if one before the cutoff is there.
    complete = oldest == 0 or window > oldest
    for batch in checkpointed_files(store, tail):
        reading.take_checkpoint(batch.files, complete=complete)
        reading.take_transactions(batch.transactions, newer=False)
    reading.close()
    return LogNeeds(
        version=tail.version,
        kept=reading.kept,
        removed=reading.removed,
        transactions=reading.transactions,
        begins=None if oldest == 0 or oldest not in listed else listed[oldest].modified,
    )


@dataclass(slots=True, kw_only=True)
class _Reading:
    """The state of a reading; versions come first, then the checkpoint before them."""

    real_name: Callable[[str], str | None]
    cutoff_ms: int
    window: int
    """The first version since the cutoff."""
    kept: set[str] = field(default_factory=set)
    removed: set[str] = field(default_factory=set)
    transactions: dict[str, int] = field(default_factory=dict)
    _state: dict[FileKey, FileAction] = field(default_factory=dict)
    """The last action of each file in the versions after the checkpoint."""

    def take(self, actions: LogActions, *, in_tail: bool) -> None:
        if in_tail:
            # Within a version, removals come before adds.
            for action in sorted(actions.files, key=lambda one: one.added):
                self._state[action.key] = action
            self.take_transactions(actions.transactions, newer=True)
        if actions.version >= self.window:
            for action in actions.files:
                self._keep(action.files)
            self._keep(actions.changes)
        else:
            self._sort_removed(actions.removes)
            if actions.changes:
                self.removed.update(actions.changes)

    def take_checkpoint(self, files: Iterable[FileAction], *, complete: bool) -> None:
        for action in files:
            if action.added:
                if action.key not in self._state:
                    self._keep(action.files)
            elif action.removed_at_ms is None and not complete:
                self._keep(action.files)  # Its time is unknown.
            else:
                self._sort_removed((action,))

    def take_transactions(self, transactions: Mapping[str, int], *, newer: bool) -> None:
        for app_id, number in transactions.items():
            if app_id.startswith((BLIZZARDS, HELD_TRANSACTIONS)):
                if newer:
                    self.transactions[app_id] = number
                else:
                    self.transactions.setdefault(app_id, number)

    def close(self) -> None:
        for action in self._state.values():
            if action.added:
                self._keep(action.files)
        self._state = {}

    def _sort_removed(self, actions: Iterable[FileAction]) -> None:
        for action in actions:
            if (action.removed_at_ms or 0) >= self.cutoff_ms:
                self._keep(action.files)
            else:
                self.removed.update(action.files)

    def _keep(self, files: Iterable[str]) -> None:
        for path in files:
            # The target of a link is needed, too, under any listed name.
            real = self.real_name(path)
            self.kept.update((path,) if real is None else (path, real))


def named_by_metas(store: Reader) -> frozenset[str]:
    """Return the files that metas name, pending or held. Call this before reading the log."""
    names = set()
    for folder in (layout.PENDING, layout.HELD):
        for facts in objects(store, folder, odd=ignore):
            body = store.get(facts.path) if layout.is_meta(facts.path, folder) else None
            # If it is gone, it was committed meanwhile, and the log names its file.
            if body is not None:
                names.add(decode_meta(body, store.describe(facts.path)).filename)
    return frozenset(names)


def named_by_entries(
    store: Reader, transactions: Mapping[str, int], *, committed: bool
) -> Iterator[str]:
    """Yield the files of committed entries, or else of all others.

    A file of a committed entry was in the table once, is held, or was given up.
    """
    for journal, _ in all_journals(store):
        numbers = journal.numbers()
        gap = next((place for place, number in enumerate(numbers) if place != number), None)
        if gap is not None:
            raise DocumentUnreadable(
                f"entry {gap} of a journal is missing, so it is not known which files it "
                "references",
                path=journal.where(gap),
            )
        opening = journal.listed(0).entry if numbers else None
        if opening is None:
            continue
        app_id = layout.journal_transaction(opening.pipeline, opening.journal)
        last = transactions.get(app_id, -1)
        wanted = (number for number in numbers if (number <= last) == committed)
        for _, stored in ahead(journal.listed, wanted):
            yield from (file.filename for file in stored.entry.data_files)


def held_names(transactions: Mapping[str, int]) -> frozenset[str]:
    """Return the names, without folders, of files held by the log."""
    return frozenset(
        app_id.removeprefix(layout.HELD_TRANSACTIONS)
        for app_id, state in transactions.items()
        if app_id.startswith(layout.HELD_TRANSACTIONS) and state == HeldState.HELD
    )
