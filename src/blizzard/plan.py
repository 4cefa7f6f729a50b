"""Source files into work units. Pure.

A unit holds files whose paths give one partition, or say nothing of it. Small files are packed
together, so that they share output files and a task is worth its start; what is packed is bounded,
so that all cores get work. A large plain file is cut into byte ranges, a unit each. A compressed
one cannot be cut: there is no way to start in its middle.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby

from blizzard.compression import Codec
from blizzard.flow import SourceFile, WorkUnit
from blizzard.ranges import cut

COMPRESSED_WEIGHT = 6
"""A compressed byte is about as much work as six plain ones."""
SMALLEST_UNIT = 16 * 1024 * 1024
"""Below this much plain NDJSON a task is over before it has paid for itself."""
UNITS_PER_CORE = 3
"""Several units a core, so that the last ones to finish do not leave the others idle."""


def plan(files: Iterable[SourceFile], *, parallelism: int) -> tuple[WorkUnit, ...]:
    """Put every byte of every file into exactly one unit, in the order of partitions and paths."""
    ordered = sorted(files, key=lambda file: (_partition(file), file.source, file.path))
    total = sum(weight(file) for file in ordered)
    room = max(SMALLEST_UNIT, total // max(1, parallelism * UNITS_PER_CORE))
    packs = (
        pack
        for _partition_key, group in groupby(ordered, key=_partition)
        for packed in _pack(group, room)
        for pack in _cut(packed, room)
    )
    return tuple(
        WorkUnit(name=str(index), partition_values=pack[0].partition_values, files=tuple(pack))
        for index, pack in enumerate(packs)
    )


def can_be_cut(file: SourceFile) -> bool:
    """Say whether tasks can share a file: plain, and read from its start."""
    return file.codec is Codec.NONE and not file.skip


def weight(file: SourceFile) -> int:
    """Estimate the work in a file, in bytes of plain NDJSON."""
    return file.size if file.codec is Codec.NONE else file.size * COMPRESSED_WEIGHT


def _cut(pack: list[SourceFile], room: int) -> Iterator[list[SourceFile]]:
    """Cut a file that is too large for one unit, if it can be cut."""
    file = pack[0]
    if len(pack) > 1 or not can_be_cut(file) or file.size <= room:
        yield pack
        return
    for part in cut(file.size, math.ceil(file.size / room)):
        yield [replace(file, part=part)]


def _partition(file: SourceFile) -> tuple[tuple[str, str], ...]:
    return tuple((key, value or "") for key, value in file.partition_values.items())


def _pack(files: Iterable[SourceFile], room: int) -> Iterator[list[SourceFile]]:
    pack: list[SourceFile] = []
    filled = 0
    for file in files:
        if pack and filled + weight(file) > room:
            yield pack
            pack, filled = [], 0
        pack.append(file)
        filled += weight(file)
    if pack:
        yield pack
