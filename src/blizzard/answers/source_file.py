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
    FailedSource,
    FileProgress,
    FileStanding,
    FileState,
    Read,
    state_by_log,
)
from blizzard.answers.entries import parts_until, reading
from blizzard.answers.evidence import JournalEvidence
from blizzard.answers.file_history import erasures_of, is_running, resolutions, retraction_of
from blizzard.answers.lifecycle import Lifecycle, last_entry, to_be_replaced
from blizzard.answers.progress import PipelineEvidence
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
        read_before=_read_before(evidence, key, before, answer),
        bad_lines=_bad_lines(evidence, key),
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


def _read_before(
    evidence: PipelineEvidence, key: str, before: Recorded, answer: Answer
) -> tuple[int, ...]:
    """Return the last entries that read other content of a name, if its rows may be there."""
    earlier = [each.file for each in evidence.history.earlier.get(key, ())]
    if before.finished is not None and _is_of_unfinished(before, answer):
        earlier += [] if before.finished.retracted else [before.finished]
    return tuple(sorted({one.entry for one in earlier if one.entry}))


def _bad_lines(evidence: PipelineEvidence, key: str) -> int:
    """Count the waiting bad lines of a name, including those of earlier content."""
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
    if known is not None and _is_of_unfinished(before, answer):
        return _with_unfinished(evidence, answer, known)
    return answer if done is None else _with_finished(evidence, answer, done)


def _is_of_unfinished(before: Recorded, answer: Answer) -> bool:
    """Whether the answer is about content that failed or was read in part."""
    is_changed = before.finished is not None and answer.state is FileState.CHANGED
    return before.unfinished is not None and not (_is_over(before, answer.stored) or is_changed)


def _with_unfinished(evidence: PipelineEvidence, answer: Answer, known: UnfinishedFile) -> Answer:
    record, table = known.record, evidence.table
    parts = _parts_of_unfinished(evidence, known)
    if table is not None and parts:
        files = table.files_of(record.key, parts, None, replayed=True)
        answer = replace(_with_reads(table, answer, parts, record.key), data_files=files)
    unseen = record.records_read - sum(one.lines for one in answer.read)
    answer = replace(answer, earlier_lines=max(0, unseen))
    if answer.reason in (PART_READ, REDO):
        return answer
    is_there = answer.state is FileState.WAITING or answer.reason == PartialFileChanged.code
    gone = record.gone and not is_there
    return replace(answer, failure=failure_of(evidence, known), gone=gone)


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
    parts = _parts_of(table, done)
    if parts:
        answer = _with_reads(table, answer, parts, done.key)
        before = (one.skipped for one in parts[0].readings if one.key == done.key)
        answer = replace(answer, earlier_lines=max(before, default=0))
    said = done.entry if undone is None else undone.entry
    files = table.files_of(done.key, parts, done.entry, replayed=bool(answer.resolved))
    state = state_by_log(answer.state, {one.state for one in files})
    reason = answer.reason
    if state is FileState.IN_TABLE:
        reason = None if parts and files else NO_ROWS if answer.read else INHERITED
    elif state is FileState.HELD:
        reason = next((one.code for one in files if one.state is FileState.HELD), reason)
    return replace(
        answer,
        state=state,
        reason=reason,
        data_files=files,
        retraction=retraction_of(evidence, table, replace(done, entry=said)),
    )


def _parts_of(table: JournalEvidence, done: IngestedFile) -> tuple[Entry, ...]:
    """Return the entries that read a file; none if an earlier journal read it.

    Records that a new journal repeats do not name the batch, so the entries are searched, newest
    first.
    """
    entry = None if done.entry is None else table.entry(done.entry)
    if entry is None or not entry.has_read(done.key):
        last = table.last if done.entry is None else done.entry
        entry = reading(table.journal, done.key, last)
    return parts_until(table.journal, done.key, entry)


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
    touched = table.altered_sources()
    if history.books.replayed:
        touched |= table.replayed_sources(since=progress.committed or 0)
    for key in sorted(touched):
        earlier = (each.file for each in history.earlier.get(key, ()))
        now = (lookup(key).finished, lookup.named(key))
        for done in {*now, *earlier, *to_be_replaced(history, key)}:
            if done is None or done.entry is None:
                continue
            parts = _parts_of(table, done)
            replayed = any(f"{one.sequence}:{key}" in history.books.replayed for one in parts)
            files = table.files_of(key, parts, done.entry, replayed=replayed)
            state = state_by_log(progress.of(done), {one.state for one in files})
            yield (key, done.entry), state


def _with_reads(table: JournalEvidence, bare: Answer, parts: tuple[Entry, ...], key: str) -> Answer:
    """Add the reads of a file by some entries, and what has become of its bad lines."""
    reads = tuple(
        _read(entry, record, table.committed(entry))
        for entry in parts
        for record in entry.readings
        if record.key == key
    )
    return replace(bare, read=reads, resolved=tuple(resolutions(table, parts, key)))


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
