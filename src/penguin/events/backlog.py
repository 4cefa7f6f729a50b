"""What waits to be committed: entries, files of other programs, and what makes a table unwell."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import ClassVar

from lakebed.telemetry.events import Level, PartEvent
from lakebed.telemetry.health import Mark, PartKind, Sign
from lakebed.telemetry.measures import Age, Measure
from lakebed.units import plural, span
from penguin.model.commit import HoldCode

FEW = 10
"""How many of a long list are named."""
VACUUM = "vacuum may take files that wait"
"""The name under which a table's health shows files that have waited too long."""


def first_of(paths: Sequence[str]) -> str:
    """Return the first paths of many, and how many more there are."""
    more = f" and {len(paths) - FEW} more" if len(paths) > FEW else ""
    return f"{', '.join(paths[:FEW])}{more}"


class TableEvent(PartEvent):
    """Something that happened to one table."""

    part_kind: ClassVar[PartKind] = PartKind.TABLE
    table: str


class TableWaiting(
    TableEvent, level=Level.DEBUG, says="there is nothing to commit in {table_uri} yet"
):
    """There is nothing to commit from yet: no table directory, or no pipeline in it."""

    table_uri: str


class TableWatched(TableEvent):
    """Nothing is left to commit for now; the table's directory is inspected again and again."""

    table_uri: str
    every_secs: float

    def message(self) -> str:
        """Return what is watched, and how often."""
        return f"watching {self.table_uri} every {span(self.every_secs)}"


class BacklogSeen(TableEvent, level=Level.TRACE):
    """A table was inspected: its version, and what waits to be committed."""

    version: int | None
    entries: int
    files: int
    oldest: float | None
    """When the first of the entries was journaled, in seconds since the epoch."""
    held: Mapping[str, int] = field(default_factory=dict)
    """How many files are held, by the code of the reason."""
    seconds: float = 0.0
    """How long the inspection has taken."""

    def message(self) -> str:
        """Return how much waits."""
        entries = plural(self.entries, "entry", "entries")
        return f"waiting: {entries} with {plural(self.files, 'file')}"

    def measures(self) -> Iterable[Measure]:
        """Yield the backlog, and how far the table is behind."""
        yield self.reading("penguin_pending_entries", self.entries)
        yield self.reading("penguin_pending_files", self.files)
        yield Age("penguin_lag_seconds", self.oldest, {"table": self.table})
        for code in HoldCode:
            yield self.reading("penguin_held_files", self.held.get(code, 0), code=code.value)
        if self.version is not None:
            yield self.reading("penguin_table_version", self.version)


class FilesLookedAt(TableEvent, level=Level.TRACE):
    """The files of the next commit are being checked, before it is made."""

    done: int
    files: int

    def message(self) -> str:
        """Return how far it is."""
        return f"looked at {self.done} of {plural(self.files, 'file')}"


class EntryNotHandedOff(
    TableEvent, says="entry {entry} of pipeline {pipeline} is waiting: {reason}"
):
    """An entry is in the journal, and blizzard has yet to hand its files off."""

    pipeline: str
    entry: int
    reason: str


class MetasLeftAlone(TableEvent, level=Level.WARN):
    """Metas that penguin neither commits nor deletes; reported once."""

    reason: str
    paths: tuple[str, ...]

    def message(self) -> str:
        """Name them and the reason."""
        return f"left alone: {first_of(self.paths)}: {self.reason}"


class FilesUnnamed(TableEvent, level=Level.WARN):
    """Files of blizzard in the table's folders that no entry names; reported once."""

    files: int
    some: tuple[str, ...]

    def message(self) -> str:
        """Count them and name some."""
        return (
            "left alone because no journal entry names them: "
            f"{plural(self.files, 'file')} written by blizzard: {first_of(self.some)}"
        )


class OthersSeen(TableEvent, level=Level.TRACE):
    """The table directory was searched for files that other programs wrote."""

    sweep: bool | None
    """Whether all folders were listed; None where none was."""
    listed: int
    waiting: int
    left_out: int
    passed_over: int = 0
    """How many Parquet files are not read, because of their names."""

    def message(self) -> str:
        """Return what is there."""
        how = {None: "nothing was", True: "all folders were", False: "new names were"}[self.sweep]
        return (
            f"{how} listed, {plural(self.listed, 'file')} seen; files of other programs: "
            f"{self.waiting} waiting, {self.left_out} left out, {self.passed_over} passed over"
        )

    def measures(self) -> Iterable[Measure]:
        """Count the listings, and show what waits."""
        if self.sweep is not None:
            yield self.count("penguin_scans_total", kind="sweep" if self.sweep else "poll")
            yield self.count("penguin_files_listed_total", self.listed)
        yield self.reading("penguin_other_files_waiting", self.waiting)
        yield self.reading("penguin_other_files_left_out", self.left_out)
        yield self.reading("penguin_other_files_passed_over", self.passed_over)


class LateFilesCommitted(TableEvent, counts="penguin_late_files_total", amount="files"):
    """Files were committed that a bare watermark would have lost."""

    files: int
    some: tuple[str, ...]

    def message(self) -> str:
        """Count them and name some."""
        return (
            f"{plural(self.files, 'file')} arrived later than files with higher names in the same "
            f"folder: {first_of(self.some)}"
        )


class FilesLeftOut(TableEvent, level=Level.WARN):
    """Files of other programs are not committed; reported once for each reason."""

    code: str
    reason: str
    paths: tuple[str, ...]

    def message(self) -> str:
        """Name them and the reason."""
        return f"not committed: {first_of(self.paths)}: {self.reason} [{self.code}]"

    def measures(self) -> Iterable[Measure]:
        """Count them."""
        yield self.count("penguin_files_left_out_total", len(self.paths), code=self.code)


class FilesPassedOver(TableEvent, level=Level.WARN):
    """A scan passes over Parquet files; reported when a sweep finds different ones than before."""

    files: int
    some: tuple[str, ...]
    reason: str

    def message(self) -> str:
        """Count them, name some, and say how they get in."""
        files = plural(self.files, "Parquet file")
        return f"passed over {files}: {first_of(self.some)}: {self.reason}"


class FilterBoundsOthersOnly(TableEvent):
    """Settings that limit the search for files do not apply to journaled files; reported once."""

    keys: tuple[str, ...]
    searched: bool
    """Whether the folders are searched, for files of other programs."""

    def message(self) -> str:
        """Return what the settings do not do."""
        holds = (
            "limit only the search for files of other programs"
            if self.searched
            else "have no effect, since the folders of this table are not searched"
        )
        return (
            f"{' and '.join(self.keys)}: {holds}; what blizzard has journaled is committed whole, "
            "whatever folder it is in. To leave old data out, set partition_filter on the source"
        )


class PipelineStopped(
    TableEvent,
    level=Level.ERROR,
    says="pipeline {pipeline} stops: {error} [{code}]; other pipelines continue",
):
    """Nothing more of a pipeline is committed until it is fixed."""

    pipeline: str
    code: str
    error: str
    code_before: str | None = None
    """What it was stopped for until now, if it was."""

    def measures(self) -> Iterable[Measure]:
        """Show it, under one code at a time."""
        for code, value in ((self.code_before, 0), (self.code, 1)):
            if code is not None:
                labels = {"pipeline": self.pipeline, "code": code}
                yield self.reading("penguin_pipeline_stopped", value, **labels)

    def signs(self) -> Iterable[Sign]:
        """Report that the table is not well."""
        yield Sign(Mark.HALTED, self.part, self.pipeline, self.code, self.error)


class PipelineMended(TableEvent, says="pipeline {pipeline} continues"):
    """A pipeline that was stopped continues."""

    pipeline: str
    code: str
    """What it was stopped for."""

    def measures(self) -> Iterable[Measure]:
        """Show that it is stopped no longer."""
        labels = {"pipeline": self.pipeline, "code": self.code}
        yield self.reading("penguin_pipeline_stopped", 0, **labels)

    def signs(self) -> Iterable[Sign]:
        """Report that this one is well again."""
        yield Sign(Mark.RESUMED, self.part, self.pipeline)


class FilesWaitTooLong(TableEvent, level=Level.ERROR, says="{danger}"):
    """Files have been waiting so long that a VACUUM may soon delete them."""

    since: str
    retention_secs: float
    danger: str
    """What may happen when, in words."""

    def measures(self) -> Iterable[Measure]:
        """Show it."""
        yield self.reading("penguin_files_in_danger", 1)

    def signs(self) -> Iterable[Sign]:
        """Report that the table is not well."""
        yield Sign(Mark.HALTED, self.part, VACUUM, "files_wait_too_long", self.sentence())


class FilesWaitNoLonger(TableEvent, says="no files have been waiting too long any more"):
    """No files have been waiting too long any more."""

    def measures(self) -> Iterable[Measure]:
        """Show it."""
        yield self.reading("penguin_files_in_danger", 0)

    def signs(self) -> Iterable[Sign]:
        """Report that the table is well again."""
        yield Sign(Mark.RESUMED, self.part, VACUUM)
