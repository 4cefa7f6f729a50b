"""What makes a table unhealthy, and when that is over."""

from collections.abc import Iterable

from lakebed.telemetry.events import Level
from lakebed.telemetry.health import Mark, Part, PartKind, Sign
from lakebed.telemetry.measures import Measure, Reading
from penguin.events.backlog import TableEvent


class PipelineStopped(TableEvent, level=Level.ERROR):
    """Nothing more of a pipeline is committed until it is fixed."""

    pipeline: str
    code: str
    error: str
    code_before: str | None = None
    """What it was stopped for until now, if it was."""

    says = "{table}: pipeline {pipeline} stops: {error} [{code}]; other pipelines continue"

    def measures(self) -> Iterable[Measure]:
        """Show it, under one code at a time."""
        labels = {"table": self.table, "pipeline": self.pipeline}
        if self.code_before is not None:
            yield Reading("penguin_pipeline_stopped", 0, {**labels, "code": self.code_before})
        yield Reading("penguin_pipeline_stopped", 1, {**labels, "code": self.code})

    def signs(self) -> Iterable[Sign]:
        """Report that the table is not well."""
        yield Sign(
            Mark.HALTED, Part(PartKind.TABLE, self.table), self.pipeline, self.code, self.error
        )


class PipelineMended(TableEvent):
    """A pipeline that was stopped continues."""

    pipeline: str
    code: str
    """What it was stopped for."""

    says = "{table}: pipeline {pipeline} continues"

    def measures(self) -> Iterable[Measure]:
        """Show that it is stopped no longer."""
        labels = {"table": self.table, "pipeline": self.pipeline, "code": self.code}
        yield Reading("penguin_pipeline_stopped", 0, labels)

    def signs(self) -> Iterable[Sign]:
        """Report that this one is well again."""
        yield Sign(Mark.RESUMED, Part(PartKind.TABLE, self.table), self.pipeline)


VACUUM = "vacuum may take files that wait"
"""The name under which a table's health shows files that have waited too long."""


class FilesWaitTooLong(TableEvent, level=Level.ERROR):
    """Files have been waiting so long that a VACUUM may soon delete them."""

    since: str
    retention_secs: float
    danger: str
    """What may happen when, in words."""

    says = "{table}: {danger}"

    def measures(self) -> Iterable[Measure]:
        """Show it."""
        yield Reading("penguin_files_in_danger", 1, {"table": self.table})

    def signs(self) -> Iterable[Sign]:
        """Report that the table is not well."""
        part = Part(PartKind.TABLE, self.table)
        yield Sign(Mark.HALTED, part, VACUUM, "files_wait_too_long", self.sentence())


class FilesWaitNoLonger(TableEvent):
    """No files have been waiting too long any more."""

    says = "{table}: no files have been waiting too long any more"

    def measures(self) -> Iterable[Measure]:
        """Show it."""
        yield Reading("penguin_files_in_danger", 0, {"table": self.table})

    def signs(self) -> Iterable[Sign]:
        """Report that the table is well again."""
        yield Sign(Mark.RESUMED, Part(PartKind.TABLE, self.table), VACUUM)
