"""Blocks that were read as one: many small files cost what their calls do, not their bytes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Generic, TypeVar

import pyarrow as pa

from blizzard.worker.ndjson.lines import Block, Decoded

Key = TypeVar("Key")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadTogether:
    """The rows of several blocks; those of each are made a batch only where they are asked for."""

    blocks: Sequence[Block]
    rows: Sequence[int]
    """How many lines of each block gave a row; the others are blank."""
    batch: pa.RecordBatch
    size: int
    """The memory that the rows take."""
    left_out: Mapping[int, Mapping[str, int]]
    """The values, other than null, that no column takes, of the blocks that have some."""
    rescues: bool
    """Whether those are in the column for them."""

    @property
    def lines(self) -> list[int]:
        """Return how many lines each block has."""
        return [block.lines for block in self.blocks]

    @property
    def is_plain(self) -> bool:
        """Whether each line is a row, and nothing of it was left out."""
        return not self.left_out and self.rows == self.lines

    def decoded(self) -> Iterator[Decoded]:
        """Yield the rows of each block."""
        size_of_row = self.size / max(1, self.batch.num_rows)
        blocks = zip(self.blocks, self.rows, accumulate(self.rows), strict=True)
        for number, (block, rows, end) in enumerate(blocks):
            left_out = self.left_out.get(number, {})
            yield Decoded(
                batch=self.batch.slice(end - rows, rows),
                size=round(rows * size_of_row),
                lines=block.lines,
                blank=block.lines - rows,
                dropped={} if self.rescues else left_out,
                rescued=left_out if self.rescues else {},
                taken=block.size,
            )


@dataclass(frozen=True, slots=True)
class Together(Generic[Key]):
    """The rows of whole files of one block each: every line is one, and nothing was left out."""

    keys: Sequence[Key]
    read: ReadTogether

    def each(self) -> Iterator[tuple[Key, Iterator[Decoded]]]:
        """Yield the rows of each file by themselves."""
        for key, decoded in zip(self.keys, self.read.decoded(), strict=True):
            yield key, iter((decoded,))
