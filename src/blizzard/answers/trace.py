"""Trace rows of a table to the source records that they were read from.

The data files are searched in the columns of the condition. A row's position in its file leads to
its source through the runs in the journal, unless provenance columns name it.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from functools import cache

from blizzard.answers.entries import FileOrigins, RowOrigins, naming_data_file
from blizzard.answers.evidence import journals_of
from blizzard.worker.find_rows import Match
from lakebed import layout
from lakebed.documents.records import Run
from lakebed.journal import JournalReader
from lakebed.storage.parquet_tail import mark_of
from lakebed.storage.store import Reader
from lakebed.types import Provenance

FILE, LINE = Provenance.FILE.column, Provenance.LINE.column


@dataclass(frozen=True, slots=True, kw_only=True)
class RowOrigin:
    """The record that a row was read from, as far as known."""

    uri: str
    """The source file."""
    line: int | None = None
    """The number of the record."""
    run: Run | None = None
    """The run of records that contains it; None if the row names its record."""

    @property
    def among(self) -> tuple[int, int] | None:
        """The first and last record of the run that contains it; None if unknown."""
        first = None if self.run is None else self.run.first or self.run.nth
        if self.run is None or first is None:
            return None
        return first, first + self.run.records - 1


def named_by(store: Reader, names: Collection[str]) -> dict[str, FileOrigins]:
    """Return data files with the origins of their rows, from all journals of the table.

    A file's footer names its journal and its name has a time; if these do not lead to its entry,
    every entry is read.
    """
    journals = cache(lambda mark: tuple(journals_of(store, mark)))
    origins = RowOrigins()
    for name in sorted(name for name in names if layout.file_id(name) is not None):
        _learn(store, name, origins, journals)
    found = {name: origins.find(name) for name in names}
    return {name: named for name, named in found.items() if named is not None}


def _learn(
    store: Reader,
    path: str,
    origins: RowOrigins,
    journals: Callable[[tuple[str, str] | None], Iterable[tuple[str, JournalReader, int]]],
) -> None:
    """Add the entries that give the origins of a data file's rows."""
    mark: tuple[str, str] | None = None
    while (path := origins.first(path)) not in origins.written:
        facts = store.head(path)
        # A replaced file may be deleted by now; it belonged to the same journal.
        mark = mark if facts is None else mark_of(store, facts)
        name = layout.file_name(path)
        entries = (naming_data_file(journal, name, last) for _of, journal, last in journals(mark))
        entry = next(filter(None, entries), None)
        if entry is None or not any(file.filename == path for file in entry.data_files):
            return
        origins.take(entry)


def origin_of(match: Match, named: FileOrigins | None) -> RowOrigin | None:
    """Return where a row came from; None if unknown. Pure."""
    by_column = match.values.get(FILE)
    line = match.values.get(LINE)
    if by_column is not None and line is not None:
        return RowOrigin(uri=by_column, line=line)
    if named is None:
        return None if by_column is None else RowOrigin(uri=by_column)
    before = 0
    for run in named.file.runs:
        if match.row < before + run.rows:
            offset = match.row - before
            known = run.first is not None and run.is_exact
            return RowOrigin(
                uri=named.entry.uri_of(named.file.source_files[run.source]),
                line=(run.first or 0) + offset if known else None,
                run=run,
            )
        before += run.rows
    if by_column is not None:
        return RowOrigin(uri=by_column)
    if len(named.file.source_files) == 1:
        return RowOrigin(uri=named.entry.uri_of(named.file.source_files[0]))
    return None
