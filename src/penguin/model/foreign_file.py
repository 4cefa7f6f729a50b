"""The values of files that other programs wrote, from where they are found to the commit."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from lakebed.deltalog.delta_types import DeltaSchema
from lakebed.documents.data_file import ColumnStatistics, FinishedFile
from lakebed.documents.pending_meta import Meta
from lakebed.layout import TablePath, foreign_transaction
from lakebed.listing.watermark import named_at
from lakebed.storage.facts import ObjectFacts

AHEAD = timedelta(hours=1)
"""How far the time in a name may be ahead of the store's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A file that another program put into the table directory, and that no entry names."""

    facts: ObjectFacts
    claim: Meta | None = None
    """What its meta says of it; None where it was found by a scan."""
    asked_by: str | None = None
    """The path of that meta."""
    late: bool = False
    """Whether a bare watermark would have lost it."""

    @property
    def path(self) -> TablePath:
        """Return its name in the table."""
        return TablePath(self.facts.path)

    @property
    def modified(self) -> datetime:
        """Return the store's time of it."""
        return self.facts.modified

    @property
    def transaction(self) -> str:
        """Name the app transaction that says it was committed."""
        return foreign_transaction(self.path)

    @property
    def is_covered(self) -> bool:
        """Whether the newest time that was scanned says that it was committed.

        A name from the future would cover files that are yet to come.
        """
        at = named_at(self.path)
        if self.claim is not None or at is None:
            return False
        return at <= (self.modified + AHEAD).timestamp() * 1000

    def is_same(self, other: "Candidate") -> bool:
        """Whether two looks saw the same content under the same claim."""
        return (self.facts, self.claim) == (other.facts, other.claim)


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignFile:
    """A whole Parquet file of another program, with what its footer says of it."""

    found: Candidate
    rows: int
    schema: DeltaSchema
    """All columns of the file, those that are partition columns of the table included."""
    statistics: Mapping[str, ColumnStatistics]
    schema_key: str = ""
    """Names the schema among those of a folder that is adopted."""

    def finished(self, values: Mapping[str, str | None]) -> FinishedFile:
        """Return the file as a data file of the table, in its partition."""
        claim = self.found.claim
        return FinishedFile(
            filename=self.found.path,
            size=self.found.facts.size,
            record_count=self.rows,
            partition_values=values,
            source_file=claim.source_file if claim is not None else None,
            unit=self.found.path,
            statistics=self.statistics,
            modification_time=round(self.found.modified.timestamp() * 1000),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A file of another program that is not committed or adopted, and why."""

    path: str
    code: str
    reason: str
    asked_by: str | None = None
    modified: datetime | None = field(default=None, compare=False)
    """When the file was last modified, which is what VACUUM goes by; None where there is none."""
    skippable: bool = False
    """Whether `penguin adopt --skip-unreadable` leaves it out: it has no rows that can be read."""


FEW_NAMED = 10
"""How many files that are passed over are named; the others are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PassedOver:
    """Parquet files in the table's folders that are never committed: how many, samples, and why."""

    files: int = 0
    some: tuple[str, ...] = ()
    reason: str = ""
    """Why they are passed over, and how they get in."""
    complete: bool = True
    """False where there may be more: the look at them is bounded."""

    @classmethod
    def of(cls, paths: Iterable[str], reason: str, *, complete: bool = True) -> "PassedOver":
        """Count files, and name the first ones."""
        ordered = sorted(paths)
        if not ordered:
            return cls(complete=complete)
        some = tuple(ordered[:FEW_NAMED])
        return cls(files=len(ordered), some=some, reason=reason, complete=complete)
