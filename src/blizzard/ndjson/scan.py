"""Lines by the letter of JSON's grammar: which token stands where. Compiled to machine code.

Every function here works on whole blocks of bytes and plain arrays, is compiled by numba when it is
first loaded on a machine, and is kept in numba's cache from then on. What is not understood is
refused; nothing here knows why, as the exact path finds that out.

A block ends with a newline, and no token goes on beyond one. So bytes are compared from left to
right, each only after the one before it, and nothing is ever read past the end.
"""

from typing import Any

from numba import boolean, int32, int64, types, uint8, void

from blizzard.ndjson.vector import (
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

DONE, REFUSED, NEW_NAME = range(3)
"""How a scan ended."""

MAX_DEPTH = 400
"""Below what the exact path bears, so that it decides at the border."""

_TAB, _NEWLINE, _RETURN, _SPACE = b"\t\n\r "
_QUOTE, _COMMA, _MINUS, _PLUS, _DOT, _COLON, _BACKSLASH = b'",-+.:\\'
_OPEN_BRACE, _CLOSE_BRACE, _OPEN_BRACKET, _CLOSE_BRACKET = b"{}[]"
_ZERO, _SMALL_E, _LARGE_E, _SMALL_U = b"0eEu"
_N, _U, _L, _T, _R, _F, _A, _S = b"nultrfas"


@part
def _after_space(data: Any, at: int) -> int:
    while data[at] == _SPACE or data[at] == _TAB or data[at] == _RETURN:
        at += 1
    return at


@part
def _is_hex(byte: int) -> bool:
    return 48 <= byte <= 57 or 65 <= byte <= 70 or 97 <= byte <= 102


@part
def _after_escape(data: Any, at: int) -> int:
    """Give where an escape ends, or -1."""
    byte = data[at + 1]
    if byte == _SMALL_U:
        for place in range(at + 2, at + 6):
            if not _is_hex(data[place]):
                return -1
        return at + 6
    for letter in b'"\\/bfnrt':
        if byte == letter:
            return at + 2
    return -1


@part
def _string(data: Any, at: int) -> tuple[int, int]:
    """Give where a string ends, after its quote, and which kind it is; -1 if it is none."""
    at += 1
    kind = TEXT
    while True:
        ahead = ordinary(data, at)
        at += ahead
        if ahead == WIDTH:
            continue
        if data[at] == _QUOTE:
            return at + 1, kind
        if data[at] != _BACKSLASH:
            return -1, kind
        kind = ESCAPED
        at = _after_escape(data, at)
        if at < 0:
            return -1, kind


@part
def _after_digits(data: Any, at: int) -> int:
    while 48 <= data[at] <= 57:
        at += 1
    return at


@part
def _number(data: Any, at: int) -> tuple[int, int]:
    """Give where a number ends and which kind it is; -1 if it is none."""
    if data[at] == _MINUS:
        at += 1
    start = at
    at = _after_digits(data, at)
    if at == start or (data[start] == _ZERO and at > start + 1):
        return -1, INTEGER
    kind = INTEGER
    if data[at] == _DOT:
        kind = NUMBER
        start = at + 1
        at = _after_digits(data, start)
        if at == start:
            return -1, kind
    if data[at] == _SMALL_E or data[at] == _LARGE_E:
        kind = NUMBER
        at += 1
        if data[at] == _PLUS or data[at] == _MINUS:
            at += 1
        start = at
        at = _after_digits(data, start)
        if at == start:
            return -1, kind
    return at, kind


@part
def _flat(data: Any, at: int) -> tuple[int, int]:
    """Give where a value that is no object and no array ends and which kind it is; -1 if none."""
    byte = data[at]
    if byte == _QUOTE:
        return _string(data, at)
    if byte == _N:
        if data[at + 1] == _U and data[at + 2] == _L and data[at + 3] == _L:
            return at + 4, ABSENT
        return -1, ABSENT
    if byte == _T:
        if data[at + 1] == _R and data[at + 2] == _U and data[at + 3] == _SMALL_E:
            return at + 4, TRUE
        return -1, TRUE
    if byte == _F:
        if (
            data[at + 1] == _A
            and data[at + 2] == _L
            and data[at + 3] == _S
            and data[at + 4] == _SMALL_E
        ):
            return at + 5, FALSE
        return -1, FALSE
    return _number(data, at)


@part
def _after_name(data: Any, at: int) -> int:
    """Give where the value of a member begins, or -1."""
    if data[at] != _QUOTE:
        return -1
    at, _ = _string(data, at)
    if at < 0:
        return -1
    at = _after_space(data, at)
    if data[at] != _COLON:
        return -1
    return _after_space(data, at + 1)


@part
def _after_nested(data: Any, at: int, closing: Any) -> int:
    """Give where an object or an array ends, or -1. `closing` is room for what is still open."""
    depth = 0
    while True:
        byte = data[at]  # here a value begins
        if byte == _OPEN_BRACE or byte == _OPEN_BRACKET:
            if depth == MAX_DEPTH:
                return -1
            close = byte + 2
            at = _after_space(data, at + 1)
            if data[at] == close:
                at += 1
            else:
                closing[depth] = close
                depth += 1
                if close == _CLOSE_BRACE:
                    at = _after_name(data, at)
                    if at < 0:
                        return -1
                continue
        else:
            at, _ = _flat(data, at)
            if at < 0:
                return -1
        while depth > 0:  # here a value has ended
            at = _after_space(data, at)
            byte = data[at]
            at += 1
            if byte == closing[depth - 1]:
                depth -= 1
            elif byte == _COMMA:
                at = _after_space(data, at)
                if closing[depth - 1] == _CLOSE_BRACE:
                    at = _after_name(data, at)
                    if at < 0:
                        return -1
                break
            else:
                return -1
        else:
            return at


@part
def _is_next(data: Any, at: int, names: Any, start: int, end: int) -> bool:
    while start < end:
        same = agreeing(data, at, names, start)
        if same < WIDTH:
            return start + same >= end
        at, start = at + WIDTH, start + WIDTH
    return True


@part
def _hash(text: Any, start: int, end: int) -> int:
    found = 5381
    for place in range(start, end):
        found = ((found * 33) ^ text[place]) & 0xFFFFFFFF
    return found


@part
def _find(data: Any, at: int, end: int, names: Any, name_starts: Any, buckets: Any, mask: int) -> int:
    """Give the number of a quoted name, or -1."""
    bucket = _hash(data, at, end) & mask
    while buckets[bucket] >= 0:
        number = buckets[bucket]
        start, stop = name_starts[number], name_starts[number + 1]
        if stop - start == end - at and _is_next(data, at, names, start, stop):
            return number
        bucket = (bucket + 1) & mask
    return -1


_BYTES = types.Array(uint8, 1, "C", readonly=True)


@compiled(void(_BYTES, int64[::1], int32[::1]))
def fill_buckets(written: Any, name_starts: Any, buckets: Any) -> None:
    """Make the table in which names are looked up: twice a power of two, more than the names."""
    names = pointer(written)
    mask = len(buckets) - 1
    buckets[:] = -1
    for number in range(len(name_starts) - 1):
        bucket = _hash(names, name_starts[number], name_starts[number + 1]) & mask
        while buckets[bucket] >= 0:
            bucket = (bucket + 1) & mask
        buckets[bucket] = number


@compiled(
    int64(
        _BYTES, int64, int64,
        _BYTES, int64[::1], int64[::1], int32[::1], int64[::1], uint8[::1],
        int32[:, ::1], int32[:, ::1], uint8[:, ::1], int64[:, ::1], int64[::1], int64[::1],
    )
)  # fmt: skip
def scan(
    block: Any,
    size: int,
    max_line_bytes: int,
    written: Any,
    name_starts: Any,
    slots: Any,
    buckets: Any,
    order: Any,
    room: Any,
    starts: Any,
    lengths: Any,
    kinds: Any,
    counts: Any,
    seen: Any,
    found: Any,
) -> int:
    """Find the tokens of a block of lines, and say how that ended.

    `written` are the known names as they are written, with their quotes, and `slots` the fields
    they mean; the first slots are the declared ones. `order` has the name of each member of the
    line before: it is mostly that of this line, too. `room` is for MAX_DEPTH closing brackets.

    For each declared field and row there are a start, a length and a kind (which must have been
    ABSENT); for each slot the `counts` of values by their kind, and the bytes of those values.
    `found` is the numbers of lines and of blank ones; of a new name, its start and its end.
    """
    data, names = pointer(block), pointer(written)
    name_start, bucket, mask = pointer(name_starts), pointer(buckets), len(buckets) - 1
    closing = pointer(room)
    declared = len(kinds)
    at = lines = rows = 0
    while at < size:
        line_start = at
        lines += 1
        at = _after_space(data, at)
        if data[at] == _OPEN_BRACE:
            rows += 1
            at = _after_space(data, at + 1)
            place = 0
            more = data[at] != _CLOSE_BRACE
            while more:
                name = order[place] if place < len(order) else -1
                if name >= 0 and _is_next(data, at, names, name_start[name], name_start[name + 1]):
                    at += name_start[name + 1] - name_start[name]
                else:
                    if data[at] != _QUOTE:
                        return REFUSED
                    end, _ = _string(data, at)
                    if end < 0:
                        return REFUSED
                    name = _find(data, at, end, names, name_start, bucket, mask)
                    if name < 0:
                        found[0], found[1] = at, end
                        return NEW_NAME
                    if place < len(order):
                        order[place] = name
                    at = end
                place += 1
                slot = slots[name]
                if seen[slot] == rows:
                    return REFUSED  # twice in one object
                seen[slot] = rows
                at = _after_space(data, at)
                if data[at] != _COLON:
                    return REFUSED
                at = _after_space(data, at + 1)
                if data[at] == _OPEN_BRACE or data[at] == _OPEN_BRACKET:
                    end, kind = _after_nested(data, at, closing), NESTED
                else:
                    end, kind = _flat(data, at)
                if end < 0:
                    return REFUSED
                counts[slot, kind] += 1
                if slot < declared and kind != ABSENT:
                    starts[slot, rows - 1] = at
                    lengths[slot, rows - 1] = end - at
                    kinds[slot, rows - 1] = kind
                    counts[slot, NESTED + 1] += end - at
                at = _after_space(data, end)
                if data[at] == _COMMA:
                    at = _after_space(data, at + 1)
                elif data[at] == _CLOSE_BRACE:
                    more = False
                else:
                    return REFUSED
            at = _after_space(data, at + 1)
        if data[at] != _NEWLINE or at - line_start > max_line_bytes:
            return REFUSED
        at += 1
    found[0], found[1] = lines, lines - rows
    return DONE


@part
def _four_hex(data: Any, at: int) -> int:
    value = 0
    for place in range(at, at + 4):
        byte = data[place]
        digit = byte - 48 if byte <= 57 else (byte | 32) - 87
        value = value * 16 + digit
    return value


@part
def _unescaped(data: Any, at: int, end: int, out: Any, to: int) -> int:
    """Write what a text with escapes means; give where that ends, or -1 for half a surrogate."""
    while at < end:
        byte = data[at]
        if byte != _BACKSLASH:
            out[to] = byte
            at, to = at + 1, to + 1
            continue
        letter = data[at + 1]
        if letter != _SMALL_U:
            plain = letter
            for escape, meaning in zip(b"bfnrt", b"\b\f\n\r\t"):
                if letter == escape:
                    plain = meaning
            out[to] = plain
            at, to = at + 2, to + 1
            continue
        point = _four_hex(data, at + 2)
        at += 6
        if 0xD800 <= point < 0xE000:
            if point >= 0xDC00 or end - at < 6 or data[at] != _BACKSLASH or data[at + 1] != _SMALL_U:
                return -1
            low = _four_hex(data, at + 2)
            if not 0xDC00 <= low < 0xE000:
                return -1
            at += 6
            point = 0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00)
        if point < 0x80:
            out[to] = point
            to += 1
            continue
        if point < 0x800:
            out[to] = 0xC0 | point >> 6
            to += 1
        else:
            if point < 0x10000:
                out[to] = 0xE0 | point >> 12
                to += 1
            else:
                out[to] = 0xF0 | point >> 18
                out[to + 1] = 0x80 | point >> 12 & 0x3F
                to += 2
            out[to] = 0x80 | point >> 6 & 0x3F
            to += 1
        out[to] = 0x80 | point & 0x3F
        to += 1
    return to


@compiled(boolean(_BYTES, int32[::1], int32[::1], uint8[::1], boolean, uint8[::1], int32[::1]))
def gather(
    block: Any, starts: Any, lengths: Any, kinds: Any, as_written: bool, texts: Any, offsets: Any
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
        at, end = starts[row], starts[row] + lengths[row]
        if not as_written and (kind == TEXT or kind == ESCAPED):
            at, end = at + 1, end - 1
            if kind == ESCAPED:
                to = _unescaped(data, at, end, out, to)
                if to < 0:
                    return False
                continue
        size = end - at
        for step in range(0, size, WIDTH):
            copy_step(data, at + step, out, to + step)
        to += size
    offsets[len(kinds)] = to
    return True
