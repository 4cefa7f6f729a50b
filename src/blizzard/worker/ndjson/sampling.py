"""Values without a column in a unit: sampled from its files by the compiled scan, and rescued.

A sample gives the columns that a look at each value gives, except for strings with half a surrogate
pair and numbers beyond float64, which the later read rescues. The ranges of integers may be wider
than they were, and of strings it may say no more than that they are no times: neither makes
another column.
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
from blizzard.worker.ndjson.compiled.page import Found, Page
from blizzard.worker.ndjson.compiled.peel import Members, items_of
from blizzard.worker.ndjson.decoder import Decoder
from blizzard.worker.ndjson.fields import MemberPlace
from blizzard.worker.ndjson.inference import MOST_PATHS, infer, parse, text_kind
from blizzard.worker.ndjson.lines import Block, Decoded
from blizzard.worker.progress import ProgressChannel
from lakebed.errors import LakeError
from lakebed.types import DEEPEST_COLUMN, RESCUED, UnknownFields

CERTAIN_DIGITS = 15
"""An integer of so many characters is exact in a float64."""
LONGEST_NUMBER = 300
"""Characters; no number without an exponent that is as short is beyond float64."""
_Z = ord("Z")
_LENGTH_OF_DAY = len('"YYYY-MM-DD"')


class FastInference:
    """Looks at blocks, and says so where it cannot tell for sure.

    It remembers the names of members, level by level, so that one scan finds the values of all.
    """

    def __init__(self, max_line_bytes: int = MAX_LINE_BYTES) -> None:
        self._max_line_bytes = max_line_bytes
        self._root = _Object(depth=0)

    def infer(self, block: Block) -> dict[str, Seen] | None:
        """Return what the members of the block's records look like, or nothing."""
        page = page_of([block], UnknownFields.DROP)
        if page is None:
            return None

        def lines(members: Members) -> Found:
            found, _rows = members.lines(page, [block.lines], self._max_line_bytes)
            return found

        try:
            objects = self._root.infer(page, lines)
        except (Doubtful, pa.ArrowException):
            return None
        return dict(objects.members) if objects.values is None else None


class _Object:
    """The members of the objects at one place that are known so far."""

    def __init__(self, depth: int) -> None:
        self._depth = depth
        self._names: list[str] = []
        self._members = Members({})
        self._values: dict[str, _Value] = {}

    @property
    def names_are_data(self) -> bool:
        """Whether there are too many names to be distinguished."""
        return len(self._names) > MOST_MEMBERS

    @property
    def is_new(self) -> bool:
        """Whether no name is known."""
        return not self._names

    def learn(self, names: Iterable[str]) -> bool:
        """Take in names; return whether there was a new one."""
        known = set(self._names)
        new = [name for name in names if name not in known]
        self._names += new
        if new and not self.names_are_data:
            places = {name: MemberPlace(columns=[at]) for at, name in enumerate(self._names)}
            self._members = Members(places)
        return bool(new)

    def infer(self, page: Page, scanned: Callable[[Members], Found]) -> Objects:
        """Look at the members that a scan finds, and scan again for those that were not known."""
        found = self._scan(scanned)
        # A name keeps its place though its values are null so far: of two that differ only in case,
        # the first is the column's.
        members = dict.fromkeys(self._names, NOTHING)
        most = np.zeros(1, np.int64)
        for name, tokens in zip(self._names, found.tokens, strict=True):
            if any(tokens.counts[syntax.ABSENT + 1 : syntax.SIZE]):
                most = most + (tokens.kinds != syntax.ABSENT)
                if name not in self._values:
                    self._values[name] = _Value(self._depth + 1)
                members[name] = self._values[name].infer(page, tokens)
        return Objects(members, int(most.max()))

    def _scan(self, scanned: Callable[[Members], Found]) -> Found:
        while not self.names_are_data:
            try:
                found = scanned(self._members)
                if not self._members.names.undeclared:
                    return found
            finally:
                # What was learned stays, whether or not it was enough for these rows.
                self.learn(self._members.names.undeclared)
        raise Doubtful


class _Value:
    """The values at one place: what is known of them, and of what is inside of them."""

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
        # That there are other texts than times is all there is to know.
        if Text.OTHER not in self._texts:
            self._texts |= {_text_kind(data, _of_kind(tokens, syntax.TEXT, syntax.ESCAPED))}
        return self._texts

    def _infer_objects(self, page: Page, tokens: Tokens) -> Objects:
        objects = _of_kind(tokens, syntax.OBJECT)
        self._object = self._object or _Object(self._depth)
        if self._object.names_are_data:
            return self._infer_entries(page, objects)
        count = objects.counts[syntax.OBJECT]

        def scanned(members: Members) -> Found:
            return members.objects(page, objects, count, Trail())

        if self._object.is_new:
            self._object.learn(_keys(page, objects))
        try:
            return self._object.infer(page, scanned)
        except Doubtful:
            # Too many names were new, unless there is something else to doubt.
            if not self._object.learn(_keys(page, objects)):
                raise
        return self._infer_objects(page, tokens)

    def _infer_entries(self, page: Page, objects: Tokens) -> Objects:
        """Look at members whose names are data: at all of their values together."""
        _names, values, offsets = items_of(page, objects, is_keyed=True)
        most = int(np.diff(offsets).max(initial=0))
        return Objects({}, most, self._inner(page, values) or NOTHING)

    def _infer_elements(self, page: Page, tokens: Tokens) -> Seen | None:
        arrays = _of_kind(tokens, syntax.ARRAY)
        return self._inner(page, items_of(page, arrays, is_keyed=False)[1])

    def _inner(self, page: Page, tokens: Tokens) -> Seen | None:
        """Look at the values inside of these: elements, or members whose names are data."""
        if not any(tokens.counts[syntax.ABSENT + 1 : syntax.SIZE]):
            return None
        self._inside = self._inside or _Value(self._depth + 1)
        return self._inside.infer(page, tokens)


def _keys(page: Page, objects: Tokens) -> list[str]:
    """Return the different names of members, in the order of their appearance."""
    names, _values, _offsets = items_of(page, objects, is_keyed=True)
    found: list[str] = texts_of(page.data, names).unique().to_pylist()
    return found


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
    """Return the tokens of some kinds; those that are absent may stay if all others are."""
    if sum(tokens.counts[kind] for kind in kinds) == sum(tokens.counts[1 : syntax.SIZE]):
        return tokens
    return tokens_of(tokens, np.isin(tokens.kinds, kinds))


def _text_kind(data: Bytes, tokens: Tokens) -> Text:
    """Return what strings look like, if all of them look alike; else nothing special."""
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
    """Look at one distinct string after the other, until it is clear that they are no times."""
    kinds: set[Text] = set()
    for text in texts_of(data, tokens).unique().to_pylist():
        kinds.add(text_kind(text))
        if Text.OTHER in kinds or len(kinds) > 1:
            return Text.OTHER
    return kinds.pop()


MOST_ROWS = 10_000
"""So many rows with rescued values are looked at by one task. Values of later ones that do not fit
the column that is found stay in `_rescued`."""


@dataclass(slots=True)
class ColumnSampler:
    """What values look like, by their paths, while a unit goes through file after file."""

    adds: bool = False
    """Whether rescued values are to get a column."""
    seen: dict[str, Seen] = field(default_factory=dict)
    rows: int = 0
    fast: FastInference = field(default_factory=FastInference)
    _before: tuple[dict[str, Seen], int] | None = None
    """What was known before the file that is being read, once something was seen in it."""

    def sample_file(
        self,
        file: SourceFile,
        open_pieces: Callable[[], Generator[bytes]],
        decoder: Decoder,
        share: float,
        channel: ProgressChannel,
    ) -> None:
        """Look at the first part of a file. What is wrong with it is reported when it is read.

        If a block of lines has brought nothing new, the next one is left out. Nothing of this
        counts as work done: all of it is read again.
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
        """Begin with another file: what was seen in the last one counts."""
        self._before = None

    def discard_file(self) -> None:
        """Forget what was seen in the last file: it failed, and none of its rows are in."""
        if self._before is not None:
            self.seen, self.rows = self._before
        self._before = None

    def sample_block(self, block: Block) -> bool:
        """Look at the members of the records of some lines; return whether there was anything new.

        What is no record is passed over.
        """
        found = self.fast.infer(block)
        if found is None:
            lines = (line for line in block.data.split(b"\n") if line.strip())
            seen = infer(list(_records(lines))).objects or Objects()
            # Names that are data are no columns, and the records as a whole are no map.
            found = dict(seen.members)
        return self._add({member_path("", name): one for name, one in found.items()})

    def sample_rescued(self, decoded: Decoded) -> None:
        """Look at values that are to get a column."""
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
