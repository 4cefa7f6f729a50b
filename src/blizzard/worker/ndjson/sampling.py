"""Infer the types of values without a column: from a sample of a unit's files, or from `_rescued`.

The compiled sample finds the same columns as parsing each value, except for strings with half a
surrogate pair and numbers beyond float64, which the later read rescues. Integer ranges may come out
wider, and strings that are not times are not classified further; neither changes a column.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa

from blizzard.model.bad_lines import any_element, member_path
from blizzard.model.seen import MOST_MEMBERS, NOTHING, Integers, Objects, Seen, Text
from blizzard.model.settings import MAX_LINE_BYTES
from blizzard.model.source.file import SourceFile
from blizzard.worker.ndjson.compiled import scalars, syntax
from blizzard.worker.ndjson.compiled.columns import Bytes, Doubtful, Tokens, texts_of, tokens_of
from blizzard.worker.ndjson.compiled.fast import page_of
from blizzard.worker.ndjson.compiled.leftovers import Trail
from blizzard.worker.ndjson.compiled.page import Page, Scanned
from blizzard.worker.ndjson.compiled.peel import Members, items_of
from blizzard.worker.ndjson.decoder import Decoder
from blizzard.worker.ndjson.fields import MemberPlace
from blizzard.worker.ndjson.inference import MOST_PATHS, infer, parse, text_kind
from blizzard.worker.ndjson.lines import Block, Decoded
from blizzard.worker.progress import ProgressChannel
from lakebed.errors import LakeError
from lakebed.types import DEEPEST_COLUMN, RESCUED, UnknownFields

CERTAIN_DIGITS = 15
"""An integer of at most this many characters is exact in a float64."""
LONGEST_NUMBER = 300
"""Characters; no shorter number without an exponent is beyond float64."""
_Z = ord("Z")
_LENGTH_OF_DAY = len('"YYYY-MM-DD"')


class FastInference:
    """Infers types with the compiled scan, or returns None if it cannot be sure.

    It remembers the member names of each level, so that one scan finds all values.
    """

    def __init__(self, max_line_bytes: int = MAX_LINE_BYTES) -> None:
        self._max_line_bytes = max_line_bytes
        self._root = _Object(depth=0)

    def infer(self, block: Block) -> dict[str, Seen] | None:
        """Return the types of the members of the block's records, or None."""
        page = page_of([block], UnknownFields.DROP)
        if page is None:
            return None

        def lines(members: Members) -> Scanned:
            found, _rows = members.lines(page, [block.lines], self._max_line_bytes)
            return found

        try:
            objects = self._root.infer(page, lines)
        except (Doubtful, pa.ArrowException):
            return None
        return dict(objects.members) if objects.values is None else None


class _Object:
    """The known members of the objects at one path."""

    def __init__(self, depth: int) -> None:
        self._depth = depth
        self._names: list[str] = []
        self._members = Members({})
        self._values: dict[str, _Value] = {}

    def learn(self, names: Iterable[str]) -> None:
        """Add names."""
        known = set(self._names)
        new = [name for name in names if name not in known]
        self._names += new
        if new:
            places = {name: MemberPlace(columns=[at]) for at, name in enumerate(self._names)}
            self._members = Members(places)

    def infer(self, page: Page, scanned: Callable[[Members], Scanned]) -> Objects:
        """Infer the types of all members; scan again after new names."""
        found = self._scan(scanned)
        # A name keeps its position even if all of its values are null: of two that differ only in
        # case, the first names the column.
        members = dict.fromkeys(self._names, NOTHING)
        most = np.zeros(1, np.int64)
        for name, tokens in zip(self._names, found.tokens, strict=True):
            if any(tokens.counts[syntax.ABSENT + 1 : syntax.SIZE]):
                most = most + (tokens.kinds != syntax.ABSENT)
                if name not in self._values:
                    self._values[name] = _Value(self._depth + 1)
                members[name] = self._values[name].infer(page, tokens)
        return Objects(members, int(most.max()))

    def _scan(self, scanned: Callable[[Members], Scanned]) -> Scanned:
        while len(self._names) <= MOST_MEMBERS:
            try:
                found = scanned(self._members)
                if not self._members.names.undeclared:
                    return found
            finally:
                # Keep the learned names even if the scan failed.
                self.learn(self._members.names.undeclared)
        raise Doubtful


class _Value:
    """The values at one path, and those nested in them."""

    def __init__(self, depth: int) -> None:
        self._depth = depth
        self._object: _Object | None = None
        self._inside: _Value | None = None
        self._texts: frozenset[Text] = frozenset()

    def infer(self, page: Page, tokens: Tokens) -> Seen:
        counts = tokens.counts
        texts = counts[syntax.TEXT] + counts[syntax.ESCAPED]
        arrays = counts[syntax.ARRAY] > 0
        if self._depth >= DEEPEST_COLUMN and (arrays or counts[syntax.OBJECT]):
            return Seen(deep=True)
        return Seen(
            booleans=counts[syntax.TRUE] + counts[syntax.FALSE] > 0,
            integers=_integers(page.data, tokens) if counts[syntax.INTEGER] else None,
            fractions=counts[syntax.NUMBER] > 0,
            texts=self._infer_texts(page.data, tokens) if texts else frozenset(),
            objects=self._infer_objects(page, tokens) if counts[syntax.OBJECT] else None,
            arrays=arrays,
            elements=self._infer_elements(page, tokens) if arrays else None,
        )

    def _infer_texts(self, data: Bytes, tokens: Tokens) -> frozenset[Text]:
        # Once a text is not a time, no other text matters.
        if Text.OTHER not in self._texts:
            self._texts |= {_text_kind(data, _of_kind(tokens, syntax.TEXT, syntax.ESCAPED))}
        return self._texts

    def _infer_objects(self, page: Page, tokens: Tokens) -> Objects:
        objects = _of_kind(tokens, syntax.OBJECT)
        self._object = self._object or _Object(self._depth)
        count = objects.counts[syntax.OBJECT]
        return self._object.infer(
            page, lambda members: members.objects(page, objects, count, Trail())
        )

    def _infer_elements(self, page: Page, tokens: Tokens) -> Seen | None:
        arrays = _of_kind(tokens, syntax.ARRAY)
        elements = items_of(page, arrays, is_keyed=False)[1]
        if not any(elements.counts[syntax.ABSENT + 1 : syntax.SIZE]):
            return None
        self._inside = self._inside or _Value(self._depth + 1)
        return self._inside.infer(page, elements)


def _integers(data: Bytes, tokens: Tokens) -> Integers:
    of_kind = tokens.kinds == syntax.INTEGER
    longest = int(tokens.lengths[of_kind].max())
    if longest <= CERTAIN_DIGITS:
        return Integers(-(10**longest) + 1, 10**longest - 1)
    long = of_kind & (tokens.lengths > CERTAIN_DIGITS)
    if longest > LONGEST_NUMBER:
        raise Doubtful
    found = [int(text) for text in texts_of(data, tokens_of(tokens, long)).unique().to_pylist()]
    certain = 10**CERTAIN_DIGITS - 1
    return Integers(min(-certain, *found), max(certain, *found))


def _of_kind(tokens: Tokens, *kinds: int) -> Tokens:
    """Return the tokens of some kinds; ABSENT ones may remain if there are no other kinds."""
    if sum(tokens.counts[kind] for kind in kinds) == sum(tokens.counts[1 : syntax.SIZE]):
        return tokens
    return tokens_of(tokens, np.isin(tokens.kinds, kinds))


def _text_kind(data: Bytes, tokens: Tokens) -> Text:
    """Classify strings if all are alike; else return `OTHER`."""
    there = tokens.kinds != syntax.ABSENT
    lengths = tokens.lengths[there]
    shortest, longest = int(lengths.min()), int(lengths.max())
    if shortest < _LENGTH_OF_DAY or (shortest == _LENGTH_OF_DAY and longest > _LENGTH_OF_DAY):
        return Text.OTHER
    rows, span = len(tokens.kinds), (tokens.starts, tokens.lengths, tokens.kinds)
    zoned = bool((data[tokens.starts[there] + lengths - len('Z"')] == _Z).all())
    if zoned and scalars.moments(data, *span, True, np.empty(rows, np.int64)) == rows:
        return Text.TIMESTAMP
    return _each(data, tokens_of(tokens, there))


def _each(data: Bytes, tokens: Tokens) -> Text:
    """Classify distinct strings one by one, until they cannot all be times."""
    kinds: set[Text] = set()
    for text in texts_of(data, tokens).unique().to_pylist():
        kinds.add(text_kind(text))
        if Text.OTHER in kinds or len(kinds) > 1:
            return Text.OTHER
    return kinds.pop()


MOST_SLOW_LINES = 2000
"""Lines of a block that are parsed one by one, if the compiled sample is unsure."""
MOST_ROWS = 10_000
"""Rows with rescued values that one task samples. Values of later rows that do not fit the inferred
column stay in `_rescued`."""


@dataclass(slots=True)
class ColumnSampler:
    """Collects the types of values by path, file after file of a unit."""

    adds: bool = False
    """Whether rescued values get a column."""
    seen: dict[str, Seen] = field(default_factory=dict)
    rows: int = 0
    fast: FastInference = field(default_factory=FastInference)
    _before: tuple[dict[str, Seen], int] | None = None
    """The state before the current file, once that has contributed."""

    def sample_file(
        self,
        file: SourceFile,
        open_pieces: Callable[[], Generator[bytes]],
        decoder: Decoder,
        share: float,
        channel: ProgressChannel,
    ) -> None:
        """Sample the first part of a file; errors are reported when the file is read.

        After a block without anything new, the next one is skipped. Nothing counts as work done,
        since all of it is read again.
        """
        part = file.part
        enough = share * (file.to_read if part is None else part.end - part.start)
        before = channel.progress.bytes_read
        with suppress(LakeError), closing(open_pieces()) as pieces:
            is_new = True
            for block in decoder.blocks(pieces, file.from_start, file.form.skip):
                is_new = not is_new or self.sample_block(block)
                if channel.progress.bytes_read - before >= enough:
                    break

    def begin_file(self) -> None:
        """Begin another file, and keep what the last one contributed."""
        self._before = None

    def discard_file(self) -> None:
        """Discard what the current file contributed, because it failed."""
        if self._before is not None:
            self.seen, self.rows = self._before
        self._before = None

    def sample_block(self, block: Block) -> bool:
        """Sample the records of some lines; return whether anything was new.

        Lines that are not objects are skipped.
        """
        found = self.fast.infer(block)
        if found is None:
            lines = (line for line in block.data.split(b"\n") if line.strip())
            seen = infer(_records(islice(lines, MOST_SLOW_LINES))).objects or Objects()
            # If the names are data there are no columns, since a record is not a map.
            found = dict(seen.members)
        return self._add({member_path("", name): one for name, one in found.items()})

    def sample_rescued(self, decoded: Decoded) -> None:
        """Sample the rescued values of some rows."""
        if not self.adds or not decoded.rescued:
            return
        if self._before is None:
            self._before = dict(self.seen), self.rows
        texts = (text for text in decoded.batch[RESCUED].to_pylist() if text is not None)
        some = list(islice(texts, MOST_ROWS - self.rows))
        self.rows += len(some)
        at: dict[str, list[Any]] = {}
        for text in some:
            for path, value in parse(text).items():
                at.setdefault(any_element(path), []).append(value)
        self._add({path: infer(values) for path, values in at.items()})

    def _add(self, found: Mapping[str, Seen]) -> bool:
        is_new = False
        for path, seen in found.items():
            known = self.seen.get(path)
            if known is None and len(self.seen) >= MOST_PATHS:
                continue
            joined = seen if known is None else known.join(seen)
            if joined != known:
                is_new = True
                self.seen[path] = joined
        return is_new


def _records(lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    for line in lines:
        try:
            record = parse(line.decode())
        except (ValueError, RecursionError):
            continue  # The run that reads the file reports what is wrong with it.
        if isinstance(record, dict):
            yield record
