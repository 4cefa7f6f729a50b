"""Origins of the rows of a data file: runs for the journal, columns for provenance. Pure.

A run maps consecutive rows to the records of a source file that they come from. Adjacent runs are
joined, so a data file usually has one run per source file. A run's `source` is only set once the
source files of the data file are known.

Of the provenance columns, only record numbers travel with the rows. Values shared by a source file
or batch are added when a row group is written, as dictionaries that cost no memory per row.

A file that fails half-way must leave nothing in a shared data file, so its rows are kept until all
of it is read: in memory up to a limit, then on the local disk in Arrow's format.
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

from blizzard.model.work import SharedProvenance
from blizzard.worker.ndjson.lines import Decoded
from lakebed.columns.schema import PROVENANCE
from lakebed.documents.records import Run
from lakebed.types import Provenance

MOST_RUNS = 64
"""The most separate runs per source file and data file, or per block of lines."""

Numbers = npt.NDArray[np.int64]


class Slice(NamedTuple):
    """Rows of one source file."""

    batch: pa.RecordBatch
    size: int
    """Their memory."""
    runs: tuple[Run, ...] = ()
    """Their origins."""


def runs_of(decoded: Decoded, first: int) -> tuple[Run, ...]:
    """Return the origins of the rows of some lines; `first` is the number of the first line."""
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
    """Return the origins of rows with these record numbers; empty if one is unknown."""
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
    """Return one run for an arbitrary subset of the rows, in order."""
    if not runs:
        return ()
    first = runs[0].first or 0
    return (Run(0, first, rows, _end(runs[-1]) - first),)


def _end(run: Run) -> int:
    """Return the number of the record after the last one of a run with numbers."""
    return (run.first or 0) + run.records


class Cutter:
    """Splits runs along consecutive slices of their rows."""

    def __init__(self, runs: Iterable[Run]) -> None:
        self._left = list(reversed(list(runs)))

    def next(self, rows: int) -> tuple[Run, ...]:
        """Return the runs of the next rows; empty if some are unknown."""
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
    """The origins of the rows of one data file or row group."""

    known: list[tuple[str, Run | None]] = field(default_factory=list)
    """Source files and runs in row order; the run is None if unknown."""
    by_source: list[tuple[str, int]] = field(default_factory=list)
    """Source files and their consecutive row counts, in row order."""
    _kept_apart: int = 0
    """Runs of the last source file."""

    @property
    def sources(self) -> tuple[str, ...]:
        """Return the distinct source files."""
        return tuple(dict.fromkeys(source for source, _run in self.known))

    def add(self, source: str, rows: int, runs: Sequence[Run]) -> None:
        """Add rows of a source file; without runs, their records are unknown."""
        if self.by_source and self.by_source[-1][0] == source:
            rows += self.by_source.pop()[1]
        self.by_source.append((source, rows))
        for run in runs or (None,):
            self._add(source, run)

    def add_whole(self, files: Sequence[tuple[str, int]]) -> None:
        """Add whole source files, different from the last, in which each line is a row.

        Equal runs are shared, since many small files have the same length.
        """
        known = {rows: Run(0, 1, rows, rows) for rows in {rows for _source, rows in files}}
        self.by_source += files
        self.known += [(source, known[rows]) for source, rows in files]
        self._kept_apart = 1

    def extend(self, other: "Origins") -> None:
        """Append the origins of following rows."""
        for source, run in other.known:
            self._add(source, run)

    def runs(self) -> tuple[Run, ...]:
        """Return the runs for the journal entry; empty if some are unknown."""
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
    """Join two runs if that loses nothing or `anyway` is set; else return None."""
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
    """Return the source files and runs of a data file after the rows in `gone` are removed.

    `gone` holds ascending row ranges. If the origins are unknown they stay unknown, and any of the
    source files may still have rows.
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
    """Return a run of some of its rows."""
    if not run.is_exact:
        return run._replace(rows=rows)  # Any of the records may be meant.
    if run.first is not None:
        return run._replace(first=run.first + offset, rows=rows, records=rows)
    nth = None if run.nth is None else run.nth + offset
    return run._replace(nth=nth, rows=rows, records=rows)


def _append(left: list[Run], run: Run) -> None:
    """Append a run; beyond `MOST_RUNS` of a source file, widen the last one."""
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
    """Append the record numbers of the rows; null if unknown."""
    kind: Any = LINE.arrow_type()
    column: Column = pa.nulls(batch.num_rows, kind) if numbers is None else pa.array(numbers, kind)
    return batch.append_column(pa.field(LINE.name, kind), column)


class ProvenanceWriter:
    """Adds the provenance columns whose values a source file or batch shares."""

    def __init__(self, stamp: SharedProvenance, uri_of: Callable[[str], str]) -> None:
        self._stamp = stamp
        self._uri_of = uri_of
        self._columns = [which for which in stamp.columns if which is not Provenance.LINE]

    @property
    def names(self) -> list[str]:
        """Return the names of the columns."""
        return [which.column for which in self._columns]

    def on(self, rows: pa.Table, sources: Sequence[tuple[str, int]]) -> pa.Table:
        """Append the columns to rows; `sources` holds consecutive row counts by source file."""
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
"""The most kept rows, including those on disk, as a multiple of the memory budget."""


class KeptRows:
    """Rows that must not be written yet, in order."""

    def __init__(self, folder: Path, in_memory: int) -> None:
        self._folder = folder
        self._in_memory = in_memory
        self._room = in_memory
        self._slices: list[Slice] = []
        self._spills: list[_Spill] = []

    def add(self, slices: Iterable[Slice]) -> None:
        """Keep more rows: on disk once the memory budget is used up."""
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
        """Yield the rows and release them."""
        try:
            yield from self._slices
            self._slices = []
            for spill in self._spills:
                yield from spill.slices()
        finally:
            self.forget()

    def forget(self) -> None:
        """Release all rows and reset the memory budget."""
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
        """The memory and the runs of each batch."""
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
            with suppress(Exception):  # already closed, or the disk is full
                each.close()
        self._path.unlink(missing_ok=True)
