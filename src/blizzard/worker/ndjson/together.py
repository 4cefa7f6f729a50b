"""Short files that were read as one: many small files cost what their calls do, not their bytes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Generic, TypeVar

import pyarrow as pa

from blizzard.worker.ndjson.lines import Decoded

Key = TypeVar("Key")


@dataclass(frozen=True, slots=True, kw_only=True)
class Together(Generic[Key]):
    """The rows of whole files: each of their lines is one, and nothing of them was left out."""

    keys: Sequence[Key]
    sizes: Sequence[int]
    """The bytes of each file."""
    lines: Sequence[int]
    """How many lines each file has, and so how many rows."""
    batch: pa.RecordBatch
    size: int
    """The memory that the rows take."""

    def each(self) -> Iterator[tuple[Key, Iterator[Decoded]]]:
        """Yield the rows of each file by themselves."""
        size_of_row = self.size / max(1, self.batch.num_rows)
        ends = accumulate(self.lines)
        for key, size, lines, end in zip(self.keys, self.sizes, self.lines, ends, strict=True):
            decoded = Decoded(
                batch=self.batch.slice(end - lines, lines),
                size=round(lines * size_of_row),
                lines=lines,
                blank=0,
                dropped={},
                taken=size,
            )
            yield key, iter((decoded,))
