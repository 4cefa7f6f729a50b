"""Decide when a batch starts, and which small data files are compacted together. Pure.

A large load gives large files, a small load a bounded delay.

A compaction takes the files of one partition in write order, so that rows of about the same time
stay together, in groups of about `file_size`. Large files are never touched. A group is worthwhile
if it has enough files or fills one, and if no file has more than half the rows of a new one: each
rewrite of a row at least doubles its file, so the number of rewrites is logarithmic. In a partition
at rest with more than twice the necessary files, growth by a quarter suffices, so that odd files do
not remain forever.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from blizzard.model.settings import PipelineSettings, RollingPolicy
from blizzard.model.source.file import SourceFile
from blizzard.model.source.forecast import Forecast
from blizzard.model.source.form import codec_of
from lakebed.documents.entry import Entry
from lakebed.layout import TablePath
from lakebed.types import Codec, Compression


def is_full(
    files: Sequence[SourceFile], policy: RollingPolicy, *, parallelism: int, forecast: Forecast
) -> bool:
    """Whether files fill at least one data file per core.

    Files of different partitions never share a data file, so each of several partitions counts only
    the files that it fills completely.
    """
    partitions: dict[tuple[tuple[str, str | None], ...], list[SourceFile]] = defaultdict(list)
    for file in files:
        partitions[tuple(file.partition_values.items())].append(file)
    filled = [forecast.filled(one, policy.file_size) for one in partitions.values()]
    if len(filled) == 1:
        return filled[0] >= parallelism
    return sum(map(math.floor, filled)) >= parallelism


def learned(forecast: Forecast, entry: Entry | None, settings: PipelineSettings) -> Forecast:
    """Return the forecast, updated by the results of an entry."""
    compression = {each.name: each.compression for each in settings.sources}

    def codec(source: str, path: str) -> Codec:
        known = compression.get(source, Compression.AUTO)
        return codec_of(path) if known is Compression.AUTO else Codec(known.value)

    return forecast if entry is None else forecast.after(entry, codec)


@dataclass(slots=True, kw_only=True)
class Timing:
    """Decides when the next batch is due."""

    settings: PipelineSettings
    forecast: Forecast = field(default_factory=Forecast)
    """What source files are expected to become."""
    due_in: float = 0.0
    """Seconds until the waiting files make a batch at the latest."""
    _seen: dict[str, datetime] = field(default_factory=dict)
    """When each waiting file was first seen: a store's clock may be ahead of ours."""

    def learn(self, entry: Entry) -> None:
        """Update the forecast with the results of an entry."""
        self.forecast = learned(self.forecast, entry, self.settings)

    def is_time(
        self, files: Sequence[SourceFile], *, more: bool, cores: int, now: datetime
    ) -> bool:
        """Whether the waiting files make a batch now.

        They do if there are more than a batch may hold, if they fill a file per core, if the first
        one has waited long enough, or if no more have arrived for a while.
        """
        policy = self.settings.sink.rolling
        seen = self._seen = {file.key: self._seen.get(file.key, now) for file in files}
        waited = [(now - min(file.modified, seen[file.key])).total_seconds() for file in files]
        by_first, by_last = policy.rollover - max(waited), policy.inactivity - min(waited)
        self.due_in = max(0.0, min(by_first, by_last))
        is_due = more or not self.due_in
        return is_due or is_full(files, policy, parallelism=cores, forecast=self.forecast)


ENOUGH = 0.75
"""The share of `file_size` from which a file is large enough."""
TOO_LARGE = 1.75
"""The largest size of a new file, as a multiple of `file_size`."""
GROWS = 2.0
"""The least growth in rows from each old file to the new file."""
GROWS_LEAST = 1.25
"""The least growth in a partition at rest with more than twice the necessary files."""
AT_REST = 3
"""A partition is at rest if nothing was written into it for this many times `quiet`."""
MOST_FILES = 10_000
"""The most files in one compaction, since the entry names each of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallFile:
    """A data file that may be compacted with others."""

    path: TablePath
    size: int
    rows: int
    partition: tuple[tuple[str, str | None], ...]
    written: int
    """When it was begun, in milliseconds since the epoch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What is worth compacting."""

    file_size: int
    min_files: int = 4
    """The least files of a group that is not large enough otherwise."""
    quiet_ms: int = 600_000
    """The least age of a file, to leave recent files alone."""
    max_bytes: int = 10 * 1024**3
    """The most bytes to read in one compaction."""
    max_files: int = MOST_FILES

    @property
    def enough(self) -> int:
        """Return the size from which a file is left alone."""
        return max(1, int(self.file_size * ENOUGH))


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeGroup:
    """Files of one partition that become one."""

    files: tuple[SmallFile, ...]
    """In the order of their rows."""

    @property
    def size(self) -> int:
        """Return the bytes to read."""
        return sum(file.size for file in self.files)

    @property
    def rows(self) -> int:
        """Count the rows."""
        return sum(file.rows for file in self.files)

    @property
    def saved(self) -> int:
        """Return by how many files the table shrinks."""
        return len(self.files) - 1


def is_small(file: SmallFile, policy: Policy) -> bool:
    """Whether a file is small enough to compact."""
    return file.size < policy.enough and file.rows > 0


def groups_of(files: Iterable[SmallFile], policy: Policy, now: int) -> tuple[MergeGroup, ...]:
    """Return the worthwhile groups within the limits of one run, best first."""
    found: list[MergeGroup] = []
    partitions: defaultdict[object, list[SmallFile]] = defaultdict(list)
    for file in files:
        if is_small(file, policy):
            partitions[file.partition].append(file)
    for some in partitions.values():
        old = [file for file in some if now - file.written >= policy.quiet_ms]
        newest = max(file.written for file in some)
        if old:
            found += _in_partition(old, policy, at_rest=now - newest >= AT_REST * policy.quiet_ms)
    found.sort(key=lambda one: (-one.saved / one.size, one.files[0].path))
    chosen: list[MergeGroup] = []
    size = count = 0
    for group in found:
        fits = size + group.size <= policy.max_bytes
        if fits and count + len(group.files) <= policy.max_files:
            chosen.append(group)
            size += group.size
            count += len(group.files)
    return tuple(chosen)


def _in_partition(
    files: Sequence[SmallFile], policy: Policy, *, at_rest: bool
) -> Iterator[MergeGroup]:
    """Yield the groups of files of one partition."""
    size = sum(file.size for file in files)
    too_many = len(files) > 2 * math.ceil(size / policy.file_size)
    closing = at_rest and too_many
    for pack in _packed(sorted(files, key=lambda one: (one.written, one.path)), policy):
        group = _without_dominant(pack, policy, GROWS_LEAST if closing else GROWS)
        least = 2 if closing or group.size >= policy.enough else policy.min_files
        if len(group.files) >= least:
            yield group


def _packed(files: Sequence[SmallFile], policy: Policy) -> Iterator[tuple[SmallFile, ...]]:
    """Yield packs of files of about the full size."""
    pack: list[SmallFile] = []
    size = 0
    for file in files:
        too_much = size >= policy.enough and size + file.size > policy.file_size
        if too_much or len(pack) >= policy.max_files or size + file.size > policy.max_bytes:
            yield tuple(pack)
            pack, size = [], 0
        pack.append(file)
        size += file.size
    if pack:
        yield tuple(pack)


def _without_dominant(pack: tuple[SmallFile, ...], policy: Policy, grows: float) -> MergeGroup:
    """Drop the largest files until the rest grows enough by being merged."""
    group = MergeGroup(files=pack)
    for largest in sorted(pack, key=lambda one: -one.rows):
        if group.rows >= grows * largest.rows and group.size <= policy.file_size * TOO_LARGE:
            break
        group = MergeGroup(files=tuple(one for one in group.files if one is not largest))
    return group
