"""Where in a source file the reading is, and what is left of the file from there."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from blizzard.model.files import SourceFile
from blizzard.model.source.form import FIRST_BYTES, codec_in
from blizzard.worker.books import LineCount, require_all, require_some
from blizzard.worker.ndjson.lines import Place
from blizzard.worker.ndjson.plain_text import BYTE_ORDER_MARK
from lakebed.documents.source_record import Unread
from lakebed.types import Codec

if TYPE_CHECKING:
    from blizzard.worker.ndjson.forms.framer import Framer


@dataclass(frozen=True, slots=True)
class LinePlace:
    """Where in a source file a line is, as far as it is known; the first line is 1."""

    line: int | None = None
    offset: int | None = None


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

        Whoever leaves a file makes the next batch come there again: were that to take longer than
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
    def place_of(self) -> Callable[[int], Place | None] | None:
        """Return the way to ask where a record of a document begins; None where it is lines."""
        return None if self.framer is None else self.framer.place_of

    def place_in(self, file: SourceFile, line: int, offset: int | None) -> "LinePlace":
        """Return where in a file a line is that was just read: what is not known is None.

        `line` and `offset` count from where the reading began. Of a compressed file the offset is
        one of its decompressed text.
        """
        if self.framer is not None:
            place = self.framer.place_of(line + file.skip)
            return LinePlace() if place is None else LinePlace(place.line, place.offset)
        if file.part is None:
            return LinePlace(line + file.skip, None if file.skip else offset)
        if not file.part.start:
            return LinePlace(line, offset)
        # A line of a later part has a number once the lines before it are counted.
        return LinePlace(None, None if offset is None else self.first + offset)

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
        skipped = file.skip if file.part is None else 0
        records = None if self.framer is None else self.framer.records
        require_all(self.count, lines=lines, skipped=skipped, records=records)

    def require_counted(self, file: SourceFile, lines: int) -> None:
        """Raise where other lines were read so far, of a file that is left here, than were counted.

        Where there are only lines to go by, whoever comes to the end of the file counts all of
        them again.
        """
        if self._goes_by_bytes(file):
            size = self.first + self.taken - self.counted_from
            require_some(self.count, size=size, lines=lines)

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
