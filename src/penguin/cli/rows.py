"""What `status`, `held` and `history` say, as values; printed as JSON, they have these keys."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from lakebed.terminal.console import INLINED

if TYPE_CHECKING:
    from lakebed.deltalog.versions import Commit, Settled
    from penguin.held import HeldFile
    from penguin.inspect.status import (
        CatalogStatus,
        ForeignFilesStatus,
        PipelineStatus,
        StoppedStatus,
        TableStatus,
    )
    from penguin.model.backlog import Danger


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitRow:
    """One version of the log; what it does not say of itself is None."""

    version: int
    at: datetime | None
    operation: str | None
    writer: str | None
    entries: "tuple[Settled, ...]"
    files_of_others: int
    files_added: int
    files_removed: int
    rows_added: int | None
    files_rewritten: int
    files_held: int
    files_released: int
    files_discarded: int

    @classmethod
    def of(cls, commit: "Commit") -> "CommitRow":
        """Return a commit, with its time as a time."""
        stamp = commit.at_ms
        return cls(
            version=commit.version,
            at=None if stamp is None else datetime.fromtimestamp(stamp / 1000, UTC),
            operation=commit.operation,
            writer=commit.writer,
            entries=commit.entries,
            files_of_others=commit.files_of_others,
            files_added=commit.files_added,
            files_removed=commit.files_removed,
            rows_added=commit.rows_added,
            files_rewritten=commit.files_rewritten,
            files_held=commit.files_held,
            files_released=commit.files_released,
            files_discarded=commit.files_discarded,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRow:
    """A commit of one of several tables."""

    table: str
    commit: CommitRow = field(metadata=INLINED)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasonRow:
    """The files that are held for the same reasons."""

    code: str
    reasons: tuple[str, ...]
    files: int
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOutRow:
    """A file of another program that is not committed; `meta` is what asked for it, if any did."""

    file: str
    code: str
    reason: str
    meta: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PassedOverRow:
    """Parquet files that nobody commits; not `complete` where there may be more."""

    files: int = 0
    some: tuple[str, ...] = ()
    reason: str = ""
    complete: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class OthersRow:
    """The files of other programs."""

    pending_files: int = 0
    pending_late: int = 0
    left_out: tuple[LeftOutRow, ...] = ()
    watermarks: Mapping[str, str] = field(default_factory=dict)
    passed_over: PassedOverRow = field(default_factory=PassedOverRow)

    @classmethod
    def of(cls, found: "ForeignFilesStatus") -> "OthersRow":
        """Return what is known of them."""
        passed = found.passed_over
        return cls(
            pending_files=found.pending_files,
            pending_late=found.pending_late,
            left_out=tuple(
                LeftOutRow(file=one.path, code=one.code, reason=one.reason, meta=one.asked_by)
                for one in found.left_out
            ),
            watermarks=found.watermarks,
            passed_over=PassedOverRow(
                files=passed.files,
                some=passed.some,
                reason=passed.reason,
                complete=passed.complete,
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DangerRow:
    """What a VACUUM may soon delete."""

    since: datetime
    retention_secs: float
    reason: str

    @classmethod
    def of(cls, found: "Danger") -> "DangerRow":
        """Return since when files have been waiting, and for how long the table keeps them."""
        return cls(
            since=found.waiting_since,
            retention_secs=found.retention.total_seconds(),
            reason=found.sentence(),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusRow:
    """The state of one table, as far as it could be read."""

    table: str
    table_uri: str
    version: int | None = None
    last_commit: CommitRow | None = None
    lag_secs: float = 0.0
    pending_entries: int = 0
    pending_files: int = 0
    pending_rows: int = 0
    pipelines: "tuple[PipelineStatus, ...]" = ()
    stopped: int = 0
    held_files: int = 0
    held_rows: int = 0
    held: tuple[ReasonRow, ...] = ()
    discarded_files: int = 0
    discarded_rows: int = 0
    others: OthersRow = field(default_factory=OthersRow)
    in_danger: DangerRow | None = None
    catalog: "CatalogStatus | None" = None
    error: str | None = None

    @classmethod
    def of(cls, table: str, uri: str, found: "TableStatus") -> "StatusRow":
        """Return the state of a table that could be read."""
        pipelines = found.pipelines
        return cls(
            table=table,
            table_uri=uri,
            version=found.version,
            last_commit=CommitRow.of(found.last_commit) if found.last_commit else None,
            lag_secs=found.lag_secs,
            pending_entries=sum(one.pending_entries or 0 for one in pipelines),
            pending_files=sum(one.pending_files or 0 for one in pipelines),
            pending_rows=sum(one.pending_rows or 0 for one in pipelines),
            pipelines=pipelines,
            stopped=sum(one.stopped is not None for one in pipelines),
            held_files=len(found.held),
            held_rows=sum(one.meta.record_count for one in found.held),
            held=_by_reason(found.held),
            discarded_files=len(found.discarded),
            discarded_rows=sum(one.meta.record_count for one in found.discarded),
            others=OthersRow.of(found.others),
            in_danger=DangerRow.of(found.danger) if found.danger else None,
            catalog=found.catalog,
        )

    @property
    def is_wrong(self) -> bool:
        """Whether somebody should look at the table."""
        return bool(
            self.error
            or self.stopped
            or self.held_files
            or self.others.left_out
            or self.in_danger is not None
            or (self.catalog is not None and self.catalog.state != "registered")
        )


def _by_reason(held: "Iterable[HeldFile]") -> tuple[ReasonRow, ...]:
    """Count held files by what they are held for."""
    together: dict[tuple[str, tuple[str, ...]], list[int]] = {}
    for one in held:
        rows = together.setdefault((one.meta.code, tuple(one.meta.reasons)), [])
        rows.append(one.meta.record_count)
    return tuple(
        ReasonRow(code=code, reasons=reasons, files=len(rows), rows=sum(rows))
        for (code, reasons), rows in together.items()
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldFileRow:
    """A file that is held."""

    table: str
    kind: str = "file"
    id: str
    pipeline: str | None
    entry: int | None
    code: str
    reasons: tuple[str, ...]
    since: str | None
    file: str
    rows: int
    bytes: int
    sources: tuple[str, ...]

    @classmethod
    def of(cls, table: str, held: "HeldFile") -> "HeldFileRow":
        """Return what is known of a held file."""
        meta = held.meta
        return cls(
            table=table,
            id=held.name,
            pipeline=meta.pipeline,
            entry=meta.entry,
            code=meta.code,
            reasons=tuple(meta.reasons),
            since=meta.held_at or None,
            file=meta.filename,
            rows=meta.record_count,
            bytes=meta.size,
            sources=tuple(meta.source_files),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppedRow:
    """A pipeline that has stopped."""

    table: str
    kind: str = "pipeline"
    halt: "StoppedStatus" = field(metadata=INLINED)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldRows:
    """What is held of one table."""

    files: tuple[HeldFileRow, ...] = ()
    stopped: tuple[StoppedRow, ...] = ()

    @classmethod
    def of(cls, table: str, found: "TableStatus") -> "HeldRows":
        """Return what is held of one table."""
        halts = (one.stopped for one in found.pipelines)
        return cls(
            files=tuple(HeldFileRow.of(table, one) for one in found.held),
            stopped=tuple(StoppedRow(table=table, halt=halt) for halt in halts if halt),
        )
