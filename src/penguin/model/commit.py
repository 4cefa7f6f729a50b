"""One commit, decided: files that it adds, files that it holds, transactions that it moves."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from lakebed import layout
from lakebed.deltalog.delta_types import TableFacts
from lakebed.deltalog.log_contents import RemovalNote
from lakebed.documents.entry import Kind
from lakebed.documents.pending_meta import EntryName, HeldState
from lakebed.documents.records import FinishedFile
from lakebed.listing.watermark import folder_and_name, named_at
from penguin.model.backlog import Candidate, LeftOut, Position, ReadyEntry, Stopped, WaitingEntry


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
    """The table can hold the entry's files once it is this one, or as it is without changes."""

    table: TableFacts
    changes: Changes


@dataclass(frozen=True, slots=True)
class EntryRefused:
    """The table cannot hold the entry's files, for each of these reasons."""

    reasons: tuple[str, ...]


Decision = Evolves | EntryRefused


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionUpdate:
    """One app transaction that a commit moves, from what the plan found to what it becomes."""

    app_id: str
    before: int | None
    after: int


def held_update(name: str, before: int | None, after: HeldState) -> TransactionUpdate:
    """Return what becomes of a file that is set aside, or was."""
    return TransactionUpdate(app_id=layout.held_transaction(name), before=before, after=after.value)


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
    outbox: layout.TablePath | None = None
    """Where the file waits until it is moved; None where it had its final name from the start."""

    @property
    def name(self) -> str:
        """Name the file among all that are held."""
        return layout.file_name(self.file.filename)


@dataclass(frozen=True, slots=True, kw_only=True)
class Releasable:
    """The held files of one work unit, with the entry they came from: they may be tried again."""

    files: tuple[FinishedFile, ...]
    ready: ReadyEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class Add:
    """One file as it will be in the log."""

    path: layout.TablePath
    size: int
    rows: int
    partition_values: Mapping[str, str | None]
    modification_time: int
    stats: str
    pipeline: str
    sequence: int
    outbox: layout.TablePath | None = None
    """Where the file waits until it is moved; None where it had its final name from the start."""

    @classmethod
    def of(
        cls,
        file: FinishedFile,
        stats: str,
        names: Mapping[str, str],
        ready: ReadyEntry | None = None,
    ) -> "Add":
        """Return a file as it will be in the log, of an entry or of another program.

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
class NotPromoted:
    """A promotion or retraction that a commit passes over, and why: all of it is done, or none."""

    entry: EntryName
    kind: Kind
    reasons: tuple[str, ...]
    mark: str
    """The name by which the log says that nothing of it was done."""
    before: int | None = None
    """What the log says of that name so far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Advance:
    """One pipeline's part in a commit: from a position, over its entries, to another."""

    before: Position
    entries: tuple[ReadyEntry, ...]

    @property
    def after(self) -> Position:
        """Return where the pipeline stands once the commit is made."""
        return self.entries[-1].position()


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignAdds:
    """The files of other programs in a commit."""

    taken: tuple[Candidate, ...]
    scan: int | None
    """How many such commits the log has. Each counts on: of two penguins one looks again."""
    scanned: int | None = None
    """The highest time in the names of the files that scans committed before."""
    removals: RemovalNote | None = None
    """What is known of the removals before the commit, for when their versions are gone."""

    @property
    def late(self) -> tuple[layout.TablePath, ...]:
        """Return those that a bare watermark would have lost."""
        return tuple(file.path for file in self.taken if file.late)

    def transactions(self) -> tuple[TransactionUpdate, ...]:
        """Return the transaction that counts such commits, and how far scans have come."""
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
        """Return the transactions of the files that `scanned` does not cover: one for each."""
        return tuple(file.transaction for file in self.taken if not file.is_covered)

    def metadata(self) -> dict[str, object]:
        """Return the commit's metadata about them, for readers of the log."""
        places = sorted(folder_and_name(file.path) for file in self.taken)
        return {
            "files": len(self.taken),
            "late": len(self.late),
            "scan": (self.scan or 0) + 1,
            "marks": dict(places),  # The highest name of each folder is its last.
            **({} if self.removals is None else {"removals": self.removals.document()}),
        }


@dataclass(slots=True, kw_only=True)
class CommitPlan:
    """One commit: what the table must be, what is added, how far each pipeline goes."""

    table: TableFacts
    """The table as the plan found it, or as it must be created."""
    after: TableFacts
    """The table as the entries' files need it."""
    changes: Changes = field(default_factory=Changes)
    adds: dict[str, Add] = field(default_factory=dict)
    """Files that are added, by path."""
    advances: tuple[Advance, ...] = ()
    holds: list[Hold] = field(default_factory=list)
    """Files that are set aside with this commit."""
    released: list[str] = field(default_factory=list)
    """The names of files that were set aside, and are among those that are added."""
    discarded: dict[str, HeldState | None] = field(default_factory=dict)
    """The names of files that are given up for good, each with what the log says of it so far."""
    removes: dict[str, FinishedFile] = field(default_factory=dict)
    """Files that are taken out of the table again, or that others take the place of, by path."""
    not_promoted: list[NotPromoted] = field(default_factory=list)
    """Promotions and retractions that are settled by leaving the table as it is."""
    left_out: int = 0
    """The rows of removed files that are not in those that take their places: they leave."""
    rearranges: bool = False
    """Whether no row changes: small files became fewer, and readers of changes see nothing."""
    moved: tuple[TransactionUpdate, ...] = ()
    """What else the commit moves."""
    note: Mapping[str, object] = field(default_factory=dict)
    """What else is said in the commit."""
    others: ForeignAdds | None = None
    """The files of other programs that are among those that are added."""
    supersedes: frozenset[str] = frozenset()
    """The names of files that this commit supersedes: it fails if one is still active."""
    replaces: bool = False
    """Whether the schema is replaced: that holds only while no other writer adds a version."""

    @property
    def rows(self) -> int:
        """Count the rows that the commit makes visible; those of a replaced file were before."""
        return sum(add.rows for add in self.adds.values()) - self.rewritten_rows

    @property
    def rewritten_rows(self) -> int:
        """Count the rows of removed files that are in others now."""
        if not self.adds:
            return 0
        return sum(file.record_count for file in self.removes.values()) - self.left_out

    @property
    def goes_by_paths(self) -> bool:
        """Whether files are added because the log did not name them when it was looked at.

        An entry's files are added because its transaction is not there; only where they come in the
        place of others, these must still be out of the table.
        """
        return self.others is not None or bool(self.moved or self.supersedes)

    def transaction_updates(self) -> tuple[TransactionUpdate, ...]:
        """Return what the commit moves besides pipelines: files that are, or were, set aside."""
        return (
            *self.moved,
            *(() if self.others is None else self.others.transactions()),
            *(held_update(hold.name, None, HeldState.HELD) for hold in self.holds),
            *(held_update(one.mark, one.before, HeldState.GONE) for one in self.not_promoted),
            *(held_update(name, HeldState.HELD, HeldState.RELEASED) for name in self.released),
            *(held_update(name, before, HeldState.GONE) for name, before in self.discarded.items()),
        )

    @property
    def entries(self) -> int:
        """Count the entries that the commit settles."""
        return sum(len(advance.entries) for advance in self.advances)

    def transactions(self) -> tuple[tuple[str, int], ...]:
        """Return the app transactions that make the commit count once."""
        return (
            *(pair for advance in self.advances for pair in advance.after.transactions()),
            *((update.app_id, update.after) for update in self.transaction_updates()),
            *((app_id, 1) for app_id in (self.others.app_ids() if self.others else ())),
        )

    def proof(self, version: int | None) -> tuple[tuple[str, int], ...]:
        """Return what the version after one says of removals: those that were read end with it."""
        note = self.others.removals if self.others is not None else None
        return note.transactions() if note and note.until == version and not self.removes else ()

    def current_transactions(self) -> tuple[tuple[str, int], ...]:
        """Return the current transactions, for a commit that advances none."""
        return tuple(pair for advance in self.advances for pair in advance.before.transactions())

    def settled(self) -> dict[str, dict[str, object]]:
        """Return which entries of which journals the commit settles."""
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
        told: dict[str, object] = {"entries": self.settled(), **self.note}
        names = {
            "held": [hold.name for hold in self.holds],
            "released": self.released,
            "discarded": list(self.discarded),
        }
        told |= {key: listed for key, listed in names.items() if listed}
        if self.rearranges:
            told["compacted"] = {"files": len(self.removes), "into": len(self.adds)}
        if self.rewritten_rows:
            told["rewritten"] = {"files": len(self.removes), "rows": self.rewritten_rows}
        if self.left_out:
            told["retracted"] = {"rows": self.left_out}
        if self.not_promoted:
            told["not_promoted"] = {
                f"{one.entry.pipeline}/{one.entry.sequence}": list(one.reasons)
                for one in self.not_promoted
            }
        if self.others is not None:
            told["others"] = self.others.metadata()
        return told


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
    """Those of them that only the attempt to commit them has shown."""
    retried: tuple[Releasable, ...] = ()
    """Held files that were tried again."""

    def is_unsettled(self, max_files: int) -> bool:
        """Whether held files must be tried again: a commit may fail, or be too full for some."""
        commit = self.commit
        return commit is not None and (
            bool(commit.released)
            or commit.rearranges
            or any(len(commit.adds) + len(unit.files) > max_files for unit in self.retried)
        )
