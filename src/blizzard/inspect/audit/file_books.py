"""Compare the data files of all journals with those of the log. Pure."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from blizzard.inspect.audit.expected import ExpectedFiles
from blizzard.inspect.audit.findings import (
    AbsentFile,
    Amount,
    Difference,
    FilePlace,
    FindingKind,
    Places,
    WaitingDataFile,
    disagreements,
    steps_of,
)
from blizzard.inspect.audit.journal_books import JournalBooks
from blizzard.inspect.audit.log_books import LogBooks
from lakebed.deltalog.lineage import BEFORE, Active
from lakebed.documents.entry import Entry
from lakebed.documents.pending_meta import HeldState
from lakebed.documents.records import FinishedFile
from lakebed.layout import (
    SCANNED_TRANSACTION,
    file_id,
    file_name,
    foreign_transaction,
    held_transaction,
)
from lakebed.listing.watermark import named_at
from lakebed.units import plural


@dataclass(slots=True)
class FileBooks:
    """The files that entries name, and where their rows are."""

    log: LogBooks
    places: Places = field(default_factory=Places)
    named: set[str] = field(default_factory=set)
    """Every file named in an entry."""
    waiting: list[WaitingDataFile] = field(default_factory=list)
    """The files of uncommitted entries."""
    _expected: ExpectedFiles = field(init=False)
    _without: set[tuple[str, str, int]] = field(default_factory=set)
    """Entries with missing transactions."""

    def __post_init__(self) -> None:
        """Create the expected files for the same log."""
        self._expected = ExpectedFiles(self.log)

    def take(self, entry: Entry, journal: JournalBooks) -> Iterator[Difference]:
        """Check the files of one entry against the log."""
        self._expected.begin(entry)
        # A replacement has rows of the same source files as the replaced file.
        for file in entry.data_files if entry.operation == "rewrite" else entry.files:
            self._expected.name(file, entry.pipeline)
        for file in entry.files:
            yield from self._name(file, entry)
            yield from self._look_up(file, entry, journal)
        again = entry.supersedes if journal.has_effect(entry) else entry.redone
        self.places.read_again(again)
        yield from self._take_steps(entry, journal)
        for path in entry.deleted:
            if path in self.log.active:
                message = f"entry {entry.sequence} has deleted {path}, which is in the table"
                yield Difference.of(entry, FindingKind.FILE_GIVEN_UP_ACTIVE, message, file=path)

    def _take_steps(self, entry: Entry, journal: JournalBooks) -> Iterator[Difference]:
        """Check what an entry does to other files, which must be done in full or not at all."""
        new = {file.filename: file for one in entry.rewrites for file in one.new}
        known = [file for path, file in new.items() if self._is_known(path)]
        for file in known:
            yield from self._name(file, entry)
        if not journal.is_committed(entry):
            self._waits(new.values(), entry)
            for file in known:
                yield from self._no_transaction(entry, file.filename)
            return
        has_effect, version = journal.has_effect(entry), journal.version_of(entry)
        done = [
            step
            for step in steps_of(entry, version)
            if (any(map(self._is_known, step.new)) if step.new else has_effect)
        ]
        if done or (entry.supersedes and has_effect):
            self._expected.take(entry, done, version)
        for step in done:
            if step.left_out:
                self.places.put(FilePlace.RETRACTED, step.left_out)
        for file in known:
            yield from self._look_up(file, entry, journal)
        if done and len(known) < len(new) and self.log.is_whole:
            lacking = next(path for path in new if not self._is_known(path))
            message = (
                f"{len(known)} of the {len(new)} files of entry {entry.sequence} were added to the "
                f"table; {lacking} was not"
            )
            yield Difference.of(entry, FindingKind.PROMOTION_HALF, message, file=lacking)

    def finish(self) -> Iterator[Difference]:
        """Yield differences beyond single entries: unnamed files and unexplained removals."""
        self.places.settle()
        self._expected.add_foreign(self._is_foreign_of_ours)
        taken_out = {step.old: step for step in self._expected.steps}
        superseded = self._expected.supersede(self.named)
        differences = [*self._expected.differences()]
        missing: dict[str, int] = {}
        for path, one in self._expected.absent.items():
            removed, step = self.log.removed.get(path, BEFORE), taken_out.get(path)
            if path in self.log.active:
                continue
            if removed != BEFORE and removed not in self.log.ours:
                self.places.put(FilePlace.REMOVED_BY_OTHERS, one.rows)
            elif step is not None:
                self.places.put(FilePlace.REPLACED, step.left, if_any=True)
                self.places.put(FilePlace.REMOVED_BY_OTHERS, step.deleted, if_any=True)
            elif path in superseded:
                self.places.put(FilePlace.GIVEN_UP, one.rows)
            elif removed != BEFORE:
                is_accepted = removed in self.log.applied
                self.places.put(FilePlace.GIVEN_UP if is_accepted else FilePlace.NOWHERE, one.rows)
                if removed not in self.log.repairs:
                    yield _removed(removed, path, one)
            else:
                missing[path] = one.rows
                self.places.put(FilePlace.UNKNOWN, one.rows)
        yield from self._missing(missing)
        yield from differences
        yield from self._unnamed()

    def _missing(self, missing: dict[str, int]) -> Iterator[Difference]:
        """Compare removals before the known history with what was added instead."""
        lost = sum(missing.values())
        back = self.unknown().rows + sum(
            rows for path, rows in self.log.old_rows.items() if path not in self.named
        )
        before = [one for one in self.log.accepted.values() if one.version < self.log.first]
        accepted = sum(one.rows for one in before)
        if lost > back and lost - back == accepted:
            self.log.applied |= {one.version for one in before}
        elif lost > back:
            but = f"; {plural(accepted, 'row')} of versions by then were accepted"
            yield Difference(
                kind=FindingKind.ROWS_MISSING,
                message=f"{plural(len(missing), 'file')} of committed entries with "
                f"{plural(lost, 'row')} {'was' if len(missing) == 1 else 'were'} removed "
                f"up to version {self.log.first - 1}, such as {min(missing)}, and what was "
                f"added in their place by then has {plural(back, 'row')}{but if before else ''}",
            )

    def unknown(self) -> Amount:
        """Count unnamed files from before the known history."""
        return self._of(lambda path, one: one.version == BEFORE and not self._is_adopted(path))

    def by_others(self) -> Amount:
        """Count the files of other writers."""
        return self._of(
            lambda path, one: (
                one.version != BEFORE
                and one.version not in self.log.ours
                and not self._is_adopted(path)
            )
        )

    def adopted(self) -> Amount:
        """Count other programs' files that penguin committed."""
        return self._of(lambda path, _one: self._is_adopted(path))

    def _of(self, is_meant: Callable[[str, Active], bool]) -> Amount:
        found = Amount()
        for path, one in self.log.active.items():
            if path not in self.named and is_meant(path, one):
                found = found.plus(one.visible)
        return found

    def _is_foreign_of_ours(self, path: str, one: Active) -> bool:
        """Whether penguin committed another program's file, or took it out by a repair."""
        if path in self.named:
            return False
        is_repaired = one.of_others and self.log.removed.get(path) in self.log.repairs
        return is_repaired or self._is_adopted(path)

    def _is_adopted(self, path: str) -> bool:
        """Whether penguin committed another program's file, singly or with its folder."""
        if foreign_transaction(path) in self.log.transactions:
            return True
        at, scanned = named_at(path), self.log.transactions.get(SCANNED_TRANSACTION)
        if at is not None and scanned is not None and at <= scanned:
            return True
        return path in self.log.adopted

    def _unnamed(self) -> Iterator[Difference]:
        """Yield unnamed files in penguin's commits, and copies of named ones."""
        unnamed = [path for path in self.log.active if path not in self.named]
        ids = {name for path in unnamed if (name := file_id(path)) is not None}
        twins = {name: path for path in self.named if (name := file_id(path)) in ids}
        for path in unnamed:
            one = self.log.active[path]
            twin = twins.get(file_id(path) or "")
            version = None if one.version == BEFORE else one.version
            if twin is not None:
                yield Difference(
                    kind=FindingKind.FILE_COMMITTED_TWICE,
                    message=f"{path} is in the table, and so is, or was, {twin} of the same name",
                    version=version,
                    file=path,
                )
            elif one.version in self.log.ours and not self._is_adopted(path):
                yield Difference(
                    kind=FindingKind.FILE_UNNAMED,
                    message=f"version {version}, which settles {self.log.ours[one.version]}, "
                    f"has added {path} with {plural(one.rows or 0, 'row')}, and nothing names it",
                    version=version,
                    file=path,
                )

    def _name(self, file: FinishedFile, entry: Entry) -> Iterator[Difference]:
        path = file.filename
        if path in self.named:
            message = f"entry {entry.sequence} names {path}, which an earlier entry names"
            yield Difference.of(entry, FindingKind.FILE_NAMED_TWICE, message, file=path)
        # Share the log's string, to save memory.
        one = self.log.active.get(path)
        self.named.add(one.written if one and one.written == path else path)

    def _look_up(
        self, file: FinishedFile, entry: Entry, journal: JournalBooks
    ) -> Iterator[Difference]:
        path, rows = file.filename, file.record_count
        active = self.log.active.get(path)
        fate = self.log.transactions.get(held_transaction(file_name(path)))
        if not journal.is_committed(entry):
            self.places.put(FilePlace.WAITING, rows)
            self._waits([file], entry)
            if self._is_known(path):
                yield from self._no_transaction(entry, path)
        elif fate in (HeldState.HELD, HeldState.GONE) and not self._is_put_back(path):
            yield from self._withheld(file, entry, is_held=fate == HeldState.HELD)
        elif journal.is_forgotten(entry) and not self._is_known(path):
            self.places.put(FilePlace.FORGOTTEN, rows)
        elif self.log.is_whole and not self._is_known(path):
            self.places.put(FilePlace.NOWHERE, rows)
            message = (
                f"entry {entry.sequence} is committed, but no version has its file {path} with "
                f"{plural(rows, 'row')}"
            )
            yield Difference.of(entry, FindingKind.FILE_NOT_COMMITTED, message, file=path)
        else:
            self._expected.add(file, entry)
            if active is not None:
                self.places.put(FilePlace.IN_TABLE, rows - active.deleted)
                self.places.put(FilePlace.REMOVED_BY_OTHERS, active.deleted, if_any=True)
                for kind, what in disagreements(file, active, self.log.shape_at(active.version)):
                    message = f"entry {entry.sequence} says of {path}: {what}"
                    yield Difference.of(entry, kind, message, file=path)

    def _is_put_back(self, path: str) -> bool:
        """Whether a file is in the table again that had left it, as a repair and a RESTORE do.

        If its sources were read again, the entry that supersedes it accounts for the rows.
        """
        return path in self.log.active and path in self.log.lineage.past

    def _withheld(self, file: FinishedFile, entry: Entry, *, is_held: bool) -> Iterator[Difference]:
        """Count a file that is held or given up by the log."""
        path, removed = file.filename, self.log.removed.get(file.filename, BEFORE)
        name, repaired = file_name(path), removed in self.log.repairs
        self.places.put_withheld(name, file.record_count, is_held=is_held, is_repaired=repaired)
        self._expected.give_up(path, file.record_count)
        if path in self.log.active:
            state = "is held" if is_held else "was given up"
            message = f"{path} of entry {entry.sequence} {state}, and is in the table"
            yield Difference.of(entry, FindingKind.FILE_GIVEN_UP_ACTIVE, message, file=path)

    def _no_transaction(self, entry: Entry, path: str) -> Iterator[Difference]:
        """Report once that an entry's files are in the log without its transaction."""
        name = (entry.pipeline, entry.journal, entry.sequence)
        if name not in self._without:
            self._without.add(name)
            message = (
                f"the log has {path} of entry {entry.sequence}, but its transactions do not say "
                "that the entry is committed"
            )
            yield Difference.of(entry, FindingKind.TRANSACTION_MISSING, message, file=path)

    def _waits(self, files: Iterable[FinishedFile], entry: Entry) -> None:
        self.waiting += [WaitingDataFile(entry.pipeline, entry.sequence, file) for file in files]

    def _is_known(self, path: str) -> bool:
        return path in self.log.active or path in self.log.removed


def _removed(version: int, path: str, one: AbsentFile) -> Difference:
    """Report a file that penguin removed without an entry."""
    of = "of another program" if one.entry is None else f"of entry {one.entry}"
    return Difference(
        kind=FindingKind.FILE_REMOVED,
        message=f"version {version} of penguin's removed {path} {of} "
        f"with {plural(one.rows, 'row')}, and no entry says why",
        pipeline=one.pipeline,
        entry=one.entry,
        version=version,
        file=path,
    )
