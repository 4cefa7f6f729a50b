"""Source files: one to read, as it was listed, and what the journal says of it.

They are many, and cross from the driver to Spark's executors: they are frozen and pickle fast.
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
        """Return the byte to begin at: the one before shows whether a line starts at `start`."""
        return max(0, self.start - 1)


def cut(size: int, parts: int, *, start: int = 0) -> tuple[ByteRange, ...]:
    """Cut a file, or some bytes of it from an offset on, into ranges that cover each byte once."""
    edges = [start + size * number // parts for number in range(parts + 1)]
    return tuple(ByteRange(low, high) for low, high in itertools.pairwise(edges))


def lines_of(
    chunks: Iterable[bytes], part: ByteRange, begins: Callable[[int], None] = lambda _place: None
) -> Iterator[bytes]:
    """Yield the bytes of the lines that start in a range; the chunks begin at `read_from`.

    Before the first of them, `begins` is called with the byte of the file at which it starts.
    """
    place = part.read_from
    before_first, in_last = part.start > 0, False
    for chunk in chunks:
        piece = chunk
        if before_first:
            newline = piece.find(b"\n")
            place += len(piece) if newline < 0 else newline + 1
            if place >= part.end:
                return  # no line starts in this range, or none before the next one's
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
        # The range ends in this piece: its last line ends at the next newline from there on.
        newline = piece.find(b"\n", 0 if in_last else part.end - 1 - place)
        if newline >= 0:
            yield piece[: newline + 1]
            return
        in_last = True
        yield piece


def without_first_lines(chunks: Iterable[bytes], count: int) -> Iterator[bytes]:
    """Leave out the first lines of a file, which an earlier batch has read."""
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
    """One file to read, as it was listed."""

    source: str
    path: str
    size: int
    etag: str | None
    codec: Codec
    partition_values: Mapping[str, str | None]
    """What its path says."""
    modified: datetime
    """When the store says it was written."""
    part: ByteRange | None = None
    """The bytes to read of a large plain file that several tasks share."""
    by_content: bool = False
    """Whether its first bytes are asked how it is compressed; its name is only a guess then."""
    skip: int = 0
    """Lines that earlier batches have read: the first ones, unless `unread` says otherwise."""
    unread: tuple[Unread, ...] = ()
    """The bytes of a plain file that earlier batches have left; nothing where that is all of it,
    or where the first lines are to be skipped."""
    form: Form = field(default_factory=Form)
    """What it is made of; of documents each record counts as a line."""
    numbers: tuple[int | None, ...] | None = None
    """The number of each line, where these are only some lines of the file, read again; None of a
    line means unknown."""

    @property
    def from_start(self) -> bool:
        """Whether its lines are read from its first byte on, not from a later line.

        The lines of documents are not bytes of the file: what cuts them has seen its start.
        """
        if self.form.is_documents:
            return False
        return not self.skip if self.part is None else self.part.start == 0

    @property
    def records_before(self) -> int | None:
        """Return how many records come before the first that is read; None where unknown.

        In front of a part that is not the first to be read, the lines are not counted yet.
        """
        if self.part is None:
            return self.skip
        if not self.part.start:
            return 0
        first = self.unread[0] if self.unread else None
        return first.lines_before if first and first.start == self.part.start else None

    @property
    def key(self) -> str:
        """Name the file among all sources of the pipeline."""
        return f"{self.source}:{self.path}"

    @property
    def modified_ms(self) -> int:
        """Return when the store says that it was written, as the journal records it."""
        return round(self.modified.timestamp() * 1000)

    @property
    def to_read(self) -> int:
        """Count the bytes that are to be read of it."""
        return sum(one.end - one.start for one in self.unread) if self.unread else self.size


@dataclass(frozen=True, slots=True, kw_only=True)
class UnfinishedFile:
    """What the journal says of a source file."""

    record: SourceRecord
    at: datetime
    entry: int | None = None
    """The entry that says so; None before it is written."""
    since: datetime | None = None
    """When it failed first, if it has failed ever since."""
    failed_in: int | None = None
    """The entry that says how it failed: a later one may only ask for it to be read again."""
    read_in: int | None = None
    """The last entry that read lines of it; None where none did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestedFile:
    """A source file that is in the table, as the object it was when it was read."""

    key: str
    size: int
    etag: str | None
    empty: bool = False
    """Whether it gave no row, so that nothing of it can come into the table a second time."""
    entry: int | None = None
    """The entry with which it was done; None if unknown."""
    retracted: bool = False
    """Whether that entry has taken its rows out of the table."""

    @property
    def row(self) -> list[Any]:
        """Return the file as a line of a segment."""
        flag = [True] if self.retracted else []
        return [self.key, self.size, self.etag, self.empty, self.entry, *flag]

    @classmethod
    def of(cls, row: Sequence[Any]) -> "IngestedFile":
        """Return the file of a line of a segment."""
        key, size, etag, empty, entry, *flag = row
        return cls(key=key, size=size, etag=etag, empty=empty, entry=entry, retracted=bool(flag))


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """What the journal says of a source file: how it was left, and what of it is in the table."""

    unfinished: UnfinishedFile | None = None
    """It failed, or a stop left a part of it unread."""
    finished: IngestedFile | None = None
    """All of it is in the table, as the object it was then."""
    is_rejected: bool = False
    """Whether it was to replace rows of other files, and that was rejected: it is not read by
    itself, even with new content."""

    def object_of(self, key: str) -> SourceRecord | None:
        """Return the object that is known under a key, without any line; None where none is."""
        known = self.finished or (self.unfinished.record if self.unfinished else None)
        source, _, path = key.partition(":")
        if known is None:
            return None
        return SourceRecord(source=source, path=path, size=known.size, etag=known.etag)


UNKNOWN = Before()


_SLOTS: dict[type, list[Callable[[object, object], None]]] = {}


def _unpickled(kind: type[object], values: Sequence[object]) -> object:
    """Return an instance with these values in its slots."""
    made = object.__new__(kind)
    for put, value in zip(_SLOTS[kind], values, strict=True):
        put(made, value)
    return made


def _pickle_by_slots(kind: Any) -> None:  # noqa: ANN401 - any class with slots
    """Pickle a class as the values in its slots.

    There is an instance for each of many small files: by its fields, which dataclass looks up for
    each of them, pickling takes twice as long, and a quarter of the time of a batch.
    """
    names = kind.__slots__
    values = attrgetter(*names)
    _SLOTS[kind] = [getattr(kind, name).__set__ for name in names]
    copyreg.pickle(kind, lambda one: (_unpickled, (kind, values(one))))


for _kind in (SourceFile, SourceRecord):
    _pickle_by_slots(_kind)
