"""Physical lines: decompressed bytes cut into blocks at line ends, and what a bad line is.

A line is what stands between two newlines; the last one needs no newline at its end. Line numbers
count every physical line of the file from 1, blank ones too.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, chain
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from blizzard.model.settings import BLOCK_BYTES, MAX_LINE_BYTES
from lakebed.errors import LakeError, Whose
from lakebed.types import OnBadRecord

FEW_BYTES = 64 * 1024
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
SEPARATOR = b"\x1e"
"""What RFC 7464 puts before each JSON text."""
PADDING = bytes(32)
"""What the scan may read past the end, in one step."""


def newlines_in(text: bytes) -> int:
    """Count the newlines."""
    if len(text) <= FEW_BYTES:
        # Compiled code lets other threads run, and many small files would wait for them each time.
        return text.count(b"\n")
    # Importing numba takes a second, so only code that reads rows does.
    from blizzard.worker.ndjson.compiled.syntax import count_newlines  # noqa: PLC0415

    return int(count_newlines(np.frombuffer(text, np.uint8)))


def without_mark(chunks: Iterable[bytes]) -> tuple[int, Iterator[bytes]]:
    """Return how long a byte order mark at the start is, and what comes after it."""
    rest = iter(chunks)
    head = b""
    while len(head) < len(BYTE_ORDER_MARK) and (chunk := next(rest, None)) is not None:
        head += chunk
    text = head.removeprefix(BYTE_ORDER_MARK)
    return len(head) - len(text), chain([text], rest)


def ended(lines: bytes) -> bytes:
    """Return lines with a newline after the last one, too."""
    return lines if not lines or lines.endswith(b"\n") else lines + b"\n"


BLANK = b" \t\r"
SHOWN_CHARACTERS = 60
RAW_BYTES = 64 * 1024
"""What is kept of a line that is too long to be read."""
TOO_LONG = "line_too_long"

_NEWLINE = ord("\n")
_AT_LINE_START = re.compile(rb"^(?:[ \t\r]*\x1e)+", re.MULTILINE)


class BadLine(LakeError, whose=Whose.USER):
    """A line that cannot be taken whole: `code` says why, `line` and `field` say where.

    The message holds nothing of the line's content: it may be a secret, and messages go into
    logs, the journal and the dead letter queue. `value` is the beginning of what was found, quoted,
    for those who asked to see it.
    """

    code: str  # type: ignore[misc]  # each bad line has its own reason

    def __init__(
        self,
        message: str,
        *,
        code: str,
        line: int,
        field: str | None = None,
        value: str | None = None,
        found: str | None = None,
        expected: str | None = None,
    ) -> None:
        facts: dict[str, object] = {"line": line}
        if field is not None:
            facts["field"] = shown(field)
        super().__init__(message, **facts)
        self.code = code
        self.line = line
        self.field = field
        self.value = value
        self.found = found
        self.expected = expected


@dataclass(frozen=True, slots=True, kw_only=True)
class BadRecord:
    """A quarantined line: its bytes as in the file, where, and what is wrong with it.

    The reason holds nothing of the line's content, as that of a `BadLine`; `raw` is the line.
    """

    line: int
    offset: int | None
    """The bytes before the line in the text that was handed in, a byte order mark included; None
    if unknown."""
    raw: bytes
    """The line without its newline; of one that is too long to be read, the first `RAW_BYTES`."""
    size: int
    """The bytes of the whole line, without its newline."""
    code: str
    message: str
    field: str | None = None
    """The path of the value that does not fit."""
    expected: str | None = None
    found: str | None = None


def bad_record(
    bad: BadLine, raw: bytes, *, offset: int | None, size: int | None = None
) -> BadRecord:
    """Return the record of a bad line; `raw` may be the beginning of it, then `size` is its own."""
    return BadRecord(
        line=bad.line,
        offset=offset,
        raw=raw[:RAW_BYTES] if bad.code == TOO_LONG else raw,
        size=len(raw) if size is None else size,
        code=bad.code,
        message=bad.message,
        field=bad.field,
        expected=bad.expected,
        found=bad.found,
    )


@dataclass(frozen=True, slots=True)
class TextPosition:
    """Where in the decompressed text of a file something is; the first line is 1."""

    offset: int
    line: int


class BrokenDocument(BadLine):
    """A document whose records cannot be separated, or that has none where they should be."""

    def __init__(self, message: str, *, code: str, line: int, place: TextPosition) -> None:
        super().__init__(message, code=code, line=line)
        self.place = place


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Whole lines that follow each other in a file."""

    text: bytes
    """The lines, and behind them what belongs to none of them."""
    behind: int = 0
    """How many bytes that is: a scan may read so far past the end. Before them there is a newline.
    To have them from the start saves a copy of all of the lines."""
    first_line: int
    lines: int
    filtered: int = 0
    """Lines that a rule passes over; they are blank in `text`."""
    offset: int = 0
    """The bytes before its first line in the text that was handed in."""
    as_written: bytes | None = None
    """The lines as they stand in the file, byte for byte, where `text` differs from them."""
    bad: tuple[BadRecord, ...] = ()
    """Lines too long to be held, which are blank in `text`."""
    not_held: int = 0
    """The bytes of such lines that are not in `text`."""

    @property
    def data(self) -> bytes:
        """The lines alone: a copy of them, where there is something behind them."""
        return self.text[: self.end] if self.behind else self.text

    @property
    def end(self) -> int:
        """Where in the text its last line ends."""
        return len(self.text) - self.behind

    @property
    def size(self) -> int:
        """The bytes of its lines in the file."""
        return self.end + self.not_held

    def changed(self, lines: bytes, **facts: Any) -> "Block":  # noqa: ANN401 - those of `replace`
        """Return the block with other lines in the place of its own, and other facts."""
        return replace(self, text=lines, behind=0, **facts)

    def raw(self, start: int, end: int) -> bytes:
        """Return a piece of it as written in the file."""
        return (self.text if self.as_written is None else self.as_written)[start:end]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """The rows of some lines; there are always `lines - blank - filtered - len(bad)` of them.

    `dropped` and `rescued` count the values, other than null, that no column takes, by their paths:
    those that are left out, and those that are in the column for them.
    """

    batch: pa.RecordBatch
    size: int
    """The memory that the rows take, about: asking Arrow takes longer than writing some of them."""
    lines: int
    blank: int
    dropped: Mapping[str, int]
    rescued: Mapping[str, int] = field(default_factory=dict)
    filtered: int = 0
    """Lines that a rule passes over."""
    taken: int = 0
    """The bytes of the lines, a byte order mark before the first of them left out."""
    bad: tuple[BadRecord, ...] = ()
    """Lines that are set aside, in their order; none where a bad line fails its file."""
    rowless: npt.NDArray[np.int64] | None = field(default=None, compare=False)
    """The places of the lines that gave no row, from 0; None where every line gave one, or where
    they are unknown."""


def blocks(
    chunks: Iterable[bytes],
    *,
    max_line_bytes: int = MAX_LINE_BYTES,
    max_lines: int = BLOCK_BYTES,
    block_bytes: int = BLOCK_BYTES,
    from_start: bool = True,
    on_bad_record: OnBadRecord = OnBadRecord.FAIL,
) -> Iterator[Block]:
    """Cut a file at line ends into blocks of `block_bytes`, about, and hold one line more at most.

    `max_lines` keeps a block of very short lines from becoming a batch of very many cells. A byte
    order mark is skipped at the start of the file and nowhere else: not where the chunks begin
    further on, so that a line means the same however the file is cut. A record separator is white
    space at the start of a line, and nowhere else.

    A line longer than `max_line_bytes` raises `BadLine`; in quarantine it is the one line of its
    block, and the beginning of it is all that is held. A `BadLine` of the chunks is raised either
    way: after it no records can be separated.
    """
    raised: list[BadLine] = []
    chunks = _until_bad(chunks, raised)
    place = _Next()
    if from_start:
        place.offset, chunks = without_mark(chunks)
    parts: list[bytes | memoryview] = []
    held = 0  # bytes in parts
    unfinished = 0  # those of them that belong to a line without an end so far
    pieces = _Pieces(chunks, block_bytes)
    for piece in pieces:
        parts.append(piece)
        held += len(piece)
        newline = piece.rfind(b"\n")
        unfinished = unfinished + len(piece) if newline < 0 else len(piece) - newline - 1
        too_long = unfinished > max_line_bytes
        if not too_long and (newline < 0 or held < block_bytes):
            continue
        begun: bytes | memoryview
        if newline < 0:
            joined = b"".join(parts)
            parts, begun = [joined[: held - unfinished]], joined[held - unfinished :]
        else:
            parts[-1], begun = memoryview(piece)[: newline + 1], memoryview(piece)[newline + 1 :]
        # The scan reads some way past the end; what it reads there is put there while it is copied.
        text = b"".join([*parts, PADDING])
        yield from place.after(_split(text, len(PADDING), place, max_lines))
        parts, held = [begun], unfinished
        if too_long and on_bad_record is OnBadRecord.FAIL:
            raise line_too_long(place.line, max_line_bytes)
        if too_long:
            long = _Long(bytes(begun[:RAW_BYTES]), len(begun))
            long.take(pieces)
            parts, held, unfinished = [], 0, 0
            if long.is_whole or not raised:
                yield from place.after([long.block(place, max_line_bytes)])
    rest = b"".join(parts)
    yield from _split(rest[: held - unfinished] if raised else rest, 0, place, max_lines)
    for bad in raised:
        raise bad


def line_too_long(line: int, limit: int) -> BadLine:
    """Return the error that a line is longer than any line may be."""
    found = f"a line longer than {limit:,} bytes"
    return BadLine(
        f"found {found}, the longest that is read",
        code=TOO_LONG,
        line=line,
        found=found,
        expected=f"at most {limit:,} bytes",
    )


@dataclass(slots=True)
class _Next:
    """Where the next line of a file is."""

    line: int = 1
    offset: int = 0

    def after(self, found: Iterable[Block]) -> Iterator[Block]:
        """Pass blocks on; the next line is the one after them."""
        for block in found:
            yield block
            self.line, self.offset = self.line + block.lines, self.offset + block.size


@dataclass(slots=True)
class _Long:
    """A line that is too long to be held: its beginning, and how long it is."""

    begun: bytes
    size: int
    """Its bytes, in the end with its newline."""
    is_whole: bool = False

    def take(self, pieces: "_Pieces") -> None:
        """Take the rest of the line, its newline included."""
        for piece in pieces:
            newline = piece.find(b"\n")
            self.is_whole = newline >= 0
            end = newline if self.is_whole else len(piece)
            self.begun += piece[: min(end, RAW_BYTES - len(self.begun))]
            self.size += end + self.is_whole
            if self.is_whole:
                pieces.put_back(piece[end + 1 :])
                return

    def block(self, place: _Next, limit: int) -> Block:
        """Return the block of this one line, which is blank in it."""
        text = b" \n" if self.is_whole else b" "
        size = self.size - self.is_whole
        bad = bad_record(
            line_too_long(place.line, limit), self.begun, offset=place.offset, size=size
        )
        return Block(
            text=text,
            first_line=place.line,
            lines=1,
            offset=place.offset,
            bad=(bad,),
            not_held=self.size - len(text),
        )


def shown(value: str | bytes) -> str:
    """Quote the beginning of a value so that it can be printed anywhere."""
    text = repr(value[: SHOWN_CHARACTERS + 1])
    return text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 1] + "…"


def _until_bad(chunks: Iterable[bytes], raised: list[BadLine]) -> Iterator[bytes]:
    """Pass chunks on up to a bad record in them, which is reported after those before it."""
    try:
        yield from chunks
    except BadLine as bad:
        raised.append(bad)


class _Pieces(Iterator[bytes]):
    """The bytes of chunks, no more than those of a block at a time."""

    def __init__(self, chunks: Iterable[bytes], block_bytes: int) -> None:
        self._pieces = (
            chunk[start : start + block_bytes]
            for chunk in chunks
            for start in range(0, len(chunk), block_bytes)
        )
        self._again: bytes | None = None

    def __next__(self) -> bytes:
        """Return the piece that was put back, or the next one."""
        again, self._again = self._again, None
        return next(self._pieces) if again is None else again

    def put_back(self, piece: bytes) -> None:
        """Return this piece next."""
        self._again = piece


def _split(text: bytes, behind: int, place: _Next, max_lines: int) -> Iterator[Block]:
    """Cut lines into blocks of no more than so many; `behind` them there may be other bytes."""
    written = text
    if SEPARATOR in text:
        text = _AT_LINE_START.sub(lambda found: b" " * len(found[0]), text)
    first_line, start, end = place.line, 0, len(text) - behind
    lines = newlines_in(text) + (end > 0 and text[end - 1] != _NEWLINE)
    while lines:
        some = min(lines, max_lines)
        cut = end if some == lines else _after_lines(text, start, some)
        is_all = not start and cut == end
        yield Block(
            text=text if is_all else text[start:cut],
            behind=behind if is_all else 0,
            first_line=first_line,
            lines=some,
            offset=place.offset + start,
            as_written=None if written is text else written[start:cut],
        )
        start, first_line, lines = cut, first_line + some, lines - some


def _after_lines(data: bytes, start: int, lines: int) -> int:
    for _ in range(lines):
        start = data.index(b"\n", start) + 1
    return start


Key = TypeVar("Key")


@dataclass(frozen=True, slots=True, kw_only=True)
class CombinedRows:
    """The rows of several blocks; those of each are made a batch only where they are asked for."""

    blocks: Sequence[Block]
    rows: Sequence[int]
    """How many lines of each block gave a row; the others are blank."""
    batch: pa.RecordBatch
    size: int
    """The memory that the rows take."""
    left_out: Mapping[int, Mapping[str, int]]
    """The values, other than null, that no column takes, of the blocks that have some."""
    rescues: bool
    """Whether those are in the column for them."""

    @property
    def lines(self) -> list[int]:
        """Return how many lines each block has."""
        return [block.lines for block in self.blocks]

    @property
    def is_plain(self) -> bool:
        """Whether each line is a row, and nothing of it was left out."""
        return not self.left_out and self.rows == self.lines

    def decoded(self) -> Iterator[Decoded]:
        """Yield the rows of each block."""
        size_of_row = self.size / max(1, self.batch.num_rows)
        blocks = zip(self.blocks, self.rows, accumulate(self.rows), strict=True)
        for number, (block, rows, end) in enumerate(blocks):
            left_out = self.left_out.get(number, {})
            yield Decoded(
                batch=self.batch.slice(end - rows, rows),
                size=round(rows * size_of_row),
                lines=block.lines,
                blank=block.lines - rows,
                dropped={} if self.rescues else left_out,
                rescued=left_out if self.rescues else {},
                taken=block.size,
            )


@dataclass(frozen=True, slots=True)
class CombinedFiles(Generic[Key]):
    """The rows of whole files of one block each: every line is one, and nothing was left out."""

    keys: Sequence[Key]
    read: CombinedRows

    def each(self) -> Iterator[tuple[Key, Iterator[Decoded]]]:
        """Yield the rows of each file by themselves."""
        for key, decoded in zip(self.keys, self.read.decoded(), strict=True):
            yield key, iter((decoded,))
