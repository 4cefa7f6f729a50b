"""The footer of a Parquet file in a store: the end of the object is read, never all of it."""

import pyarrow as pa
import pyarrow.parquet as pq

from lakebed.documents.parquet_footer import LONGEST_FOOTER, TAIL, footer_length, metadata_in
from lakebed.storage.objects import ObjectFacts
from lakebed.storage.store import Reader


def footer_of(store: Reader, facts: ObjectFacts) -> pq.FileMetaData | None:
    """Read a file's footer; None where it has none that can be read."""
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
