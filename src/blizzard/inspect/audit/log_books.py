"""What a Delta log adds up to, version by version: files, rows, transactions. Pure.

Only what is needed to compare it with the journals is kept: of each file in the table a few
numbers, of each removed one the version that removed it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from blizzard.inspect.audit.findings import Amount, Difference, Kind, Loss, OtherCommit
from lakebed.documents.accepted import Accepted
from lakebed.documents.log_version import (
    LoggedFile,
    LogVersion,
    PartitionValues,
    SettledEntries,
    TableShape,
)
from lakebed.layout import digest_transaction, journal_transaction
from lakebed.units import plural

RESTORE = "RESTORE"
REPAIR = "FSCK"
BEFORE = -1
"""Stands for a version that is no longer in the log."""
HELD, GONE = 0, 2
"""What the log says of files that were set aside, and of entries without effect."""

JournalName = tuple[str, str]
"""A pipeline and the id of one of its journals."""


@dataclass(frozen=True, slots=True)
class Active:
    """A file that is in the table."""

    written: str
    size: int
    rows: int | None
    deleted: int
    values: PartitionValues
    version: int
    """The one that added it."""
    of_others: bool
    """Whether its rows are another writer's, and never were in any other file."""

    @property
    def visible(self) -> int | None:
        """Return how many rows readers see."""
        return None if self.rows is None else self.rows - self.deleted


@dataclass(frozen=True, slots=True)
class Settled:
    """Entries that one version settled, and the digest number that it keeps of the last one."""

    version: int
    first: int
    last: int
    digest: int | None
    forgotten: tuple[int, int] | None


@dataclass(slots=True)
class LogBooks:
    """What the log says, up to the version that was taken last."""

    first: int = 0
    """The first version that is read by itself."""
    version: int | None = None
    active: dict[str, Active] = field(default_factory=dict)
    removed: dict[str, int] = field(default_factory=dict)
    """The version that removed each file that is not in the table any more."""
    old_rows: dict[str, int] = field(default_factory=dict)
    """The rows of those of them that were added before the history begins."""
    transactions: dict[str, int] = field(default_factory=dict)
    settled: dict[JournalName, list[Settled]] = field(default_factory=dict)
    ours: dict[int, str] = field(default_factory=dict)
    """What each version of penguin's settles that adds or removes files, in words."""
    repairs: dict[int, str | None] = field(default_factory=dict)
    """The versions by which penguin took missing files out, with what it calls itself there."""
    adoptions: set[int] = field(default_factory=set)
    """The versions that made a table of files that were there already."""
    others: list[OtherCommit] = field(default_factory=list)
    shapes: list[tuple[int, TableShape]] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)
    accepted: Mapping[int, Accepted] = field(default_factory=dict)
    """What an operator has accepted, by its version."""
    applied: set[int] = field(default_factory=set)
    """Those of them that say what is missing."""
    losses: list[Loss] = field(default_factory=list)
    """Rows that other writers took away and nobody has accepted."""
    _restores: set[int] = field(default_factory=set)
    _lost: dict[int, int] = field(default_factory=dict)
    """The rows that each version of another writer, or a repair, took away."""
    _lost_files: dict[int, tuple[str, ...]] = field(default_factory=dict)
    """The files whose rows these were."""
    _values: dict[PartitionValues, PartitionValues] = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        """Whether all of the table's history is known."""
        return self.first == 0

    def position(self, journal: JournalName) -> int | None:
        """Return the last entry of a journal that the log says is committed."""
        return self.transactions.get(journal_transaction(*journal))

    def shape_at(self, version: int) -> TableShape | None:
        """Return what the table was when a version was committed; None where that is unknown."""
        found = [shape for since, shape in self.shapes if since <= version]
        return found[-1] if found else None

    def totals(self) -> Amount:
        """Count what is in the table."""
        rows = sum(one.visible or 0 for one in self.active.values())
        return Amount(files=len(self.active), rows=rows)

    def take(self, found: LogVersion) -> None:
        """Go on by a version, or take a part of the checkpoint that the history begins with."""
        self.version = found.version
        if found.shape is not None:
            self.shapes.append((found.version, found.shape))
        if found.is_checkpoint:
            self.transactions |= found.transactions
            for one in found.removes:
                self.removed[one.name] = BEFORE
            for add in found.adds:
                self.removed.pop(add.name, None)
                self.active[add.name] = self._active(add, BEFORE, of_others=False)
            return
        if found.is_ours:
            self._take_ours(found)
        self.transactions |= found.transactions
        self._take_files(found)

    def finish(self, ordered: int) -> None:
        """Report what other writers took away and nobody put back.

        So many rows had to be deleted: those of files that were given up after they were rewritten.
        """
        self._bring_back(ordered)
        commits = {one.version: one for one in self.others}
        for version, rows in self._lost.items():
            if rows <= 0:
                continue
            commit = commits.get(version)
            loss = Loss(
                version=version,
                operation=REPAIR if commit is None else commit.operation,
                writer=self.repairs[version] if commit is None else commit.writer,
                both_sides=None if commit is None else _both_sides(commit),
                rows=rows,
                files=self._lost_files[version],
            )
            document = self.accepted.get(version)
            if loss.is_accepted_by(document):
                self.applied.add(version)
                continue
            self.losses.append(loss)
            instead = "" if document is None else f", but {plural(document.rows, 'row')} "
            if document is not None:
                instead += f"of {plural(len(document.files), 'file')} were accepted"
            self._differs(Kind.ROWS_REMOVED, f"{loss.message}{instead}", version=version)

    def _take_ours(self, found: LogVersion) -> None:
        for one in found.settles:
            journal = (one.pipeline, one.journal)
            self._check_turn(found, one, journal)
            digest = found.transactions.get(digest_transaction(*journal))
            self.settled.setdefault(journal, []).append(
                Settled(found.version, one.first, one.last, digest, one.forgotten)
            )
        if found.operation == REPAIR:
            self.repairs[found.version] = found.writer
        if found.adopts:
            self.adoptions.add(found.version)
        if found.adds or found.removes:
            told = (f"{_entries(one)} of {one.pipeline}" for one in found.settles)
            self.ours[found.version] = " and ".join(told) or "no entry"

    def _check_turn(self, found: LogVersion, one: SettledEntries, journal: JournalName) -> None:
        """Check that entries are committed in their order, each once, with their transactions."""
        before = self.settled.get(journal)
        last = before[-1].last if before else self.position(journal) or 0
        told = found.transactions.get(journal_transaction(*journal))
        if told is None:
            self._differs(
                Kind.TRANSACTION_MISSING,
                f"version {found.version} settles entry {one.last} of {one.pipeline}, but does "
                "not have its transaction",
                pipeline=one.pipeline,
                entry=one.last,
                version=found.version,
            )
        elif told != one.last:
            self._differs(
                Kind.TRANSACTION_DIFFERS,
                f"version {found.version} settles entry {one.last} of {one.pipeline}, but its "
                f"transaction says {told}",
                pipeline=one.pipeline,
                entry=one.last,
                version=found.version,
            )
        if one.first <= last:
            self._differs(
                Kind.ENTRY_COMMITTED_TWICE,
                f"version {found.version} settles entry {one.first} of {one.pipeline} again: "
                f"entries up to {last} were settled before",
                pipeline=one.pipeline,
                entry=one.first,
                version=found.version,
            )
        elif one.first > last + 1:
            self._differs(
                Kind.ENTRY_PASSED_OVER,
                f"version {found.version} settles entry {one.first} of {one.pipeline}, but the "
                f"last one before was {last}",
                pipeline=one.pipeline,
                entry=last + 1,
                version=found.version,
            )

    def _take_files(self, found: LogVersion) -> None:
        if found.operation == RESTORE:
            self._restores.add(found.version)
        gone = self._take_out(found)
        # Rows that were in no other file before are another writer's own.
        theirs = all(one.of_others for one in gone.values())
        for add in found.adds:
            if found.operation != RESTORE and not self._is_put_back(add, found.replays):
                self._check_new(add, found)
            self.removed.pop(add.name, None)
            of_others = theirs and not found.is_ours and (add.data_change or bool(found.removes))
            before = self.active.get(add.name)
            if before is not None and before.written == add.written:
                gone[add.name] = before  # In its own place, say with other statistics.
                of_others = before.of_others
            self.active[add.name] = self._active(add, found.version, of_others=of_others)
        if not found.is_ours:
            self._take_other(found, gone)
        elif found.version in self.repairs:
            self._take_repair(found.version, gone)

    def _take_repair(self, version: int, gone: dict[str, Active]) -> None:
        """Enter the rows of journals that a repair took out in files of other writers.

        Such a file holds what was in others before, say after an OPTIMIZE; no journal names it, so
        nothing else misses them.
        """
        rewritten = {
            name: one.visible or 0
            for name, one in gone.items()
            if not one.of_others and one.version != BEFORE and one.version not in self.ours
        }
        if any(rewritten.values()):
            self._lost[version] = sum(rewritten.values())
            self._lost_files[version] = tuple(sorted(rewritten))

    def _take_out(self, found: LogVersion) -> dict[str, Active]:
        """Take out what a version removes; return what of it was in the table."""
        gone: dict[str, Active] = {}
        for one in found.removes:
            before = self.active.pop(one.name, None)
            if before is not None:
                gone[one.name] = before
                if before.version == BEFORE:
                    self.old_rows[one.name] = before.visible or 0
            self.removed[one.name] = found.version
        return gone

    def _is_put_back(self, add: LoggedFile, replays: int | None) -> bool:
        """Whether a file comes back whose rows a version took away; they are there again then.

        A RESTORE has also taken the rows of files that were compacted before it.
        """
        by = self.removed.get(add.name, BEFORE) if replays is None else replays
        if not add.rows or self._lost.get(by, 0) < add.rows:
            return False
        self._lost[by] -= add.rows
        return True

    def _check_new(self, add: LoggedFile, found: LogVersion) -> None:
        """Report a file whose rows are, or were, in the table by an earlier version."""
        there, removed = self.active.get(add.name), self.removed.get(add.name)
        again = there is not None and (found.is_ours or add.data_change)
        if there is not None and there.written != add.written:
            again = True
        if removed is not None and removed != found.version:
            again = found.replays is None and removed not in self._restores
        if again:
            first = "an earlier version" if there is None else _by(there.version)
            self._differs(
                Kind.FILE_COMMITTED_TWICE,
                f"version {found.version} adds {add.name}, which {first} has added before"
                + (f" and version {removed} removed" if removed not in (None, BEFORE) else ""),
                file=add.name,
                version=found.version,
            )

    def _take_other(self, found: LogVersion, gone: dict[str, Active]) -> None:
        """Enter a version of another writer, and the rows that it took away."""
        told = _other(found, gone)
        self.others.append(told)
        added, removed = told.rows_added, told.rows_removed
        if added is None or removed is None:
            return
        if not told.changes_data and added != removed:
            self._differs(
                Kind.ROWS_CHANGED,
                f"version {told.version} ({told.operation}) says that it changes no data, but "
                f"removes {plural(removed, 'row')} and adds {added}",
                version=told.version,
            )
        if told.changes_data:
            theirs = sum(one.visible or 0 for one in gone.values() if one.of_others)
            lost = removed if found.overwrites else removed - added
            if lost > 0:
                self._lost[told.version] = min(lost, removed - theirs)
                self._lost_files[told.version] = tuple(sorted(gone))
            elif found.operation == RESTORE:
                self._bring_back(-lost)

    def _bring_back(self, rows: int) -> None:
        """Take rows that a RESTORE has brought back off what was taken away last."""
        for version in sorted(self._lost, reverse=True):
            back = min(rows, self._lost[version])
            self._lost[version] -= back
            rows -= back

    def _active(self, add: LoggedFile, version: int, *, of_others: bool) -> Active:
        # Files of one partition share its values.
        values = self._values.setdefault(add.partition_values, add.partition_values)
        written = add.name if add.written == add.name else add.written
        return Active(written, add.size, add.rows, add.deleted, values, version, of_others)

    def _differs(
        self,
        kind: Kind,
        message: str,
        *,
        version: int,
        pipeline: str | None = None,
        entry: int | None = None,
        file: str | None = None,
    ) -> None:
        self.differences.append(
            Difference(
                kind=kind,
                message=message,
                version=version,
                pipeline=pipeline,
                entry=entry,
                file=file,
            )
        )


def _both_sides(commit: OtherCommit) -> tuple[int, int] | None:
    """Return the rows that a RESTORE took out and brought back; of others the sum says enough."""
    out, back = commit.rows_removed, commit.rows_added
    if commit.operation != RESTORE or out is None or back is None:
        return None
    return out, back


def _other(found: LogVersion, gone: dict[str, Active]) -> OtherCommit:
    return OtherCommit(
        version=found.version,
        operation=found.operation,
        writer=found.writer,
        files_added=len(found.adds),
        files_removed=len(found.removes),
        rows_added=_sum([None if a.rows is None else a.rows - a.deleted for a in found.adds]),
        rows_removed=_sum([one.visible for one in gone.values()]),
        changes_data=any(one.data_change for one in found.adds)
        or any(one.data_change for one in found.removes),
    )


def _sum(counts: list[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _by(version: int) -> str:
    return "an earlier version" if version == BEFORE else f"version {version}"


def _entries(one: SettledEntries) -> str:
    return f"entry {one.last}" if one.first == one.last else f"entries {one.first} to {one.last}"
