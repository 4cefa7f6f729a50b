"""What was read of a folder's footers, kept in the folder until the table is there.

A run writes parts of some files each, in the order of their names, and never changes one. The next
run reads the parts of all runs side by side with its listing, so that no more than one part of each
is in memory, and reads only the footers of files that are new or changed. Losing a part costs time
and nothing else.
"""

import gzip
import heapq
import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from lakebed.deltalog.delta_types import DeltaSchema
from lakebed.documents.data_file import ColumnStatistics
from lakebed.errors import DocumentUnreadable, ObjectMissing
from lakebed.layout import ADOPTION, adoption_segment
from lakebed.storage.ahead import ahead
from lakebed.storage.store import ObjectFacts, Reader, Store
from penguin.adopt.folder import FileRecord
from penguin.model.foreign_file import Candidate, ForeignFile, LeftOut

FORMAT = 1
FILES_PER_SEGMENT = 1000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)

Line = list[Any]


@dataclass(slots=True)
class SegmentWriter:
    """Writes what one run reads, part by part."""

    store: Store
    run: str
    size: int = FILES_PER_SEGMENT
    _number: int = 0
    _records: list[FileRecord] = field(default_factory=list)

    def add(self, record: FileRecord) -> None:
        """Take what was read of a file."""
        self._records.append(record)
        if len(self._records) >= self.size:
            self.flush()

    def flush(self) -> None:
        """Write what has not been written yet."""
        if self._records:
            self.store.replace(adoption_segment(self.run, self._number), encode(self._records))
            self._number, self._records = self._number + 1, []


@dataclass(slots=True)
class KnownFiles:
    """What all runs have read, asked for in the order of the files' names."""

    stores: Sequence[Reader]
    _records: Iterator[FileRecord] = field(init=False)
    _next: FileRecord | None = field(init=False)

    def __post_init__(self) -> None:
        runs = [_records(store, run) for store in self.stores for run in _runs(store)]
        self._records = heapq.merge(*runs, key=lambda record: record.found.path)
        self._next = next(self._records, None)

    def of(self, one: Candidate) -> FileRecord | None:
        """Return what was read of this very content; None if it was not read."""
        known = None
        while self._next is not None and self._next.found.path <= one.path:
            if self._next.found.path == one.path and self._next.found.is_same(one):
                known = self._next
            self._next = next(self._records, None)
        return known


def delete_state(store: Store) -> None:
    """Delete what all runs have read."""
    for run in _runs(store):
        paths = [facts.path for facts in store.level(run)[1]]
        for _ in ahead(store.delete, paths):
            pass


def encode(records: Sequence[FileRecord]) -> bytes:
    """Write what was read of some files."""
    schemas: dict[str, int] = {}
    files = [_line(record, schemas) for record in records]
    body = {"format": FORMAT, "schemas": list(schemas), "files": files}
    return gzip.compress(json.dumps(body, separators=(",", ":")).encode(), 1, mtime=0)


def decode(body: bytes, path: str) -> list[FileRecord]:
    """Read what was read of some files."""
    try:
        found = json.loads(gzip.decompress(body))
        if found["format"] != FORMAT:
            raise ValueError("it has another format")
        schemas = [(key, json.loads(key)) for key in found["schemas"]]
        return [_record(line, schemas) for line in found["files"]]
    except (OSError, EOFError, zlib.error, ValueError, KeyError, TypeError, IndexError) as cause:
        raise DocumentUnreadable(
            "what an earlier run has read cannot be read any more; delete it, and its files are "
            "looked at again",
            path=path,
        ) from cause


def schema_key(schema: DeltaSchema) -> str:
    """Name a schema by what it is."""
    return json.dumps(schema, ensure_ascii=False, separators=(",", ":"))


def _runs(store: Reader) -> list[str]:
    return sorted(name.rstrip("/") for name in store.folders(ADOPTION))


def _records(store: Reader, run: str) -> Iterator[FileRecord]:
    for facts in sorted(store.level(run)[1], key=lambda one: one.path):
        body = store.get(facts.path)
        if body is None:
            raise ObjectMissing(
                "what an earlier run has read is gone", path=store.describe(facts.path)
            )
        yield from decode(body, store.describe(facts.path))


def _line(record: FileRecord, schemas: dict[str, int]) -> Line:
    facts = record.found.facts
    modified = (facts.modified - EPOCH) // MICROSECOND
    head: Line = [facts.path, facts.size, facts.etag, modified]
    file = record.verdict
    if isinstance(file, LeftOut):
        return [*head, None, file.code, file.reason, file.skippable]
    place = schemas.setdefault(file.schema_key, len(schemas))
    columns = {
        name: [one.null_count, one.minimum, one.maximum] for name, one in file.statistics.items()
    }
    return [*head, file.rows, place, columns]


def _record(line: Line, schemas: Sequence[tuple[str, DeltaSchema]]) -> FileRecord:
    path, size, etag, modified, rows, *rest = line
    at = EPOCH + modified * MICROSECOND
    found = Candidate(facts=ObjectFacts(path=path, size=size, etag=etag, modified=at))
    if rows is None:
        code, reason, skippable = rest
        return FileRecord(found, LeftOut(path=path, code=code, reason=reason, skippable=skippable))
    place, columns = rest
    key, schema = schemas[place]
    statistics = {
        name: ColumnStatistics(null_count=nulls, minimum=low, maximum=high)
        for name, (nulls, low, high) in columns.items()
    }
    file = ForeignFile(found=found, rows=rows, schema=schema, statistics=statistics, schema_key=key)
    return FileRecord(found, file)
