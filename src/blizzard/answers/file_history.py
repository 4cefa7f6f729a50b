"""Retractions, erasures and resolved bad lines of a source file, and whether a run is active."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from blizzard.answers.answer import Answer, DataFile, FileRetraction, FileState, Resolution
from blizzard.answers.entries import (
    became,
    came_for,
    dealing_with_lines,
    parts_until,
    reading,
    retracting,
)
from blizzard.answers.evidence import JournalEvidence
from blizzard.answers.progress import PipelineEvidence
from blizzard.answers.wording.phrases import REPLAY
from blizzard.journal.checks import uris_of
from blizzard.journal.lease import Life, this_machine, writer_status
from blizzard.model.source.file import IngestedFile
from lakebed.documents.entry import Entry
from lakebed.documents.pending_meta import HeldState
from lakebed.documents.records import QuarantineFile
from lakebed.layout import file_name


def retraction_of(
    evidence: PipelineEvidence,
    table: JournalEvidence,
    done: IngestedFile,
    data_files: Sequence[DataFile],
) -> FileRetraction | None:
    """Return the last entry that takes the rows of a file out of the table."""
    entry = None if done.entry is None else table.journal.entry(done.entry)
    if entry is None or entry.kind != "retract":
        if entry is not None and entry.kind == "batch":
            return None
        last = table.last if done.entry is None else done.entry
        entry = retracting(table.journal, done.key, last)
    if entry is None:
        return None
    out = [one for one in entry.sources if one.retracted]
    own = [one for one in out if one.key == done.key]
    rows = sum(one.rows for one in own or out)
    had_them = {one.path: one.entry for one in data_files if one.entry < entry.sequence}
    if entry.has_read(done.key):
        had_them = _files_before(table, entry, done.key)

    def takes(other: Entry) -> bool:
        return _retracts(table, other, done.key)

    taken = _taken_out(evidence, table, entry, rows, had_them, takes)
    others = () if own else tuple(one.key for one in out)
    taken = replace(taken, replaced=entry.has_read(done.key), others=others)
    if not taken.is_not_applied:
        return taken
    back = _rows_back(table, entry, {done.key, *(one.key for one in own or out)})
    is_out = not back and (taken.is_out or not entry.outgoing)
    return replace(taken, rows=back if taken.is_out else rows + back, is_out=is_out)


def _rows_back(table: JournalEvidence, entry: Entry, keys: set[str]) -> int:
    """Count the rows in the table that were out of it when an entry was to supersede them."""
    back = entry.supersedes - {file_name(one.filename) for one in entry.outgoing}
    found = 0
    for key in keys if back else ():
        newest = reading(table.journal, key, entry.sequence - 1)
        for one in parts_until(table.journal, key, newest):
            files = [file for file in one.files if file_name(file.filename) in back]
            there = table.data_files(one, files, key)
            found += sum(file.own_rows or 0 for file in there if file.state is FileState.IN_TABLE)
    return found


def _files_before(table: JournalEvidence, entry: Entry, key: str) -> dict[str, int]:
    """Map the data files with the content that an entry replaced to their entries."""
    newest = reading(table.journal, key, entry.sequence - 1)
    return {
        file.filename: one.sequence
        for one in parts_until(table.journal, key, newest)
        for file in one.files
        if key in file.source_files
    }


def erasures_of(evidence: PipelineEvidence, key: str, answer: Answer) -> tuple[FileRetraction, ...]:
    """Return the erasures of rows of a file.

    Entries use the URI of the source at the time of reading or erasing; it may have moved since.
    """
    table = evidence.table
    if table is None:
        return ()
    since = min((one.entry for one in answer.read), default=0)
    made = ((int(at), one) for at, one in evidence.history.books.retractions.items())
    numbers = sorted(at for at, one in made if one.erased and at > since)
    takers = table.takers(one.path for one in answer.data_files)
    others = {
        (one.pipeline, one.journal, one.sequence): one
        for one in takers
        if one.pipeline != table.pipeline and one.erased
    }
    if not numbers and not others:
        return ()
    read_in = filter(None, map(table.journal.entry, sorted({one.entry for one in answer.read})))
    uris = uris_of(key, evidence.settings, evidence.history) | {one.uri_of(key) for one in read_in}
    found = []

    def erased(entry: Entry) -> int:
        own = {entry.uri_of(key)} if entry.pipeline == table.pipeline else set()
        return sum(entry.erased.get(uri, 0) for uri in uris | own)

    for entry in (*filter(None, map(table.journal.entry, numbers)), *others.values()):
        rows, is_own = erased(entry), entry.pipeline == table.pipeline
        if not rows:
            continue

        def takes(other: Entry, number: int = entry.sequence, rows: int = rows) -> bool:
            is_later = other.pipeline != table.pipeline or other.sequence >= number
            return (is_later and erased(other) >= rows) or _retracts(table, other, key)

        had_them = {
            one.path: one.entry
            for one in answer.data_files
            if is_own and one.entry < entry.sequence
        }
        taken = _taken_out(evidence, table, entry, rows, had_them, takes)
        # A RESTORE may have undone it, and a later one have taken out the same rows.
        undone = taken.version is not None and not table.follow(()).in_effect(taken.version)
        taken = replace(taken, came_back=taken.came_back or undone)
        found.append(taken if is_own else replace(taken, pipeline=entry.pipeline))
    return tuple(found)


def _retracts(table: JournalEvidence, entry: Entry, key: str) -> bool:
    """Whether an entry retracts a source file; other pipelines have keys of their own."""
    named = any(one.key == key and one.retracted for one in entry.sources)
    return named and entry.pipeline == table.pipeline


def _taken_out(
    evidence: PipelineEvidence,
    table: JournalEvidence,
    entry: Entry,
    rows: int,
    had_them: Mapping[str, int],
    takes: Callable[[Entry], bool],
) -> FileRetraction:
    """Return the fate of rows that an entry takes out.

    They may be back with the files that it took out, with files that were compacted into those, or,
    if it was to take out all, with files that had left the table before: `had_them` maps the
    original data files of the source file to their entries.
    """
    in_log, mark = table.committed(entry), entry.replacement_mark
    rejected = table.log.fates([mark]).get(mark) == HeldState.GONE
    olds = [one.filename for one in entry.outgoing]
    taken_out = olds if in_log.committed and not rejected else []
    at, version = in_log.at, in_log.version
    lineage = table.follow(olds)
    left = [old for old in olds if lineage.forward(old).active]
    came_back = bool(taken_out) and any(
        old in lineage.active
        or (
            version is not None
            and lineage.removed.get(old, -1) > version
            # Another RESTORE may have put back what replaced it.
            and not {*came_for(entry, old)}.issuperset(lineage.after(old))
        )
        for old in left
    )
    if taken_out and not came_back:
        there = table.is_there_past(list(had_them), takes)
        came_back = any(
            entry.kind == "retract"
            or not became(
                table.journal, path, range(had_them[path] + 1, entry.sequence)
            ).isdisjoint(taken_out)
            for path in there
        )
    return FileRetraction(
        entry=entry.sequence,
        at=datetime.fromisoformat(entry.created),
        rows=rows,
        committed=in_log.committed,
        rejected=rejected,
        reasons=in_log.reasons_against if rejected else (),
        came_back=came_back,
        is_out=not taken_out and bool(olds) and not left,
        is_altered=rejected and any(lineage.forward(old).altered for old in olds),
        version=version,
        committed_at=at,
        deleted_from=None if at is None else at + evidence.log.retention(),
    )


def resolutions(
    table: JournalEvidence, parts: Sequence[Entry], key: str
) -> Iterator[tuple[Entry, Resolution]]:
    """Yield the entries that resolved bad lines of a file, in order, and how many.

    Quarantine files record their lines per source file. The resolved lines are the difference
    between a file and its replacement, which has the lines that still wait.
    """
    waiting: dict[str, QuarantineFile] = {
        file.filename: file for entry in parts for file in entry.quarantine if _lines(file, key)
    }
    if not waiting:
        return
    for entry in dealing_with_lines(table.journal, parts[0].sequence + 1, table.last):
        lines = filtered = 0
        for one in entry.resolved:
            before = waiting.pop(one.old, None)
            if before is None:
                continue
            lines += _lines(before, key) - _lines(one.left, key)
            filtered += one.filtered.get(key, 0)
            if one.left is not None:
                waiting[one.left.filename] = one.left
        if lines:
            in_log = table.committed(entry)
            yield (
                entry,
                Resolution(
                    entry=entry.sequence,
                    kind=entry.kind,
                    at=datetime.fromisoformat(entry.created),
                    lines=lines,
                    filtered=filtered,
                    rows=lines - filtered if entry.kind == REPLAY else 0,
                    version=in_log.version,
                    committed=in_log.committed,
                ),
            )


def _lines(file: QuarantineFile | None, key: str) -> int:
    return 0 if file is None else sum(one.lines for one in file.sources if one.source == key)


def is_running(evidence: PipelineEvidence) -> bool | None:
    """Return whether blizzard runs; None if it may run on another machine."""
    if evidence.store is None:
        return False
    writer = writer_status(evidence.store, evidence.settings.name, this_machine())
    if writer is None or writer.state in (Life.ENDED, Life.GONE):
        return False
    return True if writer.state is Life.ALIVE else None
