"""Why a source file is where it is: not seen, waiting, failed, read in part, or in the table."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from blizzard.discover.filter import is_same, same_object
from blizzard.discover.finding import Finding
from blizzard.discover.skip_reason import Reason, SkippedFile
from blizzard.handoff.held_rows import GONE
from blizzard.inspect.files.undone import NOT_APPLIED
from blizzard.inspect.why.answer import (
    Answer,
    DataFile,
    Inherited,
    Read,
    Resolution,
    Retraction,
    State,
    StoredObject,
)
from blizzard.inspect.why.asked import Asked
from blizzard.inspect.why.entries import became, earlier_parts, reading, retracting
from blizzard.inspect.why.failing import failure_of
from blizzard.inspect.why.later import resolutions
from blizzard.inspect.why.standing import Table
from blizzard.inspect.why.table_log import LogEntry
from blizzard.inspect.why.waiting import backlog_of
from blizzard.inspect.why.words import worded
from blizzard.journal.shared_sources import uris_of
from blizzard.journal.state import Before
from blizzard.model.files import IngestedFile, UnfinishedFile
from blizzard.model.settings import SourceSettings
from blizzard.model.source.part_way import lacks_its_object
from lakebed.documents.entry import Entry
from lakebed.documents.source_record import SourceRecord
from lakebed.errors import StoreDenied
from lakebed.listing.sort import readable
from lakebed.storage.store import ObjectFacts, Reader
from lakebed.telemetry.events import code_of

TO_BE_READ = (State.WAITING, State.PARTIAL, State.TO_REDO)


def why_source_file(asked: Asked, source: SourceSettings, path: str) -> Answer:
    """Return why a file of a source is where it is."""
    key = f"{source.name}:{path}"
    spot, before = asked.spot_check(source), asked.known(key)
    facts, found = _head(spot.store, path), spot.of(path)
    bare = Answer(
        kind="source",
        state=State.MISSING,
        uri=spot.store.describe(path),
        pipeline=asked.settings.name,
        table_uri=asked.settings.sink.table_uri,
        source=source.name,
        path=path,
        answer="",
        stored=None
        if facts is None
        else StoredObject(size=facts.size, etag=facts.etag, modified=facts.modified),
    )
    answer = _decided(asked, bare, facts, before, found)
    answer = replace(answer, erased=_erasures(asked, key, answer.data_files))
    refusal = asked.refusal() if answer.state in TO_BE_READ else None
    if refusal is not None:
        answer = replace(answer, state=State.REFUSED, reason=code_of(refusal), detail=str(refusal))
    elif answer.state is State.WAITING:
        answer = replace(answer, backlog=backlog_of(asked, spot, answer))
    return worded(answer, asked.settings, source, asked.clock.now())


def _head(place: Reader, path: str) -> ObjectFacts | None:
    try:
        return place.head(path)
    except StoreDenied:
        return None  # The look says that it may not be read.


def _decided(
    asked: Asked,
    bare: Answer,
    facts: ObjectFacts | None,
    before: Before,
    found: Finding,
) -> Answer:
    """Choose the state, by the journal first, then by what the lister makes of the file."""
    known = before.unfinished
    # What is in the table counts for more than that other content failed, and is gone.
    is_over = known is not None and known.record.gone and before.finished is not None
    if known is not None and (not is_over or known.record.records_read):
        return _unfinished(asked, bare, facts, known, found)
    if before.finished is not None:
        return _finished(asked, bare, facts, before.finished, found)
    if found.take:
        return replace(bare, state=State.WAITING)
    passed = _passed(found, bare.path or "")
    if passed is None:
        return bare
    is_young = passed.reason is Reason.TOO_YOUNG
    state = State.WAITING if is_young else State.SKIPPED
    return replace(bare, state=state, reason=passed.reason.value, detail=passed.detail)


def _passed(found: Finding, path: str) -> SkippedFile | None:
    """Return why a file, or a folder that it is in, is passed over."""
    names = {path, readable(path)}
    return next(
        (
            one
            for one in found.passed
            if one.path in names or (one.path.endswith("/") and path.startswith(one.path))
        ),
        None,
    )


def _unfinished(
    asked: Asked,
    bare: Answer,
    facts: ObjectFacts | None,
    known: UnfinishedFile,
    found: Finding,
) -> Answer:
    record = known.record
    parts = _parts_of_unfinished(asked, known)
    answer = replace(_with_parts(asked, bare, parts, record.key), failure=failure_of(asked, known))
    is_other = facts is not None and not same_object(record, facts)
    if found.take and lacks_its_object(record) and not is_other:
        return replace(answer, state=State.PARTIAL, failure=None)  # It is back: its rest is read.
    if found.take and (record.gone or is_other):
        return replace(answer, state=State.WAITING, reason=Reason.CHANGED.value)
    if record.gone:
        reason = "discarded" if record.discarded else answer.reason
        return replace(answer, state=State.GONE, reason=reason)
    if record.redo and (record.failure is None or record.failure.attempts == 0):
        return replace(answer, state=State.TO_REDO, failure=None)
    if record.failure is not None:
        return replace(answer, state=State.FAILED, reason=record.failure.code)
    return replace(answer, state=State.PARTIAL)


def _parts_of_unfinished(asked: Asked, known: UnfinishedFile) -> tuple[Entry, ...]:
    """Return the entries whose rows of a file are in the table, though it is not done."""
    table, record = asked.table, known.record
    if table is None or not record.records_read:
        return ()
    last = asked.history.sequence if known.entry is None else known.entry
    newest = reading(table.journal, record.key, record.path, last)
    if newest is None:
        return ()
    return (*earlier_parts(table.journal, record.key, newest), newest)


def _finished(
    asked: Asked,
    bare: Answer,
    facts: ObjectFacts | None,
    done: IngestedFile,
    found: Finding,
) -> Answer:
    table = asked.table
    if table is None:
        return bare
    entry = _entry_of(table, done)
    if entry is None or not entry.has_read(done.key):
        answer = _inherited(table, bare)
    else:
        parts = (*earlier_parts(table.journal, done.key, entry), entry)
        answer = _with_parts(asked, bare, parts, done.key)
    retraction = _retraction(asked, table, done, answer.data_files)
    if retraction is not None:
        gone = retraction.is_done and not retraction.replaced
        state = State.RETRACTED if gone else answer.state
        answer = replace(answer, state=state, retraction=retraction)
    is_other = facts is not None and not is_same(done, facts)
    if retraction is not None and retraction.is_not_applied and not (is_other and found.take):
        return replace(answer, state=State.CHANGED, reason=NOT_APPLIED)
    if is_other:
        state = State.WAITING if found.take else State.CHANGED
        return replace(answer, state=state, reason=Reason.CHANGED.value)
    return answer


def _entry_of(table: Table, done: IngestedFile) -> Entry | None:
    """Return the batch that a file was done with, or else the entry that repeats it.

    Names of an earlier version do not tell it, nor do those that a moved source repeats: then the
    entries are looked through, the newest first.
    """
    entry = None if done.entry is None else table.journal.entry(done.entry)
    if entry is not None and entry.has_read(done.key):
        return entry
    path = done.key.partition(":")[2]
    last = table.last if done.entry is None else done.entry
    return reading(table.journal, done.key, path, last) or entry


def _retraction(
    asked: Asked, table: Table, done: IngestedFile, data_files: Sequence[DataFile]
) -> Retraction | None:
    """Return what was asked last to take the rows of a file out of the table."""
    entry = None if done.entry is None else table.journal.entry(done.entry)
    if entry is None or entry.kind != "retract":
        if entry is not None and entry.kind == "batch":
            return None
        last = table.last if done.entry is None else done.entry
        entry = retracting(table.journal, done.key, done.key.partition(":")[2], last)
    if entry is None:
        return None
    out = [one for one in entry.sources if one.retracted]
    own = [one for one in out if one.key == done.key]
    rows = sum(one.rows for one in own or out)
    had_them = {one.path: one.entry for one in data_files if one.entry < entry.sequence}
    if entry.has_read(done.key):
        had_them = _files_before(table, entry, done.key)

    def takes(other: Entry) -> bool:
        return any(one.key == done.key and one.retracted for one in other.sources)

    taken = _taken_out(asked, table, entry, rows, had_them, takes)
    others = () if own else tuple(one.path for one in out)
    return replace(taken, replaced=entry.has_read(done.key), others=others)


def _files_before(table: Table, entry: Entry, key: str) -> dict[str, int]:
    """Return the data files with the content that an entry replaced, and their entries."""
    newest = reading(table.journal, key, key.partition(":")[2], entry.sequence - 1)
    parts = () if newest is None else (*earlier_parts(table.journal, key, newest), newest)
    return {
        file.filename: one.sequence
        for one in parts
        for file in one.files
        if key in file.source_files
    }


def _erasures(asked: Asked, key: str, data_files: Sequence[DataFile]) -> tuple[Retraction, ...]:
    """Return what was asked to take rows of a file out of the table by what they hold."""
    table = asked.table
    if table is None:
        return ()
    numbers = [int(at) for at, one in asked.history.books.retractions.items() if one.erased]
    uris = uris_of(key, asked.settings, asked.history) if numbers else frozenset()
    found = []

    def erased(entry: Entry) -> int:
        return sum(entry.erased.get(uri, 0) for uri in uris)

    for number in sorted(numbers):
        entry = table.journal.entry(number)
        rows = 0 if entry is None else erased(entry)
        if entry is None or not rows:
            continue

        def takes(other: Entry, number: int = number, rows: int = rows) -> bool:
            again = other.sequence >= number and erased(other) >= rows
            return again or any(one.key == key and one.retracted for one in other.sources)

        had_them = {one.path: one.entry for one in data_files if one.entry < number}
        found.append(_taken_out(asked, table, entry, rows, had_them, takes))
    return tuple(found)


def _taken_out(
    asked: Asked,
    table: Table,
    entry: Entry,
    rows: int,
    had_them: Mapping[str, int],
    takes: Callable[[Entry], bool],
) -> Retraction:
    """Return what became of rows that an entry takes out.

    They may be back, with the files that it took out, or with those that were compacted into
    these: `had_them` says which had rows of the source file at first, with their entries.
    """
    told, mark = table.committed(entry), entry.replacement_mark
    at = None if told.version is None else told.version.at
    passed_over = table.log.fates([mark]).get(mark) == GONE
    taken_out = [one.old for one in entry.replaced] if told.committed and not passed_over else []
    named = table.log.files(taken_out) if taken_out else {}
    came_back = any(one.in_table for one in named.values())
    if taken_out and not came_back:
        there = table.is_there_past(list(had_them), takes)
        came_back = any(
            not became(table.journal, path, range(had_them[path] + 1, entry.sequence)).isdisjoint(
                taken_out
            )
            for path in there
        )
    return Retraction(
        entry=entry.sequence,
        at=datetime.fromisoformat(entry.created),
        rows=rows,
        committed=told.committed,
        passed_over=passed_over,
        reasons=told.reasons_against if passed_over else (),
        came_back=came_back,
        version=None if told.version is None else told.version.version,
        committed_at=at,
        deleted_from=None if at is None else at + asked.log.retention(),
    )


def _inherited(table: Table, bare: Answer) -> Answer:
    """Return that an earlier journal knew a file, and which one."""
    opening = table.journal.entry(0)
    lineage = None if opening is None else opening.inherits
    if lineage is None:
        return replace(bare, state=State.INHERITED)
    earlier = Inherited(
        pipeline=lineage.pipeline, journal=lineage.journal, last_entry=lineage.sequence
    )
    return replace(bare, state=State.INHERITED, inherited=earlier)


def _with_parts(asked: Asked, bare: Answer, parts: tuple[Entry, ...], key: str) -> Answer:
    """Add what entries say of the reading of a file, and how its data files stand."""
    table = asked.table
    if table is None or not parts:
        return bare
    reads: list[Read] = []
    data_files: list[DataFile] = []
    for entry in parts:
        files = [file for file in entry.files if key in file.source_files]
        data_files += table.data_files(entry, files)
        told = table.committed(entry)
        records = (record for record in entry.readings if record.key == key)
        reads += [_read(entry, record, told) for record in records]
    since: list[Resolution] = []
    for entry, one in resolutions(table, parts, key):
        since.append(one)
        files = [file for file in entry.files if key in file.source_files]
        data_files += table.data_files(entry, files)
    answer = replace(bare, read=tuple(reads), resolved=tuple(since), data_files=tuple(data_files))
    return replace(answer, state=_state_of(answer), reason=_held_for(answer))


def _read(entry: Entry, record: SourceRecord, told: LogEntry) -> Read:
    return Read(
        entry=entry.sequence,
        at=datetime.fromisoformat(entry.created),
        lines=record.lines,
        blank=record.blank,
        filtered=record.filtered,
        quarantined=record.quarantined,
        rescued=sum(record.rescued.values()),
        dropped=sum(record.dropped.values()),
        rows=record.rows,
        version=None if told.version is None else told.version.version,
        committed=told.committed,
        committed_at=None if told.version is None else told.version.at,
        counted="records" if record.form else "lines",
    )


def _state_of(answer: Answer) -> State:
    """Return how a file that was read stands, by its data files: the worst of them counts."""
    states = {one.state for one in answer.data_files}
    for state in (State.HELD, State.DISCARDED, State.GIVEN_UP):
        if state in states:
            return state
    if not all(read.committed for read in answer.read):
        return State.UNCOMMITTED
    if not states:
        return State.NO_ROWS
    if states == {State.UNCOMMITTED}:
        return State.UNCOMMITTED  # All of its rows are of bad lines that were replayed.
    if states == {State.REMOVED}:
        return State.REMOVED
    return State.ALTERED if states <= {State.REMOVED, State.ALTERED} else State.COMMITTED


def _held_for(answer: Answer) -> str | None:
    return next((one.code for one in answer.data_files if one.state is State.HELD), None)
