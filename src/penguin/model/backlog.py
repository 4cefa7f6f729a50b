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
"""The version of an app transaction in one snapshot of the log; None without one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """How far a journal is committed by the log; `sequence` is None before the first commit."""

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
    """An entry with a checked place in the chain, with the digest of its stored bytes."""

    entry: Entry
    digest: str
    path: str

    def position(self) -> Position:
        """Return the journal's position once the entry is committed."""
        return Position(
            pipeline=self.entry.pipeline,
            journal=self.entry.journal,
            sequence=self.entry.sequence,
            digest=digest_number(self.digest),
        )

    def outbox(self, file: FinishedFile) -> TablePath | None:
        """Return where a file of it waits until it is moved; None if it is written in place."""
        direct = self.entry.handoff is Handoff.DIRECT
        return outbox(self.entry.pipeline, file.filename) if direct else None

    def receipt(self) -> Receipt:
        """Return the receipt of its commit."""
        return Receipt(journal=self.entry.journal, sequence=self.entry.sequence, digest=self.digest)


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineBacklog:
    """One pipeline's committed position, and the entries that follow, in order."""

    position: Position
    entries: tuple[ReadyEntry, ...]
    overdue_receipt: Receipt | None = None
    """The receipt to write; None if the stored one is current."""

    @property
    def pipeline(self) -> str:
        """Name the pipeline."""
        return self.position.pipeline

    @property
    def end(self) -> int:
        """Return the last entry read: the last waiting one, else the committed one."""
        return self.entries[-1].entry.sequence if self.entries else self.position.sequence or 0

    def before(self, sequence: int) -> "PipelineBacklog":
        """Return the backlog without an entry and all after it."""
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
    """When it was journaled; None if the entry itself is still in the backlog."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """Why nothing more of a pipeline is committed until it is fixed."""

    pipeline: str
    error: LakeError
    sequence: int | None = None
    """The entry that cannot be committed; None if the cause is not one entry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Danger:
    """Files have been waiting so long that a VACUUM may soon delete them."""

    waiting_since: datetime
    retention: timedelta

    def sentence(self) -> str:
        """Return since when files wait, what may happen, and what to do."""
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
    """Return the danger if the file that waits longest has waited for half of the retention."""
    keeps = retention(configuration)
    if waiting_since is None or now - waiting_since < keeps / 2:
        return None
    return Danger(waiting_since=waiting_since, retention=keeps)


def instant(text: str) -> datetime | None:
    """Parse a time; None if it cannot be parsed, as in an edited meta."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


AHEAD = timedelta(hours=1)
"""How far the time in a name may be ahead of the store's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A foreign file in the table directory: no entry names it."""

    facts: ObjectFacts
    claim: Meta | None = None
    """Its meta; None if a scan found it."""
    asked_by: str | None = None
    """The path of that meta."""

    @property
    def path(self) -> TablePath:
        """Return its path in the table."""
        return TablePath(self.facts.path)

    @property
    def modified(self) -> datetime:
        """Return its modification time by the store's clock."""
        return self.facts.modified

    @property
    def transaction(self) -> str:
        """Name the app transaction that records its commit."""
        return foreign_transaction(self.path)

    @property
    def is_covered(self) -> bool:
        """Whether the newest scanned time covers its name, so that it needs no own transaction.

        A name with a time in the future does not count: it would cover files yet to come.
        """
        at = named_at(self.path)
        if self.claim is not None or at is None:
            return False
        return at <= (self.modified + AHEAD).timestamp() * 1000

    def is_same(self, other: "Candidate") -> bool:
        """Whether both have the same content and the same meta."""
        return (self.facts, self.claim) == (other.facts, other.claim)


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignFile:
    """A complete foreign Parquet file, with the facts of its footer."""

    found: Candidate
    rows: int
    schema: DeltaSchema
    """All columns of the file, including partition columns of the table."""
    statistics: Mapping[str, ColumnStatistics]
    schema_key: str = ""
    """The key of the schema in an adoption."""

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
    """The file's modification time, by which VACUUM decides; None without a file."""
    skippable: bool = False
    """Whether `penguin adopt --skip-unreadable` leaves it out: it has no rows that can be read."""


FEW_NAMED = 10
"""How many ignored files are named; the others are only counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IgnoredFiles:
    """Parquet files in the table's folders that are never committed: how many, samples, and why."""

    files: int = 0
    some: tuple[str, ...] = ()
    reason: str = ""
    """Why they are ignored, and how they get committed."""

    @classmethod
    def of(cls, paths: Iterable[str], reason: str) -> "IgnoredFiles":
        """Count files, and name the first ones."""
        ordered = sorted(paths)
        return cls(files=len(ordered), some=tuple(ordered[:FEW_NAMED]), reason=reason)
