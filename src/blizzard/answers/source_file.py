"""Explain the state of a source file: skipped, waiting, failed, read in part or in the table."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from blizzard.answers.answer import (
    INHERITED,
    NO_ROWS,
    NOT_APPLIED,
    PART_READ,
    REDO,
    Answer,
    DataFile,
    FailedSource,
    FileProgress,
    FileStanding,
    FileState,
    Read,
    Resolution,
    state_by_log,
)
from blizzard.answers.entries import parts_until, reading, retracting
from blizzard.answers.evidence import JournalEvidence
from blizzard.answers.file_history import erasures_of, is_running, resolutions, retraction_of
from blizzard.answers.lifecycle import Lifecycle, last_entry, to_be_replaced
from blizzard.answers.progress import PipelineEvidence
from blizzard.answers.wording.phrases import REPLAY, present_count, waiting_lines
from blizzard.answers.wording.words import Case, worded
from blizzard.discover.filter import Decision, bases_of
from blizzard.discover.finding import Finding, Reason, SkippedFile
from blizzard.model.settings import SourceSettings
from blizzard.model.source.file import IngestedFile, Recorded, UnfinishedFile
from blizzard.model.source.partly_read import PartialFileChanged
from lakebed.documents.entry import Entry
from lakebed.documents.records import SourceRecord
from lakebed.errors import LakeError, StoreDenied
from lakebed.listing.sort import readable
from lakebed.storage.options import ObjectFacts
from lakebed.storage.store import Reader
from lakebed.telemetry.events import code_of

if TYPE_CHECKING:
    from lakebed.deltalog.search import EntryInLog


def failure_of(evidence: PipelineEvidence, known: UnfinishedFile) -> FailedSource | None:
    """Return a file's failure; None without one.

    A later entry may say that the file is gone, was given up, or is to be read again.
    """
    sources = {source.name: source for source in evidence.settings.sources}
    found = FailedSource.of(known, bases_of(evidence.settings, sources[known.record.source]))
    number = known.entry if known.failed_in is None else known.failed_in
    is_later = number != known.entry or known.record.gone
    table = evidence.table if is_later else None
    failed = None if table is None or number is None else table.journal.entry(number)
    if found is None or failed is None:
        return found
    return replace(found, failed_at=datetime.fromisoformat(failed.created), entry=number)


DECISIONS = {
    Reason.TOO_YOUNG: Decision.WAIT,
    Reason.BEYOND_BATCH: Decision.FULL,
    Reason.MISPLACED: Decision.FAIL,
}
"""Decisions by the reason for not taking a file; for other reasons it is done."""


GONE = {FileState.REMOVED, FileState.RETRACTED, FileState.DISCARDED}
"""The states of data files without rows in the table."""


def why_source_file(evidence: PipelineEvidence, source: SourceSettings, path: str) -> Answer:
    """Explain the state of a source file."""
    key = f"{source.name}:{path}"
    spot, before = evidence.spot_check(source), evidence.known(key)
    facts, found = _head(spot.context.store, path), spot.of(path)
    answer = Answer(
        kind="source",
        state=FileState.MISSING,
        uri=spot.context.store.describe(path),
        pipeline=evidence.settings.name,
        table_uri=evidence.settings.sink.table_uri,
        source=source.name,
        path=path,
        answer="",
        stored=facts,
    )
    progress, unsure = evidence.progress()
    life = Lifecycle(source=source, ledger=evidence.history, progress=progress)
    standing = _standing(life, facts, before, found, key)
    passed = _passed(found, path)
    if standing is not None:
        answer = replace(answer, state=standing.state, reason=standing.reason)
        if passed is not None and passed.reason in (Reason.PARTIAL_FILE_CHANGED, Reason.MISPLACED):
            answer = replace(answer, detail=passed.detail)
    elif passed is not None:
        reason, detail = passed.reason.value, passed.detail
        answer = replace(answer, state=FileState.SKIPPED, reason=reason, detail=detail)
    answer = _with_history(evidence, answer, before)
    answer = replace(
        answer,
        erased=erasures_of(evidence, key, answer),
        read_before=_read_before(evidence, key, answer),
        taken_back_by=evidence.history.undecided.taking_back(key),
        other_bad_lines=max(0, _waiting_in_all(evidence, key) - max(0, waiting_lines(answer))),
    )
    refusal = evidence.refusal() if answer.state is FileState.WAITING else None
    if refusal is not None:
        answer = replace(answer, reason=code_of(refusal), detail=str(refusal))
    elif answer.state is FileState.WAITING and answer.reason not in (PART_READ, REDO):
        answer = replace(answer, running=is_running(evidence))
    now, cli = evidence.clock.now(), evidence.cli
    answer = worded(
        Case(
            answer=answer,
            settings=evidence.settings,
            source=source,
            now=now,
            cli=cli,
            lost=progress.lost,
        )
    )
    doubt = "".join(f" This is not known for sure: {one}." for one in unsure)
    return replace(answer, answer=f"{answer.answer}{doubt}")


def _standing(
    life: Lifecycle, facts: ObjectFacts | None, before: Recorded, found: Finding, key: str
) -> FileStanding | None:
    """Return the standing of the present or last object of a name.

    None if nothing of it was read and no batch will read it.
    """
    known, done = before.unfinished, before.finished
    passed = _passed(found, key.partition(":")[2])
    decision = Decision.DONE if passed is None else DECISIONS.get(passed.reason, Decision.DONE)
    if found.take:
        decision = Decision.TAKE
    if facts is not None and (known or done or decision is not Decision.DONE):
        loses_rest = passed is not None and passed.reason is Reason.PARTIAL_FILE_CHANGED
        here = life.listed(facts, life.before(key, done), decision, loses_rest=loses_rest)
        return list(here)[-1]
    if known is not None and not _is_over(before, facts):
        return life.unfinished_and_gone(known)
    return None if done is None else list(life.done_and_gone(done))[-1]


def _is_over(before: Recorded, facts: ObjectFacts | None) -> bool:
    """Whether the content in the table counts, since other content failed and left the source.

    Without an object in the source, the failed content is lost until an operator gives it up.
    """
    known = before.unfinished
    is_gone = known is not None and known.record.gone and not known.record.records_read
    is_settled = facts is not None or (known is not None and known.record.discarded)
    return is_gone and is_settled and before.finished is not None


def _read_before(evidence: PipelineEvidence, key: str, answer: Answer) -> tuple[Read, ...]:
    """Return the reads of earlier objects of a name whose rows are in the table.

    Rows of replayed lines count with them.
    """
    table, found = evidence.table, list[Read]()
    if table is None:
        return ()
    earlier = (each.file.entry for each in evidence.history.earlier.get(key, ()))
    for number in dict.fromkeys((*_retracted_before(table, key, answer), *earlier)):
        last = None if number is None else table.journal.entry(number)
        for entry in parts_until(table.journal, key, last):
            in_log = table.committed(entry)
            files = [file for file in entry.files if key in file.source_files]
            states = {one.state for one in table.data_files(entry, files, key)}
            if not states or not states <= GONE:
                more = evidence.history.books.replayed.get(f"{entry.sequence}:{key}", 0)
                reads = (_read(entry, one, in_log) for one in entry.readings if one.key == key)
                found += [replace(one, rows=one.rows + more) for one in reads]
    return tuple(found)


def _retracted_before(table: JournalEvidence, key: str, answer: Answer) -> Iterator[int]:
    """Yield the last entry that read retracted content, if the file was read again since."""
    first = table.journal.entry(answer.read[0].entry) if answer.read else None
    if first is not None and any(one.key == key and one.reingested for one in first.readings):
        taken = retracting(table.journal, key, first.sequence - 1)
        if taken is not None and not taken.has_read(key):
            read = reading(table.journal, key, taken.sequence)
            yield from () if read is None else (read.sequence,)


def _waiting_in_all(evidence: PipelineEvidence, key: str) -> int:
    """Count the waiting bad lines of a file, including those of earlier content."""
    files = (each.file for each in evidence.history.books.waiting_files())
    return sum(one.lines for file in files for one in file.sources if one.source == key)


def _head(place: Reader, path: str) -> ObjectFacts | None:
    try:
        return place.head(path)
    except StoreDenied:
        return None  # The spot check reports that it may not be read.


def _passed(found: Finding, path: str) -> SkippedFile | None:
    """Return why a file, or a folder that contains it, is skipped."""
    names = {path, readable(path)}
    return next(
        (
            one
            for one in found.passed
            if one.path in names or (one.path.endswith("/") and path.startswith(one.path))
        ),
        None,
    )


def _with_history(evidence: PipelineEvidence, answer: Answer, before: Recorded) -> Answer:
    """Add what entries say about a file, depending on its state."""
    known, done = before.unfinished, before.finished
    is_over = _is_over(before, answer.stored) or (done and answer.state is FileState.CHANGED)
    if known is not None and not is_over:
        unfinished = _with_unfinished(evidence, answer, known)
        is_replaced = done is not None and not done.retracted and not unfinished.read
        if done is None or not is_replaced:
            return unfinished
        return replace(unfinished, replaces_rows=_rows_before(evidence, answer, done))
    return answer if done is None else _with_finished(evidence, answer, done)


def _with_unfinished(evidence: PipelineEvidence, answer: Answer, known: UnfinishedFile) -> Answer:
    record = known.record
    answer = _with_parts(evidence, answer, _parts_of_unfinished(evidence, known), record.key)
    unseen = record.records_read - sum(one.lines for one in answer.read)
    answer = replace(answer, earlier_lines=_earlier_lines(evidence, unseen))
    if answer.reason in (PART_READ, REDO):
        return answer
    is_there = answer.state is FileState.WAITING or answer.reason == PartialFileChanged.code
    gone = record.gone and not is_there
    return replace(answer, failure=failure_of(evidence, known), gone=gone)


def _rows_before(evidence: PipelineEvidence, bare: Answer, done: IngestedFile) -> int | None:
    """Count the rows in the table of a file's previous content; None if unknown."""
    before = _with_finished(evidence, replace(bare, state=FileState.IN_TABLE, reason=None), done)
    if before.state is FileState.ALTERED or not before.read:
        return None
    is_there = before.state in (FileState.IN_TABLE, FileState.REMOVED)
    return present_count(before) if is_there else 0


def _parts_of_unfinished(evidence: PipelineEvidence, known: UnfinishedFile) -> tuple[Entry, ...]:
    """Return the entries that read parts of an unfinished file."""
    table, record = evidence.table, known.record
    if table is None or not record.records_read:
        return ()
    said = last_entry(known)
    last = evidence.history.sequence if said is None else said
    newest = reading(table.journal, record.key, last)
    return parts_until(table.journal, record.key, newest)


def _with_finished(evidence: PipelineEvidence, answer: Answer, done: IngestedFile) -> Answer:
    table, undone = evidence.table, evidence.history.undecided.of(done.key)
    if table is None:
        return answer
    if undone is not None and answer.reason == NOT_APPLIED:
        done = undone.after
    entry = _entry_of(table, done)
    if entry is not None and entry.has_read(done.key):
        parts = parts_until(table.journal, done.key, entry)
        answer = _with_parts(evidence, answer, parts, done.key)
        before = (one.skipped for one in parts[0].readings if one.key == done.key)
        answer = replace(answer, earlier_lines=_earlier_lines(evidence, max(before, default=0)))
    said = done.entry if undone is None else undone.entry
    taken = retraction_of(evidence, table, replace(done, entry=said), answer.data_files)
    if taken is not None and {one.state for one in answer.data_files} == {FileState.RETRACTED}:
        taken = replace(taken, came_back=False)  # Another entry took them out, which is in effect.
    answer = replace(answer, retraction=taken)
    is_back = taken is not None and taken.came_back
    files = answer.data_files or table.inherited_files(done.key, done.entry)
    state = state_by_log(answer.state, {one.state for one in files}, came_back=is_back)
    if state is FileState.IN_TABLE:
        without = NO_ROWS if answer.read else INHERITED
        answer = replace(answer, reason=None if answer.data_files else without)
    else:
        answer = replace(answer, data_files=files)
    held = (one.code for one in answer.data_files if one.state is FileState.HELD)
    reason = next(held, None) if state is FileState.HELD else answer.reason
    return replace(answer, state=state, reason=reason)


def settled_progress(evidence: PipelineEvidence) -> tuple[FileProgress, tuple[str, ...]]:
    """Return the progress of files including changes by other writers, and why it may be wrong.

    Files that other writers may have touched, and those with pending rows of replayed lines, get
    the state that `why` gives.
    """
    progress, errors = evidence.progress()
    if evidence.table is None or progress.committed is None:
        return progress, errors
    try:
        altered = dict(_altered(evidence, evidence.table, progress))
    except LakeError as trouble:
        return progress, tuple(dict.fromkeys((*errors, str(trouble))))
    return replace(progress, altered=altered), errors


def _altered(
    evidence: PipelineEvidence, table: JournalEvidence, progress: FileProgress
) -> Iterator[tuple[tuple[str, int], FileState]]:
    """Yield the states of source files that the log or a pending replay changed, by key, entry."""
    history, lookup = evidence.history, evidence.history.lookup()
    made = ((int(at), one) for at, one in history.books.retractions.items() if not one.erased)
    retractions = [entry for entry, _one in made if entry not in progress.rejected]
    touched = table.altered_sources() | table.returned_sources(retractions)
    if history.books.replayed:
        touched |= table.replayed_sources(since=progress.committed or 0)
    for key in sorted(touched):
        earlier = (each.file for each in history.earlier.get(key, ()))
        now = (lookup(key).finished, lookup.named(key))
        for done in {*now, *earlier, *to_be_replaced(history, key)}:
            if done is None or done.entry is None:
                continue
            state = progress.of(done)
            if state is FileState.RETRACTED:
                bare = Answer(kind="source", state=state, uri=key, answer="")
                state = _with_finished(evidence, bare, done).state
            else:
                replayed = f"{done.entry}:{key}" in history.books.replayed
                found = table.states_of(key, done.entry, replayed=replayed)
                state = state_by_log(state, found, came_back=False)
            yield (key, done.entry), state


def _entry_of(table: JournalEvidence, done: IngestedFile) -> Entry | None:
    """Return the batch that finished a file, or else the entry that repeats it.

    Records that a new journal repeats do not name the batch, so the entries are searched, newest
    first.
    """
    entry = None if done.entry is None else table.journal.entry(done.entry)
    if entry is not None and entry.has_read(done.key):
        return entry
    last = table.last if done.entry is None else done.entry
    return reading(table.journal, done.key, last) or entry


def _earlier_lines(evidence: PipelineEvidence, lines: int) -> int:
    """Return `lines`, or 0 if the journal inherits from no earlier one that may have read them."""
    opening = None if evidence.table is None or lines <= 0 else evidence.table.journal.entry(0)
    return 0 if opening is None or opening.inherits is None else lines


def _with_parts(
    evidence: PipelineEvidence, bare: Answer, parts: tuple[Entry, ...], key: str
) -> Answer:
    """Add the reads of a file by some entries, and the states of its data files."""
    table = evidence.table
    if table is None or not parts:
        return bare
    reads: list[Read] = []
    data_files: list[DataFile] = []
    for entry in parts:
        files = [file for file in entry.files if key in file.source_files]
        data_files += table.data_files(entry, files, key)
        in_log = table.committed(entry)
        records = (record for record in entry.readings if record.key == key)
        reads += [_read(entry, record, in_log) for record in records]
    since: list[Resolution] = []
    for entry, one in resolutions(table, parts, key):
        since.append(one)
        if entry.kind == REPLAY:  # A retraction writes other content or other rows.
            files = [file for file in entry.files if key in file.source_files]
            data_files += table.data_files(entry, files, key)
    return replace(bare, read=tuple(reads), resolved=tuple(since), data_files=tuple(data_files))


def _read(entry: Entry, record: SourceRecord, in_log: "EntryInLog") -> Read:
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
        version=None if in_log.is_forgotten else in_log.version,
        committed=in_log.committed,
        committed_at=None if in_log.is_forgotten else in_log.at,
        counted="records" if record.form else "lines",
    )
