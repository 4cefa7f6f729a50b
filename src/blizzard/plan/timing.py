"""When the next batch of a pipeline is due, from what waits and what its earlier batches became."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from blizzard.model.files import SourceFile
from blizzard.model.settings import PipelineSettings
from blizzard.model.source.codec import codec_of
from blizzard.model.source.forecast import Forecast
from blizzard.plan.trigger import Arrivals, should_start, starts_by
from lakebed.documents.entry import Entry
from lakebed.types import Codec, Compression


def learned(forecast: Forecast, entry: Entry | None, settings: PipelineSettings) -> Forecast:
    """Return what to expect of source files once an entry has told what others have become."""
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
        self.due_in = max(0.0, starts_by(waiting, self.settings.sink.rolling, now=now).seconds)
        return should_start(
            waiting,
            self.settings.sink.rolling,
            parallelism=cores,
            now=now,
            forecast=self.forecast,
        )
