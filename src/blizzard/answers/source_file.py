"""Why a source file is where it is: not seen, waiting, failed, read in part, or in the table."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from blizzard.answers.answer import (
    Answer,
    DataFile,
    FailedAt,
    Inherited,
    Read,
    Resolution,
    State,
    StoredObject,
)
from blizzard.answers.asked import Asked
from blizzard.answers.backlog import backlog_of
from blizzard.answers.entry_search import earlier_parts, reading
from blizzard.answers.evidence import Table
from blizzard.answers.later import REPLAY, erasures_of, resolutions, retraction_of, waiting_lines
from blizzard.answers.lifecycle import NOT_APPLIED, last_entry
from blizzard.answers.table_log import LogEntry
from blizzard.answers.words import worded
from blizzard.discover.filter import is_same, same_object
from blizzard.discover.finding import Finding
from blizzard.discover.lister import source_listers
from blizzard.discover.retry import next_try
from blizzard.discover.skip_reason import Reason, SkippedFile
from blizzard.journal.ledger import Before
from blizzard.model.files import IngestedFile, UnfinishedFile
from blizzard.model.settings import SourceSettings
from blizzard.model.source.part_way import ChangedPartWay, lacks_its_object
from lakebed.documents.entry import Entry
from lakebed.documents.source_record import SourceRecord, Stage
from lakebed.errors import StoreDenied
from lakebed.listing.sort import readable
from lakebed.storage.store import ObjectFacts, Reader
from lakebed.telemetry.events import code_of
from lakebed.types import OnChange


def failure_of(asked: Asked, known: UnfinishedFile) -> FailedAt | None:
    """Return where and since when a file fails; None where it has not failed."""
    failure = known.record.failure
    if failure is None:
        return None
    last, entry = _failed_last(asked, known)
    return FailedAt(
        stage=failure.stage.value,
        code=failure.code,
        message=failure.message,
        line=failure.line,
        field=failure.field,
        attempts=failure.attempts,
        since=known.since,
        last=last,
        entry=entry,
        next_try=next_try(known, _bases(asked, known.record.source)),
    )


def _failed_last(asked: Asked, known: UnfinishedFile) -> tuple[datetime, int | None]:
    """Return when a file failed last, and the entry that says so.

    A later one may say that it is gone, was given up, or is to be read again.
    """
    number = known.entry if known.failed_in is None else known.failed_in
    is_later = number != known.entry or known.record.gone
    table = asked.table if is_later else None
    failed = None if table is None or number is None else table.journal.entry(number)
    if failed is None:
        return known.at, known.entry
    return datetime.fromisoformat(failed.created), number


def _bases(asked: Asked, source: str) -> Mapping[Stage, str]:
    return next(
        (each.bases for each in source_listers(asked.settings) if each.source.name == source), {}
    )


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
    answer = replace(
        answer,
        erased=erasures_of(asked, key, answer),
        read_before=_read_before(asked, key),
        taken_back_by=asked.history.undecided.taking_back(key),
        other_bad_lines=max(0, _waiting_in_all(asked, key) - max(0, waiting_lines(answer))),
    )
    refusal = asked.refusal() if answer.state in TO_BE_READ else None
    if refusal is not None:
        answer = replace(answer, state=State.REFUSED, reason=code_of(refusal), detail=str(refusal))
    elif answer.state is State.WAITING:
        answer = replace(answer, backlog=backlog_of(asked, spot, answer))
    return worded(answer, asked.settings, source, asked.clock.now())


def _read_before(asked: Asked, key: str) -> tuple[Read, ...]:
    """Return what was read under a name as other objects, whose rows were not taken out."""
    table, found = asked.table, list[Read]()
    if table is None:
        return ()
    for each in asked.history.earlier.get(key, ()):
        last = None if each.file.entry is None else table.journal.entry(each.file.entry)
        parts = () if last is None else (*earlier_parts(table.journal, key, last), last)
        for entry in parts:
            told = table.committed(entry)
            found += [_read(entry, one, told) for one in entry.readings if one.key == key]
    return tuple(found)


def _waiting_in_all(asked: Asked, key: str) -> int:
    """Count the bad lines of a file that wait, whatever has become of it since they were read."""
    files = (each.file for each in asked.history.books.waiting_files())
    return sum(one.lines for file in files for one in file.sources if one.source == key)


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
        return _as_found(_unfinished(asked, bare, facts, known, found), found)
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


def _as_found(answer: Answer, found: Finding) -> Answer:
    """Return that nothing more is read of a file, where the next run would say so."""
    passed = _passed(found, answer.path or "")
    if passed is None or passed.reason is not Reason.CHANGED_PART_WAY:
        return answer
    return replace(answer, state=State.FAILED, reason=ChangedPartWay.code, detail=passed.detail)


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
    unseen = record.records_read - sum(one.lines for one in answer.read)
    answer = _with_earlier(asked, answer, unseen)
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
    said = last_entry(known)
    last = asked.history.sequence if said is None else said
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
    undone = asked.history.undecided.of(done.key)
    # What has its name now is what was to come in the place of other rows, or is not there.
    is_undone = undone is not None and undone.not_applied and _tells_of(undone.after, done, facts)
    if undone is not None and is_undone:
        done = undone.after
    entry = _entry_of(table, done)
    if entry is None or not entry.has_read(done.key):
        answer = _inherited(table, bare)
    else:
        parts = (*earlier_parts(table.journal, done.key, entry), entry)
        answer = _with_parts(asked, bare, parts, done.key)
        skipped = (one.skipped for one in parts[0].readings if one.key == done.key)
        answer = _with_earlier(asked, answer, max(skipped, default=0))
    said = done.entry if undone is None else undone.entry
    retraction = retraction_of(asked, table, replace(done, entry=said), answer.data_files)
    if retraction is not None:
        gone = retraction.is_done and not retraction.replaced
        state = State.RETRACTED if gone else answer.state
        answer = replace(answer, state=state, retraction=retraction)
    is_other = facts is not None and not is_same(done, facts)
    if is_undone and not (found.take and (is_other or _is_read_beside(asked, bare))):
        return replace(answer, state=State.CHANGED, reason=NOT_APPLIED)
    if is_other or is_undone:
        state = State.WAITING if found.take else State.CHANGED
        return replace(answer, state=state, reason=Reason.CHANGED.value)
    return answer


def _tells_of(new: IngestedFile, old: IngestedFile, facts: ObjectFacts | None) -> bool:
    """Whether new content is what an answer is about: not where its source has another object."""
    return facts is None or is_same(new, facts) or new == old


def _is_read_beside(asked: Asked, bare: Answer) -> bool:
    """Whether new content of a file is read, and its old rows stay."""
    sources = {one.name: one for one in asked.settings.sources}
    return sources[bare.source or ""].on_change is OnChange.REINGEST


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


def _with_earlier(asked: Asked, answer: Answer, lines: int) -> Answer:
    """Add how many lines of a file were read under an earlier journal, and which one that is."""
    table = asked.table
    if table is None or lines <= 0:
        return answer
    inherited = _inherited(table, answer).inherited
    if inherited is None:
        return answer
    return replace(answer, earlier_lines=lines, inherited=inherited)


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
        if entry.kind == REPLAY:  # What a retraction writes is other content, or other rows.
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
