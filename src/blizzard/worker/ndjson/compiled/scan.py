"""Which token stands where in lines and objects. Compiled to machine code.

What is not understood is refused, line by line or row by row; nothing here knows why, as the exact
path finds that out. Nested values are peeled one level at a time: a scan says where the objects of
a field stand and that they are JSON, and the next one looks into them, for all rows at once.
"""

from numba import int32, int64, uint8

from blizzard.worker.ndjson.compiled.names import name_at
from blizzard.worker.ndjson.compiled.syntax import (
    ABSENT,
    BYTES,
    CLOSE_BRACE,
    COMMA,
    NEWLINE,
    OPEN_BRACE,
    SIZE,
    Array,
    Pointer,
    after_colon,
    after_space,
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

DONE, NEW_NAME = range(2)
"""How a scan ended."""
_REFUSED, _NEW_NAME, _NO_MEMBER = -1, -2, -3

_INTS = int32[::1]
_NAMES = (BYTES, int64[::1], int64[::1], int32[::1], int64[:, ::1], uint8[:, ::1])
_TOKENS = (int32[:, ::1], int32[:, ::1], uint8[:, ::1])


@part
def _member(
    data: Pointer,
    end: int,
    place: int,
    names: Pointer,
    name_starts: Pointer,
    buckets: Pointer,
    mask: int,
    order: Pointer,
    leads: Pointer,
    found: Pointer,
) -> tuple[int, int]:
    """Return the number of the next member's name, and where its value begins.

    Below zero it says how that ended, for `_NO_MEMBER` with where something else stands.

    What stands before a value is mostly what stood there in the object before, byte for byte. Then
    it means the same: the comma, the name and the colon are known to be right without a look.
    """
    name, size = order[2 * place], order[2 * place + 1]
    if size and first_of(differing(data, end, leads, WIDTH * place)) >= size:
        return name, after_space(data, end + size)
    at = after_space(data, end)
    if place:
        if data[at] != COMMA:
            return _NO_MEMBER, at
        at = after_space(data, at + 1)
    elif data[at] == CLOSE_BRACE:
        return _NO_MEMBER, at
    name, stop = name_at(data, at, name, names, name_starts, buckets, mask)
    if name < 0:
        found[1], found[2] = at, stop
        return _NEW_NAME if stop >= 0 else _REFUSED, at
    at = after_colon(data, stop)
    if at < 0:
        return _REFUSED, at
    order[2 * place] = name
    order[2 * place + 1] = at - end if at - end <= WIDTH else 0
    copy_step(data, end, leads, WIDTH * place)
    return name, at


@part
def _members(
    data: Pointer,
    at: int,
    closing: Pointer,
    names: Pointer,
    name_starts: Pointer,
    slots: Pointer,
    buckets: Pointer,
    mask: int,
    order: Pointer,
    leads: Pointer,
    places: int,
    row: int,
    declared: int,
    rows: int,
    starts: Pointer,
    lengths: Pointer,
    kinds: Pointer,
    counts: Pointer,
    first: int,
    seen: Pointer,
    others: Pointer,
    room_for_others: int,
    found: Pointer,
) -> int:
    """Find the members of one object, and return where it ends; else how that ended, below zero.

    The row's block has its counts from the `first` on. What is `found` are the number of values of
    undeclared fields and where a new name stands.
    """
    end = at + 1
    place = 0
    while True:
        name, at = _member(data, end, place, names, name_starts, buckets, mask, order, leads, found)
        if name < 0:
            break
        place = min(place + 1, places - 1)
        slot = slots[name]
        if seen[slot] == row + 1:  # a field that was there already
            return _REFUSED
        seen[slot] = row + 1
        end, kind = value(data, at, closing)
        if end < 0:
            return _REFUSED
        counts[(first + slot) * (SIZE + 1) + kind] += 1
        if kind != ABSENT:
            if slot < declared:
                token = slot * rows + row
                starts[token] = at
                lengths[token] = end - at
                kinds[token] = kind
                counts[(first + slot) * (SIZE + 1) + SIZE] += end - at
            else:
                other = found[0]
                if other < room_for_others:
                    others[other] = row
                    others[room_for_others + other] = slot
                    others[2 * room_for_others + other] = at
                    others[3 * room_for_others + other] = end - at
                found[0] = other + 1
    if name == _NO_MEMBER:
        return at + 1 if data[at] == CLOSE_BRACE else _REFUSED
    return name


@compiled(
    int64(
        BYTES, int64[::1], int64, *_NAMES, uint8[::1], *_TOKENS,
        int64[:, :, ::1], int64[::1], int32[:, ::1], int64[::1], uint8[::1],
        int64[:, ::1], _INTS, _INTS,
    )
)  # fmt: skip
def lines(
    blocks: Array,
    ends: Array,
    max_line_bytes: int,
    names: Array,
    name_starts: Array,
    slots: Array,
    buckets: Array,
    order: Array,
    leads: Array,
    room: Array,
    starts: Array,
    lengths: Array,
    kinds: Array,
    counts: Array,
    seen: Array,
    others: Array,
    found: Array,
    refused: Array,
    lines_of: Array,
    line_of: Array,
    line_starts: Array,
) -> int:
    """Find the tokens of blocks of lines, and return how that ended.

    The blocks stand one after the other, none is empty, and `ends` says where each has its end.

    `names` are the known ones as they are written, with their quotes, and `slots` the fields they
    mean; the first slots are the declared ones. `order` has the name of each member of the line
    before, and the size of what stood before its value, which is in `leads`: both are mostly those
    of this line, too. `room` is for MAX_DEPTH closing brackets.

    For each declared field and row there are a start, a length and a kind, which must have been
    ABSENT; for each block and slot the `counts` of values by kind, and their SIZE; for each block
    the lines and the rows, in `lines_of`. All counts must have been zero. For the values of
    undeclared fields, in their order, `others` has row, slot, start and length as far as there is
    room; `found` says how many there are, and where a new name starts and ends.

    A line that is not understood is `refused`, and how many are is the last number of `found`. It
    is a row, too, if it begins as an object does: of those of its members that were understood.
    `line_of` says in which line each row stands, and `line_starts` where each line does.
    """
    data, closing = pointer(blocks), pointer(room)
    at = rows = block = line = 0
    while block < len(ends):
        line_start = at
        if line < len(line_starts):
            line_starts[line] = at
        lines_of[block, 0] += 1
        at = after_space(data, at)
        if data[at] == OPEN_BRACE and rows < kinds.shape[1]:
            line_of[rows] = line
            at = _members(
                data, at, closing, pointer(names), pointer(name_starts), pointer(slots),
                pointer(buckets), len(buckets) - 1, pointer(order), pointer(leads), len(order),
                rows, kinds.shape[0], kinds.shape[1],
                pointer(starts), pointer(lengths), pointer(kinds), pointer(counts),
                block * counts.shape[1], pointer(seen), pointer(others), others.shape[1],
                pointer(found),
            )  # fmt: skip
            if at == _NEW_NAME:
                return NEW_NAME
            rows += 1
            lines_of[block, 1] += 1
            if at >= 0:
                at = after_space(data, at)
        if at < 0 or data[at] != NEWLINE or at - line_start > max_line_bytes:
            if line < len(refused):
                refused[line] = 1
            found[3] += 1
            at = line_start
            while data[at] != NEWLINE:
                at += 1
        at += 1
        line += 1
        block += at >= ends[block]
    return DONE


@compiled(
    int64(
        BYTES, int64[::1], _INTS, uint8[::1], *_NAMES, uint8[::1], *_TOKENS,
        int64[:, :, ::1], int64[::1], int32[:, ::1], int64[::1], uint8[::1],
    )
)  # fmt: skip
def objects(
    blocks: Array,
    ends: Array,
    object_starts: Array,
    object_kinds: Array,
    names: Array,
    name_starts: Array,
    slots: Array,
    buckets: Array,
    order: Array,
    leads: Array,
    room: Array,
    starts: Array,
    lengths: Array,
    kinds: Array,
    counts: Array,
    seen: Array,
    others: Array,
    found: Array,
    refused: Array,
) -> int:
    """Find the tokens of objects that are known to be JSON; the rest is as in `lines`.

    There is a row for each object, and for each that is ABSENT, too. What is `refused` is a row.
    """
    data, closing = pointer(blocks), pointer(room)
    block = 0
    for row in range(len(object_kinds)):
        if object_kinds[row] == ABSENT:
            continue
        at = object_starts[row]
        while at >= ends[block]:
            block += 1
        at = _members(
            data, at, closing, pointer(names), pointer(name_starts), pointer(slots),
            pointer(buckets), len(buckets) - 1, pointer(order), pointer(leads), len(order),
            row, kinds.shape[0], kinds.shape[1],
            pointer(starts), pointer(lengths), pointer(kinds), pointer(counts),
            block * counts.shape[1], pointer(seen), pointer(others), others.shape[1],
            pointer(found),
        )  # fmt: skip
        if at == _NEW_NAME:
            return NEW_NAME
        if at < 0:
            refused[row] = 1
            found[3] += 1
    return DONE
