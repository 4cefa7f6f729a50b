"""Pending entries of a journal, and files of other programs. Plain values."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from lakebed.deltalog.delta_types import DeltaSchema
from lakebed.deltalog.log_contents import retention
from lakebed.documents.entry import Entry, Receipt, digest_number
from lakebed.documents.pending_meta import Meta
from lakebed.documents.records import ColumnStatistics, FinishedFile
from lakebed.errors import LakeError
from lakebed.layout import (
    TablePath,
    digest_transaction,
    foreign_transaction,
    journal_transaction,
    outbox,
    pipeline_transaction,
)
from lakebed.listing.watermark import named_at
from lakebed.storage.options import ObjectFacts
from lakebed.types import Handoff

Transactions = Callable[[str], int | None]
"""The version of an app transaction in one snapshot of the log, None where it has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """How far the log says a journal is committed; `sequence` is None before the first time."""

    pipeline: str
    journal: str
    sequence: int | None
    digest: int | None

    @classmethod
    def read(cls, pipeline: str, journal: str, transactions: Transactions) -> "Position":
        """Read both transactions of a journal from one snapshot."""
        return cls(
            pipeline=pipeline,
            journal=journal,
            sequence=transactions(journal_transaction(pipeline, journal)),
            digest=transactions(digest_transaction(pipeline, journal)),
        )

    def transactions(self) -> tuple[tuple[str, int], ...]:
        """Return the app transactions of this position."""
        if self.sequence is None or self.digest is None:
            return ()
        return (
            (journal_transaction(self.pipeline, self.journal), self.sequence),
            (digest_transaction(self.pipeline, self.journal), self.digest),
            (pipeline_transaction(self.pipeline), self.sequence),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyEntry:
    """An entry with a checked position in the chain, and the digest of its stored bytes."""

    entry: Entry
    digest: str
    path: str

    def position(self) -> Position:
        """Return where its journal stands once it is committed."""
        return Position(
            pipeline=self.entry.pipeline,
            journal=self.entry.journal,
            sequence=self.entry.sequence,
            digest=digest_number(self.digest),
        )

    def outbox(self, file: FinishedFile) -> TablePath | None:
        """Return where a file of it waits until it is moved; None where it never is."""
        direct = self.entry.handoff is Handoff.DIRECT
        return outbox(self.entry.pipeline, file.filename) if direct else None

    def receipt(self) -> Receipt:
        """Write down that it is committed."""
        return Receipt(journal=self.entry.journal, sequence=self.entry.sequence, digest=self.digest)


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineBacklog:
    """One pipeline: where the log says it stands, and the entries that come next, in order."""

    position: Position
    entries: tuple[ReadyEntry, ...]
    overdue_receipt: Receipt | None = None
    """What the receipt should say of the past; None where it does."""

    @property
    def pipeline(self) -> str:
        """Name the pipeline."""
        return self.position.pipeline

    @property
    def end(self) -> int:
        """Return the last entry that was read: of those that wait, or else the committed one."""
        return self.entries[-1].entry.sequence if self.entries else self.position.sequence or 0

    def before(self, sequence: int) -> "PipelineBacklog":
        """Leave out an entry and all that come after it."""
        return PipelineBacklog(
            position=self.position,
            entries=tuple(entry for entry in self.entries if entry.entry.sequence < sequence),
            overdue_receipt=self.overdue_receipt,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingEntry:
    """An entry that blizzard has journaled and not yet handed off. It needs no action."""

    pipeline: str
    sequence: int
    reason: str
    since: str | None = None
    """When it was journaled; None where the entry itself is still in sight."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """Why nothing more of a pipeline is committed until it is fixed."""

    pipeline: str
    error: LakeError
    sequence: int | None = None
    """The entry that cannot be committed, where it is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Danger:
    """Files have been waiting so long that a VACUUM may soon delete them."""

    waiting_since: datetime
    retention: timedelta

    def sentence(self) -> str:
        """Return since when, what may happen when, and what to do."""
        days = self.retention.total_seconds() / 86_400
        return (
            f"files have been waiting for their commit since {self.waiting_since.isoformat()}; "
            f"the table keeps files that its log does not reference for {days:g} days, then a "
            "VACUUM may delete them: see `penguin held` and `penguin status`, or raise "
            "delta.deletedFileRetentionDuration (written as `interval 30 days`, which every "
            "engine reads)"
        )


def danger(
    waiting_since: datetime | None, configuration: Mapping[str, str], now: datetime
) -> Danger | None:
    """Whether the file that waits longest has waited for half of the retention."""
    keeps = retention(configuration)
    if waiting_since is None or now - waiting_since < keeps / 2:
        return None
    return Danger(waiting_since=waiting_since, retention=keeps)


def instant(text: str) -> datetime | None:
    """Read a time; None for one that cannot be read, such as that of an edited meta."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


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
