"""What happens in blizzard, told as events."""

from dataclasses import dataclass
from typing import ClassVar

from lake.telemetry.events import Event, Level
from lake.units import in_words


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchStarted(Event):
    """Source files were planned into units, and the units are on their way to Spark."""

    pipeline: str
    entry: int
    files: int
    bytes: int
    units: int

    def sentence(self) -> str:
        """Say how much is in hand."""
        return (
            f"{self.pipeline}: batch {self.entry}: reading {self.files} source files "
            f"({in_words(self.bytes)}) in {self.units} units"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchJournaled(Event):
    """A batch is in the journal: from here on it has happened."""

    pipeline: str
    entry: int
    files: int
    failed: int
    rows: int
    parquet_files: int
    bytes: int
    seconds: float

    def sentence(self) -> str:
        """Say what the batch gave."""
        failed = f", {self.failed} source files failed" if self.failed else ""
        return (
            f"{self.pipeline}: batch {self.entry}: {self.rows} rows of {self.files} source files "
            f"in {self.parquet_files} Parquet files ({in_words(self.bytes)}) "
            f"in {self.seconds:.1f} s{failed}"
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
        """Name file, line, field and reason."""
        line = f", line {self.line}" if self.line is not None else ""
        field = f", field {self.field}" if self.field is not None else ""
        return (
            f"{self.pipeline}: skipped {self.path}{line}{field}: {self.reason} "
            f"[{self.stage}/{self.code}]"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FailuresRecorded(Event):
    """The failures of a batch stand in the dead letter queue."""

    pipeline: str
    entry: int
    object: str

    def sentence(self) -> str:
        """Say where."""
        return f"{self.pipeline}: batch {self.entry}: the failures are recorded in {self.object}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldsDropped(Event):
    """Records held fields that the schema does not declare; their values are not in the table."""

    level: ClassVar[Level] = Level.WARN
    pipeline: str
    entry: int
    fields: dict[str, int]

    def sentence(self) -> str:
        """Name the fields, the most frequent first."""
        most = sorted(self.fields.items(), key=lambda item: -item[1])
        shown = ", ".join(f"{name} ({count})" for name, count in most[:10])
        more = f" and {len(most) - 10} more" if len(most) > 10 else ""
        return (
            f"{self.pipeline}: batch {self.entry}: values of undeclared fields were left out: "
            f"{shown}{more}; declare them under schema.fields to keep them"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFileOverwritten(Event):
    """An ingested source file is another object now; it is not read again."""

    level: ClassVar[Level] = Level.WARN
    pipeline: str
    path: str

    def sentence(self) -> str:
        """Say that its new content is not in the table."""
        return (
            f"{self.pipeline}: {self.path} was ingested before and has changed since; "
            "its new content is not read. Give new data a new name"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NothingNew(Event):
    """A look at the sources found nothing to do."""

    level: ClassVar[Level] = Level.DEBUG
    pipeline: str
    resting: int

    def sentence(self) -> str:
        """Say so, and how many failed files rest."""
        rest = f"; {self.resting} failed files rest" if self.resting else ""
        return f"{self.pipeline}: nothing new{rest}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkStarting(Event):
    """The Spark session is being started; this takes some seconds."""

    master: str

    def sentence(self) -> str:
        """Say where Spark runs."""
        return f"starting Spark on {self.master}"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSplit(Event):
    """A job failed; its units are run again in halves, to find the file that kills the workers."""

    level: ClassVar[Level] = Level.WARN
    pipeline: str
    units: int
    reason: str

    def sentence(self) -> str:
        """Say what failed and what happens now."""
        return (
            f"{self.pipeline}: {self.reason}; its {self.units} units are run again in halves, "
            "to find the file that does it"
        )
