"""Forecast the Parquet size and the partitions of source files. Pure.

The first batch uses typical values. Each entry then shows the ratio of data file bytes to source
bytes, which improves the forecast of the next batch.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from blizzard.model.source.file import SourceFile
from lakebed.documents.entry import Entry
from lakebed.types import Codec

COMPRESSED_WEIGHT = 6
"""The plain bytes that one compressed byte counts as."""
PARQUET_PER_NDJSON = 0.2
"""Typical encoded bytes per byte of plain NDJSON."""
LARGEST_SHARE = 1.16
"""The largest planned size of a file, relative to the target, before another file is added."""
MOST_OVER = 1.25
"""The largest size at which a file is closed, relative to the target."""
FULL_ENOUGH = 0.95
"""The share of its size at which a file is full: another small row group would cost readers more
than the missing bytes."""


def weight(file: SourceFile) -> int:
    """Estimate the bytes of plain NDJSON to read of a file, or of its part."""
    if file.part is not None:
        size = file.part.end - file.part.start
    else:
        size = file.to_read if file.unread else file.size
    return size if file.codec is Codec.NONE else size * COMPRESSED_WEIGHT


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """The expected data files of source files."""

    ratio: float = PARQUET_PER_NDJSON
    """Encoded bytes per byte of `weight`."""
    partitions: float = 1.0
    """The partitions that the rows of one source file are divided among, by their own values."""
    learned: bool = False
    """Whether it is based on entries."""

    def encoded(self, files: Iterable[SourceFile]) -> float:
        """Return the expected bytes of Parquet."""
        return sum(map(weight, files)) * self.ratio

    def filled(self, files: Iterable[SourceFile], file_size: int) -> float:
        """Return the expected number of data files per partition, as a fraction."""
        return self.encoded(files) / self.partitions / file_size

    def closes_at(self, files: Iterable[SourceFile], file_size: int) -> int | None:
        """Return the size at which a task should close its data files, for even sizes.

        A little more than one file becomes one larger file, not a full one and a small one. None
        while nothing is known about the data.
        """
        if not self.learned:
            return None
        filled = self.filled(files, file_size)
        count = max(1, math.ceil(filled / LARGEST_SHARE))
        if count == 1:
            return int(file_size * MOST_OVER)
        # Each gets a little spare room, so that nothing is left for another file.
        room = filled / count * (1 + 0.1 / count) / FULL_ENOUGH
        return int(file_size * min(room, MOST_OVER))

    def after(self, entry: Entry, codec_of: Callable[[str, str], Codec]) -> "Forecast":
        """Return the forecast updated by the results in an entry.

        `codec_of` returns the compression of a file of a source. An entry with failed or partly
        read files changes nothing.
        """
        if not entry.is_batch or not entry.files:
            return self
        if any(not one.complete or one.skipped or one.failure for one in entry.sources):
            return self
        plain = sum(
            one.size * (1 if codec_of(one.source, one.path) is Codec.NONE else COMPRESSED_WEIGHT)
            for one in entry.sources
        )
        if not plain:
            return self
        ratio = sum(file.size for file in entry.files) / plain
        partitions = effective(entry)
        if self.learned:  # average with the past, so that one odd batch changes little
            ratio = (ratio + self.ratio) / 2
            partitions = (partitions + self.partitions) / 2
        return replace(self, ratio=ratio, partitions=partitions, learned=True)


def effective(entry: Entry) -> float:
    """Return the effective number of equally large partitions per unit.

    A partition with only a few late rows hardly counts.
    """
    by_unit: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for file in entry.files:
        by_unit[file.unit.partition(".")[0]][str(sorted(file.partition_values.items()))] += (
            file.size
        )
    divided = total = 0.0
    for sizes in by_unit.values():
        whole = sum(sizes.values())
        divided += whole * (whole * whole / max(1, sum(size * size for size in sizes.values())))
        total += whole
    return max(1.0, divided / max(1.0, total))
