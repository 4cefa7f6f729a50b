"""Fold a Delta log version by version: files, rows, transactions. Pure.

Only what the comparison with journals needs is kept: a few numbers per active file, and the version
that removed each other file.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from blizzard.inspect.audit.findings import Amount, Difference, FindingKind, OtherCommit
from lakebed.deltalog.actions import FileAction, LogActions, lines_of
from lakebed.deltalog.delta_types import TableFacts, names_in_log
from lakebed.deltalog.lineage import BEFORE, RESTORE, Active, Lineage, written_as
from lakebed.documents.losses import Accepted
from lakebed.layout import (
    ADOPTION_STEP,
    digest_transaction,
    journal_transaction,
    log_version,
)
from lakebed.units import entries_from, plural

REPAIR = "FSCK"

JournalName = tuple[str, str]
"""A pipeline and the id of one of its journals."""


@dataclass(frozen=True, slots=True)
class SettledByVersion:
    """The entries of a journal that one version settled."""

    version: int
    first: int
    last: int
    digest: int | None
    """The digest number of the last entry in the version."""
    forgotten: tuple[int, int] | None
    """The entries whose files are left out by an operator's order."""


@dataclass(slots=True)
class LogBooks:
    """The state of the log up to the last version taken."""

    first: int = 0
    """The first version read from its own commit file."""
    version: int | None = None
    lineage: Lineage = field(default_factory=Lineage)
    """The data files, and which hold the rows of which earlier ones."""
    old_rows: dict[str, int] = field(default_factory=dict)
    """Rows of files added before the known history."""
    transactions: dict[str, int] = field(default_factory=dict)
    settled: dict[JournalName, list[SettledByVersion]] = field(default_factory=dict)
    ours: dict[int, str] = field(default_factory=dict)
    """A description of the entries settled by each file-changing version of penguin."""
    repairs: dict[int, str | None] = field(default_factory=dict)
    """The versions that removed missing files, with their writers."""
    adopted: set[str] = field(default_factory=set)
    """The files of adopted folders."""
    shapes: list[TableFacts] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)
    accepted: Mapping[int, Accepted] = field(default_factory=dict)
    """Accepted losses by version."""
    applied: set[int] = field(default_factory=set)
    """The accepted versions that match a loss."""
    losses: list[Accepted] = field(default_factory=list)
    """Unaccepted losses by other writers."""
    commits: dict[int, OtherCommit] = field(default_factory=dict)
    """The versions of other writers."""

    @property
    def active(self) -> dict[str, Active]:
        """The files in the table by name."""
        return self.lineage.active

    @property
    def removed(self) -> dict[str, int]:
        """The version that removed each file that is no longer in the table."""
        return self.lineage.removed

    def accepts(self, loss: Accepted, given_up: int = 0) -> bool:
        """Whether an operator accepted a loss; otherwise record it.

        Entries gave up so many of its rows; some of them may have been accepted before.
        """
        document = self.accepted.get(loss.version)
        files, rows = (document.files, document.rows) if document else ((), -1)
        if {*loss.files} <= {*files} and loss.rows <= rows <= loss.rows + given_up:
            self.applied.add(loss.version)
            return True
        self.losses.append(loss)
        return False

    def adds_rows(self, version: int) -> bool:
        """Whether a version is in effect and no RESTORE, which returns to an earlier state."""
        return version not in self.lineage.restores and self.lineage.in_effect(version)

    @property
    def is_whole(self) -> bool:
        """Whether the table's history is complete."""
        return self.first == 0

    def position(self, journal: JournalName) -> int | None:
        """Return the last committed entry of a journal."""
        return self.transactions.get(journal_transaction(*journal))

    def settling(self, journal: JournalName, entry: int) -> SettledByVersion | None:
        """Return how a version settled an entry; None if not in the known history."""
        settled = self.settled.get(journal, [])
        place = bisect_left(settled, entry, key=lambda one: one.last)
        found = settled[place] if place < len(settled) else None
        return found if found is not None and found.first <= entry else None

    def shape_at(self, version: int) -> TableFacts | None:
        """Return the table's metadata as of a version; None if unknown."""
        found = [one for one in self.shapes if one.version is not None and one.version <= version]
        return found[-1] if found else None

    def totals(self) -> Amount:
        """Count what is in the table."""
        rows = sum(one.visible or 0 for one in self.active.values())
        return Amount(files=len(self.active), rows=rows)

    def take(self, found: LogActions) -> None:
        """Take the next version, or a part of the first checkpoint."""
        self.version = found.version
        if found.metadata is not None:
            with lines_of(log_version(found.version)):
                facts = TableFacts.of(found.version, found.metadata)
                names_in_log(facts)  # Fields without a name are refused here.
            self.shapes.append(facts)
        if found.is_checkpoint:
            self.transactions |= found.transactions
            self.lineage.take(found)
            return
        if found.info.is_ours:
            self._take_ours(found)
        self.transactions |= found.transactions
        self._take_files(found)

    def _take_ours(self, found: LogActions) -> None:
        settled = list(_settled(found))
        for journal, one in settled:
            self._check_turn(found, one, journal)
            self.settled.setdefault(journal, []).append(one)
        if found.info.operation == REPAIR:
            self.repairs[found.version] = found.info.writer
        if found.info.note.get("step") == ADOPTION_STEP:
            self.adopted.update(one.path for one in found.adds)
        if found.files:
            ranges = (
                f"{entries_from(one.first, one.last)} of {name}" for (name, _id), one in settled
            )
            self.ours[found.version] = " and ".join(ranges) or "no entry"

    def _check_turn(self, found: LogActions, one: SettledByVersion, journal: JournalName) -> None:
        """Check that entries are committed in order, once each, with their transactions."""
        pipeline = journal[0]
        settled = self.settled.get(journal)
        last = settled[-1].last if settled else self.position(journal) or 0
        transaction = found.transactions.get(journal_transaction(*journal))

        def differs(kind: FindingKind, shown: int, why: str, entry: int | None = None) -> None:
            self.differences.append(
                Difference(
                    kind=kind,
                    message=f"version {found.version} settles entry {shown} of {pipeline}{why}",
                    pipeline=pipeline,
                    entry=shown if entry is None else entry,
                    version=found.version,
                )
            )

        if transaction is None:
            differs(
                FindingKind.TRANSACTION_MISSING, one.last, ", but does not have its transaction"
            )
        elif transaction != one.last:
            differs(
                FindingKind.TRANSACTION_DIFFERS,
                one.last,
                f", but its transaction says {transaction}",
            )
        if one.first <= last:
            again = f" again: entries up to {last} were settled before"
            differs(FindingKind.ENTRY_COMMITTED_TWICE, one.first, again)
        elif one.first > last + 1:
            before = f", but the last one before was {last}"
            differs(FindingKind.ENTRY_SKIPPED, one.first, before, last + 1)

    def _take_files(self, found: LogActions) -> None:
        out = {one.path for one in found.removes}
        for add in found.adds:
            if found.info.operation != RESTORE and add.path not in out:
                self._check_new(add, found)
        gone = self.lineage.take(found)
        for name, one in gone.items():
            if one.version == BEFORE and name not in self.active:
                self.old_rows[name] = one.visible or 0
        if not found.info.is_ours:
            self._take_other(found, gone)

    def _check_new(self, add: FileAction, found: LogActions) -> None:
        """Report a file whose rows an earlier version already added."""
        there, removed = self.active.get(add.path), self.removed.get(add.path)
        again = there is not None and (found.info.is_ours or add.data_change)
        if there is not None and there.written != written_as(add):
            again = True
        if removed is not None:
            again = not self._is_put_back(add.path, removed, replayed=_replays(found))
        if again:
            first = "an earlier version" if there is None else _by(there.version)
            out = f" and version {removed} removed" if removed not in (None, BEFORE) else ""
            self.differences.append(
                Difference(
                    kind=FindingKind.FILE_COMMITTED_TWICE,
                    message=f"version {found.version} adds {add.path}, which {first} has added "
                    f"before{out}",
                    file=add.path,
                    version=found.version,
                )
            )

    def _is_put_back(self, name: str, removed: int, *, replayed: bool) -> bool:
        """Whether another writer removed a file whose rows are in no other file."""
        if not replayed and (removed == BEFORE or removed in self.ours):
            return False
        return removed in self.lineage.restores or not self.lineage.forward(name).active

    def _take_other(self, found: LogActions, gone: dict[str, Active]) -> None:
        """Record a version of another writer."""
        version, operation = found.version, found.info.operation
        self.commits[version] = OtherCommit(
            version=version, operation=operation, writer=found.info.writer
        )
        added = _sum([one.visible_rows for one in found.adds])
        removed = _sum([one.visible for one in gone.values()])
        if None not in (added, removed) and not found.changes_data and added != removed:
            self.differences.append(
                Difference(
                    kind=FindingKind.ROWS_CHANGED,
                    message=f"version {version} ({operation}) says that it changes no data, but "
                    f"removes {plural(removed or 0, 'row')} and adds {added}",
                    version=version,
                )
            )


def _sum(counts: list[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _by(version: int) -> str:
    return "an earlier version" if version == BEFORE else f"version {version}"


def _settled(found: LogActions) -> Iterator[tuple[JournalName, SettledByVersion]]:
    """Yield the entries that a commit of penguin settles, by journal."""
    for pipeline, settled in found.info.entries:
        match settled:
            case {"journal": str(journal), "first": int(first), "last": int(last)}:
                forgotten = found.info.range_of("forgotten", pipeline)
                remembered = found.info.range_of("remembered", pipeline)
                first = min([first, *(one[0] for one in (forgotten, remembered) if one)])
                digest = found.transactions.get(digest_transaction(pipeline, journal))
                one = SettledByVersion(found.version, first, last, digest, forgotten)
                yield (pipeline, journal), one


def _replays(found: LogActions) -> bool:
    """Whether a commit of penguin restores files that a RESTORE took out."""
    match found.info.note.get("replayed"):
        case {"restore": int()}:
            return True
    return False
