"""Retractions, erasures and resolved bad lines of a source file, and whether a run is active."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from blizzard.answers.answer import Answer, FileRetraction, Resolution
from blizzard.answers.entries import dealing_with_lines, retracting
from blizzard.answers.evidence import JournalEvidence
from blizzard.answers.progress import PipelineEvidence
from blizzard.journal.checks import uris_of
from blizzard.journal.lease import Life, this_machine, writer_status
from blizzard.model.source.file import IngestedFile
from lakebed.documents.entry import Entry
from lakebed.documents.pending_meta import HeldState
from lakebed.documents.records import QuarantineFile


def retraction_of(
    evidence: PipelineEvidence, table: JournalEvidence, done: IngestedFile
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
    taken = _taken_out(evidence, table, entry, sum(one.rows for one in own or out))
    others = () if own else tuple(one.key for one in out)
    return replace(taken, replaced=entry.has_read(done.key), others=others)


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
    for entry in (*filter(None, map(table.journal.entry, numbers)), *others.values()):
        is_own = entry.pipeline == table.pipeline
        named = uris | {entry.uri_of(key)} if is_own else uris
        if rows := sum(entry.erased.get(uri, 0) for uri in named):
            taken = _taken_out(evidence, table, entry, rows)
            found.append(taken if is_own else replace(taken, pipeline=entry.pipeline))
    return tuple(found)


def _taken_out(
    evidence: PipelineEvidence, table: JournalEvidence, entry: Entry, rows: int
) -> FileRetraction:
    """Return the fate of rows that an entry takes out."""
    in_log, mark = table.committed(entry), entry.replacement_mark
    rejected = table.log.fates([mark]).get(mark) == HeldState.GONE
    lineage = table.follow(one.filename for one in (*entry.outgoing, *entry.data_files))
    return FileRetraction(
        entry=entry.sequence,
        at=datetime.fromisoformat(entry.created),
        rows=rows,
        committed=in_log.committed,
        rejected=rejected,
        reasons=in_log.reasons_against if rejected else (),
        came_back=in_log.version is not None and not lineage.in_effect(in_log.version),
        version=in_log.version,
        committed_at=in_log.at,
        deleted_from=None if in_log.at is None else in_log.at + evidence.log.retention(),
    )


def resolutions(table: JournalEvidence, parts: Sequence[Entry], key: str) -> Iterator[Resolution]:
    """Yield what entries did with bad lines of a file, in order.

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
            yield Resolution(
                entry=entry.sequence,
                kind=entry.kind,
                at=datetime.fromisoformat(entry.created),
                lines=lines,
                filtered=filtered,
                rows=lines - filtered if entry.kind == "replay" else 0,
                version=in_log.version,
                committed=in_log.committed,
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
