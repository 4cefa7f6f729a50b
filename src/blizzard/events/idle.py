"""That a pipeline waits, and for what, as events."""

from dataclasses import dataclass
from typing import ClassVar

from lakebed.telemetry.events import Event, Level
from lakebed.units import plural, span


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcesWatched(Event):
    """Nothing is left to do for now; the sources are looked at again and again."""

    level: ClassVar[Level] = Level.INFO
    pipeline: str
    places: tuple[str, ...]
    every_secs: float

    def sentence(self) -> str:
        """Return what is watched, and how often."""
        where = ", ".join(self.places)
        return f"{self.pipeline}: watching {where} every {span(self.every_secs)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesGather(Event):
    """New files wait for more of them before they become a batch."""

    level: ClassVar[Level] = Level.INFO
    pipeline: str
    files: int
    starts_in_secs: float

    def sentence(self) -> str:
        """Return how many, and when the batch starts at the latest."""
        files = plural(self.files, "file")
        return (
            f"{self.pipeline}: {files} waiting, next batch in {span(self.starts_in_secs)} at the "
            "latest"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NextBatchDue(Event):
    """How many files wait now, and when the batch starts at the latest."""

    level: ClassVar[Level] = Level.TRACE
    pipeline: str
    files: int
    starts_in_secs: float

    def sentence(self) -> str:
        """Return both."""
        files = plural(self.files, "file")
        return f"{self.pipeline}: {files} waiting, next batch in {span(self.starts_in_secs)}"
