"""Records that are passed over by a rule: their lines become blank, and are counted apart.

Regular expressions find the lines that a rule may hold for, by the keys in them. They leave out
none, and know little of JSON: whether the rule does hold is found out one by one. A line that is
broken is never passed over.
"""

import re

from blizzard.model.settings import MAX_LINE_BYTES
from blizzard.model.source.form import SkipRule
from blizzard.worker.ndjson.exact import spans_of
from blizzard.worker.ndjson.lines import Block

_PLAIN = re.compile(r"[\w.@$-]+", re.ASCII)
"""A key that nothing but itself looks like; escaped, it has a \\u00 in it."""


class Skipper:
    """Blanks the lines of blocks for which a rule holds."""

    def __init__(self, rule: SkipRule, max_line_bytes: int = MAX_LINE_BYTES) -> None:
        self._rule = rule
        self._max_line_bytes = max_line_bytes
        named = (*rule.only_key, *rule.with_key)
        escape = rb"\\u00" if all(map(_PLAIN.fullmatch, named)) else rb"\\"
        written = [b'"%s"' % re.escape(name.encode()) for name in named]
        self._named = re.compile(b"|".join([escape, *written])) if named else None
        self._without = rule.without_key
        # A key of the outermost object, as no other object begins before it.
        self._there = [
            re.compile(rb'[ \t\r]*\{[^{\\\n]*"%s"[ \t\r]*:' % re.escape(name.encode()))
            for name in rule.without_key
            if _PLAIN.fullmatch(name)
        ]

    def blanked(self, block: Block) -> Block:
        """Return a block in which the lines that are passed over are blank, and how many are."""
        lines = block.data
        skipped = [
            (start, end)
            for _number, start, end in spans_of(block)
            # One that is too long to be read is bad, with any content.
            if end - start <= self._max_line_bytes
            and self._may_hold(lines, start, end)
            and self._rule.holds(lines[start:end])
        ]
        if not skipped:
            return block
        data = bytearray(lines)
        for start, end in skipped:
            data[start:end] = b" " * (end - start)
        return block.changed(
            bytes(data), as_written=block.raw(0, len(lines)), filtered=len(skipped)
        )

    def _may_hold(self, lines: bytes, start: int, end: int) -> bool:
        """Whether the rule may hold for a line."""
        if self._named is not None and self._named.search(lines, start, end):
            return True
        sure = (pattern.match(lines, start, end) for pattern in self._there)
        return len(self._there) < len(self._rule.without_key) or not all(sure)
