"""Which token stands where in arrays, and in objects whose names are values. Compiled.

They are known to be JSON: a scan of what they stand in has said so.
"""

from numba import boolean, int32, int64, uint8

from blizzard.worker.ndjson.compiled.syntax import (
    ABSENT,
    BYTES,
    CLOSE_BRACE,
    CLOSE_BRACKET,
    COMMA,
    SIZE,
    Array,
    after_colon,
    after_space,
    string,
    value,
)
from blizzard.worker.ndjson.compiled.vector import compiled, pointer

_INTS = int32[::1]


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
    """Find the elements of arrays, or the names and values of objects, that are known to be JSON.

    Return how many there are, or -1. There is an offset for each array or object, and for each that
    is ABSENT, too.
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
