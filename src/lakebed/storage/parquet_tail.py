"""The footer of a Parquet file in a store: the end of the object is read, never all of it."""

import pyarrow as pa
import pyarrow.parquet as pq

from lakebed.storage.objects import ObjectFacts
from lakebed.storage.store import Reader

TAIL = 64 * 1024
MAGIC = b"PAR1"
FRAME = 8
"""The length of the footer and the magic word, which end a Parquet file."""


def footer_of(store: Reader, facts: ObjectFacts) -> pq.FileMetaData | None:
    """Read a file's footer; None where it has none that can be read."""
    tail = _tail(store, facts, TAIL)
    if tail[-len(MAGIC) :] != MAGIC or len(tail) < FRAME:
        return None
    length = int.from_bytes(tail[-FRAME : -len(MAGIC)], "little") + FRAME
    if length > facts.size:
        return None
    footer = tail[-length:] if length <= len(tail) else _tail(store, facts, length)
    try:
        return pq.read_metadata(pa.BufferReader(footer))
    except (pa.ArrowException, OSError):
        return None


def _tail(store: Reader, facts: ObjectFacts, count: int) -> bytes:
    start = max(0, facts.size - count)
    pieces = store.stream(facts.path, size=facts.size, etag=facts.etag, start=start)
    return b"".join(pieces)
