"""Convert JSON documents into lines of one record each, for the line decoder.

A document is an object, an array of records, or an envelope with the records at a path; a file
holds any number of documents, in any layout. Memory is bounded by a chunk and a record.
"""

import json
from collections import deque
from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from blizzard.model.settings import BLOCK_BYTES, MAX_LINE_BYTES
from blizzard.worker.ndjson.compiled.vector import WIDTH
from blizzard.worker.ndjson.forms import frame
from blizzard.worker.ndjson.lines import BrokenDocument, TextPosition, without_mark

MAX_PLACES = 1 << 14
"""Record positions noted per call."""

_PADDING = bytes(WIDTH)
_NEWLINE = ord("\n")
_PUNCTUATION = b"[]{}:,"

_EXPECTED = {
    frame.NO_TEXT: "the next JSON text or the end of the file",
    frame.NO_COMMA_IN_ARRAY: "a comma or the end of the array",
    frame.NO_COMMA_IN_OBJECT: "a comma or the end of the object",
    frame.NO_KEY: "a field name in quotes",
    frame.NO_COLON: "a colon",
}
"""What JSON expects, by error code, if not a value."""


class Framer:
    """Splits the documents of one file into records.

    `records` are the keys that lead from a document to its records; empty if the document is a
    record or an array of records. An earlier batch has read the first `skip` records: they are
    framed as well, but errors are numbered without them.
    """

    def __init__(
        self,
        records: tuple[str, ...] = (),
        *,
        skip: int = 0,
        max_record_bytes: int = MAX_LINE_BYTES,
    ) -> None:
        keys = [key.encode() for key in records]
        self._records = records
        self._skip = skip
        self._max_record_bytes = max_record_bytes
        self._path = np.frombuffer(b"".join(keys), np.uint8)
        self._path_starts = np.cumsum([0, *map(len, keys)], dtype=np.int64)
        self._state = np.zeros(frame.SIZE, np.int64)
        self._stack = np.zeros(frame.MAX_DEPTH, np.uint8)
        self._seen = np.zeros(max(1, len(keys)), np.uint8)
        # An escape takes up to six bytes per character, so no key of the path is longer.
        self._key = np.zeros(max([1, *(6 * len(key) for key in keys)]), np.uint8)
        self._out = np.empty(0, np.uint8)
        self._offsets = np.empty(MAX_PLACES, np.int64)
        self._lines = np.empty(MAX_PLACES, np.int64)
        self._places: deque[tuple[int, npt.NDArray[np.int64], npt.NDArray[np.int64]]] = deque()
        """Record positions: the number of a first record, then offsets and lines."""
        self._begun = TextPosition(0, 1)
        """The start of the current record."""

    def lines(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the records of a file from its start, each ending with a newline.

        Invalid content raises `BrokenDocument`, after all records before it.
        """
        # Offsets include a byte order mark.
        self._state[frame.OFFSET], rest = without_mark(chunks)
        pieces = (
            chunk[start : start + BLOCK_BYTES]
            for chunk in rest
            for start in range(0, len(chunk), BLOCK_BYTES)
        )
        for piece in pieces:
            yield from self._framed(piece)
        yield from self._ended()

    @property
    def records(self) -> int:
        """Return the number of records that have begun so far."""
        return int(self._state[frame.RECORDS])

    def place_of(self, record: int) -> TextPosition | None:
        """Return the start of a record, counted from 1; None if forgotten."""
        for first, offsets, lines in self._places:
            if first <= record < first + len(offsets):
                return TextPosition(int(offsets[record - first]), int(lines[record - first]))
        return None

    def forget(self, before: int) -> None:
        """Forget the positions of the records before this one."""
        while self._places and self._places[0][0] + len(self._places[0][1]) <= before:
            self._places.popleft()

    def _framed(self, piece: bytes) -> Iterator[bytes]:
        state = self._state
        data = np.frombuffer(piece + _PADDING, np.uint8)
        if len(self._out) < 2 * len(data):
            self._out = np.empty(2 * len(data), np.uint8)
        state[frame.AT] = 0
        code = frame.FULL
        while code in (frame.FULL, frame.ASK):
            state[frame.TO] = state[frame.PLACES] = 0
            code = frame.frame(
                data, len(piece), self._path, self._path_starts, state, self._stack, self._seen,
                self._key, self._out, self._offsets, self._lines,
            )  # fmt: skip
            self._note_places()
            if state[frame.TO]:
                yield self._out[: state[frame.TO]].tobytes()
            if code == frame.ASK:
                code = self._answer()
        at = int(state[frame.AT])
        if code != frame.MORE:
            raise self._broken(code, piece, at)
        state[frame.OFFSET] += at
        self._require_short()

    def _note_places(self) -> None:
        count = int(self._state[frame.PLACES])
        if not count:
            return
        first = int(self._state[frame.RECORDS]) - count + 1
        offsets, lines = self._offsets[:count].copy(), self._lines[:count].copy()
        self._places.append((first, offsets, lines))
        self._begun = TextPosition(int(offsets[-1]), int(lines[-1]))
        self.forget(self._skip + 1)

    def _answer(self) -> int:
        """Compare a key with escapes with the next one of the path."""
        state = self._state
        written = self._key[: state[frame.KEY_LENGTH]].tobytes()
        try:
            key = json.loads(b'"' + written + b'"')
        except ValueError:  # not UTF-8
            return frame.FULL
        level = int(state[frame.MATCHED])
        if key != self._records[level]:
            return frame.FULL
        if self._seen[level]:
            return frame.TWICE
        self._seen[level] = state[frame.IS_MATCH] = 1
        return frame.FULL

    @property
    def _is_in_record(self) -> bool:
        return bool(self._state[frame.STATE] >= frame.RECORD)

    def _require_short(self) -> None:
        """Raise if a record exceeds the limit; it may be unterminated."""
        length = int(self._state[frame.OFFSET]) - self._begun.offset
        if self._is_in_record and length > self._max_record_bytes:
            raise self._error(
                f"found a record longer than {self._max_record_bytes:,} bytes, which is the limit; "
                "a bracket or a quote may be unclosed",
                code="line_too_long",
                place=self._begun,
            )

    def _ended(self) -> Iterator[bytes]:
        """End the file; raise if a document is incomplete."""
        state = self._state
        in_bare = state[frame.STATE] == frame.RECORD_BARE
        if state[frame.DEPTH] == 0 and in_bare:
            yield b"\n"
        elif state[frame.DEPTH] or self._is_in_record:
            here = TextPosition(int(state[frame.OFFSET]), int(state[frame.LINE]) + 1)
            raise self._error(
                "found the end of the file in the middle of "
                + (self._this_record() if self._is_in_record else "a document")
                + ": it is cut short, or a bracket or a quote is not closed",
                code="truncated",
                place=here,
            )

    def _this_record(self) -> str:
        begun = self._begun
        return f"a record, the one that begins in line {begun.line} (byte {begun.offset:,})"

    def _broken(self, code: int, piece: bytes, at: int) -> BrokenDocument:
        state = self._state
        byte = piece[at] if at < len(piece) else 0
        line = int(state[frame.LINE]) + 1 - (byte == _NEWLINE)
        place = TextPosition(int(state[frame.OFFSET]) + at, line)
        path = ".".join(self._records)
        match code:
            case frame.SEPARATED:
                where = self._this_record() if self._is_in_record else "a document"
                message = (
                    f"found a record separator (0x1E) in the middle of {where}: it is cut short"
                )
                return self._error(message, code="truncated", place=place)
            case frame.TOO_DEEP:
                message = f"found values nested more than {frame.MAX_DEPTH} deep"
                return self._error(message, code="too_deep", place=place)
            case frame.TWICE:
                message = f"found {path} twice in one document (source.records)"
                return self._error(message, code="duplicate_field", place=place)
            case frame.NO_RECORDS:
                message = f"found no array of records at {path} (source.records)"
                return self._error(message, code="records_missing", place=place)
        found = repr(chr(byte)) if byte in _PUNCTUATION else "other text"
        message = f"found {found}, expected {_EXPECTED.get(code, 'a JSON value')}"
        return self._error(message, code="not_json", place=place)

    def _error(self, message: str, *, code: str, place: TextPosition) -> BrokenDocument:
        record = int(self._state[frame.RECORDS]) + (not self._is_in_record)
        return BrokenDocument(message, code=code, line=record - self._skip, place=place)
