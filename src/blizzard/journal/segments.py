"""The store of a ledger: rows sorted by key, in segments; a merge of all yields the newest rows.

A segment is derived data: the entries of the journal say the same. It is cut into blocks with a
digest each, and its index says where they are, so that a few keys cost a few blocks and all keys
cost one pass. Newer segments win over older ones. They are merged like the rungs of a ladder, each
at least twice as large as all newer ones together, so there are few and each row is written
seldom. One that is missing or damaged is a SegmentBroken, and everything is built again.
"""

import hashlib
import heapq
import json
import tempfile
import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import UUID

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json

from blizzard.model.files import IngestedFile
from blizzard.model.limits import SnapshotLimits
from lakebed import layout
from lakebed.errors import LakeError
from lakebed.storage.store import Reader, Store
from lakebed.units import mebibytes

BLOCK = SnapshotLimits().block
AHEAD = 16
"""Blocks that one request reads when keys are asked for in their order."""
CACHED = 8
"""Decoded blocks that are cached between two lookups."""

Row = list[Any]
"""A line of a segment: a key, and what JSON can hold."""


class SegmentBroken(LakeError):
    """A segment is missing or damaged; the ledger is built again from the entries."""

    code = "known_names_broken"


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Where some rows of a segment are."""

    first: str
    start: int
    length: int
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentRef:
    """A segment as a snapshot names it."""

    id: str
    names: int
    """The number of its rows."""
    digest: str
    """The SHA-256 of its index."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """Sorted rows in the store, with the way to each of their blocks."""

    ref: SegmentRef
    blocks: tuple[Block, ...]

    @property
    def id(self) -> str:
        """Return the name of the segment."""
        return self.ref.id

    @property
    def names(self) -> int:
        """Return the number of rows."""
        return self.ref.names


_BLOCKS = TypeAdapter(tuple[Block, ...])


def write_segment(
    store: Store, pipeline: str, rows: Iterable[Row], fresh_id: UUID, *, block: int = BLOCK
) -> Segment:
    """Write sorted rows as a new segment, with one block of them in memory."""
    name = str(fresh_id)
    blocks: list[Block] = []
    count = start = 0
    left = iter(rows)
    with tempfile.TemporaryDirectory(prefix="blizzard-known-") as folder:
        spool = Path(folder) / "names"
        with spool.open("wb") as file:
            while some := list(islice(left, block)):
                body = b"".join(to_json(row) + b"\n" for row in some)
                file.write(body)
                digest = hashlib.sha256(body).hexdigest()
                blocks.append(Block(first=some[0][0], start=start, length=len(body), digest=digest))
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
    ref = SegmentRef(id=name, names=count, digest=hashlib.sha256(index).hexdigest())
    return Segment(ref=ref, blocks=tuple(blocks))


def open_segment(store: Reader, pipeline: str, ref: SegmentRef) -> Segment:
    """Read the index of a segment; blocks are read on demand."""
    path = layout.known_index(pipeline, ref.id)
    body = store.get(path)
    if body is None or hashlib.sha256(body).hexdigest() != ref.digest:
        raise SegmentBroken("the index of known names is missing or damaged", path=path)
    try:
        return Segment(ref=ref, blocks=_BLOCKS.validate_json(body))
    except ValidationError as invalid:
        raise SegmentBroken("the index of known names cannot be read", path=path) from invalid


def with_rows(
    store: Store,
    pipeline: str,
    segments: Sequence[Segment],
    rows: Iterable[Row],
    fresh_id: Callable[[], UUID],
    *,
    block: int = BLOCK,
    keep: Callable[[Row], bool] = lambda _row: True,
) -> list[Segment]:
    """Write rows as the newest segment, and merge the newest ones so that the ladder holds.

    `keep` drops rows from the oldest segment: nothing older can have their keys.
    """
    new = write_segment(store, pipeline, rows, fresh_id(), block=block)
    every = [*segments, new] if new.names else [*segments]
    number = to_merge(every) if every else 0
    if number > 1:
        newest = merged(store, pipeline, every[-number:])
        left = filter(keep, newest) if number == len(every) else newest
        one = write_segment(store, pipeline, left, fresh_id(), block=block)
        every = [*every[:-number], one] if one.names else every[:-number]
    return every


def to_merge(segments: Sequence[Segment | SegmentRef]) -> int:
    """Return how many of the newest segments to merge into one, so that the ladder holds."""
    total, count = segments[-1].names, 1
    for segment in reversed(segments[:-1]):
        if segment.names >= 2 * total:
            break
        total += segment.names
        count += 1
    return count


def merged(
    store: Reader, pipeline: str, segments: Sequence[Segment], start: str = ""
) -> Iterator[Row]:
    """Yield the rows of several segments by key, each key once, as the newest of them says.

    Blocks with nothing but keys before `start` are not read.
    """
    streams = [
        _aged(read_rows(store, pipeline, segment, start), -age)
        for age, segment in enumerate(segments)
    ]
    last = None
    for row, _age in heapq.merge(*streams, key=lambda each: (each[0][0], each[1])):
        if row[0] != last:
            yield row
        last = row[0]


def _aged(rows: Iterator[Row], age: int) -> Iterator[tuple[Row, int]]:
    return ((row, age) for row in rows)


def read_rows(store: Reader, pipeline: str, segment: Segment, start: str = "") -> Iterator[Row]:
    """Yield the rows of one segment, from the block on in which `start` would be."""
    begin = max(0, bisect_right([block.first for block in segment.blocks], start) - 1)
    for body in _bodies(store, pipeline, segment, begin):
        yield from map(json.loads, body.splitlines())


def names_with(store: Reader, pipeline: str, segment: Segment, text: str) -> Iterator[IngestedFile]:
    """Yield the files of one segment whose names contain a text; only those lines are decoded."""
    wanted = json.dumps(text, ensure_ascii=False)[1:-1].encode()
    for body in _bodies(store, pipeline, segment):
        if wanted in body:
            rows = (json.loads(line) for line in body.splitlines() if wanted in line)
            yield from (IngestedFile.of(row) for row in rows if text in row[0])


def _bodies(store: Reader, pipeline: str, segment: Segment, begin: int = 0) -> Iterator[bytes]:
    for first in range(begin, len(segment.blocks), AHEAD):
        yield from _read_blocks(store, pipeline, segment, segment.blocks[first : first + AHEAD])


@dataclass(slots=True)
class Blocks:
    """The decoded blocks that are cached between two lookups, the last used ones.

    A lookup that is no longer needed may continue alongside the one that replaces it.
    """

    kept: OrderedDict[tuple[str, int], dict[str, IngestedFile]] = field(default_factory=OrderedDict)
    most: int = CACHED
    ahead: int = AHEAD
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def get(self, place: tuple[str, int]) -> dict[str, IngestedFile] | None:
        """Return a block that is still cached."""
        with self._lock:
            found = self.kept.get(place)
            if found is not None:
                self.kept.move_to_end(place)
            return found

    def put(self, place: tuple[str, int], names: dict[str, IngestedFile]) -> None:
        """Cache a block, and drop the least recently used one."""
        with self._lock:
            self.kept[place] = names
            while len(self.kept) > self.most:
                self.kept.popitem(last=False)


class Cursor:
    """Looks up files in one segment; asked in their order, it reads the segment in one pass."""

    def __init__(self, store: Reader, pipeline: str, segment: Segment, blocks: Blocks) -> None:
        self._store = store
        self._pipeline = pipeline
        self._segment = segment
        self._firsts = [block.first for block in segment.blocks]
        self._cache = blocks
        self._at = -1
        self._names: dict[str, IngestedFile] = {}
        self._ahead: dict[int, bytes] = {}

    def find(self, key: str) -> IngestedFile | None:
        """Return the file that the segment has under a key, or None."""
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
            # One block for a single lookup; many where one block follows the other.
            count = self._cache.ahead if at == self._at + 1 and self._at >= 0 else 1
            some = self._segment.blocks[at : at + count]
            bodies = _read_blocks(self._store, self._pipeline, self._segment, some)
            self._ahead = dict(enumerate(bodies, start=at))
        rows = map(json.loads, self._ahead.pop(at).splitlines())
        names = {row[0]: IngestedFile.of(row) for row in rows}
        self._cache.put(place, names)
        return names


def _read_blocks(
    store: Reader, pipeline: str, segment: Segment, blocks: Sequence[Block]
) -> list[bytes]:
    path = layout.known_names(pipeline, segment.id)
    start, end = blocks[0].start, blocks[-1].start + blocks[-1].length
    body = store.get_range(path, start=start, length=end - start)
    if body is None:
        raise SegmentBroken("a segment of known names is missing", path=path)
    found = [body[block.start - start :][: block.length] for block in blocks]
    for block, part in zip(blocks, found, strict=True):
        if hashlib.sha256(part).hexdigest() != block.digest:
            raise SegmentBroken("a segment of known names is damaged", path=path)
    return found
