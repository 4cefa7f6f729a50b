"""The columns that say where a row came from.

The number of its record travels with a row. What all rows of a source file or of a batch share is
added when a row group is written: as dictionaries, which take no memory for the rows that repeat.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from blizzard.model.files import Stamp
from blizzard.worker.output.origins import Numbers
from lakebed.columns.arrow_types import ARROW
from lakebed.columns.schema import PROVENANCE
from lakebed.types import Provenance

LINE = PROVENANCE[Provenance.LINE]

Column = Any
"""An array of whatever type the column has; pyarrow's stubs know one type at a time."""


def with_lines(
    batch: pa.RecordBatch, numbers: "Numbers | Sequence[int | None] | None"
) -> pa.RecordBatch:
    """Return rows with the numbers of their records, or with nulls where those are unknown."""
    kind: Any = ARROW[LINE.type]
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
            at: Any = pa.scalar(self._stamp.ingested_at, ARROW[PROVENANCE[which].type])
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
