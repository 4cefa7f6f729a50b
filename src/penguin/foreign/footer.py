"""The footer of a Parquet file that another program wrote: one ranged read, never the whole file.

The end of the file is read, pinned by the e-tag where the store has one. A footer that is longer
than that costs a second read. What is in the pages is not looked at.
"""

from typing import Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from lakebed.dataclass import dataclass
from lakebed.documents.data_file import ColumnStatistics
from lakebed.documents.parquet_footer import (
    FRAME,
    LONGEST_FOOTER,
    MAGIC,
    TAIL,
    footer_length,
    metadata_in,
    statistics,
)
from penguin.foreign.file_schema import file_schema
from penguin.foreign.trial import TRIAL
from penguin.model.errors import FileUnfit
from penguin.model.table import DeltaSchema

ENCRYPTED = b"PARE"
OUR_MARK = b"blizzard.journal"


class Parts(Protocol):
    """What is asked of a store."""

    def part(self, path: str, start: int, end: int, *, etag: str | None) -> bytes:
        """Read some bytes of an object."""

    def describe(self, path: str) -> str:
        """Name an object for a person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Footer:
    """What a file says of itself."""

    rows: int
    schema: DeltaSchema
    reasons: tuple[str, ...]
    """Why no table can hold some of its columns."""
    statistics: dict[str, ColumnStatistics]
    ours: bool
    """Whether blizzard wrote it: then only a journal entry may name it."""


def read_footer(store: Parts, path: str, *, size: int, etag: str | None) -> Footer:
    """Read a file's footer; FileUnfit says why it is no Parquet file, or not a whole one."""
    where = store.describe(path)
    if size < len(MAGIC) + FRAME:
        raise FileUnfit(f"{size} bytes are too few for a Parquet file", file=where)
    start = max(0, size - TAIL)
    tail = store.part(path, start, size, etag=etag)
    length = _length(tail, size, where)
    if length > len(tail):
        tail = store.part(path, size - length, size, etag=etag)
    footer = tail[-length:]
    if not TRIAL.survives(footer):
        raise FileUnfit("the Parquet footer contradicts itself", file=where)
    return parse_footer(footer, size, where)


def parse_footer(footer: bytes, size: int, where: str) -> Footer:
    """Read a footer with its frame, as it is at the end of a file of this size.

    Arrow may end the process over one that nobody has tried before.
    """
    try:
        metadata = metadata_in(footer)
        schema, reasons = file_schema(metadata)
    except MemoryError:
        raise  # Arrow's own is among its errors, and says nothing of the file.
    except (pa.ArrowException, OSError, ValueError) as cause:
        raise FileUnfit("the Parquet footer cannot be read", file=where) from cause
    if _end_of_data(metadata) > size - len(footer):
        raise FileUnfit("the Parquet footer refers to data that the file does not have", file=where)
    return Footer(
        rows=metadata.num_rows,
        schema=schema,
        reasons=reasons,
        statistics=statistics(metadata),
        ours=OUR_MARK in (metadata.metadata or {}),
    )


def _length(tail: bytes, size: int, where: str) -> int:
    """Return how many bytes at the end of a file its footer takes, frame included."""
    if tail[-len(MAGIC) :] == ENCRYPTED:
        raise FileUnfit("the Parquet footer is encrypted", file=where)
    length = footer_length(tail)
    if length is None:
        raise FileUnfit("the file does not end like a Parquet file", file=where)
    if length > min(size - len(MAGIC), LONGEST_FOOTER):
        raise FileUnfit(f"a Parquet footer of {length} bytes is impossible", file=where)
    return length


def _end_of_data(metadata: pq.FileMetaData) -> int:
    """Return the byte after the last page that the footer names."""
    end = len(MAGIC)
    for index in range(metadata.num_row_groups):
        group = metadata.row_group(index)
        for number in range(group.num_columns):
            chunk = group.column(number)
            starts = [chunk.data_page_offset]
            if chunk.has_dictionary_page and chunk.dictionary_page_offset:
                starts.append(chunk.dictionary_page_offset)
            end = max(end, min(starts) + chunk.total_compressed_size)
    return end
