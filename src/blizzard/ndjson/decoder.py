"""NDJSON bytes in, Arrow batches out: every line is a row, is blank, or stops the file.

One meaning, several paths. The exact path defines what a line means. A fast path reads a block at a
time and gives an answer only where it is the exact one; any other block is read line by line.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from blizzard.ndjson.exact import ExactPath
from blizzard.ndjson.lines import MAX_LINE_BYTES, BadLine, Decoded, blocks
from lake.schema import Schema

__all__ = ["MAX_NAMES", "OTHER_FIELDS", "BadLine", "Decoded", "Decoder"]

MAX_NAMES = 100
MAX_NAME_CHARACTERS = 200
OTHER_FIELDS = "(other fields)"
MAX_CELLS = 4_000_000


class Decoder:
    """Turns the lines of a file into rows of the declared schema, value for value.

    One can serve many files: what it remembers of one makes it faster with the next, never other.
    """

    def __init__(self, schema: Schema, *, max_line_bytes: int = MAX_LINE_BYTES) -> None:
        if not schema.fields:
            raise ValueError("a schema without fields has no rows to decode")
        # It brings a compiler along, which costs a second. Only who reads rows pays for it.
        from blizzard.ndjson.fast import FastPath  # noqa: PLC0415

        self._exact = ExactPath(schema, max_line_bytes=max_line_bytes)
        self._fast = FastPath(schema, max_line_bytes=max_line_bytes)
        self._max_line_bytes = max_line_bytes
        self._max_lines = max(1, MAX_CELLS // len(schema.fields))

    def decode(self, chunks: Iterable[bytes]) -> Iterator[Decoded]:
        """Give the rows of a file in order, about 1 MiB of lines at a time.

        The first bad line raises `BadLine`, after the batches of the blocks before it.
        """
        names: set[str] = set()
        limits = {"max_line_bytes": self._max_line_bytes, "max_lines": self._max_lines}
        for block in blocks(chunks, **limits):
            decoded = self._fast.read(block) or self._exact.read(block)
            yield replace(decoded, dropped=_capped(decoded.dropped, names))


def _capped(dropped: Mapping[str, int], names: set[str]) -> Mapping[str, int]:
    """Keep the first names of a file and count the others under one, so that labels stay few."""
    kept: dict[str, int] = {}
    for name in sorted(dropped):
        if name not in names and len(names) < MAX_NAMES and len(name) <= MAX_NAME_CHARACTERS:
            names.add(name)
        label = name if name in names else OTHER_FIELDS
        kept[label] = kept.get(label, 0) + dropped[name]
    return kept
