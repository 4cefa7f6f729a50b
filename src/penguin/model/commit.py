"""The plan of one commit: files to add and to hold, and transactions to advance."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from lakebed import layout
from lakebed.deltalog.delta_types import TableFacts
from lakebed.documents.entry import Kind
from lakebed.documents.pending_meta import EntryName, HeldState
from lakebed.documents.records import FinishedFile
from lakebed.listing.watermark import named_at
from penguin.model.backlog import Candidate, LeftOut, Position, ReadyEntry, Stopped, WaitingEntry


@dataclass(frozen=True, slots=True)
class Changes:
    """Changes of a table's columns, each named by its path."""

    added: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    """Hidden from readers; files still hold them."""
    widened: tuple[str, ...] = ()
    """Columns with a wider type, or newly nullable."""

    def then(self, later: "Changes") -> "Changes":
        """Combine two steps; what the second undoes of the first cancels out."""
        added = dict.fromkeys((*self.added, *later.added))
        dropped = dict.fromkeys((*self.dropped, *later.dropped))
        return Changes(
            added=tuple(name for name in added if name not in later.dropped),
            dropped=tuple(name for name in dropped if name not in later.added),
            widened=tuple(dict.fromkeys((*self.widened, *later.widened))),
        )


@dataclass(frozen=True, slots=True)
class Evolves:
    """The table can hold the files once it is changed to this one; unchanged without changes."""

    table: TableFacts
    changes: Changes


@dataclass(frozen=True, slots=True)
class EntryRefused:
    """The table cannot hold the files, for each of these reasons."""

    reasons: tuple[str, ...]


Decision = Evolves | EntryRefused


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionUpdate:
    """One app transaction that a commit advances, from the version that the plan found."""

    app_id: str
    before: int | None
    after: int


def held_update(name: str, before: int | None, after: HeldState) -> TransactionUpdate:
    """Return the update of a held file's mark."""
    return TransactionUpdate(app_id=layout.held_transaction(name), before=before, after=after.value)


class HoldCode(StrEnum):
    """Why a file is held."""

    SCHEMA_REFUSED = "schema_refused"
    FILE_MISSING = "file_missing"
    DOCUMENT_UNREADABLE = "document_unreadable"
    """It is held, and the meta with the reason cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """A file that a commit holds, with a code and reasons. Its rows are not lost."""

    file: FinishedFile
    entry: EntryName
    code: HoldCode
    reasons: tuple[str, ...]
    outbox: layout.TablePath | None = None
    """Where the file waits until it is moved; None if it was written in place."""

    @property
    def name(self) -> str:
        """Return the name by which the file is held."""
        return layout.file_name(self.file.filename)


@dataclass(frozen=True, slots=True, kw_only=True)
class Releasable:
    """The held files of one work unit and their entry: they may be tried again."""

    files: tuple[FinishedFile, ...]
    ready: ReadyEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class Add:
    """One file to add to the log."""

    path: layout.TablePath
    size: int
    rows: int
    partition_values: Mapping[str, str | None]
    modification_time: int
    stats: str
    pipeline: str
    sequence: int
    outbox: layout.TablePath | None = None
    """Where the file waits until it is moved; None if it was written in place."""

    @classmethod
    def of(
        cls,
        file: FinishedFile,
        stats: str,
        names: Mapping[str, str],
        ready: ReadyEntry | None = None,
    ) -> "Add":
        """Return the add of a file of an entry or of another program.

        `names` maps partition columns to their names in the log, where those differ.
        """
        return cls(
            path=file.filename,
            size=file.size,
            rows=file.record_count,
            partition_values={
                names.get(key, key): value or None for key, value in file.partition_values.items()
            },
            modification_time=file.modification_time,
            stats=stats,
            pipeline="" if ready is None else ready.entry.pipeline,
            sequence=0 if ready is None else ready.entry.sequence,
            outbox=None if ready is None else ready.outbox(file),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectedEntry:
    """An entry that a commit rejects, and why: all of it is applied or none."""

    entry: EntryName
    kind: Kind
    reasons: tuple[str, ...]
    mark: str
    """The name of the mark by which the log says that it was rejected."""
    before: int | None = None
    """The mark's version so far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Advance:
    """One pipeline's part in a commit: its position before, and the entries to settle."""

    before: Position
    entries: tuple[ReadyEntry, ...]

    @property
    def after(self) -> Position:
        """Return the pipeline's position once the commit is made."""
        return self.entries[-1].position()


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignAdds:
    """The files of other programs in a commit."""

    taken: tuple[Candidate, ...]
    scan: int | None
    """The number of such commits in the log. Each increments it, so of two penguins one
    conflicts."""
    scanned: int | None = None
    """The highest time in names of files that scans committed before."""

    def transactions(self) -> tuple[TransactionUpdate, ...]:
        """Return the updates of the scan counter, and of the newest scanned time."""
        after = (self.scan or 0) + 1
        found = (TransactionUpdate(app_id=layout.SCAN_TRANSACTION, before=self.scan, after=after),)
        named = [at for file in self.taken if file.is_covered and (at := named_at(file.path))]
        if not named:
            return found
        newest = max(*named, self.scanned or 0)
        update = TransactionUpdate(
            app_id=layout.SCANNED_TRANSACTION, before=self.scanned, after=newest
        )
        return (*found, update)

    def app_ids(self) -> tuple[str, ...]:
        """Return the transactions of files that `scanned` does not cover, one each."""
        return tuple(file.transaction for file in self.taken if not file.is_covered)

    def metadata(self) -> dict[str, object]:
        """Return the commit's metadata about them, for readers of the log."""
        return {
            "files": len(self.taken),
            "scan": (self.scan or 0) + 1,
        }


@dataclass(slots=True, kw_only=True)
class CommitPlan:
    """One commit: the table before and after, files to add, and how far pipelines advance."""

    table: TableFacts
    """The table as the plan found it, or as it is to be created."""
    after: TableFacts
    """The table as the entries' files need it."""
    changes: Changes = field(default_factory=Changes)
    adds: dict[str, Add] = field(default_factory=dict)
    """Files that are added, by path."""
    advances: tuple[Advance, ...] = ()
    holds: list[Hold] = field(default_factory=list)
    """Files that this commit holds."""
    released: list[str] = field(default_factory=list)
    """The names of held files that are added."""
    discarded: dict[str, HeldState | None] = field(default_factory=dict)
    """The names of files that are given up for good, each with its mark so far."""
    removes: dict[str, FinishedFile] = field(default_factory=dict)
    """Files that are removed or superseded, by path."""
    rejected: list[RejectedEntry] = field(default_factory=list)
    """Rejected entries: settled without a change of the table."""
    left_out: int = 0
    """Rows of removed files that leave the table, not moved to added files."""
    rearranges: bool = False
    """Whether the commit only compacts: no row changes, and readers of changes skip it."""
    moved: tuple[TransactionUpdate, ...] = ()
    """Further transactions."""
    note: Mapping[str, object] = field(default_factory=dict)
    """Further commit metadata."""
    others: ForeignAdds | None = None
    """The foreign files among the added ones."""
    supersedes: frozenset[str] = frozenset()
    """The names of files that this commit supersedes: it fails if one is still active."""
    replaces: bool = False
    """Whether the schema is replaced, which is valid only while no other writer adds a version."""

    @property
    def rows(self) -> int:
        """Count the rows that become visible; rewritten rows were visible before."""
        return sum(add.rows for add in self.adds.values()) - self.rewritten_rows

    @property
    def rewritten_rows(self) -> int:
        """Count the rows of removed files that moved to added files."""
        if not self.adds:
            return 0
        return sum(file.record_count for file in self.removes.values()) - self.left_out

    @property
    def goes_by_paths(self) -> bool:
        """Whether files are added because the log did not name them when it was read.

        Files of entries are added because their transaction is missing; only where they supersede
        others must these still be out of the table.
        """
        return self.others is not None or bool(self.moved or self.supersedes)

    def transaction_updates(self) -> tuple[TransactionUpdate, ...]:
        """Return the transactions that advance besides pipelines, such as marks of held files."""
        return (
            *self.moved,
            *(() if self.others is None else self.others.transactions()),
            *(held_update(hold.name, None, HeldState.HELD) for hold in self.holds),
            *(held_update(one.mark, one.before, HeldState.GONE) for one in self.rejected),
            *(held_update(name, HeldState.HELD, HeldState.RELEASED) for name in self.released),
            *(held_update(name, before, HeldState.GONE) for name, before in self.discarded.items()),
        )

    @property
    def entries(self) -> int:
        """Count the entries that the commit settles."""
        return sum(len(advance.entries) for advance in self.advances)

    def transactions(self) -> tuple[tuple[str, int], ...]:
        """Return the app transactions that make the commit idempotent."""
        return (
            *(pair for advance in self.advances for pair in advance.after.transactions()),
            *((update.app_id, update.after) for update in self.transaction_updates()),
            *((app_id, 1) for app_id in (self.others.app_ids() if self.others else ())),
        )

    def current_transactions(self) -> tuple[tuple[str, int], ...]:
        """Return the current transactions, for a commit that advances none of them."""
        return tuple(pair for advance in self.advances for pair in advance.before.transactions())

    def settled(self) -> dict[str, dict[str, object]]:
        """Return the entries that the commit settles, by pipeline."""
        return {
            advance.before.pipeline: {
                "journal": advance.after.journal,
                "first": advance.entries[0].entry.sequence,
                "last": advance.after.sequence,
            }
            for advance in self.advances
        }

    def metadata(self) -> dict[str, object]:
        """Return the commit's metadata, for readers of the log."""
        document: dict[str, object] = {"entries": self.settled(), **self.note}
        names = {
            "held": [hold.name for hold in self.holds],
            "released": self.released,
            "discarded": list(self.discarded),
        }
        document |= {key: listed for key, listed in names.items() if listed}
        if self.rearranges:
            document["compacted"] = {"files": len(self.removes), "into": len(self.adds)}
        if self.rewritten_rows:
            document["rewritten"] = {"files": len(self.removes), "rows": self.rewritten_rows}
        if self.left_out:
            document["retracted"] = {"rows": self.left_out}
        if self.rejected:
            document["rejected"] = {
                f"{one.entry.pipeline}/{one.entry.sequence}": list(one.reasons)
                for one in self.rejected
            }
        if self.others is not None:
            document["others"] = self.others.metadata()
        return document


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitProposal:
    """The next commit, if there is one, and what cannot be part of it."""

    commit: CommitPlan | None = None
    stopped: tuple[Stopped, ...] = ()
    waiting: tuple[WaitingEntry, ...] = ()
    """Entries that are not handed off yet."""
    left_out: tuple[LeftOut, ...] = ()
    """Files of other programs that are not committed."""
    unfit: tuple[LeftOut, ...] = ()
    """Those of them that only planning their commit has shown."""
    retried: tuple[Releasable, ...] = ()
    """Held files that were tried again."""

    def is_unsettled(self, max_files: int) -> bool:
        """Whether held files must be tried again: a commit may fail, or may have been too full."""
        commit = self.commit
        return commit is not None and (
            bool(commit.released)
            or commit.rearranges
            or any(len(commit.adds) + len(unit.files) > max_files for unit in self.retried)
        )
