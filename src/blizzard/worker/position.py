"""Where in a source file the reading is, what is left of it, and whether its lines add up.

Lines are counted as they leave the decompressor, records as they leave what cuts documents, by
code that the parser does not share. A file whose two counts differ fails, whichever is wrong:
nothing of it is journaled.
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


class Miscounted(LakeError, code="lines_miscounted", whose=Whose.INTERNAL):
    """What was read of a file is not what was counted in it."""


class LineCount:
    """Counts the lines of a file while its bytes go by.

    It can also count the lines of the first bytes, if it is set to keep what was counted
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
                newlines = newlines_in(piece)
                if newlines and keep:
                    self._ahead.append((self._size, piece, newlines))
                self._newlines += newlines
                self._size += len(piece)
                self._in_line = not piece.endswith(b"\n")
            yield piece
        self.ended = True

    def take(self, size: int) -> None:
        """Note that the first so many bytes are taken: no later query is about fewer."""
        while self._ahead and self._ahead[0][0] + len(self._ahead[0][1]) <= size:
            self._ahead.popleft()

    def lines_in(self, size: int) -> int:
        """Return how many lines the first so many bytes are; they end where a line does."""
        after = sum(
            newlines if start >= size else newlines_in(piece[size - start :])
            for start, piece, newlines in self._ahead
        )
        is_all = self.ended and size == self._size
        return self._newlines - after + (is_all and self._is_in_line)


def lines_of(text: bytes) -> int:
    """Count the lines of all of a file; the last one needs no newline at its end."""
    return newlines_in(text) + (bool(text) and not text.endswith(b"\n"))


def require_explained(decoded: Decoded) -> None:
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


@dataclass(slots=True)
class ReadPosition:
    """Where in a file the reading is."""

    first: int = 0
    """The byte at which its first line starts."""
    taken: int = 0
    """The bytes of the lines that were read."""
    is_plain: bool = True
    """Whether bytes of the file are bytes of its lines."""
    opened: float = 0.0
    """When the reading began."""
    reached: float | None = None
    """When it came to the first line that no batch has read before."""
    framer: "Framer | None" = None
    """What cuts its documents into records; None where it is lines."""
    count: LineCount = field(default_factory=LineCount)
    """What was counted before the parser."""
    counted_from: int = 0
    """The byte at which the counting began."""

    def is_worth_it(self, now: float) -> bool:
        """Whether the reading has taken as long as it took to come to its first line.

        Leaving a file makes the next batch come there again: were that to take longer than
        a batch may, no batch would get any further.
        """
        reached = now if self.reached is None else self.reached
        return now - reached >= reached - self.opened

    def framed(self, pieces: Iterator[bytes], file: SourceFile) -> Iterator[bytes]:
        """Pass the records of a file of documents on, a line each."""
        # It brings a compiler along, which costs a second. Only who reads rows pays for it.
        from blizzard.worker.ndjson.forms.framer import Framer  # noqa: PLC0415

        self.is_plain = False
        self.framer = Framer(file.form.records, skip=file.skip)
        return self.framer.lines(pieces)

    @property
    def place_of(self) -> Callable[[int], TextPosition | None] | None:
        """Return the way to ask where a record of a document begins; None where it is lines."""
        return None if self.framer is None else self.framer.place_of

    def place_in(
        self, file: SourceFile, line: int, offset: int | None
    ) -> tuple[int | None, int | None]:
        """Return line and offset in a file of a line that was just read: what is unknown is None.

        The first line is 1. `line` and `offset` count from where the reading began. Of a compressed
        file the offset is one of its decompressed text.
        """
        if self.framer is not None:
            place = self.framer.place_of(line + file.skip)
            return (None, None) if place is None else (place.line, place.offset)
        if file.part is None:
            return line + file.skip, None if file.skip else offset
        if not file.part.start:
            return line, offset
        # A line of a later part has a number once the lines before it are counted.
        return None, None if offset is None else self.first + offset

    def took(self, size: int, lines: int) -> None:
        """Note that lines were read: of how many bytes, and how many of the file by now."""
        self.taken += size
        self.count.take(self.first + self.taken - self.counted_from)
        if self.framer is not None:
            self.framer.forget(lines + 1)

    def begin(self, first: int) -> None:
        """Note where the first line of a part starts."""
        self.first = self.counted_from = first

    def counted(self, pieces: Iterator[bytes], file: SourceFile) -> Iterator[bytes]:
        """Pass the lines of a file on as they leave the decompressor, and count them."""
        from_start = file.part is None or not file.part.start
        return self.count.of(pieces, keep=self._goes_by_bytes(file), from_start=from_start)

    def require_all_counted(self, file: SourceFile, lines: int) -> None:
        """Raise where other lines were read of a file, up to its end, than were counted."""
        read = lines + (file.skip if file.part is None else 0)
        word, counted = "lines", self.count.lines
        if self.framer is not None:
            word, counted = "records", self.framer.records
        if not self.count.ended:
            raise Miscounted(f"the reading ended before the file did, after {lines} {word}")
        if counted != read or self.count.lines != counted:
            raise Miscounted(f"{counted} {word} were counted, but {read} were read")

    def require_counted(self, file: SourceFile, lines: int) -> None:
        """Raise where other lines were read so far, of a file that is left here, than were counted.

        Where there are only lines to go by, reaching the end of the file counts all of
        them again.
        """
        if self._goes_by_bytes(file):
            counted = self.count.lines_in(self.first + self.taken - self.counted_from)
            if counted != lines:
                raise Miscounted(f"{counted} lines were counted, but {lines} were read")

    def noticed(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        """Pass the pieces of a file's start on; its first line starts after a byte order mark."""
        head = b""
        for piece in pieces:
            if len(head) < len(BYTE_ORDER_MARK):
                head += piece[: len(BYTE_ORDER_MARK) - len(head)]
                self.first = len(BYTE_ORDER_MARK) if head == BYTE_ORDER_MARK else 0
            yield piece

    def rest_of(self, file: SourceFile, lines: int) -> tuple[Unread, ...] | None:
        """Return the bytes left of a file, or of a part; None where only lines are counted."""
        if not self._goes_by_bytes(file):
            return None
        end = file.size if file.part is None else file.part.end
        place = self.first + self.taken
        return (Unread(start=place, end=end, lines_before=lines),) if place < end else ()

    def _goes_by_bytes(self, file: SourceFile) -> bool:
        """Whether it is known which bytes of the file were read, not only how many lines."""
        return self.is_plain and (file.part is not None or not file.skip)


class Opened(NamedTuple):
    """A file, and where its reading is, or all of its text."""

    file: SourceFile
    position: ReadPosition | None = None
    text: bytes = b""


def is_plain(file: SourceFile, body: bytes) -> bool:
    """Whether the bytes of a file are its lines, from the first one on, and all are to be read."""
    if file.skip or file.unread or file.numbers is not None or file.form.is_documents:
        return False
    codec = codec_in(body[:FIRST_BYTES], file.codec) if file.by_content else file.codec
    return codec is Codec.NONE
