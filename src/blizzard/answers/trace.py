"""Rows of a table, and the records that they were read from.

The data files of the table are searched, in the columns that a condition asks for. Where a row
stands in its file leads to its source by the runs of the journal, or its own columns say it.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from blizzard.answers.entry_search import likely_naming
from blizzard.journal.checkpoint import read_ledger
from blizzard.worker.find_rows import Match
from lakebed import layout
from lakebed.documents.data_file import FinishedFile, Run
from lakebed.documents.entry import Entry
from lakebed.journal import JournalReader, journals_aside
from lakebed.storage.parquet_tail import mark_of
from lakebed.storage.store import Reader
from lakebed.types import Provenance

FILE, LINE = Provenance.FILE.column, Provenance.LINE.column


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A data file as the journal has it."""

    entry: Entry
    file: FinishedFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The record that a row was read from, as far as it is known without reading its source."""

    uri: str
    """The source file."""
    line: int | None = None
    """The number of the record."""
    run: Run | None = None
    """The records among which it is; None where the row itself says which it is."""
    offset: int = 0
    """The place of the row among the rows of the run, from 0."""


def named_by(store: Reader, names: Collection[str]) -> dict[str, Named]:
    """Return the entries that name data files, from all journals of the table.

    A file that takes the place of another one has the rows of that one, in their order. Where some
    were left out it says itself which source files the others came from; the entry that has read
    them is that of the first file all the same.

    The footer of a file says which journal it is of, and its name says when it was written: only
    where these do not lead to its entry, every entry is read.
    """
    likely = _Likely(store)
    # Whoever writes files without such a name is not blizzard.
    ours = sorted(name for name in names if layout.file_id(name) is not None)
    found = {name: named for name in ours if (named := likely(name)) is not None}
    unsure = [name for name in ours if name not in found]
    return found | _search(store, unsure) if unsure else found


class _Likely:
    """Finds the entry of a data file by what the file says of itself."""

    def __init__(self, store: Reader) -> None:
        self._store = store
        self._journals: dict[tuple[str, str], tuple[JournalReader, int]] = {}

    def __call__(self, path: str) -> Named | None:
        """Return the entry that has the rows of a data file; None where that is not found."""
        mark: tuple[str, str] | None = None
        left: FinishedFile | None = None
        while True:
            facts = self._store.head(path)
            # One that was replaced may be deleted by now: it was of the same journal.
            mark = mark if facts is None else mark_of(self._store, facts)
            if mark is None:
                return None
            journal, last = self._journal(*mark)
            entry = likely_naming(journal, layout.file_name(path), last)
            if entry is None:
                return None
            file = next((one for one in _telling(entry) if one.filename == path), None)
            if file is not None:
                return Named(entry=entry, file=left or file)
            place = next(
                ((one, new) for one in entry.rewrites for new in one.new if new.filename == path),
                None,
            )
            if place is None:
                return None
            rewrite, new = place
            if left is None and rewrite.has_fewer_rows:
                left = new
            path = rewrite.old[0].path

    def _journal(self, pipeline: str, journal: str) -> tuple[JournalReader, int]:
        """Return a journal, in use or kept aside, and its last entry."""
        mark = pipeline, journal
        if mark not in self._journals:
            history = read_ledger(self._store, pipeline)
            if history.journal == journal:
                self._journals[mark] = JournalReader(self._store, pipeline), history.sequence
            else:
                aside = layout.journal_aside(pipeline, journal)
                reader = JournalReader(self._store, pipeline, folder=aside)
                self._journals[mark] = reader, max(reader.numbers(), default=-1)
        return self._journals[mark]


def _search(store: Reader, names: Collection[str]) -> dict[str, Named]:
    """Look for the entries that name data files in all entries of all journals."""
    found: dict[str, Named] = {}
    left: dict[str, FinishedFile] = {}
    stands_for = {name: name for name in names}
    while True:
        replaced: dict[str, str] = {}
        for entry in _entries(store):
            for file in _telling(entry):
                name = stands_for.get(file.filename)
                if name is not None:
                    found[name] = Named(entry=entry, file=left.get(name, file))
            for one in entry.rewrites if entry.operation != "rewrite" else ():
                name = stands_for.get(one.new[0].filename) if one.new else None
                if name is None:
                    continue
                replaced[one.old[0].path] = name
                if one.has_fewer_rows:
                    left.setdefault(name, one.new[0])
        if not replaced:
            return found
        stands_for = replaced


def _telling(entry: Entry) -> Iterator[FinishedFile]:
    """Yield the data files of an entry that say where their rows came from, whatever was before."""
    yield from entry.data_files if entry.operation == "rewrite" else entry.files


def _entries(store: Reader) -> Iterator[Entry]:
    for pipeline in layout.pipelines(store.folders(layout.OURS)):
        for folder in (*journals_aside(store, pipeline), layout.journal_folder(pipeline)):
            yield from JournalReader(store, pipeline, folder=folder).entries()


def origin_of(match: Match, named: Named | None) -> Origin | None:
    """Return where a row came from; None where nothing says so. Pure."""
    by_column = match.values.get(FILE)
    line = match.values.get(LINE)
    if by_column is not None and line is not None:
        return Origin(uri=by_column, line=line)
    if named is None:
        return None if by_column is None else Origin(uri=by_column)
    before = 0
    for run in named.file.runs:
        if match.row < before + run.rows:
            offset = match.row - before
            known = run.first is not None and run.is_exact
            return Origin(
                uri=uri_of(named.file.source_files[run.source], named.entry),
                line=(run.first or 0) + offset if known else None,
                run=run,
                offset=offset,
            )
        before += run.rows
    if by_column is not None:
        return Origin(uri=by_column)  # A compaction has put the rows in another order.
    if named.file.source_file is not None:
        return Origin(uri=named.file.source_file)  # An older version has written the entry.
    return None


def uri_of(key: str, entry: Entry) -> str:
    """Return where a source file of an entry is, or was."""
    source, _, path = key.partition(":")
    # A line of a source that is not configured any more was replayed under this one.
    return f"{entry.source_uris.get(source, f'{source}:').rstrip('/')}/{path}"
