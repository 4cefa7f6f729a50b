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
    _seen: dict[str, datetime] = field(default_factory=dict)
    """When each waiting file was first seen: a store's clock may be ahead of ours."""

    def learn(self, entry: Entry) -> None:
        """Remember what the source files of an entry have become."""
        self.forecast = learned(self.forecast, entry, self.settings)

    def is_time(
        self, files: Sequence[SourceFile], *, more: bool, cores: int, now: datetime
    ) -> bool:
        """Whether the waiting files make a batch now.

        They do if there are more than one batch may hold, if they fill a file on every core, if the
        first of them has waited long enough, or if no more have come for a while.
        """
        policy = self.settings.sink.rolling
        seen = self._seen = {file.key: self._seen.get(file.key, now) for file in files}
        waited = [(now - min(file.modified, seen[file.key])).total_seconds() for file in files]
        by_first, by_last = policy.rollover - max(waited), policy.inactivity - min(waited)
        self.due_in = max(0.0, min(by_first, by_last))
        is_due = more or not self.due_in
        return is_due or is_full(files, policy, parallelism=cores, forecast=self.forecast)
