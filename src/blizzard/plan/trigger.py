"""When a batch starts: big loads give big files, small loads give bounded delay."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from blizzard.model.files import SourceFile
from blizzard.model.settings import PipelineSettings, RollingPolicy
from blizzard.model.source.forecast import Forecast
from blizzard.model.source.form import codec_of
from lakebed.documents.entry import Entry
from lakebed.types import Codec, Compression

UNKNOWN = Forecast()


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingFiles:
    """Source files that are listed and not yet read."""

    files: Sequence[SourceFile]
    oldest: datetime
    """When the first of them arrived."""
    newest: datetime
    """When the last of them arrived."""
    more: bool
    """Whether there are more than one batch may hold."""


@dataclass(slots=True)
class Arrivals:
    """When the waiting files arrived: when the store says so, or when they were first seen.

    A store's clock may be ahead of ours.
    """

    _seen: dict[str, datetime] = field(default_factory=dict)

    def waiting(self, files: Sequence[SourceFile], *, more: bool, now: datetime) -> WaitingFiles:
        """Return what waits now, and remember it."""
        before, self._seen = self._seen, {}
        arrived: list[datetime] = []
        for file in files:
            key = file.key
            seen = self._seen[key] = before.get(key, now)
            arrived.append(min(file.modified, seen))
        return WaitingFiles(files=files, oldest=min(arrived), newest=max(arrived), more=more)


def should_start(
    waiting: WaitingFiles,
    policy: RollingPolicy,
    *,
    parallelism: int,
    now: datetime,
    forecast: Forecast = UNKNOWN,
) -> bool:
    """Start when the files fill a file on every core, have waited enough, or no more come. Pure."""
    return (
        waiting.more
        or is_full(waiting.files, policy, parallelism=parallelism, forecast=forecast)
        or starts_by(waiting, policy, now=now) <= 0
    )


def is_full(
    files: Sequence[SourceFile], policy: RollingPolicy, *, parallelism: int, forecast: Forecast
) -> bool:
    """Whether files fill a data file for every core, and one of each partition that they have.

    Files of different partitions never share a data file, so each partition counts for itself,
    with no more than the files that it fills.
    """
    partitions: dict[tuple[tuple[str, str | None], ...], list[SourceFile]] = defaultdict(list)
    for file in files:
        partitions[tuple(file.partition_values.items())].append(file)
    filled = [forecast.filled(one, policy.file_size) for one in partitions.values()]
    if len(filled) == 1:
        return filled[0] >= parallelism
    return sum(map(math.floor, filled)) >= parallelism


def starts_by(waiting: WaitingFiles, policy: RollingPolicy, *, now: datetime) -> float:
    """Return in how many seconds waiting files make a batch at the latest; 0 or less: now. Pure."""
    by_first = policy.rollover - (now - waiting.oldest).total_seconds()
    by_last = policy.inactivity - (now - waiting.newest).total_seconds()
    return min(by_first, by_last)


def learned(forecast: Forecast, entry: Entry | None, settings: PipelineSettings) -> Forecast:
    """Return what to expect of source files after the results that an entry records."""
    compression = {each.name: each.compression for each in settings.sources}

    def codec(source: str, path: str) -> Codec:
        known = compression.get(source, Compression.AUTO)
        return codec_of(path) if known is Compression.AUTO else Codec(known.value)

    return forecast if entry is None else forecast.after(entry, codec)


@dataclass(slots=True, kw_only=True)
class Timing:
    """What outlives a batch and tells when the next one is due."""

    settings: PipelineSettings
    forecast: Forecast = field(default_factory=Forecast)
    """What source files are expected to become."""
    due_in: float = 0.0
    """In how many seconds the files that were last asked about make a batch at the latest."""
    _arrivals: Arrivals = field(default_factory=Arrivals)

    def learn(self, entry: Entry) -> None:
        """Remember what the source files of an entry have become."""
        self.forecast = learned(self.forecast, entry, self.settings)

    def is_time(
        self, files: Sequence[SourceFile], *, more: bool, cores: int, now: datetime
    ) -> bool:
        """Whether the waiting files make a batch now."""
        waiting = self._arrivals.waiting(files, more=more, now=now)
        self.due_in = max(0.0, starts_by(waiting, self.settings.sink.rolling, now=now))
        return should_start(
            waiting,
            self.settings.sink.rolling,
            parallelism=cores,
            now=now,
            forecast=self.forecast,
        )
