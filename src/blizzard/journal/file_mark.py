"""What a data file says of itself: who wrote it, by its footer, and when, by its name."""

from datetime import UTC, datetime
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq

from lakebed.storage.store import ObjectFacts, Reader

TAIL = 64 * 1024
MAGIC = b"PAR1"
FRAME = 8
"""The length of the footer and the magic word, which end a Parquet file."""


def mark_of(store: Reader, facts: ObjectFacts) -> tuple[str, str] | None:
    """Read which pipeline and journal a data file's footer names; None where it names none."""
    tail = _tail(store, facts, TAIL)
    if tail[-len(MAGIC) :] != MAGIC or len(tail) < FRAME:
        return None
    length = int.from_bytes(tail[-FRAME : -len(MAGIC)], "little") + FRAME
    if length > facts.size:
        return None
    footer = tail[-length:] if length <= len(tail) else _tail(store, facts, length)
    try:
        marks = pq.read_metadata(pa.BufferReader(footer)).metadata or {}
    except (pa.ArrowException, OSError):
        return None
    pipeline, journal = marks.get(b"blizzard.pipeline"), marks.get(b"blizzard.journal")
    return None if pipeline is None or journal is None else (pipeline.decode(), journal.decode())


def _tail(store: Reader, facts: ObjectFacts, count: int) -> bytes:
    start = max(0, facts.size - count)
    pieces = store.stream(facts.path, size=facts.size, etag=facts.etag, start=start)
    return b"".join(pieces)


def born(facts: ObjectFacts) -> datetime:
    """Return when an object was made: by its name or by the store, whichever is later. Pure."""
    stem = facts.path.rpartition("/")[2].partition(".")[0]
    try:
        named = datetime.fromtimestamp((UUID(stem[-36:]).int >> 80) / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return facts.modified
    return max(named, facts.modified)
