"""The values that travel from discovery to the commit."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import Any

from lakebed.documents.data_file import FinishedFile
from lakebed.documents.entry import Entry, Receipt, digest_number
from lakebed.documents.pending_meta import EntryName
from lakebed.errors import LakeError
from lakebed.layout import (
    SCAN_TRANSACTION,
    TablePath,
    digest_transaction,
    file_name,
    held_transaction,
    journal_transaction,
    outbox,
    pipeline_transaction,
    stranger_transaction,
)
from lakebed.types import Handoff

DeltaSchema = dict[str, Any]
"""A schema as the Delta protocol writes it."""

DeltaField = dict[str, Any]
"""One field of it."""

Transactions = Callable[[str], int | None]
"""The version of an app transaction in one snapshot of the log, None where it has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFacts:
    """What one snapshot of a table says of itself; `version` is None before it is created."""

    version: int | None
    schema: DeltaSchema
    partition_columns: tuple[str, ...]
    configuration: Mapping[str, str]

    def shape(self) -> tuple[object, ...]:
        """Give what a plan depends on, so that a plan for another shape is noticed."""
        return self.schema, self.partition_columns, dict(self.configuration)


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
        """Give the app transactions that say this position."""
        if self.sequence is None or self.digest is None:
            return ()
        return (
            (journal_transaction(self.pipeline, self.journal), self.sequence),
            (digest_transaction(self.pipeline, self.journal), self.digest),
            (pipeline_transaction(self.pipeline), self.sequence),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyEntry:
    """An entry whose place in the chain was checked, with the digest of its stored bytes."""

    entry: Entry
    digest: str
    path: str

    def position(self) -> Position:
        """Say where its journal stands once it is committed."""
        return Position(
            pipeline=self.entry.pipeline,
            journal=self.entry.journal,
            sequence=self.entry.sequence,
            digest=digest_number(self.digest),
        )

    def outbox(self, file: FinishedFile) -> TablePath | None:
        """Say where a file of it waits until it is moved; None where it never is."""
        direct = self.entry.handoff is Handoff.DIRECT
        return outbox(self.entry.pipeline, file.filename) if direct else None

    def receipt(self) -> Receipt:
        """Write down that it is committed."""
        return Receipt(journal=self.entry.journal, sequence=self.entry.sequence, digest=self.digest)


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
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
        """Give the last entry that was read: of those that wait, or else the committed one."""
        return self.entries[-1].entry.sequence if self.entries else self.position.sequence or 0

    def before(self, sequence: int) -> "Backlog":
        """Leave out an entry and all that come after it."""
        return Backlog(
            position=self.position,
            entries=tuple(one for one in self.entries if one.entry.sequence < sequence),
            overdue_receipt=self.overdue_receipt,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """An entry that blizzard has journaled and not yet handed off. Nobody has to do anything."""

    pipeline: str
    sequence: int
    reason: str
    since: str | None = None
    """When it was journaled; None where the entry itself is still in sight."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """Why nothing more of a pipeline is committed until somebody mends it."""

    pipeline: str
    error: LakeError
    sequence: int | None = None
    """The entry that cannot be committed, where it is one."""


@dataclass(frozen=True, slots=True)
class Fits:
    """The table can hold the entry's files as it is."""


@dataclass(frozen=True, slots=True)
class Changes:
    """What becomes of a table's columns, each named with the structs it is in."""

    added: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    """Those that readers no longer see; their files still hold them."""
    widened: tuple[str, ...] = ()
    """Those that get a wider type, or may be null from now on."""

    def then(self, later: "Changes") -> "Changes":
        """Put two steps together; what the second undoes of the first is left out."""
        added = dict.fromkeys((*self.added, *later.added))
        dropped = dict.fromkeys((*self.dropped, *later.dropped))
        return Changes(
            added=tuple(name for name in added if name not in later.dropped),
            dropped=tuple(name for name in dropped if name not in later.added),
            widened=tuple(dict.fromkeys((*self.widened, *later.widened))),
        )


@dataclass(frozen=True, slots=True)
class Evolves:
    """The table can hold the entry's files once it is this one."""

    table: TableFacts
    changes: Changes


@dataclass(frozen=True, slots=True)
class Refused:
    """The table cannot hold the entry's files, for each of these reasons."""

    reasons: tuple[str, ...]


Decision = Fits | Evolves | Refused


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One app transaction that a commit moves, from what the plan found to what it becomes."""

    app_id: str
    before: int | None
    after: int


class HeldState(IntEnum):
    """What the log says of a file that was set aside."""

    HELD = 0
    RELEASED = 1
    GONE = 2
    """Discarded, or replaced by files that were written anew."""


def held_mark(name: str, before: HeldState | None, after: HeldState) -> Mark:
    """Say what becomes of a file that is set aside, or was."""
    return Mark(
        app_id=held_transaction(name),
        before=None if before is None else before.value,
        after=after.value,
    )


class HoldCode(StrEnum):
    """Why a file is set aside."""

    SCHEMA_REFUSED = "schema_refused"
    FILE_MISSING = "file_missing"
    DOCUMENT_UNREADABLE = "document_unreadable"
    """It is held, and the meta that said why cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """A file that a commit leaves out, with the code and the reasons. Its rows are not lost."""

    file: FinishedFile
    entry: EntryName
    code: HoldCode
    reasons: tuple[str, ...]
    outbox: TablePath | None = None
    """Where the file waits until it is moved; None where it had its final name from the start."""

    @property
    def name(self) -> str:
        """Name the file among all that are held."""
        return file_name(self.file.filename)

    def mark(self) -> Mark:
        """Give the mark of the commit that leaves it out."""
        return held_mark(self.name, None, HeldState.HELD)


@dataclass(frozen=True, slots=True, kw_only=True)
class Releasable:
    """The held files of one work unit, with the entry they came from: they may be tried again."""

    files: tuple[FinishedFile, ...]
    ready: ReadyEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class Add:
    """One file as it will stand in the log."""

    path: TablePath
    size: int
    rows: int
    partition_values: Mapping[str, str | None]
    modification_time: int
    stats: str
    pipeline: str
    sequence: int
    outbox: TablePath | None = None
    """Where the file waits until it is moved; None where it had its final name from the start."""

    @classmethod
    def of(cls, file: FinishedFile, ready: ReadyEntry, stats: str) -> "Add":
        """Turn a finished file of an entry into an add action."""
        return cls(
            path=file.filename,
            size=file.size,
            rows=file.record_count,
            partition_values={key: value or None for key, value in file.partition_values.items()},
            modification_time=file.modification_time,
            stats=stats,
            pipeline=ready.entry.pipeline,
            sequence=ready.entry.sequence,
            outbox=ready.outbox(file),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Advance:
    """One pipeline's part in a commit: from a position, over its entries, to another."""

    before: Position
    entries: tuple[ReadyEntry, ...]

    @property
    def after(self) -> Position:
        """Say where the pipeline stands once the commit is made."""
        return self.entries[-1].position()


@dataclass(frozen=True, slots=True, kw_only=True)
class Others:
    """What a commit holds of other programs' files: each by a transaction of its own."""

    paths: tuple[TablePath, ...]
    scan: int | None
    """How many such commits the log has. Each counts on: of two penguins one looks again."""
    late: tuple[TablePath, ...] = ()
    """Those that a bare watermark would have lost."""
    marks: Mapping[str, str] = field(default_factory=dict)
    """The highest name of each folder."""

    def mark(self) -> Mark:
        """Give the mark that counts such commits."""
        return Mark(app_id=SCAN_TRANSACTION, before=self.scan, after=(self.scan or 0) + 1)

    def app_ids(self) -> tuple[str, ...]:
        """Give the transactions that say of each file that it was committed."""
        return tuple(stranger_transaction(path) for path in self.paths)

    def metadata(self) -> dict[str, object]:
        """Say in the commit what it holds."""
        return {
            "files": len(self.paths),
            "late": len(self.late),
            "scan": self.mark().after,
            "marks": dict(self.marks),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitPlan:
    """One commit, decided: what the table must be, what is added, how far each pipeline goes."""

    table: TableFacts
    """The table as the plan found it, or as it must be created."""
    after: TableFacts
    """The table as the entries' files need it."""
    changes: Changes
    adds: tuple[Add, ...]
    advances: tuple[Advance, ...] = ()
    holds: tuple[Hold, ...] = ()
    """Files that are set aside with this commit."""
    released: tuple[str, ...] = ()
    """The names of files that were set aside, and are among those that are added."""
    discarded: Mapping[str, HeldState | None] = field(default_factory=dict)
    """The names of files that are given up for good, each with what the log says of it so far."""
    removes: tuple[FinishedFile, ...] = ()
    """Files that are taken out of the table again."""
    moved: tuple[Mark, ...] = ()
    """What else the commit moves."""
    note: Mapping[str, object] = field(default_factory=dict)
    """What else is said in the commit."""
    others: Others | None = None
    """The files of other programs that are among those that are added."""
    replaces: bool = False
    """Whether the schema is replaced: that holds only while nobody else has written a version."""

    @property
    def rows(self) -> int:
        """Count the rows that the commit makes visible."""
        return sum(add.rows for add in self.adds)

    @property
    def goes_by_paths(self) -> bool:
        """Whether files are added because the log did not name them when it was looked at.

        An entry's files are added because its transaction is not there.
        """
        return self.others is not None or bool(self.moved)

    def marks(self) -> tuple[Mark, ...]:
        """Give what the commit moves besides the pipelines: files that are, or were, set aside."""
        return (
            *self.moved,
            *(() if self.others is None else (self.others.mark(),)),
            *(hold.mark() for hold in self.holds),
            *(held_mark(name, HeldState.HELD, HeldState.RELEASED) for name in self.released),
            *(held_mark(name, before, HeldState.GONE) for name, before in self.discarded.items()),
        )

    @property
    def entries(self) -> int:
        """Count the entries that the commit settles."""
        return sum(len(advance.entries) for advance in self.advances)

    def transactions(self) -> tuple[tuple[str, int], ...]:
        """Give the app transactions that make the commit count once."""
        return (
            *(pair for advance in self.advances for pair in advance.after.transactions()),
            *((mark.app_id, mark.after) for mark in self.marks()),
            *((app_id, 1) for app_id in (self.others.app_ids() if self.others else ())),
        )

    def current_transactions(self) -> tuple[tuple[str, int], ...]:
        """Give the transactions as they stand, for a commit that advances nobody."""
        return tuple(pair for advance in self.advances for pair in advance.before.transactions())

    def settled(self) -> dict[str, dict[str, object]]:
        """Say which entries of which journals the commit settles."""
        return {
            advance.before.pipeline: {
                "journal": advance.after.journal,
                "first": advance.entries[0].entry.sequence,
                "last": advance.after.sequence,
            }
            for advance in self.advances
        }

    def metadata(self) -> dict[str, object]:
        """Say in the commit what it is, for whoever reads the log."""
        told: dict[str, object] = {"entries": self.settled(), **self.note}
        if self.holds:
            told["held"] = [hold.name for hold in self.holds]
        if self.released:
            told["released"] = list(self.released)
        if self.discarded:
            told["discarded"] = list(self.discarded)
        if self.others is not None:
            told["others"] = self.others.metadata()
        return told


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """The next commit, if there is one, and the pipelines that cannot be part of it."""

    commit: CommitPlan | None
    stopped: tuple[Stopped, ...] = field(default=())
    waiting: tuple[Waiting, ...] = field(default=())
    """Entries that are not handed off yet."""
