"""Notes on versions of a Delta log: losses of rows that were accepted, and files taken out."""

from dataclasses import dataclass
from typing import Literal

from lakebed.documents.reading import validated
from lakebed.units import plural


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """The rows that one version of another writer took away, and why that is right."""

    format: Literal[1] = 1
    version: int
    operation: str | None
    writer: str | None
    """Who committed the version, as the log has it."""
    rows: int
    files: tuple[str, ...]
    """The files whose rows they were, below the table, sorted."""
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
    """A data file that was missing, or of the same work unit as one that was."""

    path: str
    """Below the table."""
    pipeline: str
    entry: int
    """The entry of the pipeline's journal that names it, and the source files with rows in it."""
    written: str | None = None
    """The file that the entry names instead, where another program had put its rows into this one,
    as OPTIMIZE does."""
    whole: bool = True
    """Whether none of its rows can be in other files that this program wrote."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """The files of pipelines that one version took out.

    It is written before the version: whether the files are out is the log's to say.
    """

    format: Literal[1] = 1
    version: int
    files: tuple[TakenOut, ...]
    created: str


def decode_accepted(body: bytes, path: str) -> Accepted:
    """Read a document; one that cannot be read is an error, never nothing that was accepted."""
    remedy = "; restore it from a backup, or delete it and accept the version again"
    return validated(Accepted, body, path, what="document", remedy=remedy)


def decode_repair(body: bytes, path: str) -> Repair:
    """Read a document; one that cannot be read is an error, never a repair of nothing."""
    return validated(Repair, body, path, what="document", remedy="; restore it from a backup")
