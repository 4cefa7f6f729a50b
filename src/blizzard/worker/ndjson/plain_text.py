"""Bytes of lines before anything is known of them: marks, ends, and which kinds there are."""

from collections.abc import Iterable, Iterator
from itertools import chain

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
    # It brings a compiler along, which costs a second. Only what reads rows pays for it.
    from blizzard.worker.ndjson import newlines  # noqa: PLC0415

    return newlines.newlines_in(text)


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
