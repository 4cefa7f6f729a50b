"""Numbers, times and texts, read straight from their tokens. Compiled to machine code.

Each function stops at the first row that it cannot read: an unusual or out-of-range number is left
to Arrow and the exact path. The tokens are already known to be valid JSON.
"""

import numpy as np
from numba import boolean, float64, int32, int64, uint8

from blizzard.worker.ndjson.compiled.syntax import (
    ABSENT,
    BACKSLASH,
    BYTES,
    COLON,
    DIGIT,
    DOT,
    ESCAPED,
    LETTER_U,
    MEANING,
    MINUS,
    NINE,
    PLUS,
    SPACE,
    TEXT,
    ZERO,
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
from blizzard.worker.ndjson.values import FIRST_MICROS, LAST_MICROS

_MOST_DIGITS = 18
"""An integer of at most this many digits fits 64 bits."""
_LARGEST_EXACT = 1 << 53
"""Every integer up to here is exact in a double."""
_POWERS = np.array([float(f"1e{power}") for power in range(23)])
"""The powers of ten that are exact doubles: an operation on two exact doubles rounds once."""
_LARGE_T, _LARGE_Z = b"TZ"
_MONTH_DAYS = np.array([0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])
_BAD = -(1 << 62)


@part
def _digits(data: Pointer, at: int, count: int) -> int:
    """Parse up to 18 digits."""
    number = 0
    for place in range(at, at + count):
        number = number * 10 + (data[place] - ZERO)
    return number


@compiled(int64(BYTES, int32[::1], int32[::1], uint8[::1], int64, int64, int64[::1]))
def integers(
    block: Array,
    starts: Array,
    lengths: Array,
    kinds: Array,
    lowest: int,
    highest: int,
    numbers: Array,
) -> int:
    """Read a column of integers; return the number of rows before the first unread one."""
    data = pointer(block)
    for row in range(len(kinds)):
        numbers[row] = 0
        if kinds[row] == ABSENT:
            continue
        at, end = starts[row], starts[row] + lengths[row]
        is_negative = data[at] == MINUS
        at += is_negative
        if end - at > _MOST_DIGITS:
            return row
        number = _digits(data, at, end - at)
        if is_negative:
            number = -number
        if number < lowest or number > highest:
            return row
        numbers[row] = number
    return len(kinds)


@part
def _exponent(data: Pointer, at: int, end: int) -> int:
    """Parse an exponent; `_BAD` if it is too long."""
    is_negative = data[at] == MINUS
    at += data[at] in (PLUS, MINUS)
    if end - at > _MOST_DIGITS:
        return _BAD
    exponent = _digits(data, at, end - at)
    return -exponent if is_negative else exponent


@part
def _unsigned(data: Pointer, at: int, end: int) -> tuple[int, int]:
    """Return the digits of a number and the power of ten to scale them by.

    The digits are `_BAD` if there are too many.
    """
    digits = count = places = 0
    is_fraction = False
    while at < end and data[at] <= NINE:  # An exponent begins with a letter.
        if data[at] == DOT:
            is_fraction = True
        else:
            digits = digits * 10 + (data[at] - ZERO)
            count += 1
            places += is_fraction
        at += 1
    if count > _MOST_DIGITS:
        return _BAD, 0
    return digits, (_exponent(data, at + 1, end) if at < end else 0) - places


@compiled(int64(BYTES, int32[::1], int32[::1], uint8[::1], float64[::1]))
def doubles(block: Array, starts: Array, lengths: Array, kinds: Array, numbers: Array) -> int:
    """Read a column of doubles; return the number of rows before the first unread one.

    An integer up to 2^53 times or divided by an exact power of ten is rounded once.
    """
    data = pointer(block)
    for row in range(len(kinds)):
        numbers[row] = 0.0
        if kinds[row] == ABSENT:
            continue
        at, end = starts[row], starts[row] + lengths[row]
        is_negative = data[at] == MINUS
        at += is_negative
        digits, power = _unsigned(data, at, end)
        if not 0 <= digits <= _LARGEST_EXACT or not -22 <= power <= 22:
            return row
        number = float(digits)
        number = number * _POWERS[power] if power >= 0 else number / _POWERS[-power]
        numbers[row] = -number if is_negative else number
    return len(kinds)


@part
def _checked(data: Pointer, at: int, count: int) -> int:
    """Parse digits; `_BAD` if a character is not a digit."""
    number = 0
    for place in range(at, at + count):
        if not ZERO <= data[place] <= NINE:
            return _BAD
        number = number * 10 + (data[place] - ZERO)
    return number


@part
def _day(data: Pointer, at: int) -> int:
    """Return the days since 1970 of a YYYY-MM-DD date; `_BAD` if invalid."""
    year, month, day = _checked(data, at, 4), _checked(data, at + 5, 2), _checked(data, at + 8, 2)
    if data[at + 4] != MINUS or data[at + 7] != MINUS or year < 1 or not 1 <= month <= 12:
        return _BAD
    if not 1 <= day <= _MONTH_DAYS[month]:
        return _BAD
    if month == 2 and day == 29 and (year % 4 != 0 or (year % 100 == 0 and year % 400 != 0)):
        return _BAD
    # Counted from March, a year ends with its leap day.
    if month <= 2:
        year -= 1
        month += 12
    in_year = (153 * (month - 3) + 2) // 5 + day - 1
    return year * 365 + year // 4 - year // 100 + year // 400 + in_year - 719468


@part
def _seconds(data: Pointer, at: int) -> int:
    """Return the seconds since 1970 of `YYYY-MM-DDTHH:MM:SS`; `_BAD` if invalid."""
    day = _day(data, at)
    hour, minute = _checked(data, at + 11, 2), _checked(data, at + 14, 2)
    second = _checked(data, at + 17, 2)
    if (
        day <= _BAD
        or (data[at + 10] != _LARGE_T and data[at + 10] != SPACE)
        or data[at + 13] != COLON
        or data[at + 16] != COLON
        or not (0 <= hour <= 23 and 0 <= minute <= 59 and 0 <= second <= 59)
    ):
        return _BAD
    return day * 86_400 + hour * 3_600 + minute * 60 + second


@part
def _zone(data: Pointer, at: int, end: int) -> tuple[int, int]:
    """Return the seconds of the offset at the end of a time, and its start.

    No offset and `Z` count as 0; an invalid offset is `_BAD`.
    """
    if data[end - 1] == _LARGE_Z:
        return 0, end - 1
    start = at
    while start < end and data[start] != PLUS and data[start] != MINUS:
        start += 1
    if start == end:
        return 0, end
    size = end - start
    has_colon = size == len("+HH:MM") and data[start + 3] == COLON
    if not has_colon and size != len("+HHMM") and size != len("+HH"):
        return _BAD, end
    hours = _checked(data, start + 1, 2)
    minutes = 0 if size == len("+HH") else _checked(data, end - 2, 2)
    if not (0 <= hours <= 23 and 0 <= minutes <= 59):
        return _BAD, end
    seconds = hours * 3_600 + minutes * 60
    return -seconds if data[start] == MINUS else seconds, start


@part
def _fraction(data: Pointer, at: int, end: int) -> int:
    """Return the microseconds of a fraction of up to six digits; `_BAD` if invalid."""
    digits = end - at - 1
    if at == end:
        return 0
    if data[at] != DOT or not 1 <= digits <= 6:
        return _BAD
    micros = _checked(data, at + 1, digits)
    for _ in range(digits, 6):
        micros *= 10
    return micros if micros >= 0 else _BAD


@compiled(int64(BYTES, int32[::1], int32[::1], uint8[::1], boolean, int64[::1]))
def moments(
    block: Array, starts: Array, lengths: Array, kinds: Array, is_zoned: bool, numbers: Array
) -> int:
    """Read a column of timestamps as microseconds since 1970; return the rows before an unread one.

    The format is `YYYY-MM-DDTHH:MM:SS` with up to six fractional digits and, if `is_zoned`, a Z or
    an offset (`+02:00`, `+0200`, `+02`).
    """
    data = pointer(block)
    for row in range(len(kinds)):
        numbers[row] = 0
        if kinds[row] == ABSENT:
            continue
        at, end = starts[row] + 1, starts[row] + lengths[row] - 1
        if kinds[row] != TEXT or end - at < len("YYYY-MM-DDTHH:MM:SS"):
            return row
        seconds = _seconds(data, at)
        at += len("YYYY-MM-DDTHH:MM:SS")
        offset = 0
        if is_zoned:
            offset, end = _zone(data, at, end)
        micros = _fraction(data, at, end)
        if seconds <= _BAD or offset <= _BAD or micros <= _BAD:
            return row
        numbers[row] = (seconds - offset) * 1_000_000 + micros
        if not FIRST_MICROS <= numbers[row] <= LAST_MICROS:
            return row
    return len(kinds)


@part
def _code_point(data: Pointer, at: int) -> int:
    r"""Parse the four hexadecimal digits of a `\u` escape."""
    value = 0
    for place in range(at + 2, at + 6):
        value = value * 16 + DIGIT[data[place]]
    return value


@part
def _write_utf8(point: int, out: Pointer, to: int) -> int:
    """Write a character as UTF-8; return its end."""
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
    """Unescape a text; return the end of the output, or -1 for half a surrogate pair.

    Whole vector steps are copied: excess bytes are overwritten or lie in the padding. Before `end`,
    which is the closing quote, only backslashes are special.
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
    # The last step may have copied bytes from beyond the text.
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
    """Write the texts of a column one after the other; return whether all are valid Unicode.

    Strings are unquoted and unescaped unless `as_written` is set. `texts` must have one vector step
    of padding.
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
