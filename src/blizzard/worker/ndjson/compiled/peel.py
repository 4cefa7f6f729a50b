"""Objects, lists and maps of many rows at once, one nesting level after another.

A level knows its members' names and their usual order. Its scan locates the values of its fields;
nested values are the rows of the next level.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from blizzard.model.bad_lines import any_element, member_path
from blizzard.worker.ndjson.compiled import scan
from blizzard.worker.ndjson.compiled.columns import (
    Bytes,
    Doubtful,
    Texts,
    Tokens,
    required,
    texts_of,
)
from blizzard.worker.ndjson.compiled.leftovers import (
    Leftovers,
    Trail,
    count_labels,
    in_row_order,
    in_text_order,
    leaf_of,
)
from blizzard.worker.ndjson.compiled.page import Page, Scanned, fitting, leaf_column, without
from blizzard.worker.ndjson.compiled.scan import DONE, FieldNames, Names, Room
from blizzard.worker.ndjson.compiled.syntax import ABSENT, OBJECT, SIZE, Array
from blizzard.worker.ndjson.fields import NOWHERE, MemberPlace, is_kept, places_inside, places_of
from lakebed.columns.schema import Field
from lakebed.types import KEEPING, FieldType, UnknownFields

MAX_LEARNED = 100
"""New names per block; with more, learning them costs more than the fast path saves."""

Arrays = tuple[Array, ...]

_NEWLINE = ord("\n")


class Members:
    """The members of one kind of object: some are columns, others hold values of columns."""

    def __init__(self, places: Mapping[str, MemberPlace]) -> None:
        self._places = list(places.items())
        self._inside = [
            Members(place.inside) if place.inside else None for _, place in self._places
        ]
        self.names = FieldNames([name for name, _ in self._places])
        self._others = 0

    def lines(
        self, page: Page, lines_of: Sequence[int], max_line_bytes: int
    ) -> tuple[Scanned, list[int]]:
        """Return the members of lines and the row count of each block, or raise `Doubtful`."""
        room = sum(lines_of)
        line_of, line_starts = np.empty(room, np.int32), np.empty(room, np.int32)

        def scan_lines(names: Names, room: Room) -> int:
            end = int(page.ends[-1])
            return scan.lines(page.data, end, max_line_bytes, names, room, line_of, line_starts)

        scanned, refused = self._scan(page, room, scan_lines, collect=_collects(page))
        lines, rows = scanned.found[4:].tolist()
        edges = np.cumsum([0, *lines_of])
        starts = np.concatenate([[0], page.ends[:-1]])
        if lines != room or not np.array_equal(line_starts[edges[:-1]], starts):
            raise Doubtful
        rows_of = np.diff(np.searchsorted(line_of[:rows], edges)).tolist()
        if page.refused is not None:
            page.refused.line_of, page.refused.line_starts = line_of, line_starts
        if refused is not None:
            page.refusals.add(np.flatnonzero(refused))
        return self._found(scanned, rows, rows), rows_of

    def objects(
        self, page: Page, tokens: Tokens, objects: int, trail: Trail, around: Bytes | None = None
    ) -> Scanned:
        """Return the members of objects that are valid JSON, or raise `Doubtful`.

        `objects` counts the enclosing objects and `around` holds their kinds; fewer objects may
        exist if a path leads through them.
        """

        def scan_objects(names: Names, room: Room) -> int:
            return scan.objects(page.data, names, room, tokens.starts, tokens.kinds)

        rows = len(tokens.kinds)
        collect = trail.is_keyed or _collects(page)
        scanned, refused = self._scan(page, rows, scan_objects, collect=collect)
        if refused is not None:
            page.refusals.add_rows(np.flatnonzero(refused), trail)
        return self._found(scanned, rows, objects, around)

    def place(
        self,
        page: Page,
        found: Scanned,
        trail: Trail,
        taken: dict[int, Tokens],
        left: list[Leftovers],
    ) -> None:
        """Assign tokens to columns and collect the leftovers."""
        self._leftovers(page, found, trail, left)
        for (name, place), inside, tokens in zip(
            self._places, self._inside, found.tokens, strict=True
        ):
            for number in place.columns:
                taken[number] = tokens
            if inside is None:
                continue
            objects = tokens
            if sum(tokens.counts[ABSENT + 1 : SIZE]) != tokens.counts[OBJECT]:
                others = (tokens.kinds != ABSENT) & (tokens.kinds != OBJECT)
                page.refusals.add_rows(np.flatnonzero(others), trail)
                objects = without(tokens, others)
            deeper = inside.objects(page, objects, tokens.objects, trail, tokens.around)
            # A value that a column holds whole has no leftovers.
            whole = bool(place.columns)
            rest: list[Leftovers] = []
            inner = _uncounted(page) if whole else page
            inside.place(inner, deeper, trail.member(name), taken, rest)
            if not whole:
                left.extend(rest)

    def _scan(
        self, page: Page, rows: int, scanned: Callable[[Names, Room], int], *, collect: bool
    ) -> tuple[Room, Array | None]:
        """Scan; repeat after learning a name or making room for more leftovers.

        Return the results, and a mask of the refused rows or None.
        """
        names = self.names
        names.forget_some()
        shape = (len(self._places), rows)
        starts, lengths = np.empty(shape, np.int32), np.empty(shape, np.int32)
        for _ in range(MAX_LEARNED):
            kinds = np.zeros(shape, np.uint8)
            counts = np.zeros((names.slot_count, SIZE + 1), np.int64)
            seen = np.zeros(names.slot_count, np.int64)
            others = np.empty((4, self._others if collect else 0), np.int32)
            found, flags = np.zeros(6, np.int64), np.zeros(rows, np.uint8)
            room = Room(page.room, starts, lengths, kinds, counts, seen, others, found, flags)
            ended = scanned(names.arrays, room)
            left, start, end, refused = found[:4].tolist()
            if ended == DONE:
                if not collect or left <= others.shape[1]:
                    others = others[:, : left if collect else 0]
                    return room._replace(others=others), flags if refused else None
                self._others = left + left // 4
            elif not names.learn(page.data[start:end].tobytes()):
                # Not a valid name. The next scan continues without its line.
                page.refusals.add(np.array([np.count_nonzero(page.data[:start] == _NEWLINE)]))
                break
        raise Doubtful

    def _found(
        self, scanned: Room, rows: int, objects: int, around: Bytes | None = None
    ) -> Scanned:
        tokens = [
            Tokens(
                scanned.starts[slot, :rows],
                scanned.lengths[slot, :rows],
                scanned.kinds[slot, :rows],
                scanned.counts[slot].tolist(),
                objects,
                around,
            )
            for slot in range(len(self._places))
        ]
        return Scanned(tokens, scanned.counts, scanned.others)

    def _leftovers(self, page: Page, found: Scanned, trail: Trail, left: list[Leftovers]) -> None:
        """Count the values of undeclared members, and keep, drop or refuse them."""
        declared = len(self._places)
        values = found.counts[declared:, ABSENT + 1 : SIZE].sum(axis=1)
        if not values.any():
            return
        rows, slots, starts, lengths = found.others
        if page.unknown is UnknownFields.FAIL:
            page.refusals.add_rows(rows, trail)
            return
        names, slots = self.names.undeclared, slots - declared
        of_blocks = np.searchsorted(page.ends, starts, side="right")
        whole: Leftovers | None = None
        if trail.is_keyed or page.unknown in KEEPING:
            whole = Leftovers(rows, trail.named(rows, names, slots), starts, lengths)
        if whole is not None and trail.is_keyed:
            count_labels(page.counted, whole.labels(), of_blocks.tolist())
        else:
            if len(page.ends) > 1:
                places = of_blocks * len(names) + slots
                values = np.bincount(places, minlength=len(page.ends) * len(names))
            above = trail.label()
            labels = [any_element(member_path(above, name)) for name in names]
            counts = values.reshape(len(page.ends), -1).tolist()
            for block, of_block in enumerate(counts):
                for label, count in zip(labels, of_block, strict=True):
                    if count:
                        page.counted[block][label] += count
        if whole is not None and page.unknown in KEEPING:
            left.append(whole)


def _collects(page: Page) -> bool:
    """Whether the positions of undeclared values are needed, not only their number."""
    return page.unknown is not UnknownFields.DROP or len(page.ends) > 1


def _uncounted(page: Page) -> Page:
    return replace(page, unknown=UnknownFields.DROP, counted=defaultdict(Counter))


class PeelLevel:
    """The fields of objects: the lines themselves, or the values of a struct."""

    def __init__(
        self, fields: tuple[Field, ...], elsewhere: Mapping[str, MemberPlace] = NOWHERE
    ) -> None:
        places = places_of(fields, elsewhere)
        self.members = Members(places)
        self._columns = [
            (one, _column(one, places_inside(places, one.path)), is_kept(places, one.path))
            for one in fields
        ]

    def columns(
        self, page: Page, found: Scanned, trail: Trail, left: list[Leftovers]
    ) -> list["pa.Array[Any]"]:
        """Return the columns of the fields and append leftovers to `left`, or raise `Doubtful`."""
        taken: dict[int, Tokens] = {}
        own: list[Leftovers] = []
        self.members.place(page, found, trail, taken, own)
        columns = []
        for number, (one, column, kept) in enumerate(self._columns):
            way = trail
            for name in one.path:
                way = way.member(name)
            inner, rest = (_uncounted(page), []) if kept else (page, left)
            columns.append(column(inner, taken[number], way, rest))
        if own:
            left.append(in_text_order(own))
        return columns


Column = Callable[[Page, Tokens, Trail, list[Leftovers]], "pa.Array[Any]"]
"""Builds the column of a field from the tokens at a path, and appends leftovers to the list."""


def _column(one: Field, elsewhere: Mapping[str, MemberPlace] = NOWHERE) -> Column:
    match one.type:
        case FieldType.STRUCT:
            return _Structs(one, elsewhere).column
        case FieldType.LIST | FieldType.MAP:
            return _Items(one).column
    leaf = leaf_of(one)
    return lambda page, tokens, trail, _left: leaf_column(page, one, leaf, tokens, trail)


class _Structs:
    def __init__(self, one: Field, elsewhere: Mapping[str, MemberPlace]) -> None:
        self._field, self._type = one, one.arrow_type()
        self._level = PeelLevel(one.fields, elsewhere)

    def column(
        self, page: Page, tokens: Tokens, trail: Trail, left: list[Leftovers]
    ) -> "pa.Array[Any]":
        tokens, validity, nulls = fitting(page, self._field, tokens, trail)
        objects = tokens.counts[OBJECT]
        found = self._level.members.objects(page, tokens, objects, trail, tokens.kinds)
        inner = self._level.columns(page, found, trail, left)
        rows = len(tokens.kinds)
        array = pa.Array.from_buffers(self._type, rows, [validity], nulls, 0, inner)
        return required(array, self._field)


class _Items:
    """Lists and maps, whose elements or values are the rows of the next level."""

    def __init__(self, one: Field) -> None:
        if one.items is None:
            raise ValueError("a list or a map must declare its elements")
        self._field, self._is_map = one, one.type is FieldType.MAP
        self._type: Any = one.arrow_type()
        self._inner = _column(one.items)

    def column(
        self, page: Page, tokens: Tokens, trail: Trail, left: list[Leftovers]
    ) -> "pa.Array[Any]":
        tokens, validity, nulls = fitting(page, self._field, tokens, trail)
        names, values, offsets = items_of(page, tokens, is_keyed=self._is_map)
        if self._is_map:
            keys = self._keys(page, names, offsets, trail)
            inner = self._values(page, values, trail.entries(offsets, keys), left)
            entry = pa.struct([self._type.key_field, self._type.item_field])
            inner = pa.Array.from_buffers(entry, len(keys), [None], 0, 0, [keys, inner])
        else:
            inner = self._values(page, values, trail.elements(offsets), left)
        buffers = [validity, pa.py_buffer(offsets.data)]
        array = pa.Array.from_buffers(self._type, len(tokens.kinds), buffers, nulls, 0, [inner])
        return required(array, self._field)

    def _keys(self, page: Page, names: Tokens, offsets: Array, trail: Trail) -> Texts:
        """Return the keys of entries; refuse maps with duplicate keys."""
        count = len(names.kinds)
        keys = texts_of(page.data, names)
        encoded = keys.dictionary_encode()
        rows = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        entries = rows * len(encoded.dictionary) + encoded.indices.to_numpy()
        twice = np.ones(count, np.bool_)
        twice[np.unique(entries, return_index=True)[1]] = False
        if twice.any():
            page.refusals.add_rows(rows[twice], trail)
        return keys

    def _values(
        self, page: Page, tokens: Tokens, trail: Trail, left: list[Leftovers]
    ) -> "pa.Array[Any]":
        inside: list[Leftovers] = []
        array = self._inner(page, tokens, trail, inside)
        if inside:
            left.append(in_row_order(inside).above(trail))
        return array


def items_of(page: Page, tokens: Tokens, *, is_keyed: bool) -> tuple[Tokens, Tokens, Array]:
    """Return the keys and values of objects, or the elements of arrays, and the row offsets.

    Raise `Doubtful` if they cannot be separated.
    """
    most = tokens.counts[SIZE] // len('"":1' if is_keyed else "1,")
    names, values = _room(most if is_keyed else 0), _room(most)
    offsets = np.empty(len(tokens.kinds) + 1, np.int32)
    count = scan.items(
        page.data, tokens.starts, tokens.kinds, page.room, is_keyed, *names, *values, offsets
    )
    if count < 0:
        raise Doubtful
    return _tokens_in(names, count if is_keyed else 0), _tokens_in(values, count), offsets


def _room(most: int) -> tuple[Array, Array, Array, Array]:
    """Allocate arrays for the starts, lengths, kinds and counts of tokens."""
    each = np.empty(most, np.int32), np.empty(most, np.int32), np.empty(most, np.uint8)
    return *each, np.zeros(SIZE + 1, np.int64)


def _tokens_in(room: Arrays, count: int) -> Tokens:
    starts, lengths, kinds, counts = room
    return Tokens(starts[:count], lengths[:count], kinds[:count], counts.tolist(), count)
