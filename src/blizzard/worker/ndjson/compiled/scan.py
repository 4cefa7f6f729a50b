"""Which token stands where in lines, objects and arrays. Compiled to machine code.

What is not understood is refused, line by line or row by row; nothing here knows why, as the exact
path finds that out. Nested
values are peeled one level at a time: a scan says where the objects of a field stand and that they
are JSON, and the next one looks into them, for all rows at once.
"""

from numba import int32, int64, uint8

from blizzard.worker.ndjson.compiled.names import hash_of, is_next, name_at
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
    agreeing,
    compiled,
    copy_step,
    part,
    pointer,
)

DONE, NEW_NAME = range(2)
"""How a scan ended."""
_REFUSED, _NEW_NAME = -1, -2

_INTS = int32[::1]
_NAMES = (BYTES, int64[::1], int64[::1], int32[::1], int64[:, ::1], uint8[:, ::1])
_TOKENS = (int32[:, ::1], int32[:, ::1], uint8[:, ::1])


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

    What stands before a value is mostly what stood there in the object before, byte for byte. Then
    it means the same: the comma, the name and the colon are known to be right without a look.
    """
    end = at + 1
    place = 0
    while True:
        name = order[2 * place]
        size = order[2 * place + 1]
        if size and agreeing(data, end, leads, WIDTH * place) >= size:
            at = after_space(data, end + size)
        else:
            at = after_space(data, end)
            if place:
                if data[at] != COMMA:
                    break
                at = after_space(data, at + 1)
            elif data[at] == CLOSE_BRACE:
                break
            name, stop = name_at(data, at, name, names, name_starts, buckets, mask)
            if name < 0:
                found[1], found[2] = at, stop
                return _NEW_NAME if stop >= 0 else _REFUSED
            at = after_colon(data, stop)
            if at < 0:
                return _REFUSED
            order[2 * place] = name
            order[2 * place + 1] = at - end if at - end <= WIDTH else 0
            copy_step(data, end, leads, WIDTH * place)
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
    return at + 1 if data[at] == CLOSE_BRACE else _REFUSED


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


@compiled(int64(BYTES, _INTS, uint8[::1], uint8[::1], _INTS, _INTS, uint8[::1], int64[::1], _INTS))
def elements(
    blocks: Array,
    array_starts: Array,
    array_kinds: Array,
    room: Array,
    starts: Array,
    lengths: Array,
    kinds: Array,
    counts: Array,
    offsets: Array,
) -> int:
    """Find the elements of arrays that are known to be JSON, and return how many there are, or -1.

    There is an offset for each array, and for each that is ABSENT, too.
    """
    data, closing = pointer(blocks), pointer(room)
    to = 0
    for row in range(len(array_kinds)):
        offsets[row] = to
        if array_kinds[row] == ABSENT:
            continue
        at = after_space(data, array_starts[row] + 1)
        more = data[at] != CLOSE_BRACKET
        while more:
            end, kind = value(data, at, closing)
            if end < 0 or to == len(kinds):
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
    offsets[len(array_kinds)] = to
    return to


@compiled(
    int64(
        BYTES, _INTS, uint8[::1], uint8[::1], _INTS, _INTS, uint8[::1], int64[::1],
        _INTS, _INTS, uint8[::1], int64[::1], _INTS,
    )
)  # fmt: skip
def entries(
    blocks: Array,
    object_starts: Array,
    object_kinds: Array,
    room: Array,
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
    """Find the names and values of objects that are known to be JSON; the rest as in `elements`."""
    data, closing = pointer(blocks), pointer(room)
    to = 0
    for row in range(len(object_kinds)):
        offsets[row] = to
        if object_kinds[row] == ABSENT:
            continue
        at = after_space(data, object_starts[row] + 1)
        more = data[at] != CLOSE_BRACE
        while more:
            end, kind = string(data, at)
            if end < 0 or to == len(kinds):
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
    offsets[len(object_kinds)] = to
    return to


@compiled(int64(uint8[::1], _INTS, _INTS, _INTS, uint8[::1]))
def repeats(texts: Array, offsets: Array, groups: Array, buckets: Array, twice: Array) -> int:
    """Find the groups that have a text `twice`, and return how often that is.

    Of `buckets` there is a power of two, more than texts. Behind the texts there must be room for a
    step.
    """
    data, mask = pointer(texts), len(buckets) - 1
    buckets[:] = -1
    count = 0
    for group in range(len(groups) - 1):
        for number in range(groups[group], groups[group + 1]):
            start, end = offsets[number], offsets[number + 1]
            bucket = (hash_of(data, start, end) + group * 40503) & mask
            while buckets[bucket] >= 0:
                other = buckets[bucket]
                if (
                    other >= groups[group]
                    and offsets[other + 1] - offsets[other] == end - start
                    and is_next(data, start, data, offsets[other], offsets[other + 1])
                ):
                    twice[group] = 1
                    count += 1
                bucket = (bucket + 1) & mask
            buckets[bucket] = number
    return count
