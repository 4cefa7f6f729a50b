"""Documents about versions of a Delta log: accepted losses of rows, and removed missing files."""

from dataclasses import dataclass
from typing import Literal

from lakebed.documents.reading import validated
from lakebed.units import plural


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """The accepted loss of rows by one version of another writer."""

    format: Literal[1] = 1
    version: int
    operation: str | None
    writer: str | None
    """The writer of the version, by the log."""
    rows: int
    files: tuple[str, ...]
    """The paths of the files with these rows, sorted."""
    reason: str = ""
    """Empty until an operator gives one."""
    created: str = ""

    @property
    def message(self) -> str:
        """Return the loss in words."""
        return (
            f"version {self.version} ({self.operation or 'an unknown operation'} of "
            f"{self.writer or 'an unknown writer'}) removed {plural(self.rows, 'row')}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenOut:
    """A removed data file that was missing, or of the same work unit as a missing one."""

    path: str
    """Relative to the table."""
    pipeline: str
    entry: int
    """The journal entry that names it and its source files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """The files of pipelines that one version removed as missing.

    It is written before the version: only the log says whether the files are out.
    """

    format: Literal[1] = 1
    version: int
    files: tuple[TakenOut, ...]
    created: str


def decode_accepted(body: bytes, path: str) -> Accepted:
    """Decode an accepted loss; raise if it is unreadable."""
    remedy = "; restore it from a backup, or delete it and accept the version again"
    return validated(Accepted, body, path, what="document", remedy=remedy)


def decode_repair(body: bytes, path: str) -> Repair:
    """Decode a repair; raise if it is unreadable."""
    return validated(Repair, body, path, what="document", remedy="; restore it from a backup")
