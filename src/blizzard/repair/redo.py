"""Read source files again whose data files are not in the table.

penguin holds all files of a work unit if one is missing, and every file of an entry that does not
fit the table; an operator may have discarded some. A `redo` entry names these files and their
sources. blizzard then treats the sources as unread and reads them again. penguin marks the files as
gone in the commit that settles the entry, so they can never be committed beside the new rows.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from blizzard.answers.evidence import repaired
from blizzard.handoff.held_rows import CameBack, Fates, notes, rejection_lookup
from blizzard.journal.checkpoint import read_ledger
from blizzard.journal.checks import last_entry
from blizzard.journal.fence import append_planned
from blizzard.journal.ledger import Ledger
from lakebed import layout
from lakebed.clock import Clock
from lakebed.documents.entry import Entry
from lakebed.documents.pending_meta import HeldMeta, HeldState
from lakebed.documents.records import (
    Failure,
    FailureStage,
    QuarantineFile,
    Resolved,
    SourceRecord,
)
from lakebed.journal import JournalReader, StoredEntry
from lakebed.storage.store import Reader, Store

MISSING = "file_missing"
LOST = "output_lost"
GIVEN_UP = "output_given_up"
NOT_IN_TABLE = {HeldState.HELD, HeldState.GONE}
GONE_FILE = "a data file with its rows is gone"
ASIDE = "data files with its rows were held or discarded"


@dataclass(frozen=True, slots=True, kw_only=True)
class RedoRequest:
    """The files to redo: held or discarded data files, or source files."""

    files: frozenset[str] = frozenset()
    """Data files by name or path."""
    sources: frozenset[str] = frozenset()
    """Source files by key, or data files by path."""

    def names(self, file: str) -> bool:
        """Whether a data file is requested."""
        return not self.files.isdisjoint((file, layout.file_name(file))) or file in self.sources

    def reads(self, record: SourceRecord) -> bool:
        """Whether a source file is requested."""
        return record.key in self.sources


@dataclass(slots=True, kw_only=True)
class RedoUnit:
    """The files and sources of one work unit, and what later entries say about them."""

    entry: int
    files: tuple[str, ...]
    """Its data files by name."""
    rows: int
    sources: tuple[SourceRecord, ...] = ()
    quarantine: tuple[QuarantineFile, ...] = ()
    """Files with its bad lines, which are also read again."""
    lost: bool = True
    """Whether a file is missing, rather than held or discarded for another reason."""
    by_name: bool = True
    """Whether a data file was requested, rather than a source."""
    given_up_by: int | None = None
    """The entry that already has its sources read again."""
    read_again: dict[str, int] = field(default_factory=dict)
    """The entries that read its sources since, by path."""
    resolved_by: int | None = None
    """The entry that replayed or discarded some of its bad lines."""
    instead: str | None = None
    """The mark by which the log rejects its replacement of other rows."""
    why_not: str | None = None
    """Why it cannot be read again; None if it can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RedoPlan:
    """The units whose rows are not in the table, and the end of the journal."""

    units: tuple[RedoUnit, ...] = ()
    last: StoredEntry | None = None

    @property
    def ready(self) -> tuple[RedoUnit, ...]:
        """The units that can be read again."""
        return tuple(unit for unit in self.units if unit.why_not is None)


def plan_redo(
    store: Reader,
    pipeline: str,
    fates: Fates,
    wanted: RedoRequest | None = None,
    back: CameBack = lambda _names: {},
) -> RedoPlan:
    """Find the units of a pipeline whose rows are not in the table.

    Either the requested ones or, without a request, those held because a file is missing and those
    that `penguin fsck` took out of the table.
    """
    missing: list[HeldMeta] = []
    is_named = wanted is not None
    if wanted is None:
        held = notes(store, pipeline, layout.HELD)
        missing = [meta for meta in held if meta.code == MISSING]
        paths = [meta.filename for meta in missing]
        paths += [one.path for one in repaired(store) if one.pipeline == pipeline]
        wanted = RedoRequest(files=frozenset(map(layout.file_name, paths)))
    history = read_ledger(store, pipeline)
    committed = None if history.receipt is None else history.receipt.sequence
    history.settle(rejection_lookup(fates, lambda _journal: committed))
    if not (wanted.files or wanted.sources) or history.sequence < 0:
        return RedoPlan()
    last = last_entry(history)
    written = _written(store, pipeline, history, wanted)
    instead = [unit.instead for unit in written if unit.instead is not None]
    marks = fates([*(name for unit in written for name in unit.files), *instead])
    # A request for a source means only its units that are not in the table.
    units = [
        unit
        for unit in written
        if unit.by_name or any(marks.get(name) in NOT_IN_TABLE for name in unit.files)
    ]
    returned = back(
        [name for unit in units for name in unit.files if marks.get(name) == HeldState.GONE]
    )
    gone = {layout.file_name(meta.filename) for meta in missing}
    for unit in units:
        unit.lost = not gone.isdisjoint(unit.files)
        unit.why_not = next(_reasons(history, unit, marks, returned), None)
    known = {name for unit in units for name in unit.files}
    others = [meta for meta in missing if layout.file_name(meta.filename) not in known]
    # Units that were settled long ago matter only if requested.
    open_ones = [
        unit
        for unit in units
        if (is_named and unit.by_name)
        or not (_is_read_again(unit, committed) or (not is_named and returned.keys() & unit.files))
    ]
    shown = open_ones or (units if is_named else [])
    return RedoPlan(units=(*shown, *_of_other_journals(others)), last=last)


def _is_read_again(unit: RedoUnit, committed: int | None) -> bool:
    """Whether a committed entry ordered the unit's sources to be read again."""
    return unit.given_up_by is not None and unit.given_up_by <= (committed or 0)


def redo(
    store: Store,
    pipeline: str,
    fates: Fates,
    *,
    clock: Clock,
    wanted: RedoRequest | None = None,
    back: CameBack = lambda _names: {},
) -> tuple[RedoPlan, int | None]:
    """Append the redo entry; return the plan and the entry's number."""

    def replan() -> tuple[RedoPlan, Entry | None]:
        found = plan_redo(store, pipeline, fates, wanted, back)
        if not found.ready or found.last is None:
            return found, None
        return found, _redo_entry(found.last, found.ready, clock)

    found, entry = append_planned(store, pipeline, replan)
    if entry is None:
        return found, None
    for name in entry.redone:
        # A remaining record is harmless, since the entry names the file.
        store.delete(layout.discarded_meta(name))
    return found, entry.sequence


def _written(store: Reader, pipeline: str, history: Ledger, wanted: RedoRequest) -> list[RedoUnit]:
    """Find the requested units and the fate of their sources in one pass."""
    found: list[RedoUnit] = []
    by: dict[str, list[RedoUnit]] = defaultdict(list)
    """Units by data file name, quarantine file name and source key."""
    for entry in JournalReader(store, pipeline).entries():
        if entry.sequence > history.sequence:
            break  # It was appended since the ledger was read; a retry sees both.
        for unit in (unit for name in entry.redone for unit in by.get(name, ())):
            unit.given_up_by = entry.sequence
        for unit in (unit for one in entry.resolved for unit in by.get(one.old, ())):
            unit.resolved_by = entry.sequence
        for record in entry.sources:
            if record.failure is None:
                for unit in by.get(record.key, ()):
                    unit.read_again[record.path] = entry.sequence
        for unit in _units_of(entry, wanted):
            found.append(unit)
            quarantined = (file.filename for file in unit.quarantine)
            for name in (*unit.files, *quarantined, *(record.key for record in unit.sources)):
                by[name].append(unit)
    return found


def _units_of(entry: Entry, wanted: RedoRequest) -> Iterator[RedoUnit]:
    """Yield the units of an entry with a requested file or source."""
    named = {file.unit for file in entry.files if wanted.names(file.filename)}
    read = {record.unit for record in entry.sources if wanted.reads(record)} - named
    for unit in sorted(named) + sorted(each for each in read if each is not None):
        files = [file for file in entry.files if file.unit == unit]
        if files:
            yield RedoUnit(
                entry=entry.sequence,
                by_name=unit in named,
                files=tuple(layout.file_name(file.filename) for file in files),
                rows=sum(file.record_count for file in files),
                sources=tuple(
                    record
                    for record in entry.sources
                    if record.unit == unit and record.failure is None
                ),
                quarantine=tuple(file for file in entry.quarantine if file.unit == unit),
                instead=entry.replacement_mark if entry.replaces else None,
            )


def _of_other_journals(metas: list[HeldMeta]) -> Iterator[RedoUnit]:
    """Yield the units of files that are held under a journal that no longer exists."""
    together: dict[object, list[HeldMeta]] = defaultdict(list)
    for meta in metas:
        together[meta.journal, meta.entry, meta.unit].append(meta)
    for found in together.values():
        yield RedoUnit(
            entry=found[0].entry or 0,
            files=tuple(layout.file_name(meta.filename) for meta in found),
            rows=sum(meta.record_count for meta in found),
            why_not="the journal that named them was replaced",
        )


def _reasons(
    history: Ledger,
    unit: RedoUnit,
    marks: Mapping[str, int | None],
    returned: Mapping[str, str],
) -> Iterator[str]:
    """Yield why sources cannot be read again without duplicating rows, main reason first."""
    committed = 0 if history.receipt is None else history.receipt.sequence
    found = {marks.get(name) for name in unit.files}
    if unit.instead is not None and marks.get(unit.instead) == HeldState.GONE:
        yield (
            "its rows were to replace others, by an entry that penguin rejected; run blizzard "
            "retract with --replace again"
        )
    if unit.given_up_by is None:
        back = (returned[name] for name in unit.files if name in returned)
        yield from (f"they are in the table again: {how}" for how in back)
    if not unit.sources:
        yield "its rows are lines that were replayed, not source files; see penguin release"
    if unit.given_up_by is not None:
        # Until that entry is committed, the log still says that the files are held.
        under_way = "this is already under way: penguin has yet to commit it"
        again = f"entry {unit.given_up_by} has already had them read again"
        yield again if _is_read_again(unit, committed) else under_way
    if unit.lost and found != {HeldState.HELD}:
        yield "the log does not say that they are held; let penguin run first"
    elif not found <= NOT_IN_TABLE and not found.isdisjoint(NOT_IN_TABLE):
        yield "other files of the same work unit have already been decided on"
    elif not found <= NOT_IN_TABLE:
        settled = "their entry is committed, and penguin neither holds nor discarded them"
        yield settled if unit.entry <= committed else "penguin has yet to commit their entry"
    yield from _read_since(history, unit)


def _read_since(history: Ledger, unit: RedoUnit) -> Iterator[str]:
    """Yield what was read of a unit's sources by other entries."""
    if any(record.skipped or not record.complete for record in unit.sources):
        yield "a source file was read over several batches, and its other rows are in the table"
    if unit.resolved_by is not None:
        yield (
            f"entry {unit.resolved_by} has replayed or discarded bad lines of its source files; "
            "blizzard retract of all of them with --replace of one, then of each other one with "
            "--replace of itself, reads them again and supersedes those rows"
        )
    again = sorted(unit.read_again.items())
    yield from (f"entry {entry} has read {path} again" for path, entry in again)
    lookup = history.lookup()
    for record in sorted(unit.sources, key=lambda each: each.key):
        done = lookup(record.key).finished
        if done is None or (done.size, done.etag) != (record.size, record.etag):
            yield f"{record.path} is no longer recorded as it was when it was read"


def _redo_entry(last: StoredEntry, units: tuple[RedoUnit, ...], clock: Clock) -> Entry:
    sources = {
        record.key: SourceRecord(
            source=record.source,
            path=record.path,
            size=record.size,
            etag=record.etag,
            failure=Failure(
                stage=FailureStage.UPLOAD,
                code=LOST if unit.lost else GIVEN_UP,
                message=f"{GONE_FILE if unit.lost else ASIDE}, so it is read again",
                retryable=True,
                attempts=0,  # Not a failure: the next listing takes it.
            ),
            redo=True,
            supersedes=unit.files,
        )
        for unit in units
        for record in unit.sources
    }
    bad = (file for unit in units for file in unit.quarantine)
    return replace(
        last.successor("redo", clock),
        sources=tuple(sources.values()),
        redone=tuple(sorted(name for unit in units for name in unit.files)),
        resolved=tuple(Resolved(old=file.filename, lines=file.record_count) for file in bad),
    )
