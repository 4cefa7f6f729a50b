"""Queues that tell of new source files, and what their messages come to, as events."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from lakebed.telemetry.events import Event, Level
from lakebed.telemetry.health import Degraded, Mended, Part, PartKind, Sign
from lakebed.telemetry.measures import Count, Measure, Observe
from lakebed.units import plural, took


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesNoticed(Event):
    """Files were found because messages named them, and not by a listing."""

    level: ClassVar[Level] = Level.DEBUG
    pipeline: str
    files: int
    lag_secs: tuple[float, ...]
    """From the creation of each file, where its message says when that was."""

    def sentence(self) -> str:
        """Return how many, and how soon."""
        lag = f", at most {took(max(self.lag_secs))} after they were created"
        return (
            f"{self.pipeline}: {plural(self.files, 'source file')} found by notice"
            f"{lag if self.lag_secs else ''}"
        )

    def measures(self) -> Iterable[Measure]:
        """Observe how soon."""
        labels = {"pipeline": self.pipeline}
        yield from (
            Observe("blizzard_notice_duration_seconds", lag, labels) for lag in self.lag_secs
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticesSettled(Event):
    """Nothing more is to be done about some notices."""

    level: ClassVar[Level] = Level.TRACE
    pipeline: str
    kind: str
    notices: int

    def sentence(self) -> str:
        """Return how many, and what they were."""
        return f"{self.pipeline}: settled {plural(self.notices, 'notice')}: {self.kind}"

    def measures(self) -> Iterable[Measure]:
        """Count them."""
        labels = {"pipeline": self.pipeline, "kind": self.kind}
        yield Count("blizzard_notices_total", self.notices, labels)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticeUnreadable(Event):
    """A message is no notification of a store; more of them are only counted."""

    level: ClassVar[Level] = Level.WARN
    pipeline: str
    queue: str

    def sentence(self) -> str:
        """Return which queue, and what becomes of the message."""
        return (
            f"{self.pipeline}: a message in {self.queue} is no notification of an object store; it "
            "is left there for the queue's own dead letter queue, and deleted if it keeps coming "
            "back. More of them are only counted (blizzard_notices_total)"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueFailed(Event):
    """A queue could not be asked; files are found by listing until it answers."""

    level: ClassVar[Level] = Level.WARN
    pipeline: str
    queue: str
    code: str
    error: str
    next_try_secs: float

    def sentence(self) -> str:
        """Return why, and what it means."""
        return (
            f"{self.pipeline}: no notices from the queue: {self.error} [{self.code}]; source files "
            f"are found by listing meanwhile. Next try in {self.next_try_secs:.0f} s"
        )

    def measures(self) -> Iterable[Measure]:
        """Count it."""
        labels = {"pipeline": self.pipeline, "code": self.code}
        yield Count("blizzard_queue_failures_total", 1, labels)

    def signs(self) -> Iterable[Sign]:
        """Yield a sign that the pipeline works, and later than it could."""
        part = Part(PartKind.PIPELINE, self.pipeline)
        yield Degraded(part, f"notifications from {self.queue}", self.code, self.error)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueAnswers(Event):
    """A queue that could not be asked answers again."""

    pipeline: str
    queue: str

    def sentence(self) -> str:
        """Return which."""
        return f"{self.pipeline}: the queue answers again: {self.queue}"

    def signs(self) -> Iterable[Sign]:
        """Yield a sign that all is as it should be."""
        yield Mended(Part(PartKind.PIPELINE, self.pipeline), f"notifications from {self.queue}")


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesFoundBy(Event):
    """What an entry has ingested, by the way in which its files were found."""

    level: ClassVar[Level] = Level.TRACE
    pipeline: str
    notice: int
    sweep: int

    def sentence(self) -> str:
        """Return how many each way."""
        return f"{self.pipeline}: found by notice: {self.notice:,}; by listing: {self.sweep:,}"

    def measures(self) -> Iterable[Measure]:
        """Count them."""
        for way, files in (("notice", self.notice), ("sweep", self.sweep)):
            labels = {"pipeline": self.pipeline, "found_by": way}
            yield Count("blizzard_source_files_found_total", files, labels)
