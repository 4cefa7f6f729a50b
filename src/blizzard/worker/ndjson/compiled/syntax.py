"""The JSON grammar as parts of compiled functions: the end and the kind of a value.

A block ends with a newline, and no token contains one. Bytes are compared from left to right, each
only after its predecessor, so nothing beyond the end is read except one step of `vector`. Compiled
code does not check bounds; this keeps it within them.
"""

from typing import Any

import numpy as np
from numba import int64, types, uint8

from blizzard.worker.ndjson.compiled.vector import WIDTH, compiled, first_of, part, special_in

ABSENT, TEXT, ESCAPED, INTEGER, NUMBER, TRUE, FALSE, OBJECT, ARRAY = range(9)
"""The kinds of tokens. A null is ABSENT; ESCAPED is a string with backslashes."""
SIZE = ARRAY + 1
"""The index of a field's total token bytes, after its counts by kind."""

MAX_DEPTH = 400
"""Less than the exact path's limit, which therefore decides near it."""

Pointer = Any
Array = Any
BYTES = types.Array(uint8, 1, "C", readonly=True)

_TAB, NEWLINE, _RETURN, SPACE = b"\t\n\r "
QUOTE, COMMA, MINUS, PLUS, DOT, COLON, BACKSLASH = b'",-+.:\\'
OPEN_BRACE, CLOSE_BRACE, OPEN_BRACKET, CLOSE_BRACKET = b"{}[]"
ZERO, NINE = b"09"
_LARGE_E, _A, _E, _F, _L, _N, _R, _S, _T, LETTER_U = b"Eaeflnrstu"

MEANING = np.zeros(256, np.uint8)
"""The character for each letter after a backslash; 0 if invalid."""
MEANING[list(b'"\\/bfnrt')] = list(b'"\\/\b\f\n\r\t')
DIGIT = np.full(256, -1, np.int64)
DIGIT[list(b"0123456789abcdef")] = range(16)
DIGIT[list(b"ABCDEF")] = range(10, 16)


@part
def after_space(data: Pointer, at: int) -> int:
    """Skip white space."""
    while data[at] in (SPACE, _TAB, _RETURN):
        at += 1
    return at


@part
def _after_escape(data: Pointer, at: int) -> int:
    """Return the end of an escape, or -1."""
    if data[at + 1] != LETTER_U:
        return at + 2 if MEANING[data[at + 1]] else -1
    for place in range(at + 2, at + 6):
        if DIGIT[data[place]] < 0:
            return -1
    return at + 6


@part
def string(data: Pointer, at: int) -> tuple[int, int]:
    """Return the end of a string, after its quote, and its kind; -1 if invalid."""
    kind = TEXT
    if data[at] != QUOTE:
        return -1, kind
    at += 1
    while True:
        ahead = first_of(special_in(data, at))
        at += ahead
        if ahead == WIDTH:
            continue
        if data[at] == QUOTE:
            return at + 1, kind
        at = _after_escape(data, at) if data[at] == BACKSLASH else -1
        if at < 0:
            return -1, kind
        kind = ESCAPED


@part
def _after_digits(data: Pointer, at: int) -> int:
    while ZERO <= data[at] <= NINE:
        at += 1
    return at


@part
def _number(data: Pointer, at: int) -> tuple[int, int]:
    """Return the end of a number and its kind; -1 if invalid."""
    kind = INTEGER
    start = at + (data[at] == MINUS)
    at = _after_digits(data, start)
    missing = at == start or (data[start] == ZERO and at > start + 1)
    if data[at] == DOT:
        kind = NUMBER
        start = at + 1
        at = _after_digits(data, start)
        missing |= at == start
    if data[at] in (_E, _LARGE_E):
        kind = NUMBER
        start = at + 1 + (data[at + 1] in (PLUS, MINUS))
        at = _after_digits(data, start)
        missing |= at == start
    return -1 if missing else at, kind


@part
def _flat(data: Pointer, at: int) -> tuple[int, int]:
    """Return the end of a scalar value and its kind; -1 if invalid."""
    first = data[at]
    if first == QUOTE:
        return string(data, at)
    if first == _N:
        right = data[at + 1] == LETTER_U and data[at + 2] == _L and data[at + 3] == _L
        return at + 4 if right else -1, ABSENT
    if first == _T:
        right = data[at + 1] == _R and data[at + 2] == LETTER_U and data[at + 3] == _E
        return at + 4 if right else -1, TRUE
    if first == _F:
        right = data[at + 1] == _A and data[at + 2] == _L and data[at + 3] == _S
        return at + 5 if right and data[at + 4] == _E else -1, FALSE
    return _number(data, at)


@part
def after_colon(data: Pointer, at: int) -> int:
    """Return the start of a member's value, or -1."""
    at = after_space(data, at)
    return after_space(data, at + 1) if data[at] == COLON else -1


@part
def _after_inner_name(data: Pointer, at: int) -> int:
    """Skip a member's name and return the start of its value, or -1."""
    end, _ = string(data, at)
    return -1 if end < 0 else after_colon(data, end)


@part
def _after_nested(data: Pointer, at: int, closing: Pointer) -> int:  # noqa: C901 - a grammar
    """Return the end of an object or array, or -1. `closing` is a stack of closing brackets."""
    depth = 0
    while at >= 0:
        first = data[at]  # here a value begins
        if first in (OPEN_BRACE, OPEN_BRACKET):
            close = first + 2  # the codes of both pairs of brackets are two apart
            at = after_space(data, at + 1)
            if data[at] == close:
                at += 1
            elif depth < MAX_DEPTH:
                closing[depth] = close
                depth += 1
                if close == CLOSE_BRACE:
                    at = _after_inner_name(data, at)
                continue
            else:
                return -1
        else:
            at, _ = _flat(data, at)
        while at >= 0:  # here a value has ended
            if depth == 0:
                return at
            at = after_space(data, at)
            last = data[at]
            at += 1
            if last == COMMA:
                at = after_space(data, at)
                if closing[depth - 1] == CLOSE_BRACE:
                    at = _after_inner_name(data, at)
                break
            if last != closing[depth - 1]:
                return -1
            depth -= 1
    return -1


@part
def value(data: Pointer, at: int, closing: Pointer) -> tuple[int, int]:
    """Return the end of a value and its kind; -1 if invalid."""
    first = data[at]
    if first in (OPEN_BRACE, OPEN_BRACKET):
        return _after_nested(data, at, closing), OBJECT if first == OPEN_BRACE else ARRAY
    return _flat(data, at)


_STEP = 128
"""Bytes in which an 8-bit counter cannot overflow, so that the loop becomes vector instructions."""


@compiled(int64(BYTES))
def count_newlines(data: Array) -> int:
    """Count the newlines."""
    count = 0
    steps = len(data) // _STEP * _STEP
    for start in range(0, steps, _STEP):
        newlines = np.uint8(0)
        for at in range(start, start + _STEP):
            newlines = np.uint8(newlines + np.uint8(data[at] == NEWLINE))
        count += int(newlines)
    for at in range(steps, len(data)):
        count += data[at] == NEWLINE
    return count
