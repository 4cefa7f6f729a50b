"""The journal, its writer, and compactions between batches, as events."""

from collections.abc import Iterable

from blizzard.events.base import PipelineEvent
from lakebed.telemetry.events import Level
from lakebed.telemetry.health import Sign, Working
from lakebed.telemetry.measures import Measure
from lakebed.units import in_words, plural


class CompactionStarted(PipelineEvent, level=Level.DEBUG):
    """A run looks for small data files to put together."""

    def message(self) -> str:
        """Return that it does."""
        return "looking for small data files to compact"

    def signs(self) -> Iterable[Sign]:
        """Yield a sign that the pipeline is at work, for as long as it takes."""
        yield Working(self.part)


class FilesCompacted(PipelineEvent):
    """Small data files became fewer, once that is committed."""

    entry: int
    files: int
    into: int
    bytes: int

    def message(self) -> str:
        """Return how many became how many."""
        return (
            f"entry {self.entry} compacts {plural(self.files, 'data file')} into "
            f"{self.into:,} ({in_words(self.bytes)})"
        )

    def measures(self) -> Iterable[Measure]:
        """Count them."""
        yield self.count("blizzard_compactions_total")
        yield self.count("blizzard_files_compacted_total", self.files)
        yield self.count("blizzard_compacted_bytes_total", self.bytes)


class CompactionGaveWay(PipelineEvent, counts="blizzard_compactions_gave_way_total"):
    """Nothing was compacted, because another writer came first; a later run tries again."""

    reason: str

    def message(self) -> str:
        """Return who came first."""
        return f"no files were compacted this time: {self.reason}"


class CompactionFailed(
    PipelineEvent, level=Level.WARN, counts="blizzard_compaction_failures_total"
):
    """Files could not be compacted. They stay as they are, and batches go on."""

    code: str
    error: str

    def message(self) -> str:
        """Return why."""
        return (
            f"files could not be compacted: {self.error} [{self.code}]; the table stays as it is, "
            "and it is tried again later"
        )


class HistoryRebuilt(PipelineEvent, level=Level.WARN, counts="blizzard_history_rebuilt_total"):
    """What was derived from the journal is missing or damaged; every entry is read instead."""

    reason: str

    def message(self) -> str:
        """Return why."""
        return (
            "reading every journal entry again, because a snapshot or an index of known names "
            f"cannot be used: {self.reason}"
        )


class SnapshotFailed(PipelineEvent, level=Level.WARN, counts="blizzard_snapshot_failures_total"):
    """A snapshot could not be written; nothing is lost, and it is tried again."""

    code: str
    error: str

    def message(self) -> str:
        """Return why, and what it means."""
        return (
            f"no snapshot of the journal was written: {self.error}; the next start reads more "
            "entries until one is"
        )


class OtherWriterWatched(PipelineEvent):
    """Another blizzard seems to run the pipeline; whether it is alive is being checked."""

    other: str
    seconds: float

    def message(self) -> str:
        """Return who it is, and how long this takes."""
        return (
            f"another blizzard has not ended: {self.other}; watching for up to "
            f"{self.seconds:.0f} s to see whether it is alive"
        )

    def signs(self) -> Iterable[Sign]:
        """Yield a sign that the wait is no trouble."""
        yield Working(self.part)


class TakenOver(PipelineEvent, level=Level.WARN):
    """This blizzard continues where another one left off."""

    other: str
    why: str

    def message(self) -> str:
        """Return from whom, and why that is sound."""
        return f"taking over from {self.other}: {self.why}"


class BeatFailed(PipelineEvent, level=Level.WARN):
    """The lease could not be renewed; it is advisory, so nothing else depends on it."""

    code: str
    error: str

    def message(self) -> str:
        """Return what may come of it."""
        return (
            f"the lease was not renewed: {self.error} [{self.code}]; a second blizzard may take "
            "over this pipeline"
        )
