"""Decode NDJSON bytes into Arrow batches. A line is a row, blank, filtered or bad.

The exact path defines what a line means. The fast path reads a block at a time and returns only
results that equal the exact path's; refused lines are read one by one. Lines whose rows cannot be
written are blanked and reported.

A skip rule blanks lines before decoding. Regular expressions preselect them by key; they may select
too many lines, never too few. A malformed line is never skipped.
"""

import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from blizzard.model.event_time import RefusedRow
from blizzard.model.settings import MAX_LINE_BYTES, DecodeLimits
from blizzard.model.source.form import SkipRule
from blizzard.worker.ndjson.exact import ExactPath, spans_of
from blizzard.worker.ndjson.lines import (
    BLANK,
    BYTE_ORDER_MARK,
    SEPARATOR,
    BadLine,
    BadRecord,
    Block,
    CombinedFiles,
    Decoded,
    bad_record,
    blocks,
)
from lakebed.columns.schema import Schema, walk
from lakebed.types import KEEPING, OnBadRecord, OnMismatch, UnknownFields

RefuseRows = Callable[[pa.RecordBatch], Mapping[int, RefusedRow]]
"""Returns the rows of a batch that cannot be written, by index."""


def without_refused(
    block: Block,
    decoded: Decoded,
    refused: Mapping[int, RefusedRow],
    on_bad_record: OnBadRecord,
) -> Block:
    """Blank the lines of refused rows and record them as bad, or raise the first one."""
    bad = {one.line for one in decoded.bad}
    data = bytearray(block.data)
    found: list[BadRecord] = []
    row = 0
    for number, start, end in spans_of(block):
        if number in bad or not block.text[start:end].strip(BLANK):
            continue
        why = refused.get(row)
        row += 1
        if why is not None:
            data[start:end] = b" " * (end - start)
            wrong = BadLine(why.message, code=why.code, line=number, field=why.field)
            if on_bad_record is OnBadRecord.FAIL:
                raise wrong
            found.append(bad_record(wrong, block.raw(start, end), offset=block.offset + start))
    if len(found) != len(refused) or row != decoded.batch.num_rows:
        raise AssertionError("the rows of a block do not match its lines")
    return block.changed(
        bytes(data),
        as_written=block.data if block.as_written is None else block.as_written,
        bad=(*block.bad, *found),
    )


_NEWLINE = ord("\n")


def rowless_lines(decoded: Decoded, block: Block) -> npt.NDArray[np.int64] | None:
    """Return the indexes of the lines without a row; None if every line gave one.

    Filtered lines are blank in the block; bad lines are in `decoded.bad`.
    """
    if not decoded.blank and not decoded.bad:
        return None
    bad = np.array([each.line - block.first_line for each in decoded.bad], np.int64)
    return np.union1d(blank_lines(block.data), bad) if decoded.blank else bad


def blank_lines(data: bytes) -> npt.NDArray[np.int64]:
    """Return the indexes of the blank lines.

    Only lines that begin with white space need a closer check.
    """
    text = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(text == _NEWLINE)
    if not data.endswith(b"\n"):
        ends = np.append(ends, len(data))
    starts = np.concatenate([[0], ends[:-1] + 1])
    empty = starts == ends
    heads = text[np.minimum(starts, len(data) - 1)]
    for place in np.flatnonzero(~empty & np.isin(heads, np.frombuffer(BLANK, np.uint8))).tolist():
        empty[place] = not data[starts[place] : ends[place]].strip(BLANK)
    return np.flatnonzero(empty)


OTHER_FIELDS = "(other fields)"
USUAL_LIMITS = DecodeLimits()

Key = TypeVar("Key")


class Decoder:
    """Decodes the lines of files into rows of the declared schema.

    A decoder can serve many files. What it remembers affects speed, never results.
    """

    def __init__(
        self,
        schema: Schema,
        *,
        unknown: UnknownFields = UnknownFields.DROP,
        on_mismatch: OnMismatch = OnMismatch.FAIL,
        on_bad_record: OnBadRecord = OnBadRecord.FAIL,
        max_line_bytes: int = MAX_LINE_BYTES,
        limits: DecodeLimits = USUAL_LIMITS,
        refuse_rows: RefuseRows | None = None,
    ) -> None:
        """Rows that `refuse_rows` returns cannot be written: their lines are bad."""
        if not schema.fields and unknown not in KEEPING:
            raise ValueError("a schema without fields has no rows to decode")
        # Importing numba takes a second, so only code that reads rows does.
        from blizzard.worker.ndjson.compiled.fast import FastPath, MixedPath  # noqa: PLC0415

        exact = ExactPath(
            schema,
            max_line_bytes=max_line_bytes,
            unknown=unknown,
            on_mismatch=on_mismatch,
            on_bad_record=on_bad_record,
        )
        fast = FastPath(
            schema, max_line_bytes=max_line_bytes, unknown=unknown, on_mismatch=on_mismatch
        )
        self._path = MixedPath(fast, exact)
        self._on_bad_record = on_bad_record
        self._refuse_rows = refuse_rows
        self._max_line_bytes = max_line_bytes
        self._limits = limits
        self._max_lines = max(1, limits.max_cells // max(1, len(schema.fields)))
        self._block_bytes = limits.batch_bytes(sum(1 for _ in walk(schema.fields)))

    def decode(
        self, chunks: Iterable[bytes], *, from_start: bool = True, skip: SkipRule | None = None
    ) -> Iterator[Decoded]:
        """Yield the rows of a file in order, some MiB of lines at a time.

        The first bad line raises `BadLine` after the batches of earlier blocks; with
        `OnBadRecord.QUARANTINE` bad lines are returned in `bad` instead. Errors of the chunks
        themselves, such as a malformed document, always raise. A byte order mark is only recognised
        `from_start`. Lines that match `skip` are counted, not decoded.
        """
        return self._read(self.blocks(chunks, from_start, skip))

    def decode_files(
        self,
        files: Iterable[tuple[Key, Generator[bytes] | bytes]],
        *,
        from_start: Callable[[Key], bool] = lambda _key: True,
        skip: Callable[[Key], SkipRule | None] = lambda _key: None,
    ) -> Generator[tuple[Key, Iterator[Decoded]] | CombinedFiles[Key]]:
        """Yield the rows of many files, each as `decode` would; combine short files.

        Errors of a file and its chunks are raised while its rows are consumed, which must happen
        before the next file is requested. A file given as bytes must be complete.
        """
        short = _ShortFiles[Key]()
        for key, found in files:
            block = self._short_block(found) if isinstance(found, bytes) else None
            if block is not None and skip(key) is None:
                short.add(key, block)
            else:
                with closing(_once(found) if isinstance(found, bytes) else found) as chunks:
                    of_file = self.blocks(chunks, from_start(key), skip(key))
                    first, rest = _first(of_file, self._limits.short_bytes)
                    if rest is not None or len(first) != 1:
                        yield from self._together(short)
                        short = _ShortFiles()
                        yield key, self._read(chain(first, rest or ()))
                        continue
                short.add(key, first[0])
            if short.is_enough(self._limits, self._max_lines):
                yield from self._together(short)
                short = _ShortFiles()
        yield from self._together(short)

    def _short_block(self, text: bytes) -> Block | None:
        """Return a short plain file as a block; None if it needs `blocks`."""
        if not 0 < len(text) <= self._limits.short_bytes:
            return None
        lines = text.count(b"\n") + (not text.endswith(b"\n"))
        if lines > self._max_lines or text.startswith(BYTE_ORDER_MARK) or SEPARATOR in text:
            return None
        return Block(text=text, first_line=1, lines=lines)

    def blocks(
        self, chunks: Iterable[bytes], from_start: bool, skip: SkipRule | None
    ) -> Iterator[Block]:
        """Cut a file into blocks of lines and blank the lines that match the skip rule."""
        found = blocks(
            chunks,
            max_line_bytes=self._max_line_bytes,
            max_lines=self._max_lines,
            block_bytes=self._block_bytes,
            from_start=from_start,
        )
        if skip is None:
            return found
        return map(Skipper(skip, self._max_line_bytes).blanked, found)

    def _read(self, of_file: Iterable[Block]) -> Iterator[Decoded]:
        names: set[str] = set()
        for block in of_file:
            yield self._whole(self._path.read(block), block, names)

    def _whole(self, decoded: Decoded, block: Block, names: set[str]) -> Decoded:
        """Complete a decoded block: drop rows that cannot be written, and count its lines."""
        refused = {} if self._refuse_rows is None else self._refuse_rows(decoded.batch)
        if refused:
            block = without_refused(block, decoded, refused, self._on_bad_record)
            decoded = self._path.read(block)
        return _counted(_capped(decoded, names, self._limits), block)

    def _together(
        self, short: "_ShortFiles[Key]"
    ) -> Iterator[tuple[Key, Iterator[Decoded]] | CombinedFiles[Key]]:
        blocks = [block for _key, block in short.files]
        read = None
        if len(blocks) > 1:
            # An error belongs to one file and recurs when that is read alone.
            with suppress(Exception):
                read = self._path.read_combined(blocks)
        if read is None:
            for key, block in short.files:
                yield key, self._read([block])
        elif self._refuse_rows is None and read.is_plain:
            yield CombinedFiles([key for key, _block in short.files], read)
        else:
            for (key, block), decoded in zip(short.files, read.decoded(), strict=True):
                yield key, self._of_file(decoded, block)

    def _of_file(self, decoded: Decoded, block: Block) -> Iterator[Decoded]:
        """Yield the rows of one file of a combined read."""
        yield self._whole(decoded, block, set())


@dataclass(slots=True)
class _ShortFiles(Generic[Key]):
    """Files of one block each that wait for a combined read."""

    files: list[tuple[Key, Block]] = field(default_factory=list)
    size: int = 0
    lines: int = 0

    def add(self, key: Key, block: Block) -> None:
        self.files.append((key, block))
        self.size += block.end
        self.lines += block.lines

    def is_enough(self, limits: DecodeLimits, max_lines: int) -> bool:
        return (
            len(self.files) >= limits.max_combined
            or self.size >= limits.block_bytes
            or self.lines >= max_lines
        )


def _once(text: bytes) -> Generator[bytes]:
    yield text


def _first(
    of_file: Iterator[Block], short_bytes: int
) -> tuple[list[Block], Iterator[Block] | None]:
    """Return the first blocks of a file and an iterator over the rest; None if it is short."""
    first: list[Block] = []
    size = 0
    try:
        for block in of_file:
            first.append(block)
            size += block.end
            if size > short_bytes:
                return first, of_file
    except Exception as error:  # noqa: BLE001 - it is raised again in its place
        return first, map(_raised, [error])
    return first, None


def _raised(error: Exception) -> Block:
    raise error


def _counted(decoded: Decoded, block: Block) -> Decoded:
    """Count lines that were blanked in the block separately from originally blank ones."""
    return replace(
        decoded,
        taken=block.end,
        blank=decoded.blank - block.filtered - len(block.bad),
        filtered=block.filtered,
        bad=tuple(sorted(decoded.bad + block.bad, key=lambda one: one.line)),
        rowless=rowless_lines(decoded, block),
    )


def _capped(decoded: Decoded, names: set[str], limits: DecodeLimits) -> Decoded:
    if decoded.dropped:
        decoded = replace(decoded, dropped=_few(decoded.dropped, names, limits))
    if decoded.rescued:
        decoded = replace(decoded, rescued=_few(decoded.rescued, names, limits))
    return decoded


def _few(dropped: Mapping[str, int], names: set[str], limits: DecodeLimits) -> Mapping[str, int]:
    """Keep the first names of a file and count all others as `OTHER_FIELDS`, to bound labels."""
    kept: dict[str, int] = {}
    for name in sorted(dropped):
        is_short = len(name) <= limits.max_name_characters
        if name not in names and len(names) < limits.max_names and is_short:
            names.add(name)
        label = name if name in names else OTHER_FIELDS
        kept[label] = kept.get(label, 0) + dropped[name]
    return kept


_PLAIN = re.compile(r"[\w.@$-]+", re.ASCII)
"""A key whose only other spellings have \\u00 escapes."""


class Skipper:
    """Blanks the lines that match a skip rule."""

    def __init__(self, rule: SkipRule, max_line_bytes: int = MAX_LINE_BYTES) -> None:
        self._rule = rule
        self._max_line_bytes = max_line_bytes
        named = (*rule.only_key, *rule.with_key)
        escape = rb"\\u00" if all(map(_PLAIN.fullmatch, named)) else rb"\\"
        written = [b'"%s"' % re.escape(name.encode()) for name in named]
        self._named = re.compile(b"|".join([escape, *written])) if named else None
        # A key of the outermost object, since no other object begins before it.
        self._there = [
            re.compile(rb'[ \t\r]*\{[^{\\\n]*"%s"[ \t\r]*:' % re.escape(name.encode()))
            for name in rule.without_key
            if _PLAIN.fullmatch(name)
        ]

    def blanked(self, block: Block) -> Block:
        """Return the block with matching lines blanked and counted."""
        lines = block.data
        skipped = [
            (start, end)
            for _number, start, end in spans_of(block)
            # A line beyond the limit is bad, with any content.
            if end - start <= self._max_line_bytes
            and self._may_hold(lines, start, end)
            and self._rule.holds(lines[start:end])
        ]
        if not skipped:
            return block
        data = bytearray(lines)
        for start, end in skipped:
            data[start:end] = b" " * (end - start)
        return block.changed(
            bytes(data), as_written=block.raw(0, len(lines)), filtered=len(skipped)
        )

    def _may_hold(self, lines: bytes, start: int, end: int) -> bool:
        """Whether the line may match the rule."""
        if self._named is not None and self._named.search(lines, start, end):
            return True
        sure = (pattern.match(lines, start, end) for pattern in self._there)
        return len(self._there) < len(self._rule.without_key) or not all(sure)
