"""Names of source files that are done, in sorted segments: looked up in order, never all in memory.

A segment is derived data: the entries of the journal say the same. It is cut into blocks with a
digest each, and its index says where they are, so that a few names cost a few blocks and all names
cost one pass. Newer segments win over older ones. They are merged like the rungs of a ladder, each
at least twice as large as all newer ones together, so there are few and each name is written
seldom. One that is missing or damaged is a SegmentBroken, and everything is built again.
"""

import hashlib
import heapq
import json
import tempfile
import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
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
"""Blocks that are read in one request when names are asked for one after the other."""
CACHED = 8
"""Decoded blocks that are kept between two looks."""


class SegmentBroken(LakeError):
    """A segment of known names is missing or damaged; it is built again from the entries."""

    code = "known_names_broken"


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Where some names of a segment stand."""

    first: str
    start: int
    length: int
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """Sorted names in the store, with the way to each of its blocks."""

    id: str
    names: int
    blocks: tuple[Block, ...]
    digest: str = ""
    """The SHA-256 of the index, which a snapshot repeats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentRef:
    """How a snapshot names a segment."""

    id: str
    names: int
    digest: str


_BLOCKS = TypeAdapter(tuple[Block, ...])


def write_segment(
    store: Store,
    pipeline: str,
    names: Iterable[IngestedFile],
    fresh_id: UUID,
    *,
    block: int = BLOCK,
) -> Segment:
    """Write sorted names as a new segment; no memory is used but that of a block."""
    name = str(fresh_id)
    blocks: list[Block] = []
    count = start = 0
    with tempfile.TemporaryDirectory(prefix="blizzard-known-") as folder:
        spool = Path(folder) / "names"
        with spool.open("wb") as file:
            for some in _in_blocks(names, block):
                body = b"".join(_line(each) for each in some)
                file.write(body)
                digest = hashlib.sha256(body).hexdigest()
                blocks.append(
                    Block(first=some[0].key, start=start, length=len(body), digest=digest)
                )
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
    digest = hashlib.sha256(index).hexdigest()
    return Segment(id=name, names=count, blocks=tuple(blocks), digest=digest)


def open_segment(store: Reader, pipeline: str, ref: SegmentRef) -> Segment:
    """Read the index of a segment; the names are read when they are asked for."""
    path = layout.known_index(pipeline, ref.id)
    body = store.get(path)
    if body is None or hashlib.sha256(body).hexdigest() != ref.digest:
        raise SegmentBroken("the index of known names is missing or damaged", path=path)
    try:
        blocks = _BLOCKS.validate_json(body)
    except ValidationError as invalid:
        raise SegmentBroken("the index of known names cannot be read", path=path) from invalid
    return Segment(id=ref.id, names=ref.names, blocks=blocks, digest=ref.digest)


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
) -> Iterator[IngestedFile]:
    """Yield the names of several segments in order, each once, as the newest of them says.

    Blocks with nothing but names before `start` are not read.
    """
    streams = [
        _aged(read_names(store, pipeline, segment, start), -age)
        for age, segment in enumerate(segments)
    ]
    last = None
    for name, _age in heapq.merge(*streams, key=lambda each: (each[0].key, each[1])):
        if name.key != last:
            yield name
        last = name.key


def read_names(
    store: Reader, pipeline: str, segment: Segment, start: str = ""
) -> Iterator[IngestedFile]:
    """Yield the names of one segment in order, from the block on in which `start` would stand."""
    begin = max(0, bisect_right([block.first for block in segment.blocks], start) - 1)
    for first in range(begin, len(segment.blocks), AHEAD):
        some = segment.blocks[first : first + AHEAD]
        for body in _read_blocks(store, pipeline, segment, some):
            yield from _decoded(body)


def names_with(store: Reader, pipeline: str, segment: Segment, text: str) -> Iterator[IngestedFile]:
    """Yield the names of one segment in which a text stands; only those lines are decoded."""
    wanted = json.dumps(text, ensure_ascii=False)[1:-1].encode()
    for first in range(0, len(segment.blocks), AHEAD):
        some = segment.blocks[first : first + AHEAD]
        for body in _read_blocks(store, pipeline, segment, some):
            if wanted in body:
                found = (_name_of(line) for line in body.splitlines() if wanted in line)
                yield from (name for name in found if text in name.key)


@dataclass(slots=True)
class Blocks:
    """The decoded blocks that are kept between two looks, the last used ones.

    A lookup that is no longer needed may continue alongside the one that replaces it.
    """

    kept: OrderedDict[tuple[str, int], dict[str, IngestedFile]] = field(default_factory=OrderedDict)
    most: int = CACHED
    ahead: int = AHEAD
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def get(self, place: tuple[str, int]) -> dict[str, IngestedFile] | None:
        """Return a block that is still there."""
        with self._lock:
            found = self.kept.get(place)
            if found is not None:
                self.kept.move_to_end(place)
            return found

    def put(self, place: tuple[str, int], names: dict[str, IngestedFile]) -> None:
        """Keep a block, and drop the least recently used one."""
        with self._lock:
            self.kept[place] = names
            while len(self.kept) > self.most:
                self.kept.popitem(last=False)


class Cursor:
    """One segment that is asked for names; asked in their order, it is read in one pass."""

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
        """Return what the segment says of a name, or None."""
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
            # One block where a name is looked up; many where one follows the other.
            count = self._cache.ahead if at == self._at + 1 and self._at >= 0 else 1
            some = self._segment.blocks[at : at + count]
            bodies = _read_blocks(self._store, self._pipeline, self._segment, some)
            self._ahead = dict(enumerate(bodies, start=at))
        names = {name.key: name for name in _decoded(self._ahead.pop(at))}
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


def _aged(names: Iterator[IngestedFile], age: int) -> Iterator[tuple[IngestedFile, int]]:
    for name in names:
        yield name, age


def _in_blocks(names: Iterable[IngestedFile], block: int) -> Iterator[list[IngestedFile]]:
    some: list[IngestedFile] = []
    for name in names:
        some.append(name)
        if len(some) == block:
            yield some
            some = []
    if some:
        yield some


def needs_mark(name: IngestedFile) -> bool:
    """Whether a line must say if a file gave a row: a file without bytes gave none.

    The entry of a file stands after that, so a line with an entry always does.
    """
    return name.entry is not None or name.empty != (name.size == 0)


def _line(name: IngestedFile) -> bytes:
    mark = [name.empty] if needs_mark(name) else []
    entry = [] if name.entry is None else [name.entry]
    retracted = [True] if entry and name.retracted else []
    facts = [name.key, name.size, name.etag, *mark, *entry, *retracted]
    return to_json(facts) + b"\n"


def _decoded(body: bytes) -> Iterator[IngestedFile]:
    for line in body.splitlines():
        yield _name_of(line)


def _name_of(line: bytes) -> IngestedFile:
    key, size, etag, *more = json.loads(line)
    return IngestedFile(
        key=key,
        size=size,
        etag=etag,
        empty=more[0] if more else size == 0,
        entry=more[1] if len(more) > 1 else None,
        retracted=len(more) > 2,
    )
