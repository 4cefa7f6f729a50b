"""The journal, its writer, and compactions between batches, as events."""

from collections.abc import Iterable

from blizzard.events.base import PipelineEvent
from lakebed.telemetry.events import Level
from lakebed.telemetry.health import Mark, Sign
from lakebed.telemetry.measures import Measure


class CompactionStarted(PipelineEvent, level=Level.DEBUG):
    """A run looks for small data files to put together."""

    says = "looking for small data files to compact"

    def signs(self) -> Iterable[Sign]:
        """Yield a sign that the pipeline is at work, for as long as it takes."""
        yield Sign(Mark.WORKING, self.part)


class FilesCompacted(PipelineEvent):
    """Small data files became fewer, once that is committed."""

    entry: int
    files: int
    into: int
    bytes: int

    says = "entry {entry} compacts {files:#data file} into {into:,} ({bytes:size})"

    def measures(self) -> Iterable[Measure]:
        """Count them."""
        yield self.count("blizzard_compactions_total")
        yield self.count("blizzard_files_compacted_total", self.files)
        yield self.count("blizzard_compacted_bytes_total", self.bytes)


class CompactionGaveWay(PipelineEvent, counts="blizzard_compactions_gave_way_total"):
    """Nothing was compacted, because another writer came first; a later run tries again."""

    reason: str

    says = "no files were compacted this time: {reason}"


class CompactionFailed(
    PipelineEvent, level=Level.WARN, counts="blizzard_compaction_failures_total"
):
    """Files could not be compacted. They stay as they are, and batches go on."""

    code: str
    error: str

    says = (
        "files could not be compacted: {error} [{code}]; the table stays as it is, and it is "
        "tried again later"
    )


class HistoryRebuilt(PipelineEvent, level=Level.WARN, counts="blizzard_history_rebuilt_total"):
    """What was derived from the journal is missing or damaged; every entry is read instead."""

    reason: str

    says = (
        "reading every journal entry again, because a snapshot or an index of known names cannot "
        "be used: {reason}"
    )


class SnapshotFailed(PipelineEvent, level=Level.WARN, counts="blizzard_snapshot_failures_total"):
    """A snapshot could not be written; nothing is lost, and it is tried again."""

    code: str
    error: str

    says = (
        "no snapshot of the journal was written: {error}; the next start reads more entries until"
        " one is"
    )


class OtherWriterWatched(PipelineEvent):
    """Another blizzard seems to run the pipeline; whether it is alive is being checked."""

    other: str
    seconds: float

    says = (
        "another blizzard has not ended: {other}; watching for up to {seconds:.0f} s to see "
        "whether it is alive"
    )

    def signs(self) -> Iterable[Sign]:
        """Yield a sign that the wait is no trouble."""
        yield Sign(Mark.WORKING, self.part)


class TakenOver(PipelineEvent, level=Level.WARN):
    """This blizzard continues where another one left off."""

    other: str
    why: str

    says = "taking over from {other}: {why}"


class BeatFailed(PipelineEvent, level=Level.WARN):
    """The lease could not be renewed; it is advisory, so nothing else depends on it."""

    code: str
    error: str

    says = (
        "the lease was not renewed: {error} [{code}]; a second blizzard may take over this pipeline"
    )
