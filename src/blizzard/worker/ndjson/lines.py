"""Physical lines: blocks of decompressed bytes cut at line ends, bad lines and decoded rows.

A line ends with a newline; the last one may lack it. Line numbers count every physical line of the
file from 1, including blank ones.
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

FEW_BYTES = 64 * 1024
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
SEPARATOR = b"\x1e"
"""The record separator of RFC 7464, before each JSON text."""
PADDING = bytes(32)
"""The scan may read one vector step past the end."""


def newlines_in(text: bytes) -> int:
    """Count the newlines."""
    if len(text) <= FEW_BYTES:
        # Compiled code releases the GIL, and waiting for it again is costly for many small files.
        return text.count(b"\n")
    # Importing numba takes a second, so only code that reads rows does.
    from blizzard.worker.ndjson.compiled.syntax import count_newlines  # noqa: PLC0415

    return int(count_newlines(np.frombuffer(text, np.uint8)))


def without_mark(chunks: Iterable[bytes]) -> tuple[int, Iterator[bytes]]:
    """Strip a byte order mark at the start; return its length and the rest."""
    rest = iter(chunks)
    head = b""
    while len(head) < len(BYTE_ORDER_MARK) and (chunk := next(rest, None)) is not None:
        head += chunk
    text = head.removeprefix(BYTE_ORDER_MARK)
    return len(head) - len(text), chain([text], rest)


def ended(lines: bytes) -> bytes:
    """Append a newline if the last line lacks it."""
    return lines if not lines or lines.endswith(b"\n") else lines + b"\n"


BLANK = b" \t\r"
SHOWN_CHARACTERS = 60
TOO_LONG = "line_too_long"

_NEWLINE = ord("\n")
_AT_LINE_START = re.compile(rb"^(?:[ \t\r]*\x1e)+", re.MULTILINE)


class BadLine(LakeError, whose=Whose.USER):
    """A line that cannot be decoded, with the reason (`code`) and the place (`line`, `field`).

    The message quotes nothing of the line, which may be secret: messages go into logs, the journal
    and the dead letter queue. `value` is the quoted beginning of the bad value, shown only if
    `show_values` is set.
    """

    code: str  # type: ignore[misc]  # set per instance

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
    """A quarantined line: its original bytes, its position and its error.

    As in a `BadLine`, the message quotes nothing of the line.
    """

    line: int
    offset: int | None
    """The offset of the line in the decoded text, including a byte order mark; None if unknown."""
    raw: bytes
    """The line without its newline."""
    code: str
    message: str
    field: str | None = None
    """The path of the bad value."""
    expected: str | None = None
    found: str | None = None

    @property
    def size(self) -> int:
        """The size of the line, without its newline."""
        return len(self.raw)


def bad_record(bad: BadLine, raw: bytes, *, offset: int | None) -> BadRecord:
    """Return the record of a bad line."""
    return BadRecord(
        line=bad.line,
        offset=offset,
        raw=raw,
        code=bad.code,
        message=bad.message,
        field=bad.field,
        expected=bad.expected,
        found=bad.found,
    )


@dataclass(frozen=True, slots=True)
class TextPosition:
    """A position in the decompressed text of a file; the first line is 1."""

    offset: int
    line: int


class BrokenDocument(BadLine):
    """A document whose records cannot be separated or found."""

    def __init__(self, message: str, *, code: str, line: int, place: TextPosition) -> None:
        super().__init__(message, code=code, line=line)
        self.place = place


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Consecutive whole lines of a file."""

    text: bytes
    """The lines, then padding."""
    behind: int = 0
    """Bytes of padding, which follow a newline. A scan may read them; having them here saves a copy
    of the lines."""
    first_line: int
    lines: int
    filtered: int = 0
    """Lines skipped by a rule; they are blank in `text`."""
    offset: int = 0
    """The offset of the first line in the decoded text."""
    as_written: bytes | None = None
    """The original lines, if `text` differs from them."""
    bad: tuple[BadRecord, ...] = ()
    """Lines that are blanked in `text` because they are bad."""

    @property
    def data(self) -> bytes:
        """The lines without padding; a copy if there is padding."""
        return self.text[: self.end] if self.behind else self.text

    @property
    def end(self) -> int:
        """The end of the last line in the text."""
        return len(self.text) - self.behind

    def changed(self, lines: bytes, **facts: Any) -> "Block":  # noqa: ANN401 - those of `replace`
        """Return the block with its lines replaced, and other facts."""
        return replace(self, text=lines, behind=0, **facts)

    def raw(self, start: int, end: int) -> bytes:
        """Return a slice of the original lines."""
        return (self.text if self.as_written is None else self.as_written)[start:end]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """The rows of some lines: always `lines - blank - filtered - len(bad)`.

    `dropped` and `rescued` count the non-null values without a column by path.
    """

    batch: pa.RecordBatch
    size: int
    """The approximate memory of the rows; asking Arrow for the exact size is slow."""
    lines: int
    blank: int
    dropped: Mapping[str, int]
    rescued: Mapping[str, int] = field(default_factory=dict)
    filtered: int = 0
    """Lines skipped by a rule."""
    taken: int = 0
    """The size of the lines, without a byte order mark."""
    bad: tuple[BadRecord, ...] = ()
    """Quarantined lines in order; empty if a bad line fails its file."""
    rowless: npt.NDArray[np.int64] | None = field(default=None, compare=False)
    """Indexes of the lines without a row; None if every line has one, or if unknown."""


def blocks(
    chunks: Iterable[bytes],
    *,
    max_line_bytes: int = MAX_LINE_BYTES,
    max_lines: int = BLOCK_BYTES,
    block_bytes: int = BLOCK_BYTES,
    from_start: bool = True,
) -> Iterator[Block]:
    """Cut a file at line ends into blocks of about `block_bytes`, buffering at most one more line.

    `max_lines` bounds the cells of a batch of very short lines. A byte order mark is skipped only
    if the chunks begin `from_start`, so that a line means the same however the file is cut. A
    record separator counts as white space only at the start of a line.

    A line longer than `max_line_bytes`, and a `BadLine` raised by the chunks, always raise after
    the lines before them: no records can be separated after it.
    """
    raised: list[BadLine] = []
    chunks = _until_bad(chunks, raised)
    place = _Next()
    if from_start:
        place.offset, chunks = without_mark(chunks)
    parts: list[bytes | memoryview] = []
    held = 0  # bytes in parts
    unfinished = 0  # those of an incomplete last line
    pieces = (
        chunk[start : start + block_bytes]
        for chunk in chunks
        for start in range(0, len(chunk), block_bytes)
    )
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
        # The scan reads past the end, so padding is appended while the lines are copied anyway.
        text = b"".join([*parts, PADDING])
        yield from place.after(_split(text, len(PADDING), place, max_lines))
        parts, held = [begun], unfinished
        if too_long:
            raise line_too_long(place.line, max_line_bytes)
    rest = b"".join(parts)
    yield from _split(rest[: held - unfinished] if raised else rest, 0, place, max_lines)
    for bad in raised:
        raise bad


def line_too_long(line: int, limit: int) -> BadLine:
    """Return the error of a line that exceeds the limit."""
    found = f"a line longer than {limit:,} bytes"
    return BadLine(
        f"found {found}, which is the limit",
        code=TOO_LONG,
        line=line,
        found=found,
        expected=f"at most {limit:,} bytes",
    )


@dataclass(slots=True)
class _Next:
    """The position of the next line of a file."""

    line: int = 1
    offset: int = 0

    def after(self, found: Iterable[Block]) -> Iterator[Block]:
        """Yield blocks and advance past them."""
        for block in found:
            yield block
            self.line, self.offset = self.line + block.lines, self.offset + block.end


def shown(value: str | bytes) -> str:
    """Quote the beginning of a value so that it can be printed anywhere."""
    text = repr(value[: SHOWN_CHARACTERS + 1])
    return text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 1] + "…"


def _until_bad(chunks: Iterable[bytes], raised: list[BadLine]) -> Iterator[bytes]:
    """Yield chunks up to a `BadLine`, which is stored to be raised after the lines before it."""
    try:
        yield from chunks
    except BadLine as bad:
        raised.append(bad)


def _split(text: bytes, behind: int, place: _Next, max_lines: int) -> Iterator[Block]:
    """Cut lines into blocks of at most `max_lines`; `behind` is the padding after them."""
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
    """The rows of several blocks, decoded at once: for small files, calls cost more than bytes."""

    blocks: Sequence[Block]
    rows: Sequence[int]
    """The rows of each block; its other lines are blank."""
    batch: pa.RecordBatch
    size: int
    """The memory of the rows."""
    left_out: Mapping[int, Mapping[str, int]]
    """Non-null values without a column, by block and path."""
    rescues: bool
    """Whether those are in `_rescued`."""

    @property
    def lines(self) -> list[int]:
        """Return the number of lines of each block."""
        return [block.lines for block in self.blocks]

    @property
    def is_plain(self) -> bool:
        """Whether each line is a row without leftovers."""
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
                taken=block.end,
            )


@dataclass(frozen=True, slots=True)
class CombinedFiles(Generic[Key]):
    """The rows of whole files of one block each; every line is a row without leftovers."""

    keys: Sequence[Key]
    read: CombinedRows

    def each(self) -> Iterator[tuple[Key, Iterator[Decoded]]]:
        """Yield the rows of each file separately."""
        for key, decoded in zip(self.keys, self.read.decoded(), strict=True):
            yield key, iter((decoded,))
