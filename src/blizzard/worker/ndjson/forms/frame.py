"""Split JSON documents into records, one per line. Compiled to machine code.

Everything around the records is parsed strictly. A record itself is only delimited by its
brackets; the line decoder validates it. That is equivalent, since framing changes only line ends:
outside of strings, a line end and the white space after it become one space; inside of strings,
where JSON forbids it, it becomes another control character.

All parser state is in `state`, so a document may be split between any two bytes.
"""

from collections.abc import Iterable

import numpy as np
from numba import int64, uint8

from blizzard.worker.ndjson.compiled.syntax import BYTES, Array, Pointer
from blizzard.worker.ndjson.compiled.vector import (
    WIDTH,
    brackets_in,
    compiled,
    copy_step,
    first_of,
    part,
    pointer,
    special_in,
)

# The indexes of `state`.
(
    STATE, AT, TO, DEPTH, BASE, MATCHED, IN_RECORDS, IS_MATCH, RECORD_DEPTH, RECORDS, PLACES,
    OFFSET, LINE, KEY_LENGTH, IS_ESCAPED, SIZE,
) = range(16)  # fmt: skip
"""AT and TO are the read and write positions, OFFSET the start of the chunk and LINE the lines
before it. DEPTH counts the open brackets around records, BASE those around an envelope, MATCHED
the open objects on the path. IS_MATCH is set if the current member is the next key of the path.
RECORDS counts started records, PLACES those of this call."""

# Parser states between the tokens around records.
VALUE, FIRST_VALUE, AFTER_VALUE, KEY, FIRST_KEY, COLON = range(6)
# States of a scalar around records: before it, in a number, in a string or key, and in a literal.
BEGIN, MINUS, ZERO, DIGITS, DOT, FRACTION, EXPONENT, SIGNED, POWER = range(6, 15)
TEXT, IN_KEY, WORD = 15, 21, 27
"""A string or key has further states: after a backslash, and in the digits of an escape."""
# States in a record.
RECORD, RECORD_TEXT, RECORD_ESCAPE, RECORD_GAP, RECORD_BARE = range(37, 42)

# Results of a call.
(
    MORE, FULL, ASK,
    NO_TEXT, NO_VALUE, NO_COMMA_IN_ARRAY, NO_COMMA_IN_OBJECT, NO_KEY, NO_COLON, BROKEN, TOO_DEEP,
    SEPARATED, NO_RECORDS, TWICE,
) = range(14)  # fmt: skip
"""MORE needs the next chunk, FULL needs a call with empty places, ASK needs IS_MATCH to be set; the
others are errors."""

MAX_DEPTH = 500
"""The deepest nesting of brackets around records."""

_TAB, _NEWLINE, _RETURN, _SPACE = b"\t\n\r "
_SEPARATOR = 0x1E
_QUOTE, _COMMA, _COLON, _BACKSLASH = b'",:\\'
_OPEN_BRACE, _CLOSE_BRACE, _OPEN_BRACKET, _CLOSE_BRACKET = b"{}[]"

# What a byte of a scalar leads to, besides another state.
_ENDED, _ENDED_BEFORE, _BROKEN = range(253, 256)

_NEXT = np.full((RECORD, 256), _BROKEN, np.uint8)
"""The state after a byte, by the state before it: `_ENDED` if it is the last byte of the scalar,
`_ENDED_BEFORE` if it follows the scalar."""


def _fill_next() -> None:
    def lead(states: tuple[int, ...], found: Iterable[int], to: int) -> None:
        _NEXT[np.ix_(states, list(found))] = to

    digits = b"0123456789"
    _NEXT[[ZERO, DIGITS, FRACTION, POWER]] = _ENDED_BEFORE
    lead((ZERO,), digits, _BROKEN)
    lead((BEGIN,), b"-", MINUS)
    lead((BEGIN, MINUS), b"0", ZERO)
    lead((BEGIN, MINUS, DIGITS), b"123456789", DIGITS)
    lead((DIGITS,), b"0", DIGITS)
    lead((ZERO, DIGITS), b".", DOT)
    lead((DOT, FRACTION), digits, FRACTION)
    lead((ZERO, DIGITS, FRACTION), b"eE", EXPONENT)
    lead((EXPONENT,), b"+-", SIGNED)
    lead((EXPONENT, SIGNED, POWER), digits, POWER)
    lead((BEGIN,), b'"', TEXT)
    for text in (TEXT, IN_KEY):
        escape, first, last = text + 1, text + 2, text + 5
        lead((text,), range(_SPACE, 256), text)
        lead((text,), b'"', _ENDED)
        lead((text,), b"\\", escape)
        lead((escape,), b'"\\/bfnrt', text)
        lead((escape,), b"u", first)
        for state in range(first, last + 1):
            lead((state,), b"0123456789abcdefABCDEF", text if state == last else state + 1)
    state = WORD
    for word in (b"true", b"false", b"null"):
        lead((BEGIN,), word[:1], state)
        for place, letter in enumerate(word[1:], start=2):
            lead((state,), (letter,), _ENDED if place == len(word) else state + 1)
            state += 1


_fill_next()


@part
def _open_bracket(byte: int, state: Pointer, stack: Pointer) -> int:
    """Enter an object or array around records, unless it is too deep."""
    if state[DEPTH] == MAX_DEPTH:
        return TOO_DEEP
    stack[state[DEPTH]] = byte
    state[DEPTH] += 1
    state[STATE] = FIRST_KEY if byte == _OPEN_BRACE else FIRST_VALUE
    return MORE


@part
def _begin_skipped(byte: int, state: Pointer, stack: Pointer) -> int:
    """Begin a value that is not a record."""
    if byte in (_OPEN_BRACE, _OPEN_BRACKET):
        return _open_bracket(byte, state, stack)
    if _NEXT[BEGIN, byte] == _BROKEN:
        return NO_VALUE
    state[STATE] = _NEXT[BEGIN, byte]
    return MORE


@part
def _is_space(byte: int) -> bool:
    return byte in (_SPACE, _NEWLINE, _RETURN, _TAB)


@part
def _end_value(state: Pointer) -> None:
    state[STATE] = AFTER_VALUE if state[DEPTH] > 0 else VALUE


@part
def _record(  # noqa: C901, PLR0912, PLR0915 - one loop over all
    data: Pointer, at: int, end: int, state: Pointer, out: Pointer, to: int
) -> tuple[int, int, int]:
    """Copy a record up to its end; return the read and write positions and the result."""
    inside, depth = state[STATE], state[RECORD_DEPTH]
    ended = False
    code = MORE
    while at < end and not ended:
        if inside == RECORD:
            ahead = first_of(brackets_in(data, at))
            copy_step(data, at, out, to)
            at, to = at + ahead, to + ahead
            if ahead == WIDTH or at >= end:
                continue
            byte = data[at]
            if byte == _QUOTE:
                inside = RECORD_TEXT
            elif byte in (_OPEN_BRACE, _OPEN_BRACKET):
                depth += 1
            elif byte in (_CLOSE_BRACE, _CLOSE_BRACKET):
                depth -= 1
                ended = depth == 0
            elif byte in (_NEWLINE, _RETURN):
                state[LINE] += byte == _NEWLINE
                byte = _SPACE
                inside = RECORD_GAP
        elif inside == RECORD_TEXT:
            ahead = first_of(special_in(data, at))
            copy_step(data, at, out, to)
            at, to = at + ahead, to + ahead
            if ahead == WIDTH or at >= end:
                continue
            byte = data[at]
            if byte == _QUOTE:
                inside = RECORD
                ended = depth == 0
            elif byte == _BACKSLASH:
                inside = RECORD_ESCAPE
            elif byte == _NEWLINE:
                state[LINE] += 1
                byte = _RETURN
        elif inside == RECORD_ESCAPE:
            byte = data[at]
            inside = RECORD_TEXT
            if byte == _NEWLINE:
                state[LINE] += 1
                byte = _RETURN
        elif inside == RECORD_GAP:
            byte = data[at]
            if _is_space(byte):
                state[LINE] += byte == _NEWLINE
                at += 1
            else:
                inside = RECORD
            continue
        else:
            byte = data[at]
            if _is_space(byte) or byte in (
                _COMMA, _QUOTE, _OPEN_BRACE, _OPEN_BRACKET, _CLOSE_BRACE, _CLOSE_BRACKET,
                _SEPARATOR,
            ):  # fmt: skip
                ended = True
                break
        if byte == _SEPARATOR:
            code = SEPARATED
            break
        out[to] = byte
        at, to = at + 1, to + 1
    if ended:
        out[to] = _NEWLINE
        to += 1
        _end_value(state)
    else:
        state[STATE], state[RECORD_DEPTH] = inside, depth
    return at, to, code


@part
def _begin_record(
    byte: int, at: int, state: Pointer, offsets: Pointer, lines: Pointer, room: int
) -> int:
    """Note the start of a record, without consuming its first byte."""
    if state[PLACES] == room:
        return FULL
    offsets[state[PLACES]] = state[OFFSET] + at
    lines[state[PLACES]] = state[LINE] + 1
    state[PLACES] += 1
    state[RECORDS] += 1
    state[RECORD_DEPTH] = 0
    is_bare = byte not in (_QUOTE, _OPEN_BRACE, _OPEN_BRACKET)
    state[STATE] = RECORD_BARE if is_bare else RECORD
    return MORE


@part
def _is_on_path(state: Pointer, keys: int) -> bool:
    """Whether the innermost open bracket is an object on the path to the records."""
    return keys > 0 and state[DEPTH] == state[BASE] + 1 + state[MATCHED]


@part
def _value(  # noqa: C901, PLR0911 - all that a value can be
    byte: int, at: int, keys: int, state: Pointer, stack: Pointer, seen: Pointer,
    offsets: Pointer, lines: Pointer, room: int,
) -> tuple[int, int]:  # fmt: skip
    """Begin a value; return the result, and 1 if its first byte was not consumed."""
    depth = state[DEPTH]
    if byte in (_COMMA, _COLON, _CLOSE_BRACE, _CLOSE_BRACKET):
        return (NO_TEXT if depth == 0 else NO_VALUE), 0
    if depth == 0:
        state[BASE] = byte == _OPEN_BRACKET
        state[MATCHED] = 0
        if byte == _OPEN_BRACKET:
            return _open_bracket(byte, state, stack), 0
    if keys == 0 or (state[IN_RECORDS] and depth == state[BASE] + 2 + state[MATCHED]):
        return _begin_record(byte, at, state, offsets, lines, room), 1
    if depth == state[BASE]:
        seen[0] = 0
        return (_open_bracket(byte, state, stack) if byte == _OPEN_BRACE else NO_RECORDS), 0
    if not (_is_on_path(state, keys) and state[IS_MATCH]):
        return _begin_skipped(byte, state, stack), 0
    if state[MATCHED] + 1 < keys:
        if byte != _OPEN_BRACE:
            return NO_RECORDS, 0
        state[MATCHED] += 1
        seen[state[MATCHED]] = 0
        return _open_bracket(byte, state, stack), 0
    if byte == _OPEN_BRACKET:
        state[IN_RECORDS] = 1
        return _open_bracket(byte, state, stack), 0
    if byte == _OPEN_BRACE:
        return _begin_record(byte, at, state, offsets, lines, room), 1
    return NO_RECORDS, 0


@part
def _close(keys: int, state: Pointer, seen: Pointer) -> int:
    """Close the innermost bracket around records."""
    if _is_on_path(state, keys):
        if not seen[state[MATCHED]]:
            return NO_RECORDS
        if state[MATCHED] > 0:
            state[MATCHED] -= 1
    elif state[IN_RECORDS] and state[DEPTH] == state[BASE] + 2 + state[MATCHED]:
        state[IN_RECORDS] = 0
    state[DEPTH] -= 1
    _end_value(state)
    return MORE


@part
def _end_key(
    path: Pointer, path_starts: Pointer, keys: int, state: Pointer, seen: Pointer, key: Pointer,
    room: int,
) -> int:  # fmt: skip
    """Compare a key with the next one of the path; return ASK if it contains escapes."""
    state[STATE] = COLON
    state[IS_MATCH] = 0
    if not _is_on_path(state, keys) or state[KEY_LENGTH] > room:
        return MORE
    if state[IS_ESCAPED]:
        return ASK
    start = path_starts[state[MATCHED]]
    if path_starts[state[MATCHED] + 1] - start != state[KEY_LENGTH]:
        return MORE
    for place in range(state[KEY_LENGTH]):
        if path[start + place] != key[place]:
            return MORE
    if seen[state[MATCHED]]:
        return TWICE
    seen[state[MATCHED]] = 1
    state[IS_MATCH] = 1
    return MORE


@compiled(
    int64(
        BYTES, int64, BYTES, int64[::1], int64[::1], uint8[::1], uint8[::1], uint8[::1],
        uint8[::1], int64[::1], int64[::1],
    )
)  # fmt: skip
def frame(  # noqa: C901, PLR0912, PLR0915 - one loop over all
    chunk: Array,
    end: int,
    path: Array,
    path_starts: Array,
    states: Array,
    stacks: Array,
    seens: Array,
    keys_written: Array,
    outs: Array,
    offsets: Array,
    lines: Array,
) -> int:
    """Write the records of a chunk as lines, continuing the last call; return the result.

    The chunk must be padded with one vector step of zeros. `path` holds the keys that lead to the
    records, concatenated. The output needs twice the size of the padded chunk.
    """
    data, out, state = pointer(chunk), pointer(outs), pointer(states)
    stack, seen, key = pointer(stacks), pointer(seens), pointer(keys_written)
    keys, room = len(path_starts) - 1, len(keys_written)
    at, to = state[AT], state[TO]
    code: int = MORE
    while at < end and code == MORE:
        inside = state[STATE]
        if inside >= RECORD:
            at, to, code = _record(data, at, end, state, out, to)
            continue
        if inside == TEXT:
            at += first_of(special_in(data, at))
            if at >= end:
                continue
        byte = data[at]
        if byte == _NEWLINE:
            state[LINE] += 1
        if byte == _SEPARATOR and not (inside == VALUE and state[DEPTH] == 0):
            code = SEPARATED
        elif inside > BEGIN:
            after = int64(_NEXT[inside, byte])
            if after == _ENDED_BEFORE:
                _end_value(state)
                state[LINE] -= byte == _NEWLINE  # This byte is processed again.
                continue
            is_key = IN_KEY <= inside < WORD
            if after == _BROKEN:
                code = BROKEN
            elif after == _ENDED and is_key:
                code = _end_key(pointer(path), pointer(path_starts), keys, state, seen, key, room)
            elif after == _ENDED:
                _end_value(state)
            else:
                state[STATE] = after
                state[IS_ESCAPED] |= byte == _BACKSLASH
                if is_key:
                    if state[KEY_LENGTH] < room:
                        key[state[KEY_LENGTH]] = byte
                    state[KEY_LENGTH] += 1
        elif _is_space(byte) or byte == _SEPARATOR:
            pass
        elif inside == COLON:
            code = MORE if byte == _COLON else NO_COLON
            state[STATE] = VALUE
        elif inside == AFTER_VALUE:
            opened = stack[state[DEPTH] - 1]
            if byte == _COMMA:
                state[STATE] = KEY if opened == _OPEN_BRACE else VALUE
            elif byte == opened + 2:  # Both closing brackets follow the opening one by two.
                code = _close(keys, state, seen)
            else:
                code = NO_COMMA_IN_OBJECT if opened == _OPEN_BRACE else NO_COMMA_IN_ARRAY
        elif inside in (KEY, FIRST_KEY):
            if byte == _QUOTE:
                state[STATE] = IN_KEY
                state[KEY_LENGTH] = state[IS_ESCAPED] = 0
            elif inside == FIRST_KEY and byte == _CLOSE_BRACE:
                code = _close(keys, state, seen)
            else:
                code = NO_KEY
        elif inside == FIRST_VALUE and byte == _CLOSE_BRACKET:
            code = _close(keys, state, seen)
        else:
            code, again = _value(
                byte, at, keys, state, stack, seen, pointer(offsets), pointer(lines), len(offsets)
            )
            if again:
                continue
        if code <= ASK:
            at += 1
    state[AT], state[TO] = at, to
    return code
