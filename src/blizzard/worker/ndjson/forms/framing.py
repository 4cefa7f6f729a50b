"""Where the reading of a document is between two bytes, and the tokens around its records.

Compiled into `frame`, which says more of it.
"""

from typing import Any

import numpy as np

from blizzard.worker.ndjson.compiled.vector import part

Pointer = Any

# What the numbers of `state` are.
(
    STATE, AT, TO, DEPTH, BASE, MATCHED, IN_RECORDS, IS_MATCH, RECORD_DEPTH, RECORDS, PLACES,
    OFFSET, LINE, KEY_LENGTH, IS_ESCAPED, LEFT, SIZE,
) = range(17)  # fmt: skip
"""AT and TO are where the reading and the writing are, OFFSET and LINE where the chunk begins and
how many lines have ended so far. DEPTH counts the open brackets around records, BASE those around
an envelope, MATCHED the keys of the path whose objects are open. IS_MATCH says whether the member
that is being read is the next key of the path. RECORDS counts those that have begun, PLACES those
in this call."""

# What comes next: around records ...
(
    VALUE, FIRST_VALUE, AFTER_VALUE, KEY, FIRST_KEY, COLON,
    IN_KEY, KEY_ESCAPE, KEY_HEX, TEXT, TEXT_ESCAPE, TEXT_HEX, WORD,
    MINUS, ZERO, DIGITS, DOT, FRACTION, EXPONENT, SIGNED, POWER,
    # ... and in a record.
    RECORD, RECORD_TEXT, RECORD_ESCAPE, RECORD_GAP, RECORD_BARE,
) = range(26)  # fmt: skip

# How a call ended.
(
    MORE, FULL, ASK,
    NO_TEXT, NO_VALUE, NO_COMMA_IN_ARRAY, NO_COMMA_IN_OBJECT, NO_KEY, NO_COLON, BROKEN, TOO_DEEP,
    SEPARATED, NO_ENVELOPE, NO_OBJECT, NO_RECORDS, NO_MEMBER, TWICE,
) = range(17)  # fmt: skip
"""MORE wants the next chunk, FULL the same one again with room for places, ASK an answer in
IS_MATCH; the others are errors."""

MAX_DEPTH = 500
"""How deep brackets may be nested around records."""

_OPEN_BRACE, _OPEN_BRACKET, _F, _N, _T = b"{[fnt"
_QUOTE, _MINUS, _PLUS, _DOT, _BACKSLASH = b'"-+.\\'
_SPACE, _ZERO, _NINE, _LARGE_E, _E, _U = b" 09Eeu"

WORDS = np.frombuffer(b"\0eurt\0eslaf\0llun", np.uint8)
"""What follows a letter of a word, read backwards from the word's first one to a zero."""
_IS_ESCAPE = np.zeros(256, np.uint8)
_IS_ESCAPE[list(b'"\\/bfnrt')] = 1
_IS_HEX = np.zeros(256, np.uint8)
_IS_HEX[list(b"0123456789abcdefABCDEF")] = 1


@part
def open_bracket(byte: int, state: Pointer, stack: Pointer) -> int:
    """Go into an object or an array around records, unless it is too deep."""
    if state[DEPTH] == MAX_DEPTH:
        return TOO_DEEP
    stack[state[DEPTH]] = byte
    state[DEPTH] += 1
    state[STATE] = FIRST_KEY if byte == _OPEN_BRACE else FIRST_VALUE
    return MORE


@part
def begin_skipped(byte: int, state: Pointer, stack: Pointer) -> int:
    """Begin with a value that is no record."""
    if byte in (_OPEN_BRACE, _OPEN_BRACKET):
        return open_bracket(byte, state, stack)
    if byte == _QUOTE:
        state[STATE] = TEXT
    elif byte == _MINUS:
        state[STATE] = MINUS
    elif byte == _ZERO:
        state[STATE] = ZERO
    elif _ZERO < byte <= _NINE:
        state[STATE] = DIGITS
    elif byte in (_T, _F, _N):
        state[STATE] = WORD
        state[LEFT] = 3 if byte == _T else (9 if byte == _F else 14)
    else:
        return NO_VALUE
    return MORE


@part
def after_number(byte: int, state: Pointer) -> int:
    """Go on with a number; 1 where it has ended before this byte, 2 where it is none."""
    inside = state[STATE]
    is_digit = _ZERO <= byte <= _NINE
    if is_digit and inside in (DIGITS, FRACTION, POWER):
        return 0
    if inside == MINUS and is_digit:
        state[STATE] = ZERO if byte == _ZERO else DIGITS
    elif inside == DOT and is_digit:
        state[STATE] = FRACTION
    elif inside in (EXPONENT, SIGNED) and is_digit:
        state[STATE] = POWER
    elif inside == EXPONENT and byte in (_PLUS, _MINUS):
        state[STATE] = SIGNED
    elif inside in (ZERO, DIGITS) and byte == _DOT:
        state[STATE] = DOT
    elif inside in (ZERO, DIGITS, FRACTION) and byte in (_E, _LARGE_E):
        state[STATE] = EXPONENT
    elif inside in (ZERO, DIGITS, FRACTION, POWER) and not is_digit:
        return 1
    else:
        return 2
    return 0


@part
def in_text(byte: int, state: Pointer) -> int:
    """Go on with a string, a key or another; 1 where this byte ends it, 2 where it is none."""
    inside = state[STATE]
    start = IN_KEY if inside in (IN_KEY, KEY_ESCAPE, KEY_HEX) else TEXT
    if inside == start:
        if byte == _QUOTE:
            return 1
        if byte < _SPACE:
            return 2
        if byte == _BACKSLASH:
            state[STATE] = start + 1
            state[IS_ESCAPED] = 1
    elif inside == start + 1:
        if byte == _U:
            state[STATE] = start + 2
            state[LEFT] = 4
        elif _IS_ESCAPE[byte]:
            state[STATE] = start
        else:
            return 2
    else:
        if not _IS_HEX[byte]:
            return 2
        state[LEFT] -= 1
        if state[LEFT] == 0:
            state[STATE] = start
    return 0
