"""Origins of the rows of a data file: runs for the journal, columns for provenance. Pure.

A run says from which records of a source file consecutive rows come. Adjacent runs are joined, so a
data file usually has one run for each source file, however many batches its rows came in. Until the
source files that share a data file are known, a run's own `source` means nothing.

In the columns, the number of its record travels with a row. What all rows of a source file or of a
batch share is added when a row group is written: as dictionaries, which take no memory for the rows
that repeat.

A file that fails half-way must leave nothing in a data file that it shares with others, so its rows
are held until all of it is read: in memory up to a limit, then on the local disk in Arrow's format.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from blizzard.model.work import Stamp
from blizzard.worker.ndjson.lines import Decoded
from lakebed.columns.schema import PROVENANCE
from lakebed.documents.records import Run
from lakebed.types import Provenance

MOST_RUNS = 64
"""Runs of one source file in one data file, or of one block of lines, that are kept apart."""

Numbers = npt.NDArray[np.int64]


class Slice(NamedTuple):
    """Rows of one source file."""

    batch: pa.RecordBatch
    size: int
    """The memory that they take."""
    runs: tuple[Run, ...] = ()
    """The records that they come from."""


def runs_of(decoded: Decoded, first: int) -> tuple[Run, ...]:
    """Return where the rows of some lines come from; the first of the lines has this number."""
    rows = decoded.batch.num_rows
    if rows == decoded.lines:
        return (Run(0, first, rows, rows),) if rows else ()
    if not rows:
        return ()
    gaps = decoded.rowless
    if gaps is None or len(gaps) != decoded.lines - rows or len(gaps) > MOST_RUNS:
        return (Run(0, first, rows, decoded.lines),)
    edges = [-1, *gaps.tolist(), decoded.lines]
    return tuple(
        Run(0, first + before + 1, after - before - 1, after - before - 1)
        for before, after in pairwise(edges)
        if after - before > 1
    )


def runs_at(numbers: Sequence[int | None]) -> tuple[Run, ...]:
    """Return where rows come from whose records have these numbers; nothing if one has none."""
    known = [number for number in numbers if number is not None]
    return tuple(Run(0, number, 1, 1) for number in known) if len(known) == len(numbers) else ()


def record_numbers(decoded: Decoded, first: int) -> Numbers | None:
    """Return the number of each row's record; None where unknown."""
    rows = decoded.batch.num_rows
    numbers = np.arange(first, first + decoded.lines, dtype=np.int64)
    if rows == decoded.lines:
        return numbers
    gaps = decoded.rowless
    if gaps is None or len(gaps) != decoded.lines - rows:
        return None
    return np.delete(numbers, gaps)


def spread(runs: Sequence[Run], rows: int) -> tuple[Run, ...]:
    """Return where some of the rows come from, which may be any of them, in their order."""
    if not runs:
        return ()
    first = runs[0].first or 0
    return (Run(0, first, rows, _end(runs[-1]) - first),)


def _end(run: Run) -> int:
    """Return the number of the record after the last one of a run with numbers."""
    return (run.first or 0) + run.records


class Cutter:
    """Hands out the runs of rows that are taken in slices, one slice after the other."""

    def __init__(self, runs: Iterable[Run]) -> None:
        self._left = list(reversed(list(runs)))

    def next(self, rows: int) -> tuple[Run, ...]:
        """Return the runs of the next rows; nothing where not all of them are known."""
        found: list[Run] = []
        while rows and self._left:
            run = self._left.pop()
            if run.rows > rows:
                self._left.append(_part(run, rows, run.rows - rows))
                run = _part(run, 0, rows)
            found.append(run)
            rows -= run.rows
        return () if rows else tuple(found)


@dataclass(slots=True)
class Origins:
    """The origins of the rows of one data file, or of those that wait for their row group."""

    known: list[tuple[str, Run | None]] = field(default_factory=list)
    """Source files with their runs in the order of the rows; None where unknown."""
    by_source: list[tuple[str, int]] = field(default_factory=list)
    """Source files and how many rows of each follow each other, in the order of the rows."""
    _kept_apart: int = 0
    """Runs of the last source file."""

    @property
    def sources(self) -> tuple[str, ...]:
        """Return every source file once."""
        return tuple(dict.fromkeys(source for source, _run in self.known))

    def add(self, source: str, rows: int, runs: Sequence[Run]) -> None:
        """Note rows of a source file; no run means that their records are unknown."""
        if self.by_source and self.by_source[-1][0] == source:
            rows += self.by_source.pop()[1]
        self.by_source.append((source, rows))
        for run in runs or (None,):
            self._add(source, run)

    def add_whole(self, files: Sequence[tuple[str, int]]) -> None:
        """Note the rows of whole source files, others than the last, of which each line is a row.

        There is one for each of many small files, and most of them are about as long.
        """
        known = {rows: Run(0, 1, rows, rows) for rows in {rows for _source, rows in files}}
        self.by_source += files
        self.known += [(source, known[rows]) for source, rows in files]
        self._kept_apart = 1

    def extend(self, other: "Origins") -> None:
        """Note the rows of others after these."""
        for source, run in other.known:
            self._add(source, run)

    def runs(self) -> tuple[Run, ...]:
        """Return the origins as an entry has them; nothing where some are unknown."""
        places = {source: place for place, source in enumerate(self.sources)}
        return tuple(self._runs(places)) if all(run for _source, run in self.known) else ()

    def _runs(self, places: dict[str, int]) -> Iterator[Run]:
        for source, run in self.known:
            if run is not None:
                yield run._replace(source=places[source])

    def _add(self, source: str, run: Run | None) -> None:
        if not self.known or self.known[-1][0] != source:
            self.known.append((source, run))
            self._kept_apart = 1
            return
        last = self.known[-1][1]
        together = _together(last, run, anyway=self._kept_apart >= MOST_RUNS)
        if together is None and (last or run):
            self.known.append((source, run))
            self._kept_apart += 1
        else:
            self.known[-1] = (source, together)


def _together(last: Run | None, run: Run | None, *, anyway: bool) -> Run | None:
    """Return both as one, where that says as much or where there are too many; else None."""
    if last is None or run is None or (run.first or 0) < (last.first or 0):
        return None
    is_next = last.is_exact and run.is_exact and _end(last) == run.first
    is_vague = not last.is_exact and not run.is_exact
    if not (is_next or is_vague or anyway):
        return None
    records = max(_end(last), _end(run)) - (last.first or 0)
    return last._replace(rows=last.rows + run.rows, records=records)


def runs_without(
    names: Sequence[str], runs: Sequence[Run], gone: Sequence[tuple[int, int]]
) -> tuple[tuple[str, ...], tuple[Run, ...]]:
    """Return the source files and the origins of the rows that are left of a data file.

    `gone` are the places of the others, in their order. Where the origins are unknown, so are those
    of the rows that are left, and each of the source files may still have some.
    """
    if not runs:
        return tuple(names), ()
    left: list[Run] = []
    at, holes = 0, iter([*gone, (sum(run.rows for run in runs), None)])
    first, last = next(holes)
    for run in runs:
        start, end = at, at + run.rows
        while at < end:
            if at < first:
                _append(left, _part(run, at - start, min(first, end) - at))
                at = min(first, end)
            elif last is None or last > end:
                at = end
            else:
                at = last
                first, last = next(holes)
    places = {place: new for new, place in enumerate(dict.fromkeys(run.source for run in left))}
    return (
        tuple(names[place] for place in places),
        tuple(run._replace(source=places[run.source]) for run in left),
    )


def _part(run: Run, offset: int, rows: int) -> Run:
    """Return some of the rows of a run."""
    if not run.is_exact:
        return run._replace(rows=rows)  # Each may be of any of the records.
    if run.first is not None:
        return run._replace(first=run.first + offset, rows=rows, records=rows)
    nth = None if run.nth is None else run.nth + offset
    return run._replace(nth=nth, rows=rows, records=rows)


def _append(left: list[Run], run: Run) -> None:
    """Add a run; where a source file has very many, they become one that says less."""
    others = left[-MOST_RUNS:]
    if len(others) < MOST_RUNS or any(one.source != run.source for one in others):
        left.append(run)
        return
    last = left.pop()
    rows = last.rows + run.rows
    if last.first is not None and run.first is not None and run.first >= last.first:
        left.append(last._replace(rows=rows, records=run.first + run.records - last.first))
    else:
        left.append(Run(run.source, None, rows, rows))


LINE = PROVENANCE[Provenance.LINE]

Column = Any
"""An array of any type; pyarrow's stubs know one type at a time."""


def with_lines(
    batch: pa.RecordBatch, numbers: "Numbers | Sequence[int | None] | None"
) -> pa.RecordBatch:
    """Return rows with the numbers of their records, or with nulls where those are unknown."""
    kind: Any = LINE.arrow_type()
    column: Column = pa.nulls(batch.num_rows, kind) if numbers is None else pa.array(numbers, kind)
    return batch.append_column(pa.field(LINE.name, kind), column)


class Stamps:
    """Adds the columns that all rows of a source file or of a batch share."""

    def __init__(self, stamp: Stamp, uri_of: Callable[[str], str]) -> None:
        self._stamp = stamp
        self._uri_of = uri_of
        self._columns = [which for which in stamp.columns if which is not Provenance.LINE]

    @property
    def names(self) -> list[str]:
        """Return the names of the columns; the values of each of them repeat."""
        return [which.column for which in self._columns]

    def on(self, rows: pa.Table, sources: Sequence[tuple[str, int]]) -> pa.Table:
        """Return rows with the columns; so many rows after the other come from each source."""
        for which in self._columns:
            field = PROVENANCE[which]
            column = self._column(which, rows.num_rows, sources)
            rows = rows.append_column(pa.field(field.name, column.type), column)
        return rows

    def _column(self, which: Provenance, rows: int, sources: Sequence[tuple[str, int]]) -> Column:
        if which is Provenance.INGESTED_AT:
            at: Any = pa.scalar(self._stamp.ingested_at, PROVENANCE[which].arrow_type())
            return pa.repeat(at, rows)
        if which is Provenance.BATCH:
            return _repeated([self._stamp.batch], [rows])
        return _repeated(
            [self._uri_of(source) for source, _rows in sources], [rows for _source, rows in sources]
        )


def _repeated(values: Sequence[str], counts: Sequence[int]) -> Column:
    distinct = {value: place for place, value in enumerate(dict.fromkeys(values))}
    places = np.repeat(np.array([distinct[value] for value in values], np.int32), counts)
    return pa.DictionaryArray.from_arrays(places, pa.array(list(distinct), pa.string()))


ON_DISK = 8
"""How many times what is kept in memory is kept on the disk at most, the former included."""


class KeptRows:
    """Rows that are not to be written yet, in their order."""

    def __init__(self, folder: Path, in_memory: int) -> None:
        self._folder = folder
        self._in_memory = in_memory
        self._room = in_memory
        self._slices: list[Slice] = []
        self._spills: list[_Spill] = []

    def add(self, slices: Iterable[Slice]) -> None:
        """Keep more rows: on the disk, once there is no room for them in memory."""
        for one in slices:
            self._room -= one.size
            if self._room >= 0:
                self._slices.append(one)
                continue
            if not self._spills or self._spills[-1].schema != one.batch.schema:
                path = self._folder / f"kept-{len(self._spills)}.arrow"
                self._spills.append(_Spill(path, one.batch.schema))
            self._spills[-1].add(one)

    def take(self) -> Iterator[Slice]:
        """Yield the rows, and keep them no longer."""
        try:
            yield from self._slices
            self._slices = []
            for spill in self._spills:
                yield from spill.slices()
        finally:
            self.forget()

    def forget(self) -> None:
        """Keep nothing any longer; there is room in memory again."""
        self._slices, self._room = [], self._in_memory
        for spill in self._spills:
            spill.remove()
        self._spills = []


class _Spill:
    """Rows of one schema in a file on the local disk."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self.schema = schema
        self._path = path
        self._about: list[tuple[int, tuple[Run, ...]]] = []
        """The memory that the rows of each batch take, and the records that they come from."""
        self._file = pa.OSFile(str(path), "wb")
        self._writer = pa.ipc.new_stream(self._file, schema)

    def add(self, rows: Slice) -> None:
        self._writer.write_batch(rows.batch)
        self._about.append((rows.size, rows.runs))

    def slices(self) -> Iterator[Slice]:
        self._writer.close()
        self._file.close()
        with pa.memory_map(str(self._path)) as file, pa.ipc.open_stream(file) as batches:
            for (size, runs), batch in zip(self._about, batches, strict=True):
                yield Slice(batch, size, runs)

    def remove(self) -> None:
        for each in (self._writer, self._file):
            with suppress(
                Exception
            ):  # what is closed already, or on a full disk, goes all the same
                each.close()
        self._path.unlink(missing_ok=True)
