"""The books of a source file: what was counted before the parser has to be what came out of it.

Lines are counted as they leave the decompressor, records as they leave what cuts documents, by
code that the parser does not share. A file whose two counts differ fails, whoever is wrong: nothing
of it is journaled.
"""

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

from blizzard.worker.ndjson.plain_text import BYTE_ORDER_MARK
from lakebed.errors import LakeError, Whose

if TYPE_CHECKING:
    from blizzard.worker.ndjson.decoder import Decoded

FEW_BYTES = 64 * 1024


class Miscounted(LakeError):
    """What was read of a file is not what was counted in it."""

    code = "lines_miscounted"
    whose = Whose.INTERNAL


class LineCount:
    """Counts the lines of a file while its bytes go by.

    It can also tell how many lines the first bytes are, where it is told to keep what was counted
    and not taken so far, which is little more than what the parser has in hand.
    """

    def __init__(self) -> None:
        self.ended = False
        """Whether the last byte has gone by."""
        self._size = 0
        self._newlines = 0
        self._in_line = False
        self._is_mark = False
        """Whether a byte order mark at the start of the file is all that has gone by."""
        self._ahead: deque[tuple[int, bytes, int]] = deque()
        """Bytes with newlines that are not taken yet: where they begin, and how many newlines."""

    @property
    def lines(self) -> int:
        """Return how many lines have begun; the last one needs no newline at its end."""
        return self._newlines + self._is_in_line

    @property
    def _is_in_line(self) -> bool:
        """Whether a line has begun and not ended; a byte order mark begins none."""
        return self._in_line and not self._is_mark

    def of(
        self, pieces: Iterator[bytes], *, keep: bool = False, from_start: bool = True
    ) -> Iterator[bytes]:
        """Pass bytes on, and count their lines; further on in a file a mark is no mark."""
        head = b""
        for piece in pieces:
            if piece:
                if from_start and self._size <= len(BYTE_ORDER_MARK):
                    head += piece[: len(BYTE_ORDER_MARK) + 1 - len(head)]
                    self._is_mark = head == BYTE_ORDER_MARK
                newlines = _newlines(piece)
                if newlines and keep:
                    self._ahead.append((self._size, piece, newlines))
                self._newlines += newlines
                self._size += len(piece)
                self._in_line = not piece.endswith(b"\n")
            yield piece
        self.ended = True

    def take(self, size: int) -> None:
        """Note that the first so many bytes are taken: nobody asks about less of them any more."""
        while self._ahead and self._ahead[0][0] + len(self._ahead[0][1]) <= size:
            self._ahead.popleft()

    def lines_in(self, size: int) -> int:
        """Return how many lines the first so many bytes are; they end where a line does."""
        after = sum(
            newlines if start >= size else _newlines(piece[size - start :])
            for start, piece, newlines in self._ahead
        )
        is_all = self.ended and size == self._size
        return self._newlines - after + (is_all and self._is_in_line)


def lines_of(text: bytes) -> int:
    """Count the lines of all of a file; the last one needs no newline at its end."""
    return _newlines(text) + (bool(text) and not text.endswith(b"\n"))


def require_all(
    count: LineCount, *, lines: int, skipped: int = 0, records: int | None = None
) -> None:
    """Raise unless every line of a file, or of its part, is among those that were read.

    `skipped` lines were read by earlier batches; of documents, `records` is how many were cut.
    """
    word, counted = ("lines", count.lines) if records is None else ("records", records)
    if not count.ended:
        raise Miscounted(f"the reading ended before the file did, after {lines} {word}")
    if counted != skipped + lines or count.lines != counted:
        raise _differ(f"{counted} {word} were counted", skipped + lines)


def require_some(count: LineCount, *, size: int, lines: int) -> None:
    """Raise unless the first so many bytes of a file, or of its part, are so many lines."""
    counted = count.lines_in(size)
    if counted != lines:
        raise _differ(f"{counted} lines were counted", lines)


def require_explained(decoded: "Decoded") -> None:
    """Raise unless each line of a batch is a row, blank, passed over or set aside, and only one.

    Which lines are blank is seen in the text itself, not in what the parser made of it.
    """
    rows, bad = decoded.batch.num_rows, len(decoded.bad)
    rowless = 0 if decoded.rowless is None else len(decoded.rowless)
    explained = rows + decoded.blank + decoded.filtered + bad
    if decoded.lines != explained or rowless != decoded.lines - rows:
        raise Miscounted(
            f"of {decoded.lines} lines {rows} gave a row and {rowless} have none to give "
            f"({decoded.blank} blank, {decoded.filtered} filtered, {bad} bad)"
        )


def _differ(counted: str, read: int) -> Miscounted:
    return Miscounted(f"{counted}, but {read} were read")


def _newlines(data: bytes) -> int:
    if len(data) <= FEW_BYTES:
        # Compiled code lets other threads run, and many small files would wait for them each time.
        return data.count(b"\n")
    # It brings a compiler along, which costs a second. Only who reads rows pays for it.
    from blizzard.worker.ndjson.newlines import newlines  # noqa: PLC0415

    return newlines(data)
