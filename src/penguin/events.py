"""What penguin tells of its work."""

from dataclasses import dataclass
from typing import ClassVar

from lake.telemetry.events import Event, Level


@dataclass(frozen=True, slots=True, kw_only=True)
class TableWaiting(Event):
    """There is nothing to commit from yet: no table directory, or no pipeline in it."""

    level: ClassVar[Level] = Level.DEBUG
    table: str
    table_uri: str

    def sentence(self) -> str:
        """Say what is waited for."""
        return f"{self.table}: nothing to commit: blizzard has not written to {self.table_uri} yet"


@dataclass(frozen=True, slots=True, kw_only=True)
class EntriesCommitted(Event):
    """Entries are in the Delta log, by our hand."""

    table: str
    version: int
    entries: int
    files: int
    rows: int
    columns_added: tuple[str, ...]

    def sentence(self) -> str:
        """Say what became visible."""
        added = f", new columns: {', '.join(self.columns_added)}" if self.columns_added else ""
        return (
            f"{self.table}: version {self.version}: {self.entries} entries, {self.files} files, "
            f"{self.rows} rows{added}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedByOther(Event):
    """Somebody else committed the entries that were planned."""

    table: str
    version: int
    entries: int

    def sentence(self) -> str:
        """Say that nothing was done twice."""
        return (
            f"{self.table}: {self.entries} entries were committed by another penguin; "
            f"the table is at version {self.version}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSuperseded(Event):
    """The table changed after the plan was made."""

    level: ClassVar[Level] = Level.DEBUG
    table: str

    def sentence(self) -> str:
        """Say what follows."""
        return f"{self.table}: the table changed meanwhile; looking again"


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineStopped(Event):
    """Nothing more of a pipeline is committed until somebody mends it."""

    level: ClassVar[Level] = Level.ERROR
    table: str
    pipeline: str
    code: str
    error: str

    def sentence(self) -> str:
        """Say why, and that the others go on."""
        return (
            f"{self.table}: pipeline {self.pipeline} stops: {self.error} [{self.code}]; "
            "other pipelines go on"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineMended(Event):
    """A pipeline that was stopped goes on."""

    table: str
    pipeline: str

    def sentence(self) -> str:
        """Say so."""
        return f"{self.table}: pipeline {self.pipeline} goes on"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointWritten(Event):
    """A Delta checkpoint was written."""

    level: ClassVar[Level] = Level.DEBUG
    table: str
    version: int

    def sentence(self) -> str:
        """Say for which version."""
        return f"{self.table}: checkpoint of version {self.version} written"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointFailed(Event):
    """A Delta checkpoint could not be written; commits are not touched by that."""

    level: ClassVar[Level] = Level.WARN
    table: str
    version: int
    error: str

    def sentence(self) -> str:
        """Say that it will be tried again."""
        return (
            f"{self.table}: the checkpoint of version {self.version} could not be written, "
            f"the next step tries again: {self.error}"
        )
