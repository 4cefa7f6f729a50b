"""Divide source files into work units; only files known to be uncompressed can be split."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import compress, groupby

from blizzard.model.settings import PipelineSettings, Sizing
from blizzard.model.source.file import ByteRange, SourceFile, cut
from blizzard.model.source.forecast import Forecast, weight
from blizzard.model.source.form import FIRST_BYTES, codec_in
from blizzard.model.stores import OpenReader, source_location
from blizzard.model.work import WorkUnit
from lakebed.errors import LakeError
from lakebed.types import Codec, Provenance

FILE_WORK = 16 * 1024
"""The overhead of a file, in plain bytes read in the same time."""
MOST_UNITS_PER_CORE = 3
"""Several units per core, so that few cores are idle at the end of a batch."""
USUAL = Sizing()
UNKNOWN = Forecast()


@dataclass(frozen=True, slots=True, kw_only=True)
class Planner:
    """Divides source files into work units of about the same size."""

    parallelism: int
    file_size: int
    sizing: Sizing = USUAL
    forecast: Forecast = UNKNOWN
    hurry: bool = True
    """Whether every core gets work at once, even if data files become small."""

    def plan(self, files: Iterable[SourceFile], *, cuts: bool = True) -> tuple[WorkUnit, ...]:
        """Assign every byte of every file to exactly one unit, ordered by partition and path.

        Unless it `cuts` files, the unread ranges of a file are still units of their own.
        """
        ordered = sorted(files, key=lambda file: (_partition(file), file.source, file.path))
        room = self._room(ordered)
        packs = (
            pack
            for _partition_key, group in groupby(ordered, key=_partition)
            for pack in _packs(list(group), room, cuts=cuts)
        )
        return tuple(
            WorkUnit(
                name=str(index),
                partition_values=pack[0].partition_values,
                files=tuple(pack),
                file_size=self.forecast.closes_at(pack, self.file_size),
            )
            for index, pack in enumerate(packs)
        )

    def to_recognise(self, files: Sequence[SourceFile]) -> tuple[SourceFile, ...]:
        """Return the few large files that would be split if known to be plain."""
        least = self.sizing.smallest_unit
        large = [file for file in files if file.by_content and file.size > least]
        room = self._room(files) if large else 0
        return tuple(
            file
            for file in large
            if file.size > room and can_be_cut(replace(file, by_content=False))
        )

    def _room(self, files: Sequence[SourceFile]) -> int:
        """Return the target work of a unit."""
        cores, sizing = max(1, self.parallelism), self.sizing
        load = sum(map(work, files))
        filled = self.forecast.filled(files, self.file_size)
        if sizing.units_per_core is not None:
            units = cores * sizing.units_per_core
        elif self.hurry:
            units = cores * units_per_core(filled / cores)
        else:
            units = units_at_leisure(filled, load, cores=cores, sizing=sizing)
        return max(sizing.smallest_unit, math.ceil(load / units))


def units_per_core(filled: float) -> int:
    """Return the units per core, given the data files that a core's share fills.

    Each unit writes files of its own. So a small load favours large files over several units per
    core; a large load allows both.
    """
    return min(max(1, int(filled)), MOST_UNITS_PER_CORE)


def units_at_leisure(filled: float, load: int, *, cores: int, sizing: Sizing = USUAL) -> int:
    """Return the units of a batch that is not urgent, given the data files that it fills.

    One unit per filled file, even if cores stay idle; but no core should work for minutes while
    others are idle.
    """
    fair = min(cores, math.ceil(load / sizing.largest_unit))
    return min(max(1, fair, round(filled)), cores * MOST_UNITS_PER_CORE)


def can_be_cut(file: SourceFile) -> bool:
    """Whether tasks can share a file: it is plain lines, and its unread bytes are known."""
    is_plain = file.codec is Codec.NONE and not file.by_content
    return is_plain and not file.form.is_documents and (not file.skip or bool(file.unread))


def work(file: SourceFile) -> int:
    """Estimate the work in a file, measured in bytes of plain NDJSON."""
    return weight(file) + FILE_WORK


def _partition(file: SourceFile) -> tuple[tuple[str, str], ...]:
    values = file.partition_values
    return tuple((key, value or "") for key, value in values.items()) if values else ()


def _packs(files: list[SourceFile], room: int, *, cuts: bool) -> Iterator[list[SourceFile]]:
    """Yield the files of each unit of one partition."""
    in_parts = [
        bool(file.unread) or (cuts and can_be_cut(file) and file.size > room) for file in files
    ]
    whole = [file for file, cuts in zip(files, in_parts, strict=True) if not cuts]
    yield from _packed(whole, room)
    for file in compress(files, in_parts):
        for part in _parts(file, room if cuts else file.size):
            yield [replace(file, part=part)]


def _parts(file: SourceFile, room: int) -> Iterator[ByteRange]:
    """Cut the unread bytes of a file into ranges, in order."""
    left = [ByteRange(one.start, one.end) for one in file.unread] or [ByteRange(0, file.size)]
    for one in left:
        size = one.end - one.start
        yield from cut(size, math.ceil(size / room), start=one.start)


def _packed(files: list[SourceFile], room: int) -> Iterator[list[SourceFile]]:
    """Cut a list of files into packs of about equal work, at most about `room` each.

    A file belongs to the pack that contains its midpoint. So there is no small last pack, which
    could be one task more than there are cores and double the time.
    """
    weights = list(map(work, files))
    total = sum(weights)
    count = max(1, round(total / room))
    before = 0
    pack: list[SourceFile] = []
    place = 0
    for file, own in zip(files, weights, strict=True):
        here = min(int((before + own / 2) * count / total), count - 1)
        before += own
        if here != place and pack:
            yield pack
            pack = []
        place = here
        pack.append(file)
    if pack:
        yield pack


def planned(
    settings: PipelineSettings,
    files: Sequence[SourceFile],
    open_source: OpenReader,
    *,
    parallelism: int,
    forecast: Forecast = UNKNOWN,
    hurry: bool = True,
) -> tuple[WorkUnit, ...]:
    """Plan files into units after checking which of the large ones are plain.

    The few files that would be split are identified by their first bytes. A file that cannot be
    read is left whole: its task reports the error.
    """
    planner = Planner(
        parallelism=parallelism,
        file_size=settings.sink.rolling.file_size,
        sizing=settings.sizing,
        forecast=forecast,
        hurry=hurry,
    )
    if Provenance.LINE in settings.provenance:
        # A task that begins in the middle of a file cannot number its lines.
        return planner.plan(files, cuts=False)
    sources = {source.name: source for source in settings.sources}
    sure: dict[str, SourceFile] = {}
    for file in planner.to_recognise(files):
        try:
            store = open_source(source_location(sources[file.source]))
            first = store.part(file.path, 0, min(FIRST_BYTES, file.size), etag=file.etag)
        except LakeError:
            continue
        sure[file.key] = replace(file, codec=codec_in(first, file.codec), by_content=False)
    return planner.plan(sure.get(file.key, file) for file in files)
