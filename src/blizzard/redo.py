"""Source files whose rows are in data files that are gone: given up in the log, and read again.

penguin holds all that a work unit wrote when one of its files is missing. A `redo` entry names
these files and their sources. blizzard takes it for the word that the sources are not done, and
reads them again; penguin marks the files as gone for good in the very commit that settles the
entry, so that they can never go in beside the rows that are read again.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from blizzard.admission import refuse_closed, refuse_half_begun
from blizzard.fence import append_beside
from blizzard.history import History, read_history
from lake import layout
from lake.clock import Clock
from lake.entry import Entry, Failure, SourceRecord, Stage, decode_entry
from lake.errors import DocumentUnreadable, JournalConflict, JournalLost
from lake.meta import HeldMeta, decode_held
from lake.storage import Reader, Store

MISSING = "file_missing"
HELD = 0
LOST = "output_lost"
TRIES = 3

Fates = Callable[[Iterable[str]], Mapping[str, int | None]]
"""Says what the Delta log has decided of held files: 0 is held."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """What one work unit wrote, and its source files."""

    entry: int
    files: tuple[str, ...]
    """The held files by their names."""
    rows: int
    sources: tuple[SourceRecord, ...]
    why_not: str | None = None
    """Why it cannot be read again; None where it can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The units that lost a file, and where the journal stands."""

    units: tuple[Unit, ...] = ()
    last: Entry | None = None
    digest: str | None = None

    @property
    def ready(self) -> tuple[Unit, ...]:
        """Give those that can be read again."""
        return tuple(unit for unit in self.units if unit.why_not is None)


def look(store: Reader, pipeline: str, fates: Fates) -> Found:
    """Find the units of a pipeline that are held because a file is gone."""
    held: dict[tuple[str | None, int | None, str | None], list[HeldMeta]] = {}
    for meta in _held(store, pipeline):
        held.setdefault((meta.journal, meta.entry, meta.unit), []).append(meta)
    history = read_history(store, pipeline)
    if not held or history.sequence < 0:
        return Found()
    asked = fates(layout.file_name(meta.filename) for metas in held.values() for meta in metas)
    refuse_closed(store, pipeline, heir=history.heir)
    refuse_half_begun(store, pipeline, sequence=history.sequence, awaits=history.awaits)
    under_way = _under_way(store, pipeline, history)
    units = tuple(
        _unit(store, pipeline, history, metas, asked, under_way) for metas in held.values()
    )
    last = _entry(store, pipeline, history.sequence)
    return Found(units=units, last=last, digest=history.digest)


def redo(store: Store, pipeline: str, fates: Fates, *, clock: Clock) -> tuple[Found, int | None]:
    """Append the entry that lets the sources be read again; give what it says, and its number."""
    for _try in range(TRIES):
        found = look(store, pipeline, fates)
        if not found.ready or found.last is None:
            return found, None
        entry = _redo_entry(found.last, found.digest, found.ready, clock)
        if append_beside(store, entry):
            return found, entry.sequence
    raise JournalConflict(
        "batches are journaled faster than this can be written down; nothing was done, try again",
        path=store.describe(layout.journal_folder(pipeline)),
    )


def _held(store: Reader, pipeline: str) -> list[HeldMeta]:
    found = []
    for facts in store.objects(layout.HELD):
        body = store.get(facts.path) if layout.is_meta(facts.path, layout.HELD) else None
        if body is None:
            continue
        try:
            meta = decode_held(body, facts.path)
        except DocumentUnreadable:
            continue  # `penguin held` tells of it.
        if meta.pipeline == pipeline and meta.code == MISSING:
            found.append(meta)
    return found


def _under_way(store: Reader, pipeline: str, history: History) -> frozenset[str]:
    """Name the files that entries give up which penguin has not committed yet.

    The log still says that they are held; to read their sources once more would double the rows.
    """
    committed = 0 if history.receipt is None else history.receipt.sequence
    waiting = range(committed + 1, history.sequence + 1)
    return frozenset(name for number in waiting for name in _entry(store, pipeline, number).redone)


def _unit(
    store: Reader,
    pipeline: str,
    history: History,
    metas: list[HeldMeta],
    fates: Mapping[str, int | None],
    under_way: frozenset[str],
) -> Unit:
    names = tuple(layout.file_name(meta.filename) for meta in metas)
    number = metas[0].entry or 0
    sources: tuple[SourceRecord, ...] = ()
    why_not: str | None = None
    if metas[0].journal != history.journal:
        why_not = "the journal that named them was replaced"
    elif not under_way.isdisjoint(names):
        why_not = "that is under way: penguin has yet to commit it"
    elif any(fates[name] != HELD for name in names):
        why_not = "the log does not say that they are held; let penguin run first"
    else:
        entry = _entry(store, pipeline, number)
        wrote = {layout.file_name(one.filename) for one in entry.files if one.unit == metas[0].unit}
        sources = tuple(
            record
            for record in entry.sources
            if record.unit == metas[0].unit and record.failure is None
        )
        why_not = _why_not(store, pipeline, history, sources, whole=wrote == set(names))
    return Unit(
        entry=number,
        files=names,
        rows=sum(meta.record_count for meta in metas),
        sources=sources,
        why_not=why_not,
    )


def _why_not(
    store: Reader,
    pipeline: str,
    history: History,
    sources: tuple[SourceRecord, ...],
    *,
    whole: bool,
) -> str | None:
    if not whole:
        return "other files of the same work unit are settled already"
    if any(record.skipped or not record.complete for record in sources):
        return "a source file was read over several batches, and its other rows are in the table"
    lookup = history.lookup(store, pipeline)
    for record in sorted(sources, key=lambda each: each.key):
        before = lookup(record.key)
        done = before.finished
        if done is None or (done.size, done.etag) != (record.size, record.etag):
            return f"{record.path} is not known as it was read then"
    return None


def _entry(store: Reader, pipeline: str, number: int) -> Entry:
    path = layout.journal_entry(pipeline, number)
    body = store.get(path)
    if body is None:
        raise JournalLost(f"entry {number} is not there", path=store.describe(path))
    return decode_entry(body, path)


def _redo_entry(
    last: Entry, last_digest: str | None, units: tuple[Unit, ...], clock: Clock
) -> Entry:
    lost = Failure(
        stage=Stage.UPLOAD,
        code=LOST,
        message="a data file with its rows is gone, so it is read again",
        retryable=True,
        attempts=0,  # It has not failed: the next look takes it.
    )
    sources = {
        record.key: SourceRecord(
            source=record.source,
            path=record.path,
            size=record.size,
            etag=record.etag,
            failure=lost,
            redo=True,
        )
        for unit in units
        for record in unit.sources
    }
    return last.successor(
        "redo",
        previous=last_digest,
        run=str(clock.fresh_id()),
        created=clock.now().isoformat(),
        sources=tuple(sources.values()),
        redone=tuple(sorted(name for unit in units for name in unit.files)),
    )
