"""Read quarantine files: one row per bad line."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from blizzard.model.bad_lines import LineFault, fault_of
from lakebed.documents.records import QuarantineFile
from lakebed.errors import DocumentUnreadable, ObjectMissing
from lakebed.storage.store import Reader

_COLUMNS: Any = [
    pa.field("source", pa.string(), nullable=False),
    pa.field("path", pa.string(), nullable=False),
    pa.field("line", pa.int64()),
    pa.field("nth", pa.int64(), nullable=False),
    pa.field("offset", pa.int64()),
    pa.field("raw", pa.binary(), nullable=False),
    pa.field("size", pa.int64(), nullable=False),
    pa.field("code", pa.string(), nullable=False),
    pa.field("message", pa.string(), nullable=False),
    pa.field("field", pa.string()),
    pa.field("expected", pa.string()),
    pa.field("found", pa.string()),
]
SCHEMA = pa.schema(_COLUMNS)
"""The columns of a quarantine file; `size` is the size of the line."""
ROWS = 4096
"""Rows converted to Python objects at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuarantinedLine:
    """One quarantined line."""

    source: str
    path: str
    line: int | None
    """Its number in the source file; None if unknown."""
    nth: int
    offset: int | None
    raw: bytes
    size: int
    code: str
    message: str
    field: str | None
    expected: str | None
    found: str | None

    @property
    def key(self) -> str:
        """Return the unique name of the source file in the pipeline."""
        return f"{self.source}:{self.path}"

    @property
    def fault(self) -> LineFault:
        """Return its error, by which lines are grouped."""
        return fault_of(self.code, self.field, self.expected, self.found)


def read_table(store: Reader, path: str, lines: int | None = None) -> pa.Table:
    """Return the rows of a quarantine file; raise if it is gone or does not have `lines` rows."""
    body, where = store.get(path), store.describe(path)
    if body is None:
        raise ObjectMissing("a file with bad lines is gone; restore it from a backup", path=where)
    try:
        # No Arrow thread may hold the bytes: releasing them while Python shuts down crashes the
        # process. `pq.read_table` always uses a thread.
        with pq.ParquetFile(pa.BufferReader(body), pre_buffer=False) as opened:
            table = opened.read(use_threads=False)
    except (pa.ArrowException, OSError) as broken:
        raise DocumentUnreadable(
            "this is not a Parquet file; restore it from a backup", path=where
        ) from broken
    if lines not in (None, table.num_rows):
        raise DocumentUnreadable(
            f"this file has {table.num_rows} lines, but {lines} according to its entry; restore it "
            "from a backup",
            path=where,
        )
    return table


def lines_of(table: pa.Table, lines_before: int | None = 0) -> Iterator[QuarantinedLine]:
    """Yield the lines of a quarantine file, given the number of source lines before it."""
    for batch in table.to_batches(max_chunksize=ROWS):
        for row in batch.to_pylist():
            if row["line"] is None and lines_before:
                row["line"] = row["nth"] + lines_before
            yield QuarantinedLine(**row)


def lines_in(store: Reader, file: QuarantineFile) -> Iterator[QuarantinedLine]:
    """Yield the lines of a quarantine file, numbered by its journal entry."""
    return lines_of(read_table(store, file.filename, file.record_count), file.lines_before)
