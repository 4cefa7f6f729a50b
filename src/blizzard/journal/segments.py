"""The store of a ledger: a log-structured merge of segments with rows sorted by key.

Small tables, which are held in memory, sort before ingested names, which are looked up. A deleted
value is null until no older segment can have the key. Newer segments win over older ones. Each
segment is at least twice as large as all newer ones together, so there are few and rows are
rewritten rarely. A segment is cut into blocks with a digest each and an index, so a few keys cost a
few blocks and all keys cost one pass. Segments are derived from the entries: if one is missing or
damaged, SegmentBroken is raised and everything is rebuilt.
"""

import hashlib
import heapq
import json
import tempfile
import threading
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice, takewhile
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json

from blizzard.model.settings import SnapshotLimits
from blizzard.model.source.file import IngestedFile
from lakebed import layout
from lakebed.documents.reading import adapter_of
from lakebed.errors import LakeError
from lakebed.storage.store import Reader, Store
from lakebed.units import mebibytes

BLOCK = SnapshotLimits().block
AHEAD = 16
"""Blocks per request when keys are looked up in order."""
CACHED = 8
"""Decoded blocks that are cached between two lookups."""

TABLES, NAMES = "!", '"'
"""The first key of table rows, and of names: no name starts with an earlier character."""

Row = list[Any]
"""A line of a segment: a key and a JSON value."""


Value = TypeVar("Value")


class LedgerTable(dict[str, Value]):
    """A small table in memory that tracks the keys changed since the last segment."""

    def __init__(self, kind: type[Value]) -> None:
        """`kind` is the type of the values, as pydantic reads and writes them."""
        super().__init__()
        self._kind = kind
        self.changed: set[str] = set()

    def __setitem__(self, key: str, value: Value) -> None:
        super().__setitem__(key, value)
        self.changed.add(key)

    def __delitem__(self, key: str) -> None:
        super().__delitem__(key)
        self.changed.add(key)

    def pop(self, key: str, *default: Any) -> Any:  # noqa: ANN401
        """Remove and return a value, or the default if there is none."""
        if key in self:
            self.changed.add(key)
        return super().pop(key, *default)

    def changes(self) -> Iterator[tuple[str, object]]:
        """Yield the changed keys with their values as JSON; None for deleted ones."""
        dump = adapter_of(self._kind).dump_python
        for key in self.changed:
            value = self.get(key)
            yield key, None if value is None else dump(value, mode="json", exclude_defaults=True)

    def load(self, key: str, value: object) -> None:
        """Set a value from a segment, without marking it changed."""
        super().__setitem__(key, adapter_of(self._kind).validate_python(value))


class SegmentBroken(LakeError, code="known_names_broken"):
    """A segment is missing or damaged; the ledger is rebuilt from the entries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentBlock:
    """The location of some rows of a segment."""

    first: str
    start: int
    length: int
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentRef:
    """A reference to a segment in a snapshot."""

    id: str
    names: int
    """The number of its rows."""
    digest: str
    """The SHA-256 of its index."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment(SegmentRef):
    """Sorted rows in the store, with an index of their blocks."""

    store: Reader
    pipeline: str
    blocks: tuple[SegmentBlock, ...]

    @classmethod
    def open(cls, store: Reader, pipeline: str, ref: SegmentRef) -> "Segment":
        """Read the index of a segment; blocks are read on demand."""
        path = layout.known_index(pipeline, ref.id)
        body = store.get(path)
        if body is None or hashlib.sha256(body).hexdigest() != ref.digest:
            raise SegmentBroken("the index of known names is missing or damaged", path=path)
        index = _BLOCKS.validate_json(body)
        return cls(store=store, pipeline=pipeline, blocks=index, **asdict(ref))

    @property
    def ref(self) -> SegmentRef:
        """The reference for a snapshot."""
        return SegmentRef(id=self.id, names=self.names, digest=self.digest)

    def read(self, first: int, stop: int) -> list[bytes]:
        """Read some blocks in one request."""
        path, blocks = layout.known_names(self.pipeline, self.id), self.blocks[first:stop]
        start, end = blocks[0].start, blocks[-1].start + blocks[-1].length
        body = self.store.get_range(path, start=start, length=end - start)
        if body is None:
            raise SegmentBroken("a segment of known names is missing", path=path)
        found = [body[block.start - start :][: block.length] for block in blocks]
        for block, part in zip(blocks, found, strict=True):
            if hashlib.sha256(part).hexdigest() != block.digest:
                raise SegmentBroken("a segment of known names is damaged", path=path)
        return found

    def _bodies(self, begin: int, stop: int) -> Iterator[bytes]:
        for first in range(begin, stop, AHEAD):
            yield from self.read(first, min(first + AHEAD, stop))

    def rows(self, start: str = "", end: str | None = None) -> Iterator[Row]:
        """Yield the rows with keys from `start` up to but not including `end`."""
        firsts = [block.first for block in self.blocks]
        begin = max(0, bisect_right(firsts, start) - 1)
        stop = len(firsts) if end is None else bisect_left(firsts, end)
        for body in self._bodies(begin, stop):
            rows = (row for row in map(json.loads, body.splitlines()) if row[0] >= start)
            yield from rows if end is None else takewhile(lambda row: row[0] < end, rows)

    def with_text(self, text: str) -> Iterator[IngestedFile]:
        """Yield the files whose names contain a text; only those lines are decoded."""
        wanted = json.dumps(text, ensure_ascii=False)[1:-1].encode()
        for body in self._bodies(0, len(self.blocks)):
            if wanted in body:
                rows = (json.loads(line) for line in body.splitlines() if wanted in line)
                names = (row for row in rows if row[0] >= NAMES and text in row[0])
                yield from map(IngestedFile.of, names)


_BLOCKS = TypeAdapter(tuple[SegmentBlock, ...])


def write_segment(
    store: Store, pipeline: str, rows: Iterable[Row], fresh_id: UUID, *, block: int = BLOCK
) -> Segment:
    """Write sorted rows as a new segment, with one block of them in memory."""
    name = str(fresh_id)
    blocks: list[SegmentBlock] = []
    count, start, left = 0, 0, iter(rows)
    with tempfile.TemporaryDirectory(prefix="blizzard-known-") as folder:
        spool = Path(folder) / "names"
        with spool.open("wb") as file:
            while some := list(islice(left, block)):
                body = b"".join(to_json(row) + b"\n" for row in some)
                file.write(body)
                first, digest = some[0][0], hashlib.sha256(body).hexdigest()
                size = len(body)
                blocks.append(SegmentBlock(first=first, start=start, length=size, digest=digest))
                start += len(body)
                count += len(some)
        store.upload(
            layout.known_names(pipeline, name),
            spool,
            part_size=mebibytes(32),
            multipart=start > mebibytes(32),
            max_parts=2,
        )
    index = _BLOCKS.dump_json(tuple(blocks))
    store.replace(layout.known_index(pipeline, name), index)
    return Segment(
        id=name,
        names=count,
        digest=hashlib.sha256(index).hexdigest(),
        store=store,
        pipeline=pipeline,
        blocks=tuple(blocks),
    )


def with_rows(
    store: Store,
    pipeline: str,
    segments: Sequence[Segment],
    rows: Iterable[Row],
    fresh_id: Callable[[], UUID],
    *,
    block: int = BLOCK,
) -> list[Segment]:
    """Write rows as the newest segment, merging the newest ones to keep the size ratio.

    The oldest segment has no null values, since nothing older can have their keys.
    """
    rows = rows if segments else filter(_has_value, rows)
    new = write_segment(store, pipeline, rows, fresh_id(), block=block)
    every = [*segments, new] if new.names else [*segments]
    number = to_merge(every) if every else 0
    if number > 1:
        newest = merged(every[-number:])
        left = filter(_has_value, newest) if number == len(every) else newest
        one = write_segment(store, pipeline, left, fresh_id(), block=block)
        every = [*every[:-number], one] if one.names else every[:-number]
    return every


def _has_value(row: Row) -> bool:
    return row[1] is not None


def to_merge(segments: Sequence[SegmentRef]) -> int:
    """Return how many of the newest segments to merge to keep the size ratio."""
    total, count = segments[-1].names, 1
    for segment in reversed(segments[:-1]):
        if segment.names >= 2 * total:
            break
        total += segment.names
        count += 1
    return count


def merged(segments: Sequence[Segment], start: str = "", end: str | None = None) -> Iterator[Row]:
    """Yield the rows of several segments by key; for equal keys, the newest one.

    Blocks entirely outside `start` and `end` are not read.
    """
    # For equal keys, a merge yields the row of the first stream first.
    newest_first = (segment.rows(start, end) for segment in reversed(segments))
    last = None
    for row in heapq.merge(*newest_first, key=itemgetter(0)):
        if row[0] != last:
            yield row
        last = row[0]


@dataclass(slots=True)
class Blocks:
    """A thread-safe cache of decoded blocks, since an abandoned lookup may still run."""

    kept: OrderedDict[tuple[str, int], dict[str, IngestedFile]] = field(default_factory=OrderedDict)
    most: int = CACHED
    ahead: int = AHEAD
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def get(self, place: tuple[str, int]) -> dict[str, IngestedFile] | None:
        """Return a cached block, or None."""
        with self._lock:
            found = self.kept.get(place)
            if found is not None:
                self.kept.move_to_end(place)
            return found

    def put(self, place: tuple[str, int], names: dict[str, IngestedFile]) -> None:
        """Cache a block and evict the least recently used one."""
        with self._lock:
            self.kept[place] = names
            while len(self.kept) > self.most:
                self.kept.popitem(last=False)


class Cursor:
    """Looks up files in one segment; sorted lookups read it in one pass."""

    def __init__(self, segment: Segment, blocks: Blocks) -> None:
        self._segment = segment
        self._firsts = [block.first for block in segment.blocks]
        self._cache = blocks
        self._at = -1
        self._names: dict[str, IngestedFile] = {}
        self._ahead: dict[int, bytes] = {}

    def find(self, key: str) -> IngestedFile | None:
        """Return the segment's file for a key, or None."""
        at = bisect_right(self._firsts, key) - 1
        if at < 0:
            return None
        if at != self._at:
            self._names = self._load(at)
            self._at = at
        return self._names.get(key)

    def _load(self, at: int) -> dict[str, IngestedFile]:
        place = (self._segment.id, at)
        found = self._cache.get(place)
        if found is not None:
            return found
        if at not in self._ahead:
            # Read one block for a single lookup, many for consecutive blocks.
            count = self._cache.ahead if at == self._at + 1 and self._at >= 0 else 1
            self._ahead = dict(enumerate(self._segment.read(at, at + count), start=at))
        rows = map(json.loads, self._ahead.pop(at).splitlines())
        names = {row[0]: IngestedFile.of(row) for row in rows if row[0] >= NAMES}
        self._cache.put(place, names)
        return names


Tables = Mapping[str, LedgerTable[Any]]
"""All tables of a ledger, by their names, which contain no slash."""


def changed_rows(tables: Tables) -> list[Row]:
    """Return the changes of tables since the last segment, as rows of the next one."""
    return [
        [f"{TABLES}{name}/{key}", value]
        for name, table in tables.items()
        for key, value in table.changes()
    ]


def load_tables(tables: Tables, pipeline: str, segments: Sequence[Segment]) -> None:
    """Read the values of tables from segments."""
    try:
        for place, value in merged(segments, TABLES, NAMES):
            name, _, key = place.removeprefix(TABLES).partition("/")
            if value is not None:
                tables[name].load(key, value)
    except (ValidationError, KeyError) as invalid:
        path = layout.known_folder(pipeline)
        raise SegmentBroken("the values of a snapshot cannot be read", path=path) from invalid
