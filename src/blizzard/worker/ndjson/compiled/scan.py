"""A scan for the tokens of lines, objects and arrays. Compiled to machine code.

Invalid lines or rows are refused without a reason, which the exact path finds. Nested values are
read one level at a time: a scan locates the objects of a field and checks that they are JSON, and
the next scan reads their members, for all rows at once.

Member names are recognised by their written form. New names are learned.
"""

import json
from typing import Any, NamedTuple

import numpy as np
from numba import boolean, int32, int64, types, uint8, void

from blizzard.worker.ndjson.compiled.syntax import (
    ABSENT,
    BYTES,
    CLOSE_BRACE,
    CLOSE_BRACKET,
    COMMA,
    NEWLINE,
    OPEN_BRACE,
    SIZE,
    Array,
    Pointer,
    after_colon,
    after_space,
    string,
    value,
)
from blizzard.worker.ndjson.compiled.vector import (
    WIDTH,
    compiled,
    copy_step,
    differing,
    first_of,
    part,
    pointer,
)

MAX_REMEMBERED = 1000
MAX_PLACES = 4096
"""Members per line whose names are predicted from the previous line."""

_PADDING = bytes(WIDTH)
"""The scan may read one vector step past the end."""


@part
def is_next(data: Pointer, at: int, names: Pointer, start: int, end: int) -> bool:
    """Whether this name is at this position."""
    same = WIDTH
    while start < end and same == WIDTH:
        same = first_of(differing(data, at, names, start))
        at, start = at + same, start + same
    return start >= end


@part
def hash_of(text: Pointer, start: int, end: int) -> int:
    """Hash a text."""
    found = 5381
    for place in range(start, end):
        found = ((found * 33) ^ text[place]) & 0xFFFFFFFF
    return found


class Names(NamedTuple):
    """The known names as compiled code reads them, as arrays or as pointers into them."""

    written: Pointer
    """The names as written, in quotes, concatenated."""
    starts: Pointer
    slots: Pointer
    """The field of each name; declared fields have the first slots."""
    buckets: Pointer
    order: Pointer
    """For each member of the previous object, its name and the size of the prefix of its value, or
    0 if that is longer than a vector step."""
    leads: Pointer
    """The prefix of each value: a comma except for the first, the name and the colon."""


NAMES: Any = types.NamedTuple(  # type: ignore[no-untyped-call]  # numba has no types
    (uint8[::1], int64[::1], int64[::1], int32[::1], int64[:, ::1], uint8[:, ::1]), Names
)


@part
def pointers(names: Names) -> Names:
    """Return the names as pointers."""
    return Names(
        pointer(names.written), pointer(names.starts), pointer(names.slots),
        pointer(names.buckets), pointer(names.order), pointer(names.leads),
    )  # fmt: skip


@part
def _find(data: Pointer, at: int, end: int, names: Names, mask: int) -> int:
    """Return the number of a name, or -1."""
    bucket = hash_of(data, at, end) & mask
    while names.buckets[bucket] >= 0:
        number: int = names.buckets[bucket]
        start, stop = names.starts[number], names.starts[number + 1]
        if stop - start == end - at and is_next(data, at, names.written, start, stop):
            return number
        bucket = (bucket + 1) & mask
    return -1


@part
def name_at(data: Pointer, at: int, guess: int, names: Names, mask: int) -> tuple[int, int]:
    """Return the number of a name and its end; -1 and its end if new, -1 twice if invalid."""
    if guess >= 0:
        start, stop = names.starts[guess], names.starts[guess + 1]
        if is_next(data, at, names.written, start, stop):
            return guess, at + stop - start
    end, _ = string(data, at)
    return _find(data, at, end, names, mask) if end >= 0 else -1, end


@compiled(void(BYTES, int64[::1], int32[::1]))
def fill_buckets(names: Array, name_starts: Array, buckets: Array) -> None:
    """Fill the hash table of the names: a power of two buckets, more than names."""
    mask = len(buckets) - 1
    buckets[:] = -1
    for number in range(len(name_starts) - 1):
        bucket = hash_of(pointer(names), name_starts[number], name_starts[number + 1]) & mask
        while buckets[bucket] >= 0:
            bucket = (bucket + 1) & mask
        buckets[bucket] = number


class FieldNames:
    r"""The known field names, in the arrays that the scan reads.

    Different spellings of a name, such as `"id"` and `"\u0069d"`, share a slot. Declared fields
    have the first slots.
    """

    def __init__(self, declared: list[str]) -> None:
        self._declared = declared
        self._order = np.empty((MAX_PLACES, 2), np.int64)
        self._leads = np.empty((MAX_PLACES, WIDTH), np.uint8)
        self._begin()

    @property
    def slot_count(self) -> int:
        """The number of known fields."""
        return len(self._slot_of)

    def learn(self, written: bytes) -> bool:
        """Learn a name as written, in quotes; return False if it is not valid Unicode."""
        name = json.loads(written)
        try:
            name.encode()
        except UnicodeEncodeError:  # half a surrogate pair
            return False
        slot = self._slot_of.setdefault(name, len(self._slot_of))
        self._add(written, slot)
        self._arrange()
        return True

    def forget_some(self) -> None:
        """Forget undeclared names if there are too many."""
        if len(self._written) > len(self._declared) + MAX_REMEMBERED:
            self._begin()

    @property
    def undeclared(self) -> list[str]:
        """The known undeclared fields, in slot order."""
        return list(self._slot_of)[len(self._declared) :]

    def _begin(self) -> None:
        self._order[:] = (-1, 0)
        self._slot_of = {name: slot for slot, name in enumerate(self._declared)}
        self._written: list[bytes] = []
        self._slots: list[int] = []
        for name, slot in self._slot_of.items():
            self._add(json.dumps(name, ensure_ascii=False).encode(), slot)
        self._arrange()

    def _add(self, written: bytes, slot: int) -> None:
        self._written.append(written)
        self._slots.append(slot)

    def _arrange(self) -> None:
        written = np.frombuffer(bytearray().join([*self._written, _PADDING]), np.uint8)
        starts = np.cumsum([0, *map(len, self._written)], dtype=np.int64)
        buckets = np.empty(2 << len(self._written).bit_length(), np.int32)
        fill_buckets(written, starts, buckets)
        slots = np.array(self._slots, np.int64)
        self.arrays = Names(written, starts, slots, buckets, self._order, self._leads)


DONE, NEW_NAME = range(2)
"""Results of a scan."""
_REFUSED, _NEW_NAME, _NO_MEMBER = -1, -2, -3


class Room(NamedTuple):
    """The output of a scan, as arrays or as pointers into them.

    For each declared field and row: a start, a length and a kind, initially ABSENT. For each slot:
    the `counts` of values by kind and their total SIZE, initially zero. For undeclared values in
    their order: row, slot, start and length in `others`, as far as there is room. `found` holds
    the number of undeclared values, the start and end of a new name, the number of `refused` lines
    or rows, and the number of lines and rows.
    """

    closing: Pointer
    """Room for MAX_DEPTH closing brackets."""
    starts: Pointer
    lengths: Pointer
    kinds: Pointer
    counts: Pointer
    seen: Pointer
    others: Pointer
    found: Pointer
    refused: Pointer


_INTS = int32[::1]
_TABLE = int32[:, ::1]
_ROOM: Any = types.NamedTuple(  # type: ignore[no-untyped-call]  # numba has no types
    (
        uint8[::1], _TABLE, _TABLE, uint8[:, ::1], int64[:, ::1], int64[::1], _TABLE,
        int64[::1], uint8[::1],
    ),
    Room,
)  # fmt: skip


class _Sizes(NamedTuple):
    """The sizes of the arrays behind the pointers."""

    mask: int
    places: int
    declared: int
    rows: int
    others: int


@part
def _pointers(room: Room) -> Room:
    return Room(
        pointer(room.closing), pointer(room.starts), pointer(room.lengths), pointer(room.kinds),
        pointer(room.counts), pointer(room.seen), pointer(room.others), pointer(room.found),
        pointer(room.refused),
    )  # fmt: skip


@part
def _sizes(names: Names, room: Room) -> _Sizes:
    return _Sizes(
        len(names.buckets) - 1, len(names.order), room.kinds.shape[0], room.kinds.shape[1],
        room.others.shape[1],
    )  # fmt: skip


@part
def _member(
    data: Pointer, end: int, place: int, names: Names, mask: int, found: Pointer
) -> tuple[int, int]:
    """Return the number of the next member's name and the start of its value.

    A negative number is `_REFUSED`, `_NEW_NAME` or `_NO_MEMBER`, the latter with the position of
    the next token.

    The prefix of a value mostly equals that in the previous object, byte for byte. Then the comma,
    the name and the colon need no parsing.
    """
    order = names.order
    name, size = order[2 * place], order[2 * place + 1]
    if size and first_of(differing(data, end, names.leads, WIDTH * place)) >= size:
        return name, after_space(data, end + size)
    at = after_space(data, end)
    if place:
        if data[at] != COMMA:
            return _NO_MEMBER, at
        at = after_space(data, at + 1)
    elif data[at] == CLOSE_BRACE:
        return _NO_MEMBER, at
    name, stop = name_at(data, at, name, names, mask)
    if name < 0:
        found[1], found[2] = at, stop
        return _NEW_NAME if stop >= 0 else _REFUSED, at
    at = after_colon(data, stop)
    if at < 0:
        return _REFUSED, at
    order[2 * place] = name
    order[2 * place + 1] = at - end if at - end <= WIDTH else 0
    copy_step(data, end, names.leads, WIDTH * place)
    return name, at


@part
def _members(data: Pointer, at: int, row: int, names: Names, room: Room, sizes: _Sizes) -> int:
    """Scan the members of one object; return its end, or a negative result code."""
    end = at + 1
    place = 0
    while True:
        name, at = _member(data, end, place, names, sizes.mask, room.found)
        if name < 0:
            break
        place = min(place + 1, sizes.places - 1)
        slot = names.slots[name]
        if room.seen[slot] == row + 1:  # a duplicate field
            return _REFUSED
        room.seen[slot] = row + 1
        end, kind = value(data, at, room.closing)
        if end < 0:
            return _REFUSED
        counts = slot * (SIZE + 1)
        room.counts[counts + kind] += 1
        if kind != ABSENT:
            if slot < sizes.declared:
                token = slot * sizes.rows + row
                room.starts[token] = at
                room.lengths[token] = end - at
                room.kinds[token] = kind
                room.counts[counts + SIZE] += end - at
            else:
                other = room.found[0]
                if other < sizes.others:
                    room.others[other] = row
                    room.others[sizes.others + other] = slot
                    room.others[2 * sizes.others + other] = at
                    room.others[3 * sizes.others + other] = end - at
                room.found[0] = other + 1
    if name == _NO_MEMBER:
        return at + 1 if data[at] == CLOSE_BRACE else _REFUSED
    return name


@compiled(int64(BYTES, int64, int64, NAMES, _ROOM, _INTS, _INTS))
def lines(
    block: Array,
    end: int,
    max_line_bytes: int,
    names: Names,
    room: Room,
    line_of: Array,
    line_starts: Array,
) -> int:
    """Scan the tokens of lines; return `DONE` or `NEW_NAME`.

    An invalid line is `refused`. If it begins like an object it is a row as well, of the members
    read so far. `line_of` gets the line of each row, and `line_starts` the start of each line.
    """
    data, known, here = pointer(block), pointers(names), _pointers(room)
    sizes = _sizes(names, room)
    at = rows = line = 0
    while at < end:
        line_start = at
        if line < len(line_starts):
            line_starts[line] = at
        at = after_space(data, at)
        if data[at] == OPEN_BRACE and rows < sizes.rows:
            line_of[rows] = line
            at = _members(data, at, rows, known, here, sizes)
            if at == _NEW_NAME:
                return NEW_NAME
            rows += 1
            if at >= 0:
                at = after_space(data, at)
        if at < 0 or data[at] != NEWLINE or at - line_start > max_line_bytes:
            if line < len(room.refused):
                here.refused[line] = 1
            here.found[3] += 1
            at = line_start
            while data[at] != NEWLINE:
                at += 1
        at += 1
        line += 1
    here.found[4], here.found[5] = line, rows
    return DONE


@compiled(int64(BYTES, NAMES, _ROOM, _INTS, uint8[::1]))
def objects(
    block: Array, names: Names, room: Room, object_starts: Array, object_kinds: Array
) -> int:
    """Scan the tokens of objects that are valid JSON; see `lines`.

    Every object is a row, also an ABSENT one. `refused` refers to rows.
    """
    data, known, here = pointer(block), pointers(names), _pointers(room)
    sizes = _sizes(names, room)
    for row in range(len(object_kinds)):
        if object_kinds[row] == ABSENT:
            continue
        at = _members(data, object_starts[row], row, known, here, sizes)
        if at == _NEW_NAME:
            return NEW_NAME
        if at < 0:
            here.refused[row] = 1
            here.found[3] += 1
    return DONE


@compiled(
    int64(
        BYTES, _INTS, uint8[::1], uint8[::1], boolean, _INTS, _INTS, uint8[::1], int64[::1],
        _INTS, _INTS, uint8[::1], int64[::1], _INTS,
    )
)  # fmt: skip
def items(
    blocks: Array,
    outer_starts: Array,
    outer_kinds: Array,
    room: Array,
    is_keyed: bool,
    key_starts: Array,
    key_lengths: Array,
    key_kinds: Array,
    key_counts: Array,
    starts: Array,
    lengths: Array,
    kinds: Array,
    counts: Array,
    offsets: Array,
) -> int:
    """Scan the elements of arrays, or the keys and values of objects, that are valid JSON.

    Return their number, or -1. Every array or object has an offset, also an ABSENT one.
    """
    data, closing = pointer(blocks), pointer(room)
    close = CLOSE_BRACE if is_keyed else CLOSE_BRACKET
    to = 0
    for row in range(len(outer_kinds)):
        offsets[row] = to
        if outer_kinds[row] == ABSENT:
            continue
        at = after_space(data, outer_starts[row] + 1)
        more = data[at] != close
        while more:
            if to == len(kinds):
                return -1
            if is_keyed:
                end, kind = string(data, at)
                if end < 0:
                    return -1
                key_starts[to] = at
                key_lengths[to] = end - at
                key_kinds[to] = kind
                key_counts[kind] += 1
                key_counts[SIZE] += end - at
                at = after_colon(data, end)
                if at < 0:
                    return -1
            end, kind = value(data, at, closing)
            if end < 0:
                return -1
            starts[to] = at
            lengths[to] = end - at
            kinds[to] = kind
            counts[kind] += 1
            counts[SIZE] += end - at
            to += 1
            at = after_space(data, end)
            more = data[at] == COMMA
            if more:
                at = after_space(data, at + 1)
    offsets[len(outer_kinds)] = to
    return to
