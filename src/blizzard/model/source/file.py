"""Source files as listed, their state in the journal, and byte ranges of them.

There are many of them, and they travel from the driver to Spark's executors, so they are frozen and
pickle fast.

A byte range owns the lines that *start* in it. Its reader begins one byte early, skips the rest of
the previous line, and reads past the end until its last line is complete: every line is read
exactly once, wherever the file is cut.
"""

import copyreg
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from operator import attrgetter
from typing import Any

from blizzard.model.source.form import Form
from lakebed.documents.records import SourceRecord, Unread
from lakebed.types import Codec


@dataclass(frozen=True, slots=True)
class ByteRange:
    """The bytes from `start` up to, not including, `end`."""

    start: int
    end: int

    @property
    def read_from(self) -> int:
        """Return the byte to read from: the one before `start` shows if a line starts there."""
        return max(0, self.start - 1)


def cut(size: int, parts: int, *, start: int = 0) -> tuple[ByteRange, ...]:
    """Divide `size` bytes from `start` on into ranges that cover each byte once."""
    edges = [start + size * number // parts for number in range(parts + 1)]
    return tuple(ByteRange(low, high) for low, high in itertools.pairwise(edges))


def lines_of(
    chunks: Iterable[bytes], part: ByteRange, begins: Callable[[int], None] = lambda _place: None
) -> Iterator[bytes]:
    """Yield the bytes of the lines that start in a range; the chunks begin at `read_from`.

    `begins` is called with the offset of the first line.
    """
    place = part.read_from
    before_first, in_last = part.start > 0, False
    for chunk in chunks:
        piece = chunk
        if before_first:
            newline = piece.find(b"\n")
            place += len(piece) if newline < 0 else newline + 1
            if place >= part.end:
                return  # no line starts in this range
            if newline < 0:
                continue
            piece = piece[newline + 1 :]
            before_first = False
            begins(place)
        if not in_last and place + len(piece) < part.end:
            place += len(piece)
            if piece:
                yield piece
            continue
        # The range ends in this piece: its last line ends at the next newline.
        newline = piece.find(b"\n", 0 if in_last else part.end - 1 - place)
        if newline >= 0:
            yield piece[: newline + 1]
            return
        in_last = True
        yield piece


def without_first_lines(chunks: Iterable[bytes], count: int) -> Iterator[bytes]:
    """Skip the first lines of a file, which earlier batches have read."""
    left = count
    for chunk in chunks:
        piece = chunk
        if left:
            newlines = piece.count(b"\n")
            if newlines < left:
                left -= newlines
                continue
            at = -1
            for _ in range(left):
                at = piece.find(b"\n", at + 1)
            piece, left = piece[at + 1 :], 0
        if piece:
            yield piece


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """A file to read, as listed."""

    source: str
    path: str
    size: int
    etag: str | None
    codec: Codec
    partition_values: Mapping[str, str | None]
    """From its path."""
    modified: datetime
    """The store's modification time."""
    part: ByteRange | None = None
    """The bytes to read of a large plain file that several tasks share."""
    by_content: bool = False
    """Whether to detect the compression from the first bytes, not from the name."""
    skip: int = 0
    """Lines read by earlier batches: the first ones, unless `unread` is set."""
    unread: tuple[Unread, ...] = ()
    """The remaining byte ranges of a partly read plain file; else empty."""
    form: Form = field(default_factory=Form)
    """Its format; in documents each record counts as a line."""
    numbers: tuple[int | None, ...] | None = None
    """The numbers of replayed lines in the original file, None if unknown; None for whole files."""

    @property
    def from_start(self) -> bool:
        """Whether its lines are read from its first byte, which may be a byte order mark.

        The framer of documents has already handled the mark.
        """
        if self.form.is_documents:
            return False
        return not self.skip if self.part is None else self.part.start == 0

    @property
    def records_before(self) -> int | None:
        """Return the records before the first one to read; None if unknown.

        The lines before a later part are not counted yet.
        """
        if self.part is None:
            return self.skip
        if not self.part.start:
            return 0
        first = self.unread[0] if self.unread else None
        return first.lines_before if first and first.start == self.part.start else None

    @property
    def key(self) -> str:
        """Return the unique name of the file in the pipeline."""
        return f"{self.source}:{self.path}"

    @property
    def to_read(self) -> int:
        """Return the bytes to read."""
        return sum(one.end - one.start for one in self.unread) if self.unread else self.size


@dataclass(frozen=True, slots=True, kw_only=True)
class UnfinishedFile:
    """The journal's state of an unfinished source file."""

    record: SourceRecord
    at: datetime
    entry: int | None = None
    """The entry with the record; None before it is written."""
    since: datetime | None = None
    """When the current series of failures began."""
    failed_in: int | None = None
    """The entry with the failure; a later one may only request a retry."""
    read_in: int | None = None
    """The last entry that read lines of it; None if none did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestedFile:
    """A source file that is in the table, identified by the object that was read."""

    key: str
    size: int
    etag: str | None
    empty: bool = False
    """Whether it had no rows, so that reading it again cannot duplicate any."""
    entry: int | None = None
    """The entry that finished it; None if unknown."""
    retracted: bool = False
    """Whether that entry retracted its rows."""

    @property
    def row(self) -> list[Any]:
        """Return the file as a row of a segment."""
        flag = [True] if self.retracted else []
        return [self.key, self.size, self.etag, self.empty, self.entry, *flag]

    @classmethod
    def of(cls, row: Sequence[Any]) -> "IngestedFile":
        """Build the file from a row of a segment."""
        key, size, etag, empty, entry, *flag = row
        return cls(key=key, size=size, etag=etag, empty=empty, entry=entry, retracted=bool(flag))


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """The journal's state of a source file: unfinished, ingested or both."""

    unfinished: UnfinishedFile | None = None
    """Set if it failed or was left partly unread."""
    finished: IngestedFile | None = None
    """Set if a version of it was ingested completely."""
    is_rejected: bool = False
    """Whether its replacement of rows of other files was rejected: it is not read, even with new
    content."""

    def object_of(self, key: str) -> SourceRecord | None:
        """Return the known object of a key as a record without lines; None if unknown."""
        known = self.finished or (self.unfinished.record if self.unfinished else None)
        source, _, path = key.partition(":")
        if known is None:
            return None
        return SourceRecord(source=source, path=path, size=known.size, etag=known.etag)


UNKNOWN = Recorded()


_SLOTS: dict[type, list[Callable[[object, object], None]]] = {}


def _unpickled(kind: type[object], values: Sequence[object]) -> object:
    """Create an instance from the values of its slots."""
    made = object.__new__(kind)
    for put, value in zip(_SLOTS[kind], values, strict=True):
        put(made, value)
    return made


def _pickle_by_slots(kind: Any) -> None:  # noqa: ANN401 - any class with slots
    """Pickle a class by the values of its slots.

    Each of many small files has an instance: pickling by dataclass fields takes twice as long, a
    quarter of the time of a batch.
    """
    names = kind.__slots__
    values = attrgetter(*names)
    _SLOTS[kind] = [getattr(kind, name).__set__ for name in names]
    copyreg.pickle(kind, lambda one: (_unpickled, (kind, values(one))))


for _kind in (SourceFile, SourceRecord):
    _pickle_by_slots(_kind)
