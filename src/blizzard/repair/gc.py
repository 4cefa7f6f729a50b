"""Files that nothing will ever reference: found, recorded in the journal, and only then deleted.

An attempt that died leaves files. They are garbage if they carry this pipeline's mark and if no
entry of any journal, no meta and nothing in the Delta log names them. A batch may be on its way
that will name some of them, so what is deleted is first written into a `gc` entry, which is
create-only like all others: either the batch was first, and then its files are named and stay, or
it sees the `gc` entry and must not name what that took.

Some leftovers no entry can name: files that the store's library had not finished, uploads that were
never completed, and what newer snapshots replace. They need no entry, only their age: a process
still writing to one of them would notice that it is gone, and write it again.
"""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from blizzard.handoff.held_rows import GONE, Fates
from blizzard.journal.checkpoint import LedgerSnapshot, SnapshotBroken, read_latest, read_ledger
from blizzard.journal.checks import refuse_unfinished
from blizzard.journal.fence import append_what_is_found
from blizzard.repair.references import (
    References,
    last_part,
    named_by_metas,
    read_references,
)
from lakebed import layout
from lakebed.clock import Clock
from lakebed.documents.entry import Entry
from lakebed.journal import StoredEntry
from lakebed.listing import sort
from lakebed.storage.parquet_tail import born, mark_of
from lakebed.storage.store import ObjectFacts, Reader, Store, Unseen

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
    REPLACED = "replaced"


WITH_MARK = (GarbageKind.DATA, GarbageKind.OUTBOX, GarbageKind.QUARANTINE)
"""What says in its footer whose it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GarbagePiece:
    """One object that no entry names."""

    path: str
    size: int
    kind: GarbageKind
    upload: str = ""
    """The id of an upload that was not completed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Garbage:
    """The garbage of one pipeline that was found in a table directory."""

    garbage: tuple[GarbagePiece, ...] = ()
    """No entry names it, and it is old enough."""
    promised: tuple[GarbagePiece, ...] = ()
    """An earlier `gc` entry names it, and it is still there."""
    young: tuple[GarbagePiece, ...] = ()
    """No entry names it yet; a running batch still may."""
    leftovers: tuple[GarbagePiece, ...] = ()
    """No entry can ever name it, and it has not been written to for long enough."""
    unseen: str = ""
    """Why uploads that were not completed cannot be seen here, if so, and what to do."""
    left_alone: int = 0
    """Data files that no entry names and that lack this pipeline's mark, or that lie outside
    the table, behind a link."""
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
    references = read_references(store, pipeline)
    leftovers, too_young, unseen = _leftovers(
        store, pipeline, listed, now=now, older_than=older_than
    )
    if references.last is None:
        return Garbage(leftovers=leftovers, young=too_young, unseen=unseen)
    last = references.last.entry
    named = references.named | named_by_metas(store, listed) | log_names()
    named |= _promoted(references, fates)
    garbage: list[GarbagePiece] = []
    promised: list[GarbagePiece] = []
    young: list[GarbagePiece] = list(too_young)
    left_alone = 0
    for facts in listed:
        kind = _kind(facts, pipeline, last.sequence)
        if kind is None or _is_named(facts.path, kind, pipeline, named):
            continue
        if not store.holds(facts.path):
            # Behind a link that leads out of the table: a backup of it, say, with the same marks.
            left_alone += kind is GarbageKind.DATA
            continue
        piece = GarbagePiece(path=facts.path, size=facts.size, kind=kind)
        if facts.path in references.deleted:
            promised.append(piece)
        elif kind in WITH_MARK and not _is_ours(store, facts, pipeline, references):
            left_alone += kind is GarbageKind.DATA
        elif not _is_done(facts, kind, last) and now - born(facts) < older_than:
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
        last=references.last,
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

    def look_again() -> tuple[Garbage, Entry | None]:
        now = clock.now()
        found = find_garbage(
            store, pipeline, log_names, now=now, older_than=older_than, fates=fates
        )
        if not found.garbage or found.last is None:
            return found, None
        refuse_unfinished(read_ledger(store, pipeline))
        return found, gc_entry(found.last, found.garbage, clock)

    found, entry = append_what_is_found(store, pipeline, look_again)
    free = found.promised + found.leftovers
    if entry is None:
        return Collected(pieces=_deleted(store, free), entry=None)
    return Collected(pieces=_deleted(store, free + found.garbage), entry=entry.sequence)


def _promoted(references: References, fates: Fates) -> frozenset[str]:
    """Name the files of promotions, except of those that the log says had no effect."""
    decided = fates(references.promoted.keys()) if references.promoted else {}
    kept = (files for mark, files in references.promoted.items() if decided.get(mark) != GONE)
    return frozenset().union(*kept)


def _leftovers(
    store: Reader,
    pipeline: str,
    listed: Iterable[ObjectFacts],
    *,
    now: datetime,
    older_than: timedelta,
) -> tuple[tuple[GarbagePiece, ...], tuple[GarbagePiece, ...], str]:
    """Find what nothing can ever reference: what may be deleted, what is too young, what hides.

    An upload that got a part within the hour has a writer, whenever it was begun.
    """
    try:
        newest = read_latest(store, pipeline)
    except SnapshotBroken:
        newest = None  # Which one is in use is not known, so all of them stay.
    found = [
        (born(facts), GarbagePiece(path=facts.path, size=facts.size, kind=GarbageKind.UNFINISHED))
        for facts in store.unfinished()
        if layout.belongs_to(pipeline, sort.finished_name(facts.path))
    ]
    found += [
        (born(facts), GarbagePiece(path=facts.path, size=facts.size, kind=GarbageKind.REPLACED))
        for facts in listed
        if _is_replaced(facts.path, pipeline, newest) and store.holds(facts.path)
    ]
    uploads = store.open_uploads()
    for each in () if isinstance(uploads, Unseen) else uploads:
        if layout.belongs_to(pipeline, each.path):
            piece = GarbagePiece(
                path=each.path, size=each.size, kind=GarbageKind.UPLOAD, upload=each.id
            )
            found.append((each.written, piece))
    age = max(older_than, WRITING)
    return (
        tuple(piece for at, piece in found if now - at >= age),
        tuple(piece for at, piece in found if now - at < age),
        uploads.why if isinstance(uploads, Unseen) else "",
    )


def _is_replaced(path: str, pipeline: str, newest: LedgerSnapshot | None) -> bool:
    """Whether an object derived from the journal is not used by the newest snapshot. Pure."""
    if newest is None:
        return False
    number, segment = layout.snapshot_sequence(pipeline, path), layout.known_segment(pipeline, path)
    if number is not None:
        return number != newest.sequence
    return segment is not None and segment not in newest.segment_ids


def _is_done(facts: ObjectFacts, kind: GarbageKind, last: Entry) -> bool:
    """Whether an object is garbage at any age: the note of a batch that is journaled. Pure."""
    number = layout.started_sequence(last.pipeline, facts.path)
    return kind is GarbageKind.STARTED_NOTE and number is not None and number <= last.sequence


def _kind(facts: ObjectFacts, pipeline: str, last: int) -> GarbageKind | None:
    """Return what an object would be if no entry named it; None for what is never garbage. Pure."""
    path = facts.path
    if layout.file_id(path) is not None:
        return GarbageKind.DATA
    if layout.outbox_file(pipeline, path) is not None:
        return GarbageKind.OUTBOX
    if path.rpartition("/")[0] == layout.dead_letter_folder(pipeline):
        return GarbageKind.DEAD_LETTERS if layout.is_dead_letters(path) else None
    if layout.is_quarantine_file(pipeline, path):
        return GarbageKind.QUARANTINE
    number = layout.started_sequence(pipeline, path)
    # The note of a batch that is still to be journaled is in use, unless a crash left it empty.
    is_over = number is not None and (number <= last or facts.size == 0)
    return GarbageKind.STARTED_NOTE if is_over else None


def _is_named(path: str, kind: GarbageKind, pipeline: str, named: frozenset[str]) -> bool:
    match kind:
        case GarbageKind.DATA | GarbageKind.QUARANTINE:
            return path in named
        case GarbageKind.OUTBOX:
            return layout.outbox_file(pipeline, path) in named
        case GarbageKind.DEAD_LETTERS:
            return last_part(path) in named
        case (
            GarbageKind.STARTED_NOTE
            | GarbageKind.UNFINISHED
            | GarbageKind.UPLOAD
            | GarbageKind.REPLACED
        ):
            return False


def _is_ours(store: Reader, facts: ObjectFacts, pipeline: str, references: References) -> bool:
    """Whether a file carries the mark of this pipeline and of a journal that is here.

    What another journal of this pipeline named is not known if that journal is lost.
    """
    mark = mark_of(store, facts)
    return mark is not None and mark[0] == pipeline and mark[1] in references.journals


def gc_entry(last: StoredEntry, pieces: Iterable[GarbagePiece], clock: Clock) -> Entry:
    """Return the entry that names what is deleted after it."""
    paths = tuple(sorted(piece.path for piece in pieces))
    return replace(last.successor("gc", clock), deleted=paths)


def _deleted(store: Store, pieces: tuple[GarbagePiece, ...]) -> tuple[GarbagePiece, ...]:
    with ThreadPoolExecutor(CONCURRENT, thread_name_prefix="gc") as pool:
        list(pool.map(lambda piece: _delete(store, piece), pieces))
    return pieces


def _delete(store: Store, piece: GarbagePiece) -> None:
    if piece.kind is GarbageKind.UPLOAD:
        store.abort(piece.path, piece.upload)
    else:
        store.delete(piece.path)
