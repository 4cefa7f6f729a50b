"""The journal, its writer, and compactions between batches, as events."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from lakebed.telemetry.events import Event, Level
from lakebed.telemetry.health import Part, PartKind, Sign, Working
from lakebed.telemetry.measures import Count, Measure
from lakebed.units import in_words, plural


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionStarted(Event):
    """A run looks for small data files to put together."""

    level: ClassVar[Level] = Level.DEBUG
    pipeline: str

    def sentence(self) -> str:
        """Return that it does."""
        return f"{self.pipeline}: looking for small data files to compact"

    def signs(self) -> Iterable[Sign]:
        """Yield a sign that the pipeline is at work, for as long as it takes."""
        yield Working(Part(PartKind.PIPELINE, self.pipeline))


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesCompacted(Event):
    """Small data files became fewer, once that is committed."""

    pipeline: str
    entry: int
    files: int
    into: int
    bytes: int

    def sentence(self) -> str:
        """Return how many became how many."""
        return (
            f"{self.pipeline}: entry {self.entry} compacts {plural(self.files, 'data file')} into "
            f"{self.into:,} ({in_words(self.bytes)})"
        )

    def measures(self) -> Iterable[Measure]:
        """Count them."""
        labels = {"pipeline": self.pipeline}
        yield Count("blizzard_compactions_total", 1, labels)
        yield Count("blizzard_files_compacted_total", self.files, labels)
        yield Count("blizzard_compacted_bytes_total", self.bytes, labels)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionGaveWay(Event):
    """Nothing was compacted, since somebody else came first; it is tried again later."""

    pipeline: str
    reason: str

    def sentence(self) -> str:
        """Return who came first."""
        return f"{self.pipeline}: no files were compacted this time: {self.reason}"

    def measures(self) -> Iterable[Measure]:
        """Count it."""
        yield Count("blizzard_compactions_gave_way_total", 1, {"pipeline": self.pipeline})


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionFailed(Event):
    """Files could not be compacted. They stay as they are, and batches go on."""

    level: ClassVar[Level] = Level.WARN
    pipeline: str
    code: str
    error: str

    def sentence(self) -> str:
        """Return why."""
        return (
            f"{self.pipeline}: files could not be compacted: {self.error} [{self.code}]; the table "
            "stays as it is, and it is tried again later"
        )

    def measures(self) -> Iterable[Measure]:
        """Count it."""
        yield Count("blizzard_compaction_failures_total", 1, {"pipeline": self.pipeline})


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRebuilt(Event):
    """What was derived from the journal is missing or damaged; every entry is read instead."""

    level: ClassVar[Level] = Level.WARN
    pipeline: str
    reason: str

    def sentence(self) -> str:
        """Return why."""
        return (
            f"{self.pipeline}: reading every journal entry again, because a snapshot or an index "
            f"of known names cannot be used: {self.reason}"
        )

    def measures(self) -> Iterable[Measure]:
        """Count it."""
        yield Count("blizzard_history_rebuilt_total", 1, {"pipeline": self.pipeline})


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotFailed(Event):
    """A snapshot could not be written; nothing is lost, and it is tried again."""

    level: ClassVar[Level] = Level.WARN
    pipeline: str
    code: str
    error: str

    def sentence(self) -> str:
        """Return why, and what it means."""
        return (
            f"{self.pipeline}: no snapshot of the journal was written: {self.error}; the next "
            "start reads more entries until one is"
        )

    def measures(self) -> Iterable[Measure]:
        """Count it."""
        yield Count("blizzard_snapshot_failures_total", 1, {"pipeline": self.pipeline})


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherWriterWatched(Event):
    """Another blizzard seems to run the pipeline; whether it is alive is being checked."""

    pipeline: str
    other: str
    seconds: float

    def sentence(self) -> str:
        """Return who it is, and how long this takes."""
        return (
            f"{self.pipeline}: another blizzard has not ended: {self.other}; watching for up to "
            f"{self.seconds:.0f} s to see whether it is alive"
        )

    def signs(self) -> Iterable[Sign]:
        """Yield a sign that the wait is no trouble."""
        yield Working(Part(PartKind.PIPELINE, self.pipeline))


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenOver(Event):
    """This blizzard continues where another one left off."""

    level: ClassVar[Level] = Level.WARN
    pipeline: str
    other: str
    why: str

    def sentence(self) -> str:
        """Return from whom, and why that is sound."""
        return f"{self.pipeline}: taking over from {self.other}: {self.why}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BeatFailed(Event):
    """The lease could not be renewed; it is advisory, so nothing else depends on it."""

    level: ClassVar[Level] = Level.WARN
    pipeline: str
    code: str
    error: str

    def sentence(self) -> str:
        """Return what may come of it."""
        return (
            f"{self.pipeline}: the lease was not renewed: {self.error} [{self.code}]; a second "
            "blizzard may take over this pipeline"
        )
