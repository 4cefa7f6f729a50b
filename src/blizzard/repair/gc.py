"""Files that nothing will ever reference: found, recorded in the journal, and only then deleted.

An attempt that died leaves files. They are garbage if they carry this pipeline's mark and if no
entry of any journal, no meta and nothing in the Delta log names them. A batch may be on its way
that will name some of them, so what is deleted is first written into a `gc` entry, which is
create-only like all others: either the batch was first, and then its files are named and stay, or
it sees the `gc` entry and must not name what that took. A document that cannot be read is an error:
a file that it names is never taken for garbage.

Some leftovers can never be named: files that the store's library had not finished, and uploads that
were never completed. They need no entry, only their age: a process that still writes to one of them
notices that it is gone, and writes it again.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum

from blizzard.handoff.held_rows import Fates
from blizzard.journal.checkpoint import read_ledger
from blizzard.journal.checks import refuse_unfinished
from blizzard.journal.fence import append_what_is_found
from lakebed import layout
from lakebed.clock import Clock
from lakebed.documents.entry import Entry
from lakebed.documents.pending_meta import HeldState, decode_meta
from lakebed.errors import JournalLost
from lakebed.journal import JournalReader, StoredEntry, entries_in, journals_aside
from lakebed.listing import sort
from lakebed.storage.aws.uploads import Unseen
from lakebed.storage.options import ObjectFacts
from lakebed.storage.parquet_tail import born, mark_of
from lakebed.storage.store import Reader, Store

CONCURRENT = 16
WRITING = timedelta(hours=1)
"""A file that was not written to for this long has no writer; lower bound for any age."""

LogNames = Callable[[], frozenset[str]]
"""Reads every file that the Delta log names; an error where it cannot be read whole."""


class GarbageKind(StrEnum):
    """What a piece of garbage is."""

    DATA = "data"
    OUTBOX = "outbox"
    DEAD_LETTERS = "dead_letters"
    QUARANTINE = "quarantine"
    STARTED_NOTE = "started_note"
    UNFINISHED = "unfinished"
    UPLOAD = "upload"


WITH_MARK = (GarbageKind.DATA, GarbageKind.OUTBOX, GarbageKind.QUARANTINE)
"""What says in its footer whose it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GarbagePiece:
    """One object that nothing references."""

    path: str
    size: int
    kind: GarbageKind
    upload: str = ""
    """The id of an upload that was not completed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Garbage:
    """The garbage of one pipeline that was found in a table directory."""

    garbage: tuple[GarbagePiece, ...] = ()
    """Nothing references it, and it is old enough."""
    promised: tuple[GarbagePiece, ...] = ()
    """An earlier `gc` entry names it, and it is still there."""
    young: tuple[GarbagePiece, ...] = ()
    """Nothing references it yet; a running batch still may."""
    leftovers: tuple[GarbagePiece, ...] = ()
    """Nothing can ever reference it, and it was not written to for long enough."""
    unseen: str = ""
    """Why uploads that were not completed cannot be seen here, if so, and what to do."""
    left_alone: int = 0
    """Unreferenced data files without this pipeline's mark, or outside the table, behind a link."""
    last: StoredEntry | None = None
    """The last entry of the journal; None where there is no journal."""


def undecided(_names: Iterable[str]) -> Mapping[str, int | None]:
    """Return what a log says of given-up files that does not exist: nothing."""
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
    """Find the garbage of a pipeline. An object that cannot be read is an error.

    The listing comes first: what it shows, and an entry has named by the time the journals are
    read, is named.
    """
    listed = list(store.objects())
    known = _read_references(store, pipeline)
    unseen, found = _leftovers(store, pipeline)
    age = max(older_than, WRITING)
    leftovers = tuple(piece for at, piece in found if now - at >= age)
    young = [piece for at, piece in found if now - at < age]
    if known.last is None:
        return Garbage(leftovers=leftovers, young=tuple(young), unseen=unseen)
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
        # Behind a link that leads out of the table may be a backup of it, with the same marks.
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
        unseen=unseen,
        left_alone=left_alone,
        last=known.last,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """What was deleted."""

    pieces: tuple[GarbagePiece, ...]
    entry: int | None
    """The entry that names them; None where only an earlier one's work was finished."""


def collect(
    store: Store,
    pipeline: str,
    log_names: LogNames,
    *,
    clock: Clock,
    older_than: timedelta,
    fates: Fates = undecided,
) -> Collected:
    """Record what is garbage, then delete it; after a crash, the next run finishes the deletion."""

    def plan() -> tuple[Garbage, Entry | None]:
        now = clock.now()
        found = find_garbage(
            store, pipeline, log_names, now=now, older_than=older_than, fates=fates
        )
        if not found.garbage or found.last is None:
            return found, None
        refuse_unfinished(read_ledger(store, pipeline))
        return found, gc_entry(found.last, found.garbage, clock)

    def delete(piece: GarbagePiece) -> None:
        if piece.kind is GarbageKind.UPLOAD:
            store.abort(piece.path, piece.upload)
        else:
            store.delete(piece.path)

    found, entry = append_what_is_found(store, pipeline, plan)
    pieces = found.promised + found.leftovers + (found.garbage if entry else ())
    with ThreadPoolExecutor(CONCURRENT, thread_name_prefix="gc") as pool:
        list(pool.map(delete, pieces))
    return Collected(pieces=pieces, entry=None if entry is None else entry.sequence)


def gc_entry(last: StoredEntry, pieces: Iterable[GarbagePiece], clock: Clock) -> Entry:
    """Return the entry that names what is deleted after it."""
    paths = tuple(sorted(piece.path for piece in pieces))
    return replace(last.successor("gc", clock), deleted=paths)


@dataclass(slots=True)
class _References:
    """What all journals of a table say: which files are named, which are given up."""

    pipeline: str
    named: set[str] = field(default_factory=set)
    """Data and quarantine files by their names; dead letters, whose URIs may differ, by the last
    part of theirs."""
    rewritten: dict[str, frozenset[str]] = field(default_factory=dict)
    """The new files of each entry that replaces others, by the mark of its rejection in the log."""
    deleted: set[str] = field(default_factory=set)
    """What `gc` entries of this pipeline have named."""
    journals: set[str] = field(default_factory=set)
    """The journals of this pipeline that are here, whole."""
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
        """Return the named files, without those of entries that the log says had no effect."""
        decided = fates(self.rewritten.keys()) if self.rewritten else {}
        kept = (
            files for mark, files in self.rewritten.items() if decided.get(mark) != HeldState.GONE
        )
        return frozenset(self.named).union(*kept)

    def has_marked(self, store: Reader, facts: ObjectFacts) -> bool:
        """Whether a file carries the mark of this pipeline and of a journal that is here.

        What another journal of this pipeline named is not known if that journal is lost.
        """
        mark = mark_of(store, facts)
        return mark is not None and mark[0] == self.pipeline and mark[1] in self.journals


def _read_references(store: Reader, pipeline: str) -> _References:
    """Read every entry of every journal of a table, also of those that were replaced."""
    known, digests = _References(pipeline), []
    own = layout.journal_folder(pipeline)
    # The receipt first: the journal only grows, so what is in the receipt must be in it.
    receipt = JournalReader(store, pipeline).receipt()
    for other in layout.pipelines(store.folders(layout.OURS)):
        for folder in (*journals_aside(store, other), layout.journal_folder(other)):
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
    """Yield the files that metas name, waiting or held; one that cannot be read is an error."""
    for facts in listed:
        if any(layout.is_meta(facts.path, folder) for folder in (layout.PENDING, layout.HELD)):
            body = store.get(facts.path)
            # One that is gone was committed meanwhile; its file is in the log, which is read later.
            if body is not None:
                yield decode_meta(body, store.describe(facts.path)).filename


def _leftovers(store: Reader, pipeline: str) -> tuple[str, list[tuple[datetime, GarbagePiece]]]:
    """Find what nothing can ever reference, each with when it was last written; and what hides.

    An upload that got a part within the hour has a writer, whenever it was begun.
    """
    kind = GarbageKind.UNFINISHED
    found = [
        (born(facts), GarbagePiece(path=facts.path, size=facts.size, kind=kind))
        for facts in store.unfinished()
        if layout.belongs_to(pipeline, sort.finished_name(facts.path))
    ]
    uploads = store.open_uploads()
    if isinstance(uploads, Unseen):
        return uploads.why, found
    kind = GarbageKind.UPLOAD
    found += [
        (one.written, GarbagePiece(path=one.path, size=one.size, kind=kind, upload=one.id))
        for one in uploads
        if layout.belongs_to(pipeline, one.path)
    ]
    return "", found


def _is_over(path: str, last: Entry) -> bool:
    """Whether an object is the note of a batch that is journaled: garbage at any age. Pure."""
    number = layout.started_sequence(last.pipeline, path)
    return number is not None and number <= last.sequence


def _kind(facts: ObjectFacts, last: Entry, named: frozenset[str]) -> GarbageKind | None:
    """Return what an unreferenced object is; None for what is referenced, or never garbage. Pure.

    The note of a batch that is still to be journaled is in use, unless a crash left it empty.
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
