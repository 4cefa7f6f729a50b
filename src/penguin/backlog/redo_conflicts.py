"""Conflicts between `blizzard redo` and held files.

`blizzard redo` journals that sources of held files are read again. Until penguin commits that entry
the mark in the log still says `held`, and an operator may want a restored file released. Its rows
would then be in the table twice, so a file that an entry gives up is not released. If both are
ordered at the same moment, the file is in the table and the entry stops its pipeline: the file is
contested until an operator discards it.

So is a file that was given up and has come back: a RESTORE adds files regardless of their marks.
Penguin checks for it until the rows that supersede it are committed.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import takewhile
from shlex import quote
from typing import TYPE_CHECKING, Self

from lakebed.deltalog.snapshot import Snapshot
from lakebed.deltalog.versions import brought_back
from lakebed.documents.entry import Entry
from lakebed.documents.pending_meta import EntryName, HeldMeta, HeldState, entry_named_by
from lakebed.documents.records import FinishedFile
from lakebed.errors import DocumentUnreadable, LakeError, Whose
from lakebed.journal import JournalReader
from lakebed.layout import (
    DISCARDED,
    PARQUET_SUFFIX,
    file_name,
    held_transaction,
    journal_transaction,
    taken_out_transaction,
)
from lakebed.storage.store import Reader
from lakebed.units import typable
from penguin.backlog.journals import all_journals
from penguin.held import read_held
from penguin.model.backlog import Transactions

if TYPE_CHECKING:
    from lakebed.deltalog.search import LogSearch


class FileRewritten(LakeError, code="file_rewritten", whose=Whose.USER):
    """A file cannot be removed from the table as a whole: it was rewritten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContestedFile:
    """A file that is in the table although an entry reads its sources again."""

    file: FinishedFile
    state: HeldState | None
    """Its mark in the log."""
    by: EntryName

    @property
    def name(self) -> str:
        """Name the file."""
        return file_name(self.file.filename)


def given_up(
    store: Reader, held: tuple[HeldMeta, ...], transactions: Transactions
) -> dict[str, str]:
    """Return why held files must not be released: a waiting entry gives them up.

    A journal that cannot be read to its end may give up any of its files.
    """
    journals: dict[tuple[str, str], list[HeldMeta]] = {}
    for one in held:
        if (entry := entry_named_by(one)) is not None:
            journals.setdefault((entry.pipeline, entry.journal), []).append(one)
    found: dict[str, str] = {}
    for (pipeline, journal), files in journals.items():
        try:
            names = {
                name: entry.sequence
                for entry in _waiting(store, pipeline, journal, transactions)
                for name in entry.redone
            }
        except DocumentUnreadable as unreadable:
            why = f"the journal of {pipeline} may give it up, but cannot be read: {unreadable}"
            found |= {one.name: why for one in files}
            continue
        found |= {
            one.name: f"entry {names[one.name]} of {pipeline} reads its sources again (blizzard "
            "redo): penguin gives it up with that entry"
            for one in files
            if one.name in names
        }
    return found


def discarded(store: Reader, transactions: Transactions) -> tuple[HeldMeta, ...]:
    """Return discarded files whose sources have not been read again."""
    gone = [
        meta
        for _, meta in sorted(read_held(store, folder=DISCARDED).items())
        if transactions(held_transaction(meta.name)) == HeldState.GONE
    ]
    journals: dict[tuple[str, str], int] = {}
    for one in gone:
        if (entry := entry_named_by(one)) is not None:
            key = entry.pipeline, entry.journal
            journals[key] = min(entry.sequence, journals.get(key, entry.sequence))
    again = {
        name
        for (pipeline, journal), first in journals.items()
        for entry in _after(store, pipeline, journal, first)
        for name in entry.redone
    }
    return tuple(one for one in gone if one.name not in again)


def contested(
    store: Reader, pipelines: Iterable[str], transactions: Transactions
) -> tuple[ContestedFile, ...]:
    """Find files that waiting entries give up although the log does not mark them `held`."""
    return tuple(one for name in pipelines for one in _of_pipeline(store, name, transactions))


def _of_pipeline(
    store: Reader, pipeline: str, transactions: Transactions
) -> Iterator[ContestedFile]:
    reader = JournalReader(store, pipeline, full_paths=True)
    opening = reader.entry(0)
    if opening is None:
        return
    journal = opening.journal
    by: dict[str, EntryName] = {}
    states: dict[str, HeldState | None] = {}
    for entry in _waiting(store, pipeline, journal, transactions):
        names = entry.supersedes
        back = came_back(store, names, transactions) if names else {}
        for name in names:
            mark = transactions(held_transaction(name))
            if name in back or mark not in (HeldState.HELD, HeldState.GONE):
                by.setdefault(name, EntryName(pipeline, journal, entry.sequence))
                states[name] = None if mark is None else HeldState(mark)
    for sequence in range(1, max((one.sequence for one in by.values()), default=0)):
        named = reader.entry(sequence)
        for file in () if named is None else named.files:
            name = file_name(file.filename)
            if name in by:
                yield ContestedFile(file=file, state=states[name], by=by[name])


def came_back(store: Reader, names: frozenset[str], transactions: Transactions) -> dict[str, str]:
    """Return how rows of given-up files got back into the table, by file name.

    A rewritten file is no longer in the table, but its rows may be: in its successors, unless those
    were removed too. Rows that an operator has confirmed as deleted are not searched for.
    """
    found: dict[str, str] = {}
    log, paths = _followed(store, names)
    lineage = log.follow(())
    for name, path in sorted(paths.items()):
        if path in lineage.active:
            added = log.commit(lineage.added(path))
            found[name] = "it is in the table" if added is None else added.words
        elif not transactions(taken_out_transaction(name)) and lineage.removed_by(path) is None:
            removed = log.commit(lineage.removed[path])
            if removed is not None:
                found[name] = f"it was rewritten: {removed.words}"
    return found


def _followed(store: Reader, names: frozenset[str]) -> tuple["LogSearch", dict[str, str]]:
    """Follow files through the log; return the search, and the paths it names, by file name."""
    from lakebed.deltalog.search import LogSearch  # noqa: PLC0415 - it loads Arrow

    log = LogSearch(store)
    lineage = log.follow(f"{name}{PARQUET_SUFFIX}" for name in names)
    known = [*lineage.removed, *lineage.active]
    return log, {name: path for path in known if (name := file_name(path)) in names}


@dataclass(frozen=True, slots=True)
class Supersessions:
    """The data files that committed entries of all journals supersede or rewrite."""

    by: tuple[Entry, ...]
    """The entries that supersede files."""
    rewritten: Mapping[str, frozenset[str]]
    """The names of the files that were made of each rewritten one."""

    @classmethod
    def read(cls, store: Reader, transactions: Transactions) -> Self:
        """Read the entries that are committed and have effect."""
        by: list[Entry] = []
        rewritten: dict[str, frozenset[str]] = {}
        for journal, _ in all_journals(store):
            for entry in journal.entries():
                committed = transactions(journal_transaction(entry.pipeline, entry.journal)) or 0
                mark = held_transaction(entry.replacement_mark)
                is_rejected = entry.replaces and transactions(mark) == HeldState.GONE
                if entry.sequence > committed or is_rejected:
                    continue
                by += [entry] if entry.supersedes else []
                for one in entry.rewrites:
                    new = frozenset(file_name(file.filename) for file in one.new)
                    for old in one.old:
                        name = file_name(old.path)
                        rewritten[name] = rewritten.get(name, frozenset()) | new
        return cls(tuple(by), rewritten)

    @property
    def names(self) -> frozenset[str]:
        """Name the superseded files."""
        return frozenset[str]().union(*(entry.supersedes for entry in self.by))

    def why_not_added(
        self, store: Reader, added: set[str], transactions: Transactions
    ) -> str | None:
        """Return why files cannot be added again: rows that they supersede are in the table."""
        for entry in self.by:
            if added.isdisjoint(file_name(file.filename) for file in entry.files):
                continue
            names, made = entry.supersedes, entry.supersedes
            while made:
                made = (
                    frozenset[str]().union(*(self.rewritten.get(one, ()) for one in made)) - names
                )
                names |= made
            if back := came_back(store, names, transactions):
                ways = "; ".join(_replacing(entry))
                return (
                    f"rows that entry {entry.sequence} of pipeline {entry.pipeline} supersedes are "
                    f"in the table again: {min(back.values())}; {ways} takes them out and adds the "
                    "new ones, then run penguin replay for all else"
                )
        return None


def _replacing(entry: Entry) -> Iterator[str]:
    """Yield the commands that repeat the replacements of an entry."""
    read = [one.key for one in entry.readings if one.supersedes]
    others = [one.key for one in entry.sources if one.retracted and one.key not in read]
    for key in read:
        old = " ".join(map(typable, others or [key]))
        yield f"`blizzard retract {old} --replace {typable(key)} --yes -p {quote(entry.pipeline)}`"


def put_back(store: Reader, entry: Entry, version: int | None) -> str | None:
    """Return what may have brought files back that an entry supersedes.

    Files that leave with the entry itself may be active. Of a log restored from a backup only the
    current table is known.
    """
    if version is None or entry.as_of is None:
        return None
    names = entry.supersedes - {file_name(one.filename) for one in entry.outgoing}
    log, paths = _followed(store, names)
    lineage = log.follow(())
    for name, path in sorted(paths.items()):
        if path in lineage.active:
            added = log.commit(lineage.added(path))
            return f"{name} is" if added is None else added.words
    return brought_back(store, names, entry.as_of, version)


def why_not_taken_out(one: ContestedFile, table: Snapshot) -> str | None:
    """Return why a file cannot be removed from the table as a whole; None if it can."""
    if table.changed([one.file]):
        return "it is not in the table as it was written: OPTIMIZE, or a change of rows, rewrote it"
    return table.why_no_removal()


def _waiting(
    store: Reader, pipeline: str, journal: str, transactions: Transactions
) -> Iterator[Entry]:
    """Read a journal's entries that are not committed."""
    committed = transactions(journal_transaction(pipeline, journal)) or 0
    return _after(store, pipeline, journal, committed)


def _after(store: Reader, pipeline: str, journal: str, known: int) -> Iterator[Entry]:
    """Read a journal's entries past one of them."""
    entries = JournalReader(store, pipeline, full_paths=True).until_missing(known)
    return takewhile(lambda entry: entry.journal == journal, entries)
