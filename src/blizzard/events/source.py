"""Events of sources, notices of new files, and the outcomes of files."""

import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import field

from blizzard.events.batch import PipelineEvent
from lakebed.telemetry.events import Level
from lakebed.telemetry.health import HealthChange, Mark
from lakebed.telemetry.measures import Age, Measure
from lakebed.units import plural


class FilesNoticed(PipelineEvent, level=Level.DEBUG):
    """Files were found because messages named them, not by a listing."""

    files: int

    says = "{files:#source file} found by notice"


class NoticesSettled(
    PipelineEvent,
    level=Level.TRACE,
    counts="blizzard_notices_total",
    amount="notices",
    labels=("kind",),
):
    """Some notices are handled."""

    kind: str
    notices: int

    says = "settled {notices:#notice}: {kind}"


class NoticeUnreadable(PipelineEvent, level=Level.WARN):
    """A message is not a notification of a store; more of them are only counted."""

    queue: str

    says = (
        "a message in {queue} is not a notification of an object store; it is left there for the "
        "queue's own dead letter queue. More of them are only counted (blizzard_notices_total)"
    )


class QueueFailed(
    PipelineEvent, level=Level.WARN, counts="blizzard_queue_failures_total", labels=("code",)
):
    """A queue does not answer; files are found by listing until it does."""

    queue: str
    code: str
    error: str
    next_try_secs: float

    says = (
        "no notices from the queue: {error} [{code}]; source files are found by listing "
        "meanwhile. Next try in {next_try_secs:.0f} s"
    )

    def health_changes(self) -> Iterable[HealthChange]:
        """Yield the health change: the pipeline works, but finds files later."""
        yield HealthChange(
            Mark.DEGRADED, self.part, f"notifications from {self.queue}", self.code, self.error
        )


class QueueRecovered(PipelineEvent):
    """A queue that did not answer does so again."""

    queue: str

    says = "the queue answers again: {queue}"

    def health_changes(self) -> Iterable[HealthChange]:
        """Yield the health change: the trouble is over."""
        yield HealthChange(Mark.MENDED, self.part, f"notifications from {self.queue}")


class SourcesListed(PipelineEvent, level=Level.TRACE):
    """The sources were listed; the event has the backlog."""

    pending: int
    oldest: float | None
    """When the oldest pending file was written, in seconds since the epoch."""
    resting: int
    """Failed files that are retried later or not at all."""
    amiss: Mapping[str, int] = field(default_factory=dict)
    """Ignored names that need attention, by reason."""
    bad_lines: int = 0
    """Quarantined lines."""
    changed: Mapping[str, int] = field(default_factory=dict)
    """Ingested files that have become other objects, which are not read; by source, and only of
    sources that were listed completely."""

    says = "waiting: {pending:#source file}; not retried yet: {resting:#failed one}"

    def measures(self) -> Iterable[Measure]:
        """Yield the backlog."""
        labels = {"pipeline": self.pipeline}
        yield Age("blizzard_oldest_pending_file_age_seconds", self.oldest, labels)
        yield self.reading("blizzard_pending_files", self.pending)
        yield self.reading("blizzard_resting_files", self.resting)
        yield self.reading("blizzard_quarantined_lines", self.bad_lines)
        for reason, names in self.amiss.items():
            yield self.reading("blizzard_names_skipped", names, reason=reason)


class NothingNew(PipelineEvent, level=Level.DEBUG):
    """A listing of the sources found nothing to do."""

    resting: int

    def message(self) -> str:
        """Return the message, with the number of failed files that are not retried yet."""
        rest = f"; not retried yet: {plural(self.resting, 'failed file')}" if self.resting else ""
        return f"nothing new{rest}"


class NamesSkipped(PipelineEvent, level=Level.WARN):
    """A source has names that cannot be read; everything else continues."""

    source: str
    reason: str
    names: int
    example: str
    why: str

    def message(self) -> str:
        """Return an example and the reason."""
        more = f" and {self.names - 1} more" if self.names > 1 else ""
        return f"source {self.source}: ignored {self.example}{more}: {self.why}"


class SourceFileFailed(
    PipelineEvent,
    level=Level.WARN,
    counts="blizzard_source_file_failures_total",
    labels=("stage", "code"),
):
    """A source file is not in the table; the journal says why."""

    path: str
    stage: str
    code: str
    reason: str
    line: int | None
    field: str | None

    says = "skipped {path}{line:?, line *}{field:?, field *}: {reason} [{stage}/{code}]"


class LinesQuarantined(PipelineEvent, level=Level.WARN):
    """Unreadable lines of a source file are quarantined; the others are ingested."""

    entry: int
    path: str
    lines: int
    line: int | None
    """The number of the first one; None while lines before it are unread."""
    field: str | None
    code: str
    reason: str

    says = (
        "batch {entry}: quarantined {lines:#bad line} of {path}; the first{line:? is line *}"
        "{field:?, field *}: {reason} [{code}]"
    )


class SourceFilesGone(
    PipelineEvent, level=Level.WARN, counts="blizzard_source_files_gone_total", amount="files"
):
    """Failed or partly read files are no longer in their source."""

    entry: int
    files: int
    example: str

    says = (
        "batch {entry}: no longer waiting for {files:#file} that disappeared from the source "
        "before reaching the table, such as {example}"
    )


class SourceFileOverwritten(
    PipelineEvent, level=Level.WARN, counts="blizzard_source_files_overwritten_total"
):
    """An ingested source file is a different object now; it is not read again."""

    path: str
    etag: str | None = None

    says = (
        "{path} was ingested before and has changed since; its new content is not read. Give new "
        "data a new name"
    )


class ContentReplaced(PipelineEvent, counts="blizzard_source_files_replaced_total", amount="files"):
    """The new content of source files replaces their rows once it is committed."""

    entry: int
    files: int
    rows: int
    removed: int

    says = "{files:#source file} changed; entry {entry} replaces {removed:#row} with {rows:,}"


class ReplacementPending(PipelineEvent):
    """The new content of a source file cannot replace the old yet."""

    reason: str

    says = "changed source files wait to be replaced: {reason}"


class RowsWithoutTime(
    PipelineEvent, level=Level.WARN, counts="blizzard_rows_without_time_total", amount="rows"
):
    """Rows have no timestamp; they are in the null partition of the table."""

    entry: int
    field: str
    rows: int

    says = "batch {entry}: {rows:#row} without {field} went into the null partition"


LONGEST_TYPE = 60
"""The most characters of a type in a log line; `blizzard schema` shows all."""


class ColumnsFound(PipelineEvent):
    """New fields in the data get columns, from this batch on."""

    columns: dict[str, str]
    """Their types by path."""

    def message(self) -> str:
        """Return the columns and their types."""
        shown = ", ".join(
            f"{name} ({textwrap.shorten(kind, LONGEST_TYPE, placeholder=' …')})"
            for name, kind in list(self.columns.items())[:20]
        )
        more = f" and {len(self.columns) - 20} more" if len(self.columns) > 20 else ""
        count = plural(len(self.columns), "new column")
        return f"found {count} in the data: {shown}{more}"


class ValuesRescued(PipelineEvent):
    """Records contained values that no column takes; they are in `_rescued`."""

    entry: int
    paths: dict[str, int]

    def message(self) -> str:
        """Return their paths, the most frequent first, and the remedy."""
        return (
            f"batch {self.entry}: values that no column takes are in _rescued: "
            f"{_frequent(self.paths)}; see blizzard schema for the columns they could have"
        )

    def measures(self) -> Iterable[Measure]:
        """Count the values; paths are not a label, since the data can contain any number."""
        yield self.count("blizzard_values_rescued_total", sum(self.paths.values()))


def _frequent(counts: Mapping[str, int]) -> str:
    most = sorted(counts.items(), key=lambda item: -item[1])
    shown = ", ".join(f"{name} ({count})" for name, count in most[:10])
    return shown + (f" and {len(most) - 10} more" if len(most) > 10 else "")


class FieldsDropped(PipelineEvent, level=Level.WARN):
    """Records contained undeclared fields; their values are not in the table."""

    entry: int
    fields: dict[str, int]

    def message(self) -> str:
        """Return the fields, the most frequent first, and the remedies."""
        return (
            f"batch {self.entry}: values of undeclared fields were left out: "
            f"{_frequent(self.fields)}; declare them under schema.fields to keep them, and rename "
            "those in the data that differ from another field only in case"
        )

    def measures(self) -> Iterable[Measure]:
        """Count the values; names are not a label, since the data can contain any number."""
        yield self.count("blizzard_values_dropped_total", sum(self.fields.values()))
