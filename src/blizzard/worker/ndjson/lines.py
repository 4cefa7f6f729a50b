"""Physical lines: decompressed bytes cut into blocks at line ends, and what a bad line is.

A line is what stands between two newlines; the last one needs no newline at its end. Line numbers
count every physical line of the file from 1, blank ones too.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from blizzard.model.limits import MAX_LINE_BYTES
from lakebed.errors import LakeError, Whose

BLOCK_BYTES = 1 << 20


BLANK = b" \t\r"
SEPARATOR = b"\x1e"
"""What RFC 7464 puts before each JSON text."""
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
SHOWN_CHARACTERS = 60
FEW_BYTES = 64 * 1024

_NEWLINE = ord("\n")
_AT_LINE_START = re.compile(rb"^\x1e", re.MULTILINE)


class BadLine(LakeError):
    """A line that cannot be taken whole: `code` says why, `line` and `field` say where.

    The message holds nothing of what stands in the line: it may be a secret, and messages go into
    logs, the journal and the dead letter queue. `value` is the beginning of what was found, quoted,
    for those who asked to see it.
    """

    code: str  # type: ignore[misc]  # each bad line has its own reason
    whose = Whose.USER

    def __init__(
        self,
        message: str,
        *,
        code: str,
        line: int,
        field: str | None = None,
        value: str | None = None,
    ) -> None:
        facts: dict[str, object] = {"line": line}
        if field is not None:
            facts["field"] = shown(field)
        super().__init__(message, **facts)
        self.code = code
        self.line = line
        self.field = field
        self.value = value


@dataclass(frozen=True, slots=True)
class Place:
    """Where in the decompressed text of a file something is; the first line is 1."""

    offset: int
    line: int


class BrokenDocument(BadLine):
    """A document whose records cannot be told apart, or that has none where they should be."""

    def __init__(self, message: str, *, code: str, line: int, place: Place) -> None:
        super().__init__(message, code=code, line=line)
        self.place = place


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Whole lines that follow each other in a file."""

    data: bytes
    first_line: int
    lines: int
    filtered: int = 0
    """Lines that a rule passes over; they are blank in `data`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """The rows of some lines; there are always `lines - blank - filtered` of them.

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
    rowless: npt.NDArray[np.int64] | None = field(default=None, compare=False)
    """The places of the lines that gave no row, from 0; None where every line gave one, or where
    they are unknown."""


def blocks(
    chunks: Iterable[bytes],
    *,
    max_line_bytes: int = MAX_LINE_BYTES,
    max_lines: int = BLOCK_BYTES,
    from_start: bool = True,
) -> Iterator[Block]:
    """Cut a file at line ends into blocks of about 1 MiB; hold no more than one line beyond that.

    `max_lines` keeps a block of very short lines from becoming a batch of very many cells. A byte
    order mark is skipped at the start of the file and nowhere else: not where the chunks begin
    further on, so that a line means the same however the file is cut. A record separator is white
    space at the start of a line, and nowhere else.
    """
    parts: list[bytes | memoryview] = []
    raised: list[BadLine] = []
    chunks = _until_bad(chunks, raised)
    held = 0  # bytes in parts
    unfinished = 0  # those of them that belong to a line without an end so far
    next_line = 1
    for piece in _pieces(_without_mark(chunks) if from_start else chunks):
        parts.append(piece)
        held += len(piece)
        newline = piece.rfind(b"\n")
        unfinished = unfinished + len(piece) if newline < 0 else len(piece) - newline - 1
        too_long = unfinished > max_line_bytes
        if too_long and newline < 0:
            parts = [b"".join(parts)[: held - unfinished]]
        elif newline >= 0 and (too_long or held >= BLOCK_BYTES):
            parts[-1] = memoryview(piece)[: newline + 1]
        else:
            continue
        for block in _split(b"".join(parts), next_line, max_lines):
            yield block
            next_line += block.lines
        if too_long:
            raise line_too_long(next_line, max_line_bytes)
        parts, held = [memoryview(piece)[newline + 1 :]], unfinished
    rest = b"".join(parts)
    yield from _split(rest[: held - unfinished] if raised else rest, next_line, max_lines)
    for bad in raised:
        raise bad


def line_too_long(line: int, limit: int) -> BadLine:
    """Say that a line is longer than any line may be."""
    return BadLine(
        f"found a line longer than {limit:,} bytes, the longest that is read",
        code="line_too_long",
        line=line,
    )


def shown(value: str | bytes) -> str:
    """Quote the beginning of a value so that it can be printed anywhere."""
    text = repr(value[: SHOWN_CHARACTERS + 1])
    return text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 1] + "…"


def _without_mark(chunks: Iterable[bytes]) -> Iterator[bytes]:
    rest = iter(chunks)
    head = b""
    while len(head) < len(BYTE_ORDER_MARK) and (chunk := next(rest, None)) is not None:
        head += chunk
    yield head.removeprefix(BYTE_ORDER_MARK)
    yield from rest


def _until_bad(chunks: Iterable[bytes], raised: list[BadLine]) -> Iterator[bytes]:
    """Pass chunks on up to a bad record in them, which is to be told of after those before it."""
    try:
        yield from chunks
    except BadLine as bad:
        raised.append(bad)


def _pieces(chunks: Iterable[bytes]) -> Iterator[bytes]:
    for chunk in chunks:
        for start in range(0, len(chunk), BLOCK_BYTES):
            yield chunk[start : start + BLOCK_BYTES]


def _split(data: bytes, first_line: int, max_lines: int) -> Iterator[Block]:
    if SEPARATOR in data:
        data = _AT_LINE_START.sub(b" ", data)
    lines = _newlines(data) + (data != b"" and not data.endswith(b"\n"))
    start = 0
    while lines > max_lines:
        cut = _after_lines(data, start, max_lines)
        yield Block(data=data[start:cut], first_line=first_line, lines=max_lines)
        start, first_line, lines = cut, first_line + max_lines, lines - max_lines
    if lines:
        yield Block(data=data[start:], first_line=first_line, lines=lines)


def _newlines(data: bytes) -> int:
    if len(data) <= FEW_BYTES:
        # Vector code lets other threads run, and so many small files would wait for them each time.
        return data.count(b"\n")
    return int(np.count_nonzero(np.frombuffer(data, np.uint8) == _NEWLINE))


def _after_lines(data: bytes, start: int, lines: int) -> int:
    for _ in range(lines):
        start = data.index(b"\n", start) + 1
    return start
