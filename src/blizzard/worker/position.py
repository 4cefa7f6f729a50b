"""The read position in a source file, what is left of it, and an independent count of its lines.

Lines are counted after decompression and records after framing, by code that the parser does not
share. A file whose two counts differ fails, and nothing of it is journaled.
"""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from blizzard.model.source.file import SourceFile
from blizzard.model.source.form import FIRST_BYTES, codec_in
from blizzard.worker.ndjson.lines import BYTE_ORDER_MARK, Decoded, TextPosition, newlines_in
from lakebed.documents.records import Unread
from lakebed.errors import LakeError, Whose
from lakebed.types import Codec

if TYPE_CHECKING:
    from blizzard.worker.ndjson.forms.framer import Framer


class CountMismatch(LakeError, code="lines_miscounted", whose=Whose.INTERNAL):
    """The lines read of a file differ from the lines counted in it."""


class LineCount:
    """Counts the lines of a file while its bytes stream through.

    With `keep`, it can also count the lines up to a position: it keeps the pieces that the parser
    has not consumed yet.
    """

    def __init__(self) -> None:
        self.ended = False
        """Whether the last byte has passed."""
        self._size = 0
        self._newlines = 0
        self._in_line = False
        self._is_mark = False
        """Whether only a byte order mark has passed."""
        self._ahead: deque[tuple[int, bytes, int]] = deque()
        """Unconsumed pieces with newlines: the start, the piece and its newlines."""

    @property
    def lines(self) -> int:
        """Return the number of lines that have begun."""
        return self._newlines + self._is_in_line

    @property
    def _is_in_line(self) -> bool:
        """Whether a line has begun and not ended; a byte order mark is not a line."""
        return self._in_line and not self._is_mark

    def of(
        self, pieces: Iterator[bytes], *, keep: bool = False, from_start: bool = True
    ) -> Iterator[bytes]:
        """Yield pieces and count their lines; a byte order mark counts only `from_start`."""
        head = b""
        for piece in pieces:
            if piece:
                if from_start and self._size <= len(BYTE_ORDER_MARK):
                    head += piece[: len(BYTE_ORDER_MARK) + 1 - len(head)]
                    self._is_mark = head == BYTE_ORDER_MARK
                newlines = newlines_in(piece)
                if newlines and keep:
                    self._ahead.append((self._size, piece, newlines))
                self._newlines += newlines
                self._size += len(piece)
                self._in_line = not piece.endswith(b"\n")
            yield piece
        self.ended = True

    def take(self, size: int) -> None:
        """Forget the pieces within the first `size` bytes, which the parser has consumed."""
        while self._ahead and self._ahead[0][0] + len(self._ahead[0][1]) <= size:
            self._ahead.popleft()

    def lines_in(self, size: int) -> int:
        """Return the number of lines in the first `size` bytes, which must end at a line end."""
        after = sum(
            newlines if start >= size else newlines_in(piece[size - start :])
            for start, piece, newlines in self._ahead
        )
        is_all = self.ended and size == self._size
        return self._newlines - after + (is_all and self._is_in_line)


def lines_of(text: bytes) -> int:
    """Count the lines of a whole file; the last one may lack a newline."""
    return newlines_in(text) + (bool(text) and not text.endswith(b"\n"))


def require_explained(decoded: Decoded) -> None:
    """Raise unless each line of a batch is either a row, blank, filtered or bad.

    Blank lines are counted in the text itself, not by the parser.
    """
    rows, bad = decoded.batch.num_rows, len(decoded.bad)
    rowless = 0 if decoded.rowless is None else len(decoded.rowless)
    explained = rows + decoded.blank + decoded.filtered + bad
    if decoded.lines != explained or rowless != decoded.lines - rows:
        raise CountMismatch(
            f"of {decoded.lines} lines, {rows} gave a row and {rowless} gave none "
            f"({decoded.blank} blank, {decoded.filtered} filtered, {bad} bad)"
        )


@dataclass(slots=True)
class ReadPosition:
    """The read position in a file."""

    first: int = 0
    """The offset of its first line."""
    taken: int = 0
    """Bytes of the lines read."""
    is_plain: bool = True
    """Whether the file is uncompressed lines, so that offsets are file offsets."""
    opened: float = 0.0
    """When reading began."""
    reached: float | None = None
    """When reading reached the first new line."""
    framer: "Framer | None" = None
    """Splits its documents into records; None for lines."""
    count: LineCount = field(default_factory=LineCount)
    """The lines counted before the parser."""
    counted_from: int = 0
    """The offset at which counting began."""

    def is_worth_it(self, now: float) -> bool:
        """Whether reading has taken at least as long as reaching the first new line.

        The next batch must reach this position again. If that took longer than a batch may, no
        batch would make progress.
        """
        reached = now if self.reached is None else self.reached
        return now - reached >= reached - self.opened

    def framed(self, pieces: Iterator[bytes], file: SourceFile) -> Iterator[bytes]:
        """Convert the documents of a file into one line per record."""
        # Importing numba takes a second, so only code that reads rows does.
        from blizzard.worker.ndjson.forms.framer import Framer  # noqa: PLC0415

        self.is_plain = False
        self.framer = Framer(file.form.records, skip=file.skip)
        return self.framer.lines(pieces)

    @property
    def place_of(self) -> Callable[[int], TextPosition | None] | None:
        """Return the function that locates a record of a document; None for lines."""
        return None if self.framer is None else self.framer.place_of

    def place_in(
        self, file: SourceFile, line: int, offset: int | None
    ) -> tuple[int | None, int | None]:
        """Return the line number and offset in the file of a line just read; None if unknown.

        `line` and `offset` count from where reading began. In a compressed file the offset refers
        to the decompressed text.
        """
        if self.framer is not None:
            place = self.framer.place_of(line + file.skip)
            return (None, None) if place is None else (place.line, place.offset)
        if file.part is None:
            return line + file.skip, None if file.skip else offset
        if not file.part.start:
            return line, offset
        # In a later part, line numbers are unknown until the earlier parts are counted.
        return None, None if offset is None else self.first + offset

    def took(self, size: int, lines: int) -> None:
        """Advance past lines of `size` bytes; `lines` counts the lines of the file so far."""
        self.taken += size
        self.count.take(self.first + self.taken - self.counted_from)
        if self.framer is not None:
            self.framer.forget(lines + 1)

    def begin(self, first: int) -> None:
        """Set the start of the first line of a part."""
        self.first = self.counted_from = first

    def counted(self, pieces: Iterator[bytes], file: SourceFile) -> Iterator[bytes]:
        """Yield the decompressed pieces of a file and count their lines."""
        from_start = file.part is None or not file.part.start
        return self.count.of(pieces, keep=self._goes_by_bytes(file), from_start=from_start)

    def require_all_counted(self, file: SourceFile, lines: int) -> None:
        """Raise if the lines read up to the end of a file differ from the lines counted."""
        read = lines + (file.skip if file.part is None else 0)
        word, counted = "lines", self.count.lines
        if self.framer is not None:
            word, counted = "records", self.framer.records
        if not self.count.ended:
            raise CountMismatch(f"reading ended before the end of the file, after {lines} {word}")
        if counted != read or self.count.lines != counted:
            raise CountMismatch(f"{counted} {word} were counted, but {read} were read")

    def require_counted(self, file: SourceFile, lines: int) -> None:
        """Raise if the lines read so far differ from the lines counted up to this position.

        Without byte positions this is checked only at the end of the file.
        """
        if self._goes_by_bytes(file):
            counted = self.count.lines_in(self.first + self.taken - self.counted_from)
            if counted != lines:
                raise CountMismatch(f"{counted} lines were counted, but {lines} were read")

    def after_mark(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        """Yield a file's pieces, and begin its first line after a byte order mark."""
        head = b""
        for piece in pieces:
            if len(head) < len(BYTE_ORDER_MARK):
                head += piece[: len(BYTE_ORDER_MARK) - len(head)]
                self.first = len(BYTE_ORDER_MARK) if head == BYTE_ORDER_MARK else 0
            yield piece

    def rest_of(self, file: SourceFile, lines: int) -> tuple[Unread, ...] | None:
        """Return the unread bytes of a file or part; None if only lines are counted."""
        if not self._goes_by_bytes(file):
            return None
        end = file.size if file.part is None else file.part.end
        place = self.first + self.taken
        return (Unread(start=place, end=end, lines_before=lines),) if place < end else ()

    def _goes_by_bytes(self, file: SourceFile) -> bool:
        """Whether the byte position is known, not only the number of lines."""
        return self.is_plain and (file.part is not None or not file.skip)


class Opened(NamedTuple):
    """A file with its read position, or with its whole text."""

    file: SourceFile
    position: ReadPosition | None = None
    text: bytes = b""


def is_plain(file: SourceFile, body: bytes) -> bool:
    """Whether a file is plain uncompressed lines that are all to be read."""
    if file.skip or file.unread or file.numbers is not None or file.form.is_documents:
        return False
    codec = codec_in(body[:FIRST_BYTES], file.codec) if file.by_content else file.codec
    return codec is Codec.NONE
