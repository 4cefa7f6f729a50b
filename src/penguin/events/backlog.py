"""What waits to be committed: entries, their files, and metas that nobody can use."""

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import ClassVar

from lakebed.telemetry.events import Event, Level
from lakebed.telemetry.measures import Age, Count, Measure, Reading
from lakebed.units import plural
from penguin.model.commit import HoldCode

FEW = 10
"""How many of a long list are named."""


def first_of(paths: tuple[str, ...]) -> str:
    """Return the first paths of many, and how many more there are."""
    more = f" and {len(paths) - FEW} more" if len(paths) > FEW else ""
    return f"{', '.join(paths[:FEW])}{more}"


class TableEvent(Event):
    """Something that happened to one table."""

    counter: ClassVar[str | None] = None
    """The metric that counts it."""
    table: str

    def measures(self) -> Iterable[Measure]:
        """Count it."""
        if self.counter is not None:
            yield Count(self.counter, 1, {"table": self.table})


class TableWaiting(TableEvent, level=Level.DEBUG):
    """There is nothing to commit from yet: no table directory, or no pipeline in it."""

    table_uri: str

    says = "{table}: there is nothing to commit in {table_uri} yet"


class TableWatched(TableEvent):
    """Nothing is left to commit for now; the table's directory is looked at again and again."""

    table_uri: str
    every_secs: float

    says = "{table}: watching {table_uri} every {every_secs:span}"


class BacklogSeen(TableEvent, level=Level.TRACE):
    """A table was looked at: its version, and what waits to be committed."""

    version: int | None
    entries: int
    files: int
    oldest: float | None
    """When the first of the entries was journaled, in seconds since the epoch."""
    held: Mapping[str, int] = field(default_factory=dict)
    """How many files are set aside, by the code of the reason."""
    seconds: float = 0.0
    """How long the look has taken."""

    def sentence(self) -> str:
        """Report how much waits."""
        entries = plural(self.entries, "entry", "entries")
        return f"{self.table}: waiting: {entries} with {plural(self.files, 'file')}"

    def measures(self) -> Iterable[Measure]:
        """Yield the backlog, and how far the table is behind."""
        labels = {"table": self.table}
        yield Reading("penguin_pending_entries", self.entries, labels)
        yield Reading("penguin_pending_files", self.files, labels)
        yield Age("penguin_lag_seconds", self.oldest, labels)
        for code in HoldCode:
            count = self.held.get(code, 0)
            yield Reading("penguin_held_files", count, {**labels, "code": code.value})
        if self.version is not None:
            yield Reading("penguin_table_version", self.version, labels)


class FilesLookedAt(TableEvent, level=Level.TRACE):
    """The files of the next commit are being looked at, before it is made."""

    done: int
    files: int

    says = "{table}: looked at {done} of {files:#file}"


class EntryNotHandedOff(TableEvent):
    """An entry is in the journal, and blizzard has yet to hand its files off."""

    pipeline: str
    entry: int
    reason: str

    says = "{table}: entry {entry} of pipeline {pipeline} is waiting: {reason}"


class MetasLeftAlone(TableEvent, level=Level.WARN):
    """Metas that penguin neither commits nor deletes; reported once."""

    reason: str
    paths: tuple[str, ...]

    def sentence(self) -> str:
        """Name them and the reason."""
        return f"{self.table}: left alone: {first_of(self.paths)}: {self.reason}"


class FilesUnnamed(TableEvent, level=Level.WARN):
    """Files of blizzard in the table's folders that no entry names; reported once."""

    files: int
    some: tuple[str, ...]

    def sentence(self) -> str:
        """Count them and name some."""
        return (
            f"{self.table}: left alone because no journal entry names them: "
            f"{plural(self.files, 'file')} written by blizzard: {first_of(self.some)}"
        )
