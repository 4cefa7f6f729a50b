"""Rows for which a condition holds, taken out of the table: the right to be forgotten.

Data files with no other rows go; those with others are written anew without them. One `erase` entry
says what becomes of each data file, and penguin does all of it in one version or, where a file is
not in the table any more, nothing. The condition may itself be what is to be forgotten: it is
written nowhere, the entry counts the rows only.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np

from blizzard.config.columns import columns_from
from blizzard.execute.runner import Rewriter
from blizzard.journal.ledger import Ledger
from blizzard.model.locations import sink_location
from blizzard.model.predicate import Predicate
from blizzard.model.rewriting import ActiveFile, Removal, RowsWhere
from blizzard.model.settings import PipelineSettings
from blizzard.rewrite.transaction import (
    Origins,
    Overtaken,
    Standing,
    TableLog,
    TableNow,
    append_replacement,
    refuse_collected_since,
    refuse_contested,
    refuse_renamed,
    rewritten_all,
    standing_of,
    tries_again,
    waiting_entries,
)
from blizzard.worker.find_rows import RowsInFile, check_columns, rows_in
from lakebed import layout
from lakebed.clock import Clock
from lakebed.columns.schema import Schema
from lakebed.documents.entry import Entry
from lakebed.documents.replacement import Replacement
from lakebed.errors import ObjectMissing
from lakebed.storage.store import Reader, Store


@dataclass(frozen=True, slots=True, kw_only=True)
class FileWithRows:
    """A data file with rows for which the condition holds."""

    file: ActiveFile
    rows: int
    """How many they are."""
    sources: Mapping[str, int]
    """How many of them came from which source file, by its URI, as far as it is known."""
    deleted: int = 0
    """Rows of it for which the condition holds, too, but which a deletion vector deleted before:
    without a rewrite the file would still hold them."""

    @property
    def unknown(self) -> int:
        """Count those of which nothing says where they came from: somebody else wrote the file."""
        return self.rows - sum(self.sources.values())

    @property
    def is_whole(self) -> bool:
        """Whether the condition holds for all of its rows."""
        return self.rows == self.file.live_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The rows for which the condition holds, and where the journal stands."""

    files: tuple[FileWithRows, ...]
    last: Entry
    history: Ledger
    table: TableNow
    columns: Schema

    @property
    def rows(self) -> int:
        """Count the rows."""
        return sum(one.rows for one in self.files)

    @property
    def sources(self) -> Counter[str]:
        """Count the rows by their source files, as far as those are known."""
        found: Counter[str] = Counter()
        for one in self.files:
            found.update(one.sources)
        return found

    @property
    def unknown(self) -> int:
        """Count the rows whose source files are not known."""
        return sum(one.unknown for one in self.files)

    @property
    def deleted(self) -> int:
        """Count the rows that were deleted before, and that files of the table still hold."""
        return sum(one.deleted for one in self.files)

    @property
    def is_everything(self) -> bool:
        """Whether the condition holds for every row of the table."""
        whole = sum(one.is_whole for one in self.files)
        others = [file for file in self.table.files.values() if file.live_rows != 0]
        return whole > 0 and whole >= len(others)


@dataclass(frozen=True, slots=True, kw_only=True)
class Erased:
    """What was found, and the entry that takes the rows out."""

    found: Found
    entry: int | None = None
    """None where the condition holds for no row."""


def look(
    store: Reader,
    settings: PipelineSettings,
    predicate: Predicate,
    log: TableLog,
) -> Found:
    """Find the rows of the table for which a condition holds."""
    now = standing_of(store, settings, log)
    columns = columns_from(now.table.schema)
    if columns is None:
        raise ObjectMissing("the columns of the table cannot be read", path=store.uri)
    check_columns(predicate, columns)
    files = now.table.files
    places: dict[str, RowsInFile] = {}
    for path, file in sorted(files.items()):
        inside = rows_in(store, file, predicate, columns, now.table.mapping)
        if inside is not None:
            places[path] = inside
    known = log.origins(places.keys())
    found = tuple(
        with_rows(files[path], inside, known.get(path), predicate)
        for path, inside in places.items()
    )
    waiting = waiting_entries(store, now.table)
    others = [entry for entry in waiting if entry.pipeline != settings.name]
    refuse_contested(others, [one.file for one in found], now.table)
    return Found(
        files=found,
        last=now.last,
        history=now.history,
        table=now.table,
        columns=columns,
    )


@tries_again
def erase(
    store: Store,
    settings: PipelineSettings,
    predicate: Predicate,
    log: TableLog,
    rewriter: Rewriter,
    *,
    clock: Clock,
    reason: str | None = None,
) -> Erased:
    """Rewrite the files with other rows, and append the entry that takes the rows out."""
    found = look(store, settings, predicate, log)
    if not found.files:
        return Erased(found=found)
    work = Removal(
        sink=sink_location(settings),
        codec=settings.sink.rolling.codec,
        upload=settings.sink.upload,
        marks={"pipeline": settings.name, "journal": found.last.journal},
        clock=clock,
        columns=found.columns,
        mapping=found.table.mapping,
        row_columns=found.table.row_columns,
    )
    replaced = _replacements(found.files, rewriter, work)

    def look_again() -> tuple[Standing, Entry]:
        now = standing_of(store, settings, log)
        refuse_renamed(found.table.mapping, now.table.mapping, store.uri)
        entry = now.last.successor(
            "erase",
            previous=now.history.digest,
            run=str(clock.fresh_id()),
            created=clock.now().isoformat(),
            replaced=replaced,
            erased=dict(sorted(found.sources.items())),
            reason=reason,
            table_schema=dict(now.table.schema),
            columns=now.history.columns,
        )
        _refuse_overtaken(store, found, now, entry)
        return now, entry

    _last, entry = append_replacement(store, settings.name, replaced, look_again)
    return Erased(found=found, entry=None if entry is None else entry.sequence)


def with_rows(
    file: ActiveFile, inside: RowsInFile, origins: Origins | None, predicate: Predicate
) -> FileWithRows:
    """Return a data file with what is known of the rows in it that are meant. Pure."""
    file = replace(file, rows=inside.rows, without=RowsWhere(predicate))
    if origins is not None and _tells_every_row(origins, inside):
        file = replace(file, source_files=origins.source_files, runs=origins.runs)
    sources = sources_of(inside, origins)
    return FileWithRows(file=file, rows=len(inside.places), sources=sources, deleted=inside.deleted)


def sources_of(inside: RowsInFile, origins: Origins | None) -> Mapping[str, int]:
    """Count the rows that are meant by the URIs of their source files, where known. Pure."""
    if origins is None or not _tells_every_row(origins, inside):
        return inside.by_column
    return _by_runs(origins, inside.places)


def _tells_every_row(origins: Origins, inside: RowsInFile) -> bool:
    return sum(run.rows for run in origins.runs) == inside.rows


def _by_runs(origins: Origins, places: Sequence[int]) -> dict[str, int]:
    ends = list(accumulate(run.rows for run in origins.runs))
    runs = np.searchsorted(np.asarray(ends), np.asarray(places), side="right").tolist()
    found: Counter[str] = Counter()
    for run, count in Counter(runs).items():
        found[origins.uris[origins.runs[run].source]] += count
    return dict(found)


def _replacements(
    files: Sequence[FileWithRows], rewriter: Rewriter, work: Removal
) -> tuple[Replacement, ...]:
    """Write the files anew that have other rows; return what becomes of each file."""
    mixed = [one.file for one in files if not one.is_whole]
    done = {one.old.path: one for one in rewritten_all(rewriter, mixed, work)}
    replaced = []
    for one in files:
        file, new = one.file, None
        if not one.is_whole:
            new = done[file.path].new
            if new is None or done[file.path].removed != one.rows:
                raise AssertionError("other rows were left out of a file than were found in it")
        replaced.append(
            Replacement(
                old=file.path,
                old_size=file.size,
                new=new,
                left_out=one.rows,
                partition_values={} if new else file.partition_values,
                vector=file.vector_key,
                deleted=file.deleted,
            )
        )
    return tuple(replaced)


def _refuse_overtaken(store: Reader, before: Found, now: Standing, entry: Entry) -> None:
    """Raise where what was rewritten is not what is to be replaced any more."""
    path = store.describe(layout.journal_folder(entry.pipeline))
    files = now.table.files
    gone = [
        one.file.path
        for one in before.files
        if one.file.path not in files or files[one.file.path].vector != one.file.vector
    ]
    if now.last.journal != before.last.journal or gone:
        raise Overtaken(
            "data files with these rows were changed by somebody else meanwhile; nothing was done, "
            "try again",
            path=path,
        )
    refuse_collected_since(store, before.last.sequence, entry)
