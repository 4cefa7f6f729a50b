"""Physical lines: decompressed bytes cut into blocks at line ends, and what a bad line is.

A line is what stands between two newlines; the last one needs no newline at its end. Line numbers
count every physical line of the file from 1, blank ones too.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lake.errors import LakeError, Whose

BLOCK_BYTES = 1 << 20
MAX_LINE_BYTES = 128 << 20
BLANK = b" \t\r"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
SHOWN_CHARACTERS = 60


class BadLine(LakeError):
    """A line that cannot be taken whole: `code` says why, `line` and `field` say where."""

    code: str  # type: ignore[misc]  # each bad line has its own reason
    whose = Whose.USER

    def __init__(self, message: str, *, code: str, line: int, field: str | None = None) -> None:
        facts: dict[str, object] = {"line": line}
        if field is not None:
            facts["field"] = shown(field)
        super().__init__(message, **facts)
        self.code = code
        self.line = line
        self.field = field


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Whole lines that follow each other in a file; `ends` has where each one ends."""

    data: bytes
    first_line: int
    ends: npt.NDArray[np.intp] = field(compare=False, repr=False)

    @property
    def lines(self) -> int:
        """How many lines there are."""
        return len(self.ends)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """The rows of some lines; there are always `lines - blank` of them.

    `dropped` counts the values, other than null, of fields that are not declared, by field name.
    """

    batch: pa.RecordBatch
    lines: int
    blank: int
    dropped: Mapping[str, int]


def blocks(
    chunks: Iterable[bytes], *, max_line_bytes: int = MAX_LINE_BYTES, max_lines: int = BLOCK_BYTES
) -> Iterator[Block]:
    """Cut a file at line ends into blocks of about 1 MiB; hold no more than one line beyond that.

    `max_lines` keeps a block of very short lines from becoming a batch of very many cells. A byte
    order mark is skipped at the start of the file and nowhere else.
    """
    parts: list[bytes | memoryview] = []
    held = 0  # bytes in parts
    unfinished = 0  # those of them that belong to a line without an end so far
    next_line = 1
    for piece in _pieces(_without_mark(chunks)):
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
    yield from _split(b"".join(parts), next_line, max_lines)


def line_ends(data: bytes) -> npt.NDArray[np.intp]:
    """Give where each line ends: at its newline, the last one perhaps at the end of the data."""
    ends = np.flatnonzero(np.frombuffer(data, np.uint8) == ord("\n"))
    return ends if not data or data.endswith(b"\n") else np.append(ends, len(data))


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


def _pieces(chunks: Iterable[bytes]) -> Iterator[bytes]:
    for chunk in chunks:
        for start in range(0, len(chunk), BLOCK_BYTES):
            yield chunk[start : start + BLOCK_BYTES]


def _split(data: bytes, first_line: int, max_lines: int) -> Iterator[Block]:
    start = 0
    ends = line_ends(data)
    while len(ends) > max_lines:
        cut = int(ends[max_lines - 1]) + 1
        yield Block(data=data[start:cut], first_line=first_line, ends=ends[:max_lines] - start)
        ends, start, first_line = ends[max_lines:], cut, first_line + max_lines
    if len(ends):
        yield Block(data=data[start:], first_line=first_line, ends=ends - start if start else ends)
