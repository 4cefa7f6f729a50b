"""Lines by the letter of JSON's grammar: which token stands where. Compiled to machine code.

What is not understood is refused; nothing here knows why, as the exact path finds that out.

A block ends with a newline, and no token goes on beyond one. So bytes are compared from left to
right, each only after the one before it, and nothing is read past the end but a step of `vector`.
Compiled code checks no bounds: this is what keeps it within them.
"""

from typing import Any

import numpy as np
from numba import boolean, int32, int64, types, uint8, void

from blizzard.worker.ndjson.vector import (
    WIDTH,
    agreeing,
    compiled,
    copy_step,
    ordinary,
    part,
    pointer,
)

ABSENT, TEXT, ESCAPED, INTEGER, NUMBER, TRUE, FALSE, NESTED = range(8)
"""What a token is; a null is as good as none. An ESCAPED one is text with backslashes in it."""
SIZE = NESTED + 1
"""Where, after its counts by kind, the bytes of a field's tokens are counted."""

DONE, REFUSED, NEW_NAME = range(3)
"""How a scan ended."""

MAX_DEPTH = 400
"""Below what the exact path bears, so that it decides at the border."""

Pointer = Any
Array = Any
_BYTES = types.Array(uint8, 1, "C", readonly=True)

_TAB, _NEWLINE, _RETURN, _SPACE = b"\t\n\r "
_QUOTE, _COMMA, _MINUS, _PLUS, _DOT, _COLON, _BACKSLASH = b'",-+.:\\'
_OPEN_BRACE, _CLOSE_BRACE, _OPEN_BRACKET = b"{}["
_ZERO, _NINE = b"09"
_LARGE_E, _A, _E, _F, _L, _N, _R, _S, _T, _U = b"Eaeflnrstu"

_MEANING = np.zeros(256, np.uint8)
"""What is meant by a letter after a backslash; nothing by most."""
_MEANING[list(b'"\\/bfnrt')] = list(b'"\\/\b\f\n\r\t')
_DIGIT = np.full(256, -1, np.int64)
_DIGIT[list(b"0123456789abcdef")] = range(16)
_DIGIT[list(b"ABCDEF")] = range(10, 16)


@part
def _after_space(data: Pointer, at: int) -> int:
    while data[at] in (_SPACE, _TAB, _RETURN):
        at += 1
    return at


@part
def _after_escape(data: Pointer, at: int) -> int:
    """Return where an escape ends, or -1."""
    if data[at + 1] != _U:
        return at + 2 if _MEANING[data[at + 1]] else -1
    for place in range(at + 2, at + 6):
        if _DIGIT[data[place]] < 0:
            return -1
    return at + 6


@part
def _string(data: Pointer, at: int) -> tuple[int, int]:
    """Return where a string ends, after its quote, and which kind it is; -1 if it is none."""
    kind = TEXT
    if data[at] != _QUOTE:
        return -1, kind
    at += 1
    while at >= 0:
        ahead = ordinary(data, at)
        at += ahead
        if ahead == WIDTH:
            continue
        if data[at] == _QUOTE:
            return at + 1, kind
        if data[at] != _BACKSLASH:
            break
        kind = ESCAPED
        at = _after_escape(data, at)
    return -1, kind


@part
def _after_digits(data: Pointer, at: int) -> int:
    while _ZERO <= data[at] <= _NINE:
        at += 1
    return at


@part
def _number(data: Pointer, at: int) -> tuple[int, int]:
    """Return where a number ends and which kind it is; -1 if it is none."""
    kind = INTEGER
    start = at + (data[at] == _MINUS)
    at = _after_digits(data, start)
    missing = at == start or (data[start] == _ZERO and at > start + 1)
    if data[at] == _DOT:
        kind = NUMBER
        start = at + 1
        at = _after_digits(data, start)
        missing |= at == start
    if data[at] in (_E, _LARGE_E):
        kind = NUMBER
        start = at + 1 + (data[at + 1] in (_PLUS, _MINUS))
        at = _after_digits(data, start)
        missing |= at == start
    return -1 if missing else at, kind


@part
def _flat(data: Pointer, at: int) -> tuple[int, int]:
    """Return where a value that is no object and no array ends and which kind it is; -1 if none."""
    first = data[at]
    if first == _QUOTE:
        return _string(data, at)
    if first == _N:
        right = data[at + 1] == _U and data[at + 2] == _L and data[at + 3] == _L
        return at + 4 if right else -1, ABSENT
    if first == _T:
        right = data[at + 1] == _R and data[at + 2] == _U and data[at + 3] == _E
        return at + 4 if right else -1, TRUE
    if first == _F:
        right = data[at + 1] == _A and data[at + 2] == _L and data[at + 3] == _S
        return at + 5 if right and data[at + 4] == _E else -1, FALSE
    return _number(data, at)


@part
def _after_colon(data: Pointer, at: int) -> int:
    """Return where the value of a member begins, or -1."""
    at = _after_space(data, at)
    return _after_space(data, at + 1) if data[at] == _COLON else -1


@part
def _after_inner_name(data: Pointer, at: int) -> int:
    """Return where the value of a member begins, or -1. What its name is does not matter."""
    end, _ = _string(data, at)
    return -1 if end < 0 else _after_colon(data, end)


@part
def _after_nested(data: Pointer, at: int, closing: Pointer) -> int:  # noqa: C901 - a grammar
    """Return where an object or an array ends, or -1. `closing` is room for what is still open."""
    depth = 0
    while at >= 0:
        first = data[at]  # here a value begins
        if first in (_OPEN_BRACE, _OPEN_BRACKET):
            close = first + 2  # the codes of both pairs of brackets are two apart
            at = _after_space(data, at + 1)
            if data[at] == close:
                at += 1
            elif depth < MAX_DEPTH:
                closing[depth] = close
                depth += 1
                if close == _CLOSE_BRACE:
                    at = _after_inner_name(data, at)
                continue
            else:
                return -1
        else:
            at, _ = _flat(data, at)
        while at >= 0:  # here a value has ended
            if depth == 0:
                return at
            at = _after_space(data, at)
            last = data[at]
            at += 1
            if last == _COMMA:
                at = _after_space(data, at)
                if closing[depth - 1] == _CLOSE_BRACE:
                    at = _after_inner_name(data, at)
                break
            if last != closing[depth - 1]:
                return -1
            depth -= 1
    return -1


@part
def _value(data: Pointer, at: int, closing: Pointer) -> tuple[int, int]:
    """Return where a value ends and which kind it is; -1 if it is none."""
    if data[at] in (_OPEN_BRACE, _OPEN_BRACKET):
        return _after_nested(data, at, closing), NESTED
    return _flat(data, at)


@part
def _is_next(data: Pointer, at: int, names: Pointer, start: int, end: int) -> bool:
    same = WIDTH
    while start < end and same == WIDTH:
        same = agreeing(data, at, names, start)
        at, start = at + same, start + same
    return start >= end


@part
def _hash(text: Pointer, start: int, end: int) -> int:
    found = 5381
    for place in range(start, end):
        found = ((found * 33) ^ text[place]) & 0xFFFFFFFF
    return found


@part
def _find(
    data: Pointer, at: int, end: int, names: Pointer, starts: Pointer, buckets: Pointer, mask: int
) -> int:
    """Return the number of a name, or -1."""
    bucket = _hash(data, at, end) & mask
    while buckets[bucket] >= 0:
        number: int = buckets[bucket]
        start, stop = starts[number], starts[number + 1]
        if stop - start == end - at and _is_next(data, at, names, start, stop):
            return number
        bucket = (bucket + 1) & mask
    return -1


@part
def _name(
    data: Pointer, at: int, guess: int, names: Pointer, starts: Pointer, buckets: Pointer, mask: int
) -> tuple[int, int]:
    """Return number of a name, and where it ends: -1 and its end if it is new, else -1 twice."""
    if guess >= 0 and _is_next(data, at, names, starts[guess], starts[guess + 1]):
        return guess, at + starts[guess + 1] - starts[guess]
    end, _ = _string(data, at)
    return _find(data, at, end, names, starts, buckets, mask) if end >= 0 else -1, end


@compiled(void(_BYTES, int64[::1], int32[::1]))
def fill_buckets(names: Array, name_starts: Array, buckets: Array) -> None:
    """Make the table in which names are looked up: a power of two of places, more than names."""
    mask = len(buckets) - 1
    buckets[:] = -1
    for number in range(len(name_starts) - 1):
        bucket = _hash(pointer(names), name_starts[number], name_starts[number + 1]) & mask
        while buckets[bucket] >= 0:
            bucket = (bucket + 1) & mask
        buckets[bucket] = number


@compiled(
    int64(
        _BYTES, int64[::1], int64,
        _BYTES, int64[::1], int64[::1], int32[::1], int64[::1], uint8[::1],
        int32[:, ::1], int32[:, ::1], uint8[:, ::1], int64[:, :, ::1], int64[::1], int64[:, ::1],
    )
)  # fmt: skip
def scan(  # noqa: C901 - one loop over all
    blocks: Array,
    ends: Array,
    max_line_bytes: int,
    names: Array,
    name_starts: Array,
    slots: Array,
    buckets: Array,
    order: Array,
    room: Array,
    starts: Array,
    lengths: Array,
    kinds: Array,
    counts: Array,
    seen: Array,
    found: Array,
) -> int:
    """Find the tokens of blocks of lines, and say how that ended.

    The blocks stand one after the other, none is empty, and `ends` says where each has its end.

    `names` are the known ones as they are written, with their quotes, and `slots` the fields they
    mean; the first slots are the declared ones. `order` has the name of each member of the line
    before: it is mostly that of this line, too. `room` is for MAX_DEPTH closing brackets.

    For each declared field and row there are a start, a length and a kind, which must have been
    ABSENT; for each block and slot the `counts` of values by kind, and their SIZE; for each block
    the lines and the rows that were `found`. All counts must have been zero. Of a new name the
    first row of `found` says where it starts and ends.
    """
    data, closing = pointer(blocks), pointer(room)
    name_data, name_start = pointer(names), pointer(name_starts)
    bucket, mask = pointer(buckets), len(buckets) - 1
    at = rows = block = 0
    while block < len(ends):
        line_start = at
        found[block, 0] += 1
        at = _after_space(data, at)
        if data[at] == _OPEN_BRACE and rows < kinds.shape[1]:
            rows += 1
            found[block, 1] += 1
            at = _after_space(data, at + 1)
            place = 0
            more = data[at] != _CLOSE_BRACE
            while more:
                guess = order[place]
                name, end = _name(data, at, guess, name_data, name_start, bucket, mask)
                if name < 0:
                    found[0, 0], found[0, 1] = at, end
                    return NEW_NAME if end >= 0 else REFUSED
                order[place] = name
                place = min(place + 1, len(order) - 1)
                slot = slots[name]
                at = _after_colon(data, end)
                if at < 0 or seen[slot] == rows:  # no value, or a field that was there already
                    return REFUSED
                seen[slot] = rows
                end, kind = _value(data, at, closing)
                if end < 0:
                    return REFUSED
                counts[block, slot, kind] += 1
                if kind != ABSENT and slot < len(kinds):
                    starts[slot, rows - 1] = at
                    lengths[slot, rows - 1] = end - at
                    kinds[slot, rows - 1] = kind
                    counts[block, slot, SIZE] += end - at
                at = _after_space(data, end)
                more = data[at] == _COMMA
                if more:
                    at = _after_space(data, at + 1)
            if data[at] != _CLOSE_BRACE:
                return REFUSED
            at = _after_space(data, at + 1)
        if data[at] != _NEWLINE or at - line_start > max_line_bytes:
            return REFUSED
        at += 1
        block += at >= ends[block]
    return DONE


@part
def _code_point(data: Pointer, at: int) -> int:
    """Return what the four hexadecimal digits of an escape say."""
    value = 0
    for place in range(at + 2, at + 6):
        value = value * 16 + _DIGIT[data[place]]
    return value


@part
def _write_utf8(point: int, out: Pointer, to: int) -> int:
    """Write a character; give where it ends."""
    if point < 0x80:
        out[to] = point
        return to + 1
    if point < 0x800:
        out[to] = 0xC0 | point >> 6
    else:
        if point < 0x10000:
            out[to] = 0xE0 | point >> 12
        else:
            out[to] = 0xF0 | point >> 18
            to += 1
            out[to] = 0x80 | point >> 12 & 0x3F
        to += 1
        out[to] = 0x80 | point >> 6 & 0x3F
    out[to + 1] = 0x80 | point & 0x3F
    return to + 2


@part
def _write_unescaped(data: Pointer, at: int, end: int, out: Pointer, to: int) -> int:
    """Write what a text with escapes means; give where that ends, or -1 for half a surrogate."""
    while at < end:
        if data[at] != _BACKSLASH:
            out[to] = data[at]
            at, to = at + 1, to + 1
        elif data[at + 1] != _U:
            out[to] = _MEANING[data[at + 1]]
            at, to = at + 2, to + 1
        else:
            point = _code_point(data, at)
            at += 6
            if 0xD800 <= point < 0xE000:
                if point >= 0xDC00 or data[at] != _BACKSLASH or data[at + 1] != _U:
                    return -1
                low = _code_point(data, at)
                if not 0xDC00 <= low < 0xE000:
                    return -1
                at += 6
                point = 0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00)
            to = _write_utf8(point, out, to)
    return to


@compiled(boolean(_BYTES, int32[::1], int32[::1], uint8[::1], boolean, uint8[::1], int32[::1]))
def gather(
    block: Array,
    starts: Array,
    lengths: Array,
    kinds: Array,
    as_written: bool,
    texts: Array,
    offsets: Array,
) -> bool:
    """Write the texts of a column one after the other; say whether all of them are text.

    A string is written without its quotes and with its escapes resolved, or all `as_written`.
    Behind the room for the texts there must be that of a step.
    """
    data, out = pointer(block), pointer(texts)
    to = 0
    for row in range(len(kinds)):
        offsets[row] = to
        kind = kinds[row]
        if kind == ABSENT:
            continue
        is_string = not as_written and kind in (TEXT, ESCAPED)
        at, end = starts[row] + is_string, starts[row] + lengths[row] - is_string
        if is_string and kind == ESCAPED:
            to = _write_unescaped(data, at, end, out, to)
            if to < 0:
                return False
        else:
            for step in range(0, end - at, WIDTH):
                copy_step(data, at + step, out, to + step)
            to += end - at
    offsets[len(kinds)] = to
    return True
