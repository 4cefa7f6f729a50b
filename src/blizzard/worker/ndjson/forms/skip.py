"""Records that are passed over by a rule: their lines become blank, and are counted apart.

A compiled scan finds the lines that a rule may hold for, by the keys of their outermost object. It
leaves out none, and knows little of JSON: whether the rule does hold is found out one by one. A
line that is broken is never passed over.
"""

from typing import Any

import numpy as np
from numba import int64, types, uint8

from blizzard.model.limits import MAX_LINE_BYTES
from blizzard.model.source.form import SkipRule
from blizzard.worker.ndjson.compiled.vector import WIDTH, compiled, flat, ordinary, part, pointer
from blizzard.worker.ndjson.lines import Block

Pointer = Any
Array = Any
_BYTES = types.Array(uint8, 1, "C", readonly=True)

_NEWLINE, _QUOTE, _COMMA, _BACKSLASH = b'\n",\\'
_OPEN_BRACE, _CLOSE_BRACE, _OPEN_BRACKET, _CLOSE_BRACKET = b"{}[]"


class Skipper:
    """Blanks the lines of blocks for which a rule holds."""

    def __init__(self, rule: SkipRule, max_line_bytes: int = MAX_LINE_BYTES) -> None:
        self._rule = rule
        self._max_line_bytes = max_line_bytes
        groups = (rule.only_key, rule.with_key, rule.without_key)
        names = [name.encode() for group in groups for name in group]
        self._names = np.frombuffer(b"".join([*names, bytes(WIDTH)]), np.uint8)
        self._starts = np.cumsum([0, *map(len, names)], dtype=np.int64)
        self._ends = np.cumsum([len(group) for group in groups], dtype=np.int64)
        self._seen = np.zeros(max(1, len(names)), np.uint8)

    def blanked(self, block: Block) -> Block:
        """Return a block in which the lines that are passed over are blank, and how many are."""
        lines = block.data
        padded = np.frombuffer(b"".join([lines, b"\n", bytes(WIDTH)]), np.uint8)
        found = np.empty((block.lines, 2), np.int64)
        count = candidates(
            padded, len(lines), self._names, self._starts, self._ends, self._seen, found
        )
        if not count:
            return block
        data = bytearray(lines)
        skipped = 0
        for start, end in found[:count].tolist():
            # One that is too long to be read is bad, with any content.
            if end - start <= self._max_line_bytes and self._rule.holds(lines[start:end]):
                data[start:end] = b" " * (end - start)
                skipped += 1
        if not skipped:
            return block
        written = block.raw(0, len(lines))
        return block.changed(bytes(data), as_written=written, filtered=skipped)


@part
def _is_same(data: Pointer, at: int, names: Pointer, start: int, length: int) -> bool:
    place = 0
    while place < length and data[at + place] == names[start + place]:
        place += 1
    return place == length


@part
def _may_hold(seen: Pointer, ends: Pointer, keys: int) -> bool:
    """Whether the rule may hold for an object with the names that were seen."""
    for number in range(ends[2]):
        if number < ends[0]:
            holds = seen[number] and keys == 1
        elif number < ends[1]:
            holds = seen[number] != 0
        else:
            holds = seen[number] == 0
        if holds:
            return True
    return False


@compiled(int64(_BYTES, int64, _BYTES, int64[::1], int64[::1], uint8[::1], int64[:, ::1]))
def candidates(  # noqa: C901, PLR0912 - one loop over all
    block: Array,
    size: int,
    all_names: Array,
    name_starts: Array,
    group_ends: Array,
    names_seen: Array,
    found: Array,
) -> int:
    """Find the lines that a rule may hold for, where they start and end; return how many.

    A newline and a step of zeros must follow the block. The names of the rule stand one after the
    other, in the order of its three groups.
    """
    data, names, starts = pointer(block), pointer(all_names), pointer(name_starts)
    ends, seen = pointer(group_ends), pointer(names_seen)
    known = len(name_starts) - 1
    at = count = 0
    while at < size:
        start = at
        depth = keys = 0
        is_key = True
        is_doubtful = False
        for number in range(known):
            seen[number] = 0
        while data[at] != _NEWLINE:
            if data[at] == _QUOTE:
                begin = at + 1
                at += 1
                has_escape = False
                while True:
                    ahead = ordinary(data, at)
                    at += ahead
                    if ahead == WIDTH:
                        continue
                    if data[at] == _QUOTE or data[at] == _NEWLINE:
                        break
                    if data[at] == _BACKSLASH:
                        has_escape = True
                        at += data[at + 1] != _NEWLINE
                    at += 1
                if depth == 1 and is_key:
                    keys += 1
                    is_key = False
                    is_doubtful |= has_escape
                    # A key may be in several groups of the rule.
                    for number in range(known):
                        if starts[number + 1] - starts[number] == at - begin and (
                            _is_same(data, begin, names, starts[number], at - begin)
                        ):
                            seen[number] = 1
                at += data[at] == _QUOTE
                continue
            if data[at] in (_OPEN_BRACE, _OPEN_BRACKET):
                depth += 1
            elif data[at] in (_CLOSE_BRACE, _CLOSE_BRACKET):
                depth -= 1
            elif data[at] == _COMMA:
                is_key |= depth == 1
            at += 1
            if depth > 1:
                at += flat(data, at)
        if is_doubtful or _may_hold(seen, ends, keys):
            found[count, 0], found[count, 1] = start, at
            count += 1
        at += 1
    return count
