"""What tokens mean as text, written one after the other. Compiled to machine code."""

from numba import boolean, int32, uint8

from blizzard.worker.ndjson.compiled.syntax import (
    ABSENT,
    BACKSLASH,
    BYTES,
    DIGIT,
    ESCAPED,
    LETTER_U,
    MEANING,
    TEXT,
    Array,
    Pointer,
)
from blizzard.worker.ndjson.compiled.vector import (
    WIDTH,
    compiled,
    copy_step,
    first_of,
    part,
    pointer,
    special_in,
)


@part
def _code_point(data: Pointer, at: int) -> int:
    """Return what the four hexadecimal digits of an escape say."""
    value = 0
    for place in range(at + 2, at + 6):
        value = value * 16 + DIGIT[data[place]]
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
    """Write what a text with escapes means; return where that ends, or -1 for half a surrogate.

    Whole steps are copied: the bytes of one that are not meant are overwritten, or lie in the room
    behind. Before `end`, where the closing quote stands, only backslashes are special.
    """
    while at < end:
        ahead = first_of(special_in(data, at))
        copy_step(data, at, out, to)
        at, to = at + ahead, to + ahead
        if at >= end or ahead == WIDTH:
            continue
        if data[at + 1] != LETTER_U:
            out[to] = MEANING[data[at + 1]]
            at, to = at + 2, to + 1
            continue
        point = _code_point(data, at)
        at += 6
        if 0xD800 <= point < 0xE000:
            if point >= 0xDC00 or data[at] != BACKSLASH or data[at + 1] != LETTER_U:
                return -1
            low = _code_point(data, at)
            if not 0xDC00 <= low < 0xE000:
                return -1
            at += 6
            point = 0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00)
        to = _write_utf8(point, out, to)
    # Of the last step as much as lies behind the text does not count.
    return to - (at - end)


@compiled(boolean(BYTES, int32[::1], int32[::1], uint8[::1], boolean, uint8[::1], int32[::1]))
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

    _A string is written without its quotes and with its escapes resolved, or all `as_written`.
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
