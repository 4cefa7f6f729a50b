"""Rows of a source file that were to be taken out of the table: by a retraction, or an erasure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from blizzard.handoff.held_rows import GONE
from blizzard.inspect.why.answer import Answer, DataFile, Retraction
from blizzard.inspect.why.asked import Asked
from blizzard.inspect.why.entries import became, earlier_parts, reading, retracting
from blizzard.inspect.why.standing import Table
from blizzard.journal.shared_sources import uris_of
from blizzard.model.files import IngestedFile
from lakebed.documents.entry import Entry


def retraction_of(
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


def erasures_of(asked: Asked, key: str, answer: Answer) -> tuple[Retraction, ...]:
    """Return what was asked to take rows of a file out of the table by what they hold.

    Entries name rows by where the source was when they were read, or when they were erased: it may
    have been moved since.
    """
    table = asked.table
    if table is None:
        return ()
    numbers = [int(at) for at, one in asked.history.books.retractions.items() if one.erased]
    if not numbers:
        return ()
    read_in = filter(None, map(table.journal.entry, sorted({one.entry for one in answer.read})))
    uris = uris_of(key, asked.settings, asked.history).union(*(_uris(one, key) for one in read_in))
    found = []

    def erased(entry: Entry) -> int:
        return sum(entry.erased.get(uri, 0) for uri in uris | _uris(entry, key))

    for number in sorted(numbers):
        entry = table.journal.entry(number)
        rows = 0 if entry is None else erased(entry)
        if entry is None or not rows:
            continue

        def takes(other: Entry, number: int = number, rows: int = rows) -> bool:
            again = other.sequence >= number and erased(other) >= rows
            return again or any(one.key == key and one.retracted for one in other.sources)

        had_them = {one.path: one.entry for one in answer.data_files if one.entry < number}
        found.append(_taken_out(asked, table, entry, rows, had_them, takes))
    return tuple(found)


def _uris(entry: Entry, key: str) -> frozenset[str]:
    """Return how an entry names a source file, by where its source was then."""
    source, _, path = key.partition(":")
    root = entry.source_uris.get(source)
    return frozenset() if root is None else frozenset({f"{root.rstrip('/')}/{path}"})


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
