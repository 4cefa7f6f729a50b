"""Read the footer of a Parquet file in a store, and facts about the file's origin."""

from datetime import UTC, datetime
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq

from lakebed.documents.parquet_footer import LONGEST_FOOTER, TAIL, footer_length, metadata_in
from lakebed.storage.options import ObjectFacts
from lakebed.storage.store import Reader


def footer_of(store: Reader, facts: ObjectFacts) -> pq.FileMetaData | None:
    """Read a file's footer; None without a readable one."""
    tail = _tail(store, facts, TAIL)
    length = footer_length(tail)
    if length is None or length > min(facts.size, LONGEST_FOOTER):
        return None
    footer = tail[-length:] if length <= len(tail) else _tail(store, facts, length)
    try:
        return metadata_in(footer)
    except (pa.ArrowException, OSError, ValueError):
        return None


def _tail(store: Reader, facts: ObjectFacts, count: int) -> bytes:
    start = max(0, facts.size - count)
    pieces = store.stream(facts.path, size=facts.size, etag=facts.etag, start=start)
    return b"".join(pieces)


def mark_of(store: Reader, facts: ObjectFacts) -> tuple[str, str] | None:
    """Return the pipeline and journal in a data file's footer; None without them."""
    footer = footer_of(store, facts)
    marks = {} if footer is None else footer.metadata or {}
    pipeline, journal = marks.get(b"blizzard.pipeline"), marks.get(b"blizzard.journal")
    return None if pipeline is None or journal is None else (pipeline.decode(), journal.decode())


def born(facts: ObjectFacts) -> datetime:
    """Return when an object was created: by its name or by the store, whichever is later. Pure."""
    stem = facts.path.rpartition("/")[2].partition(".")[0]
    try:
        named = datetime.fromtimestamp((UUID(stem[-36:]).int >> 80) / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return facts.modified
    return max(named, facts.modified)
