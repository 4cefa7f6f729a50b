"""Events about the backlog: waiting entries, foreign files, and what makes a table unhealthy."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import ClassVar

from lakebed.telemetry.events import Level, PartEvent
from lakebed.telemetry.health import HealthChange, Mark, PartKind
from lakebed.telemetry.measures import Age, Measure
from lakebed.units import plural
from penguin.model.commit import HoldCode

VACUUM = "vacuum may take files that wait"
"""The name in a table's health for files that have waited too long."""


class TableEvent(PartEvent):
    """Something that happened to one table."""

    part_kind: ClassVar[PartKind] = PartKind.TABLE
    table: str


class TableWaiting(
    TableEvent, level=Level.WARN, says="there is no table and no journal at {table_uri}"
):
    """Neither blizzard nor another program has written anything to the table's directory."""

    table_uri: str


class TableWatched(TableEvent, says="watching {table_uri} every {every_secs:span}"):
    """A continuous run begins to poll the table's directory."""

    table_uri: str
    every_secs: float


class BacklogSeen(TableEvent, level=Level.TRACE):
    """A table was inspected: its version, and what waits to be committed."""

    version: int | None
    entries: int | None
    """None if a journal is stopped, so that the number is unknown."""
    files: int
    oldest: float | None
    """When the first of the entries was journaled, in seconds since the epoch."""
    held: Mapping[str, int] = field(default_factory=dict)
    """How many files are held, by the code of the reason."""
    seconds: float = 0.0
    """How long the inspection has taken."""

    def message(self) -> str:
        """Return the counts in words."""
        if self.entries is None:
            return "waiting: unknown, a pipeline is stopped"
        return (
            f"waiting: {plural(self.entries, 'entry', 'entries')} with {plural(self.files, 'file')}"
        )

    def measures(self) -> Iterable[Measure]:
        """Yield the backlog, and how far the table is behind."""
        if self.entries is None:
            yield self.reading("penguin_pending_entries", math.nan)
            yield self.reading("penguin_pending_files", math.nan)
            yield Age("penguin_lag_seconds", math.nan, {"table": self.table})
        else:
            yield self.reading("penguin_pending_entries", self.entries)
            yield self.reading("penguin_pending_files", self.files)
            yield Age("penguin_lag_seconds", self.oldest, {"table": self.table})
        for code in HoldCode:
            yield self.reading("penguin_held_files", self.held.get(code, 0), code=code.value)
        if self.version is not None:
            yield self.reading("penguin_table_version", self.version)


class EntryNotHandedOff(
    TableEvent, says="entry {entry} of pipeline {pipeline} is waiting: {reason}"
):
    """An entry is in the journal, and blizzard has yet to hand its files off."""

    pipeline: str
    entry: int
    reason: str


class MetasSkipped(TableEvent, level=Level.WARN, says="left alone: {paths:some}: {reason}"):
    """Metas that penguin neither commits nor deletes; reported once."""

    reason: str
    paths: tuple[str, ...]


class ForeignFilesSearched(TableEvent, level=Level.TRACE):
    """The table directory was searched for files that other programs wrote."""

    sweep: bool | None
    """Whether all folders were listed; None if none was."""
    listed: int
    waiting: int
    left_out: int
    ignored: int = 0
    """How many Parquet files are not read, because of their names."""

    def message(self) -> str:
        """Return the counts in words."""
        how = {None: "nothing was", True: "all folders were", False: "new names were"}[self.sweep]
        return (
            f"{how} listed, {plural(self.listed, 'file')} seen; files of other programs: "
            f"{self.waiting} waiting, {self.left_out} left out, {self.ignored} ignored"
        )

    def measures(self) -> Iterable[Measure]:
        """Count the listings, and show what waits."""
        if self.sweep is not None:
            yield self.count("penguin_scans_total", kind="sweep" if self.sweep else "poll")
            yield self.count("penguin_files_listed_total", self.listed)
        yield self.reading("penguin_other_files_waiting", self.waiting)
        yield self.reading("penguin_other_files_left_out", self.left_out)
        yield self.reading("penguin_other_files_ignored", self.ignored)


class FilesLeftOut(
    TableEvent,
    level=Level.WARN,
    counts="penguin_files_left_out_total",
    amount="paths",
    labels=("code",),
    says="not committed: {paths:some}: {reason} [{code}]",
):
    """Files of other programs are not committed; reported once for each reason."""

    code: str
    reason: str
    paths: tuple[str, ...]


class FilesIgnored(
    TableEvent,
    level=Level.WARN,
    says="ignored {files:#Parquet file}: {some:some}: {reason}",
):
    """A scan ignores Parquet files; reported when a sweep finds different ones than before."""

    files: int
    some: tuple[str, ...]
    reason: str


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
    """The code that it was stopped for before, if any."""

    def measures(self) -> Iterable[Measure]:
        """Set the gauge, under one code at a time."""
        for code, value in ((self.code_before, 0), (self.code, 1)):
            if code is not None:
                labels = {"pipeline": self.pipeline, "code": code}
                yield self.reading("penguin_pipeline_stopped", value, **labels)

    def health_changes(self) -> Iterable[HealthChange]:
        """Report that the table is unhealthy."""
        yield HealthChange(Mark.HALTED, self.part, self.pipeline, self.code, self.error)


class PipelineResumed(TableEvent, says="pipeline {pipeline} continues"):
    """A pipeline that was stopped continues."""

    pipeline: str
    code: str
    """The code that it was stopped for."""

    def measures(self) -> Iterable[Measure]:
        """Reset the gauge."""
        labels = {"pipeline": self.pipeline, "code": self.code}
        yield self.reading("penguin_pipeline_stopped", 0, **labels)

    def health_changes(self) -> Iterable[HealthChange]:
        """Report that the pipeline is healthy again."""
        yield HealthChange(Mark.MENDED, self.part, self.pipeline)


class FilesAtRisk(TableEvent, level=Level.ERROR, says="{danger}"):
    """Files have been waiting so long that a VACUUM may soon delete them."""

    since: str
    retention_secs: float
    danger: str
    """The danger in words."""

    def measures(self) -> Iterable[Measure]:
        """Show it."""
        yield self.reading("penguin_files_in_danger", 1)

    def health_changes(self) -> Iterable[HealthChange]:
        """Report that the table is unhealthy."""
        yield HealthChange(Mark.HALTED, self.part, VACUUM, "files_wait_too_long", self.sentence())


class FilesNoLongerAtRisk(TableEvent, says="no file is waiting too long any more"):
    """No file is waiting too long any more."""

    def measures(self) -> Iterable[Measure]:
        """Show it."""
        yield self.reading("penguin_files_in_danger", 0)

    def health_changes(self) -> Iterable[HealthChange]:
        """Report that the table is healthy again."""
        yield HealthChange(Mark.MENDED, self.part, VACUUM)
