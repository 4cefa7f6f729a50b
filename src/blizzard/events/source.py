"""What the sources contain, notices of new files, and what became of the files, as events."""

import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from lakebed.telemetry.events import Event, Level
from lakebed.telemetry.health import Degraded, Mended, Part, PartKind, Sign
from lakebed.telemetry.measures import Age, Count, Measure, Observe, Reading
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


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcesListed(Event):
    """The sources were listed; this much is waiting to be read."""

    level: ClassVar[Level] = Level.TRACE
    pipeline: str
    pending: int
    oldest: float | None
    """When the first of the pending files was written, in seconds since the epoch."""
    resting: int
    """Files that failed, and are tried again later or not at all."""
    amiss: Mapping[str, int] = field(default_factory=dict)
    """Names that are passed over and need attention, by the reason."""
    bad_lines: int = 0
    """Lines that wait in quarantine."""
    changed: Mapping[str, int] = field(default_factory=dict)
    """Files that were ingested and are other objects now, which are not read, by source; only of
    sources that were listed whole."""

    def sentence(self) -> str:
        """Return how much."""
        return (
            f"{self.pipeline}: waiting: {plural(self.pending, 'source file')}; not retried yet: "
            f"{plural(self.resting, 'failed one')}"
        )

    def measures(self) -> Iterable[Measure]:
        """Yield the backlog."""
        labels = {"pipeline": self.pipeline}
        yield Reading("blizzard_pending_files", self.pending, labels)
        yield Age("blizzard_oldest_pending_file_age_seconds", self.oldest, labels)
        yield Reading("blizzard_resting_files", self.resting, labels)
        yield Reading("blizzard_quarantined_lines", self.bad_lines, labels)
        for reason, names in self.amiss.items():
            yield Reading("blizzard_names_passed_over", names, {**labels, "reason": reason})


@dataclass(frozen=True, slots=True, kw_only=True)
class NothingNew(Event):
    """A look at the sources found nothing to do."""

    level: ClassVar[Level] = Level.DEBUG
    pipeline: str
    resting: int

    def sentence(self) -> str:
        """Return that nothing is new, and how many failed files are not retried yet."""
        rest = f"; not retried yet: {plural(self.resting, 'failed file')}" if self.resting else ""
        return f"{self.pipeline}: nothing new{rest}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NamesPassedOver(Event):
    """A source has names that cannot be read; everything else continues."""

    level: ClassVar[Level] = Level.WARN
    pipeline: str
    source: str
    reason: str
    names: int
    example: str
    why: str

    def sentence(self) -> str:
        """Return one of them, and the reason."""
        more = f" and {self.names - 1} more" if self.names > 1 else ""
        return (
            f"{self.pipeline}: source {self.source}: passed over {self.example}{more}: {self.why}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFileFailed(Event):
    """A source file is not in the table; the journal says why."""

    level: ClassVar[Level] = Level.WARN
    pipeline: str
    path: str
    stage: str
    code: str
    reason: str
    line: int | None
    field: str | None

    def sentence(self) -> str:
        """Return the file, line, field and reason."""
        line = f", line {self.line}" if self.line is not None else ""
        field = f", field {self.field}" if self.field is not None else ""
        return (
            f"{self.pipeline}: skipped {self.path}{line}{field}: {self.reason} "
            f"[{self.stage}/{self.code}]"
        )

    def measures(self) -> Iterable[Measure]:
        """Count it, by where and why."""
        labels = {"pipeline": self.pipeline, "stage": self.stage, "code": self.code}
        yield Count("blizzard_source_file_failures_total", 1, labels)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinesQuarantined(Event):
    """Lines of a source file cannot be read; they are set aside, and the others are in."""

    level: ClassVar[Level] = Level.WARN
    pipeline: str
    entry: int
    path: str
    lines: int
    line: int | None
    """The first of them; None while lines before it are unread."""
    field: str | None
    code: str
    reason: str

    def sentence(self) -> str:
        """Return how many, and what is wrong with the first."""
        line = f" is line {self.line}" if self.line is not None else ""
        field = f", field {self.field}" if self.field is not None else ""
        return (
            f"{self.pipeline}: batch {self.entry}: set aside {plural(self.lines, 'bad line')} of "
            f"{self.path}; the first{line}{field}: {self.reason} [{self.code}]"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFilesGone(Event):
    """Files that failed or were read in part are no longer in their source."""

    level: ClassVar[Level] = Level.WARN
    pipeline: str
    entry: int
    files: int
    example: str

    def sentence(self) -> str:
        """Return how many, and name one."""
        return (
            f"{self.pipeline}: batch {self.entry}: no longer waiting for "
            f"{plural(self.files, 'file')} that disappeared from the source without having "
            f"reached the table, such as {self.example}"
        )

    def measures(self) -> Iterable[Measure]:
        """Count them."""
        yield Count("blizzard_source_files_gone_total", self.files, {"pipeline": self.pipeline})


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFileOverwritten(Event):
    """An ingested source file is a different object now; it is not read again."""

    level: ClassVar[Level] = Level.WARN
    pipeline: str
    path: str

    def sentence(self) -> str:
        """Return that its new content is not in the table."""
        return (
            f"{self.pipeline}: {self.path} was ingested before and has changed since; "
            "its new content is not read. Give new data a new name"
        )

    def measures(self) -> Iterable[Measure]:
        """Count it."""
        yield Count("blizzard_source_files_overwritten_total", 1, {"pipeline": self.pipeline})


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentReplaced(Event):
    """The new content of source files takes the place of their rows, once it is committed."""

    level: ClassVar[Level] = Level.INFO
    pipeline: str
    entry: int
    files: int
    rows: int
    removed: int

    def sentence(self) -> str:
        """Return how many rows come in the place of how many."""
        return (
            f"{self.pipeline}: {plural(self.files, 'source file')} changed; entry {self.entry} "
            f"puts {plural(self.rows, 'row')} in the place of {self.removed:,}"
        )

    def measures(self) -> Iterable[Measure]:
        """Count the files."""
        labels = {"pipeline": self.pipeline}
        yield Count("blizzard_source_files_replaced_total", self.files, labels)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplacementWaits(Event):
    """The new content of a source file cannot take the place of the old yet."""

    level: ClassVar[Level] = Level.INFO
    pipeline: str
    reason: str

    def sentence(self) -> str:
        """Return what it waits for."""
        return f"{self.pipeline}: changed source files wait to be replaced: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LateFiles(Event):
    """Files were ingested that sort before others of their folder that came earlier."""

    level: ClassVar[Level] = Level.DEBUG
    pipeline: str
    files: int
    example: str

    def sentence(self) -> str:
        """Return how many, and name one."""
        return (
            f"{self.pipeline}: {plural(self.files, 'source file')} arrived late and would have "
            f"been missed by a bare watermark, such as {self.example}"
        )

    def measures(self) -> Iterable[Measure]:
        """Count them."""
        yield Count("blizzard_late_files_total", self.files, {"pipeline": self.pipeline})


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsWithoutTime(Event):
    """Rows have no timestamp: they are in the table, in the null partition."""

    level: ClassVar[Level] = Level.WARN
    pipeline: str
    entry: int
    field: str
    rows: int

    def sentence(self) -> str:
        """Return where they went."""
        return (
            f"{self.pipeline}: batch {self.entry}: {plural(self.rows, 'row')} without "
            f"{self.field} went into the null partition"
        )

    def measures(self) -> Iterable[Measure]:
        """Count them."""
        yield Count("blizzard_rows_without_time_total", self.rows, {"pipeline": self.pipeline})


LONGEST_TYPE = 60
"""Characters of a type that a line of the log shows; `blizzard schema` shows all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnsFound(Event):
    """The data has fields that no column was for; from this batch on they have one."""

    level: ClassVar[Level] = Level.INFO
    pipeline: str
    columns: dict[str, str]
    """Their types, by their paths."""

    def sentence(self) -> str:
        """Return the columns and their types."""
        shown = ", ".join(
            f"{name} ({textwrap.shorten(kind, LONGEST_TYPE, placeholder=' …')})"
            for name, kind in list(self.columns.items())[:20]
        )
        more = f" and {len(self.columns) - 20} more" if len(self.columns) > 20 else ""
        count = plural(len(self.columns), "new column")
        return f"{self.pipeline}: found {count} in the data: {shown}{more}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ValuesRescued(Event):
    """Records contained values that no column takes; they are in `_rescued`."""

    level: ClassVar[Level] = Level.INFO
    pipeline: str
    entry: int
    paths: dict[str, int]

    def sentence(self) -> str:
        """Return where they stand, the most frequent first, and what can be done."""
        return (
            f"{self.pipeline}: batch {self.entry}: values that no column takes are in _rescued: "
            f"{_frequent(self.paths)}; see blizzard schema for the columns they could have"
        )

    def measures(self) -> Iterable[Measure]:
        """Count the values; paths are not a label, since anybody can send new ones."""
        count = sum(self.paths.values())
        yield Count("blizzard_values_rescued_total", count, {"pipeline": self.pipeline})


def _frequent(counts: Mapping[str, int]) -> str:
    most = sorted(counts.items(), key=lambda item: -item[1])
    shown = ", ".join(f"{name} ({count})" for name, count in most[:10])
    return shown + (f" and {len(most) - 10} more" if len(most) > 10 else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldsDropped(Event):
    """Records held fields that the schema does not declare; their values are not in the table."""

    level: ClassVar[Level] = Level.WARN
    pipeline: str
    entry: int
    fields: dict[str, int]
    twins: dict[str, str] = field(default_factory=dict)
    """Those that differ from a column, or from another of them, only in case, with that one."""

    def sentence(self) -> str:
        """Return the fields, the most frequent first, and what can be done."""
        return (
            f"{self.pipeline}: batch {self.entry}: values of undeclared fields were left out: "
            f"{_frequent(self.fields)}{'; '.join(('', *self._ways_out()))}"
        )

    def _ways_out(self) -> Iterable[str]:
        free = [name for name in self.fields if name not in self.twins]
        if free:
            which, kept = (", ".join(free[:10]), "that") if self.twins else ("them", "them")
            yield f"declare {which} under schema.fields to keep {kept}"
        for name, other in list(self.twins.items())[:3]:
            yield (
                f"{name} differs from {other} only in case, and Delta column names are "
                "case-insensitive: only the spelling that schema.fields declares is kept, so "
                "rename one of them in the data to keep both"
            )

    def measures(self) -> Iterable[Measure]:
        """Count the values; names are not a label, since anybody can send new ones."""
        count = sum(self.fields.values())
        yield Count("blizzard_values_dropped_total", count, {"pipeline": self.pipeline})
