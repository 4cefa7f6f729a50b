"""Garbage collection: find unreferenced files, record them in the journal, then delete them.

Failed attempts leave files. A file is garbage if it carries this pipeline's mark and is not named
by any journal entry, any meta or the Delta log. A running batch may be about to name it, so files
are first recorded in a `gc` entry, which is create-only like all others: either the batch comes
first, and its files are named and stay, or it sees the `gc` entry and must not name those files. An
unreadable document is an error, since it might name a file.

Half-written files of the store's library can never be named. They need no entry, only a minimum
age: a process still writing one notices that it is gone and writes it again.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum

from blizzard.handoff.held_rows import Fates
from blizzard.journal.checkpoint import read_ledger
from blizzard.journal.checks import refuse_unfinished
from blizzard.journal.fence import append_planned
from lakebed import layout
from lakebed.clock import Clock
from lakebed.documents.entry import Entry
from lakebed.documents.pending_meta import HeldState, decode_meta
from lakebed.errors import JournalLost
from lakebed.journal import JournalReader, StoredEntry, entries_in, replaced_journals
from lakebed.storage.options import ObjectFacts
from lakebed.storage.parquet_tail import born, mark_of
from lakebed.storage.store import Reader, Store

CONCURRENT = 16
WRITING = timedelta(hours=1)
"""A file not written to for this long has no writer; lower bound for any age."""

LogNames = Callable[[], frozenset[str]]
"""Returns every file that the Delta log names; raises if it cannot be read in full."""


class GarbageKind(StrEnum):
    """What a piece of garbage is."""

    DATA = "data"
    OUTBOX = "outbox"
    DEAD_LETTERS = "dead_letters"
    QUARANTINE = "quarantine"
    STARTED_NOTE = "started_note"
    UNFINISHED = "unfinished"


WITH_MARK = (GarbageKind.DATA, GarbageKind.OUTBOX, GarbageKind.QUARANTINE)
"""Kinds of files with an owner's mark in the footer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GarbagePiece:
    """One object that nothing references."""

    path: str
    size: int
    kind: GarbageKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Garbage:
    """The garbage of one pipeline in a table directory."""

    garbage: tuple[GarbagePiece, ...] = ()
    """Unreferenced and old enough."""
    promised: tuple[GarbagePiece, ...] = ()
    """Named by an earlier `gc` entry and still present."""
    young: tuple[GarbagePiece, ...] = ()
    """Unreferenced, but a running batch may still name it."""
    leftovers: tuple[GarbagePiece, ...] = ()
    """Never referenced by design, and not written to for long enough."""
    left_alone: int = 0
    """Unreferenced data files without this pipeline's mark, or outside the table behind a link."""
    last: StoredEntry | None = None
    """The last entry of the journal; None without a journal."""


def undecided(_names: Iterable[str]) -> Mapping[str, int | None]:
    """Stand-in for a missing log: no file has been decided on."""
    return {}


def find_garbage(
    store: Reader,
    pipeline: str,
    log_names: LogNames,
    *,
    now: datetime,
    older_than: timedelta,
    fates: Fates = undecided,
) -> Garbage:
    """Find the garbage of a pipeline; raise if an object cannot be read.

    The listing comes first, so a listed file that is named meanwhile is seen as named when the
    journals are read.
    """
    listed = list(store.objects())
    known = _read_references(store, pipeline)
    found = _leftovers(store, pipeline)
    age = max(older_than, WRITING)
    leftovers = tuple(piece for at, piece in found if now - at >= age)
    young = [piece for at, piece in found if now - at < age]
    if known.last is None:
        return Garbage(leftovers=leftovers, young=tuple(young))
    named = frozenset(_named_by_metas(store, listed)) | log_names()
    named |= known.named_unless_rejected(fates)
    garbage: list[GarbagePiece] = []
    promised: list[GarbagePiece] = []
    left_alone = 0
    for facts in listed:
        kind = _kind(facts, known.last.entry, named)
        if kind is None:
            continue
        piece = GarbagePiece(path=facts.path, size=facts.size, kind=kind)
        # A link out of the table may lead to a backup of it with the same marks.
        if not store.holds(facts.path):
            left_alone += kind is GarbageKind.DATA
        elif facts.path in known.deleted:
            promised.append(piece)
        elif kind in WITH_MARK and not known.has_marked(store, facts):
            left_alone += kind is GarbageKind.DATA
        elif now - born(facts) < older_than and not _is_over(facts.path, known.last.entry):
            young.append(piece)
        else:
            garbage.append(piece)
    return Garbage(
        garbage=tuple(garbage),
        promised=tuple(promised),
        young=tuple(young),
        leftovers=leftovers,
        left_alone=left_alone,
        last=known.last,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """What was deleted."""

    pieces: tuple[GarbagePiece, ...]
    entry: int | None
    """The entry that names them; None if only an earlier entry's deletion was finished."""


def collect(
    store: Store,
    pipeline: str,
    log_names: LogNames,
    *,
    clock: Clock,
    older_than: timedelta,
    fates: Fates = undecided,
) -> Collected:
    """Record the garbage, then delete it; after a crash, the next run finishes the deletion."""

    def plan() -> tuple[Garbage, Entry | None]:
        now = clock.now()
        found = find_garbage(
            store, pipeline, log_names, now=now, older_than=older_than, fates=fates
        )
        if not found.garbage or found.last is None:
            return found, None
        refuse_unfinished(read_ledger(store, pipeline))
        return found, gc_entry(found.last, found.garbage, clock)

    found, entry = append_planned(store, pipeline, plan)
    pieces = found.promised + found.leftovers + (found.garbage if entry else ())
    with ThreadPoolExecutor(CONCURRENT, thread_name_prefix="gc") as pool:
        list(pool.map(store.delete, [piece.path for piece in pieces]))
    return Collected(pieces=pieces, entry=None if entry is None else entry.sequence)


def gc_entry(last: StoredEntry, pieces: Iterable[GarbagePiece], clock: Clock) -> Entry:
    """Return the entry that names the files to delete."""
    paths = tuple(sorted(piece.path for piece in pieces))
    return replace(last.successor("gc", clock), deleted=paths)


@dataclass(slots=True)
class _References:
    """The files that the journals of a table name, and those that they give up."""

    pipeline: str
    named: set[str] = field(default_factory=set)
    """Names of data files, quarantine files and dead letters, without folders."""
    rewritten: dict[str, frozenset[str]] = field(default_factory=dict)
    """The new files of each entry that replaces others, by the mark of its rejection in the log."""
    deleted: set[str] = field(default_factory=set)
    """Files named in `gc` entries of this pipeline."""
    journals: set[str] = field(default_factory=set)
    """The complete journals of this pipeline."""
    last: StoredEntry | None = None

    def learn(self, entry: Entry) -> None:
        """Add an entry of any journal."""
        files = frozenset(file.filename for file in entry.data_files)
        if entry.replaces:
            self.rewritten[entry.replacement_mark] = files
        else:
            self.named |= files
        self.named |= {layout.file_name(uri) for uri in entry.dlq}
        self.named |= {file.filename for file in entry.quarantine_files}
        self.named -= {one.old for one in entry.resolved}
        if entry.pipeline == self.pipeline:
            self.journals.add(entry.journal)
            self.deleted |= set(entry.deleted)

    def named_unless_rejected(self, fates: Fates) -> frozenset[str]:
        """Return the named files, without those of rejected entries."""
        decided = fates(self.rewritten.keys()) if self.rewritten else {}
        kept = (
            files for mark, files in self.rewritten.items() if decided.get(mark) != HeldState.GONE
        )
        return frozenset(self.named).union(*kept)

    def has_marked(self, store: Reader, facts: ObjectFacts) -> bool:
        """Whether a file carries the mark of this pipeline and of a present journal.

        The files that a lost journal named are unknown.
        """
        mark = mark_of(store, facts)
        return mark is not None and mark[0] == self.pipeline and mark[1] in self.journals


def _read_references(store: Reader, pipeline: str) -> _References:
    """Read every entry of every journal of a table, including replaced journals."""
    known, digests = _References(pipeline), []
    own = layout.journal_folder(pipeline)
    # Read the receipt first: the journal only grows, so it must contain the receipt's entry.
    receipt = JournalReader(store, pipeline).receipt()
    for other in layout.pipelines(store.folders(layout.OURS)):
        for folder in (*replaced_journals(store, other), layout.journal_folder(other)):
            for stored in entries_in(store, other, folder):
                known.learn(stored.entry)
                if folder == own:
                    known.last = stored
                    digests.append(stored.digest)
    if receipt is not None and receipt.digest not in digests[receipt.sequence :][:1]:
        raise JournalLost(
            f"entry {receipt.sequence} is committed, but the journal does not have that exact "
            "entry, so it is not known which files are referenced",
            path=store.describe(own),
        )
    return known


def _named_by_metas(store: Reader, listed: Iterable[ObjectFacts]) -> Iterator[str]:
    """Yield the files that waiting or held metas name; raise if one cannot be read."""
    for facts in listed:
        if any(layout.is_meta(facts.path, folder) for folder in (layout.PENDING, layout.HELD)):
            body = store.get(facts.path)
            # A missing one was committed meanwhile; its file is in the log, which is read later.
            if body is not None:
                yield decode_meta(body, store.describe(facts.path)).filename


def _leftovers(store: Reader, pipeline: str) -> list[tuple[datetime, GarbagePiece]]:
    """Find half-written files, each with its last write."""
    return [
        (born(facts), GarbagePiece(path=facts.path, size=facts.size, kind=GarbageKind.UNFINISHED))
        for facts in store.unfinished()
        if layout.belongs_to(pipeline, facts.path.rpartition("#")[0])
    ]


def _is_over(path: str, last: Entry) -> bool:
    """Whether an object is the start note of a journaled batch: garbage at any age. Pure."""
    number = layout.started_sequence(last.pipeline, path)
    return number is not None and number <= last.sequence


def _kind(facts: ObjectFacts, last: Entry, named: frozenset[str]) -> GarbageKind | None:
    """Return the kind of an unreferenced object; None if referenced or never garbage. Pure.

    The start note of a pending batch is in use, unless a crash left it empty.
    """
    path, pipeline = facts.path, last.pipeline
    kind, name = None, path
    if layout.file_id(path) is not None:
        kind = GarbageKind.DATA
    elif (waits := layout.outbox_file(pipeline, path)) is not None:
        kind, name = GarbageKind.OUTBOX, waits
    elif path.rpartition("/")[0] == layout.dead_letter_folder(pipeline):
        kind = GarbageKind.DEAD_LETTERS if layout.is_dead_letters(path) else None
        name = layout.file_name(path)
    elif layout.is_quarantine_file(pipeline, path):
        kind = GarbageKind.QUARANTINE
    elif _is_over(path, last) or (
        not facts.size and layout.started_sequence(pipeline, path) is not None
    ):
        kind = GarbageKind.STARTED_NOTE
    return None if name in named else kind
