"""The data files of all journals beside those of the log: each is where its entry says. Pure."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from blizzard.inspect.audit.expected import ExpectedFiles, superseded_paths
from blizzard.inspect.audit.findings import (
    Amount,
    Difference,
    Kind,
    Loss,
    Place,
    Places,
    WaitingDataFile,
)
from blizzard.inspect.audit.journal_books import JournalBooks
from blizzard.inspect.audit.log_books import GONE, HELD, REPAIR, LogBooks
from blizzard.inspect.audit.shapes import disagreements, why_not_held
from lakebed.deltalog.lineage import BEFORE, Active
from lakebed.documents.data_file import FinishedFile, Replacement
from lakebed.documents.entry import Entry
from lakebed.documents.log_version import TableShape
from lakebed.layout import (
    SCANNED_TRANSACTION,
    file_id,
    file_name,
    held_transaction,
    stranger_transaction,
)
from lakebed.listing.watermark import named_at
from lakebed.units import plural


@dataclass(slots=True)
class FileBooks:
    """Which files entries name, and where their rows are."""

    log: LogBooks
    places: Places = field(default_factory=Places)
    named: dict[str, int] = field(default_factory=dict)
    """Every file that an entry names, with the number of its journal."""
    journals: list[tuple[str, str]] = field(default_factory=list)
    """The pipeline and the id of each journal, by its number."""
    waiting: list[WaitingDataFile] = field(default_factory=list)
    """The files of entries that are not committed."""
    _missing: dict[str, int] = field(default_factory=dict)
    """The rows of files of which the log no longer says what became of them."""
    _taken_out: dict[str, tuple[str, int, int]] = field(default_factory=dict)
    """The files that penguin removed and no entry has explained so far: pipeline, entry, rows."""
    _left_of: dict[str, tuple[int, int]] = field(default_factory=dict)
    """The rows that are left, and those deleted in place, of files which an entry replaced before
    their own was read: it may be of another pipeline's journal."""
    _expected: ExpectedFiles = field(init=False)
    _shapes: set[tuple[str, int]] = field(default_factory=set)
    """The schemas that were compared, as text, with the number of the table's."""
    _without: set[tuple[str, str, int]] = field(default_factory=set)
    """The entries whose transactions are missing."""

    def __post_init__(self) -> None:
        """Begin to expect files, to be compared with the same log."""
        self._expected = ExpectedFiles(self.log)

    def begin(self, journal: JournalBooks) -> None:
        """Go on with another journal."""
        self.journals.append(journal.name)

    def take(self, entry: Entry, journal: JournalBooks) -> Iterator[Difference]:
        """Look up the files of one entry; yield what is wrong with them."""
        for file in entry.files:
            yield from self._name(file, entry)
            yield from self._look_up(file, entry, journal)
        if entry.replaced:
            yield from self._replaced(entry, journal)
        self.places.read_again(entry.redone)
        if entry.merged:
            yield from self._merged(entry, journal)
        if entry.supersedes and not entry.replaced and journal.has_effect(entry):
            self._expected.take(entry, (), journal.version_of(entry))
        for path in entry.deleted:
            if path in self.log.active:
                yield self._differs(
                    Kind.FILE_GIVEN_UP_ACTIVE,
                    f"entry {entry.sequence} has deleted {path}, which is in the table",
                    entry,
                    path,
                )
        yield from self._check_shape(entry)

    def finish(self) -> Iterator[Difference]:
        """Yield what no single entry tells: files that nothing names, rows that nobody removed."""
        self.places.settle()
        self._supersede()
        accepted_losses = self._accepted_losses()
        for path, (pipeline, sequence, rows) in self._taken_out.items():
            version = self.log.removed[path]
            if version in accepted_losses:
                self.places.put(Place.GIVEN_UP, rows)
                continue
            self.places.put(Place.NOWHERE, rows)
            yield Difference(
                kind=Kind.FILE_REMOVED,
                message=f"version {version} of penguin's removed {path} of entry {sequence} with "
                f"{plural(rows, 'row')}, and no entry says why",
                pipeline=pipeline,
                entry=sequence,
                version=version,
                file=path,
            )
        for rows in self._missing.values():
            self.places.put(Place.UNKNOWN, rows)
        lost = sum(self._missing.values())
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
                kind=Kind.ROWS_MISSING,
                message=f"{plural(len(self._missing), 'file')} of committed entries with "
                f"{plural(lost, 'row')} {'was' if len(self._missing) == 1 else 'were'} removed "
                f"up to version {self.log.first - 1}, such as {min(self._missing)}, and what was "
                f"added in their place by then has {plural(back, 'row')}{but if before else ''}",
            )
        yield from self._expected.differences()
        yield from self._unnamed()

    def _supersede(self) -> None:
        """Count what was superseded while it was out of the table."""
        paths = superseded_paths(self._expected.superseded, self.named)
        self._expected.supersede(paths)
        for path in paths.values():
            rows = self._missing.pop(path, None)
            if (taken := self._taken_out.pop(path, None)) is not None:
                rows = taken[2]
            if rows is not None:
                self.places.put(Place.GIVEN_UP, rows)

    def _accepted_losses(self) -> set[int]:
        """Return the repairs whose loss of rows was accepted; name the others as to be accepted."""
        files: dict[int, list[str]] = {}
        for path in self._taken_out:
            files.setdefault(self.log.removed[path], []).append(path)
        found = set()
        for version in files.keys() & self.log.repairs.keys():
            loss = Loss(
                version=version,
                operation=REPAIR,
                writer=self.log.repairs[version],
                rows=sum(self._taken_out[path][2] for path in files[version]),
                files=tuple(sorted(files[version])),
            )
            if loss.is_accepted_by(self.log.accepted.get(version)):
                found.add(version)
            else:
                self.log.losses.append(loss)
        self.log.applied |= found
        return found

    def unknown(self) -> Amount:
        """Count the files that versions before the history added, and that nothing names."""
        return self._of(lambda path, one: one.version == BEFORE and not self._is_adopted(path))

    def by_others(self) -> Amount:
        """Count the files that other writers have added."""
        return self._of(
            lambda path, one: (
                one.version != BEFORE
                and one.version not in self.log.ours
                and not self._is_adopted(path)
            )
        )

    def adopted(self) -> Amount:
        """Count the files of other programs that penguin has committed."""
        return self._of(lambda path, _one: self._is_adopted(path))

    def _of(self, is_meant: Callable[[str, Active], bool]) -> Amount:
        found = Amount()
        for path, one in self.log.active.items():
            if path not in self.named and is_meant(path, one):
                found = found.plus(one.visible)
        return found

    def _is_adopted(self, path: str) -> bool:
        """Whether penguin has committed a file of another program, by itself or with its folder."""
        if stranger_transaction(path) in self.log.transactions:
            return True
        at, scanned = named_at(path), self.log.transactions.get(SCANNED_TRANSACTION)
        if at is not None and scanned is not None and at <= scanned:
            return True
        one = self.log.active.get(path)
        return one is not None and one.version in self.log.adoptions

    def _unnamed(self) -> Iterator[Difference]:
        """Yield the files of penguin's commits that nothing names, and copies of named ones."""
        unnamed = [path for path in self.log.active if path not in self.named]
        ids = {name for path in unnamed if (name := file_id(path)) is not None}
        twins = {name: path for path in self.named if (name := file_id(path)) in ids}
        for path in unnamed:
            one = self.log.active[path]
            twin = twins.get(file_id(path) or "")
            version = None if one.version == BEFORE else one.version
            if twin is not None:
                yield Difference(
                    kind=Kind.FILE_COMMITTED_TWICE,
                    message=f"{path} is in the table, and so is, or was, {twin} of the same name",
                    version=version,
                    file=path,
                )
            elif one.version in self.log.ours and not self._is_adopted(path):
                yield Difference(
                    kind=Kind.FILE_UNNAMED,
                    message=f"version {version}, which settles {self.log.ours[one.version]}, "
                    f"has added {path} with {plural(one.rows or 0, 'row')}, and nothing names it",
                    version=version,
                    file=path,
                )

    def _name(self, file: FinishedFile, entry: Entry) -> Iterator[Difference]:
        if file.filename in self.named:
            yield self._differs(
                Kind.FILE_NAMED_TWICE,
                f"entry {entry.sequence} names {file.filename}, which an earlier entry names",
                entry,
                file.filename,
            )
        # The log's own string where it has one: there are as many as files.
        one = self.log.active.get(file.filename)
        same = one is not None and one.written == file.filename
        self.named[one.written if one and same else file.filename] = len(self.journals) - 1

    def _look_up(
        self, file: FinishedFile, entry: Entry, journal: JournalBooks
    ) -> Iterator[Difference]:
        path, rows = file.filename, file.record_count
        active, removed = self.log.active.get(path), self.log.removed.get(path)
        aside = self.log.transactions.get(held_transaction(file_name(path)))
        if not journal.is_committed(entry):
            self.places.put(Place.WAITING, rows)
            self._waits([file], entry)
            if active is not None or removed is not None:
                yield from self._no_transaction(entry, path)
        elif aside in (HELD, GONE):
            yield from self._set_aside(file, entry, is_held=aside == HELD)
        elif self._is_forgotten(entry, journal) and active is None and removed is None:
            self.places.put(Place.FORGOTTEN, rows)
        elif active is not None:
            self._expected.add(file)
            self.places.put(Place.IN_TABLE, rows - active.deleted)
            self._put_deleted(active.deleted)
            yield from self._compare(file, active, entry)
        elif path in self._left_of:
            self._put_left(*self._left_of.pop(path))
        elif removed is not None and removed != BEFORE:
            self._expected.add(file)
            if removed in self.log.ours:
                self._taken_out[path] = entry.pipeline, entry.sequence, rows
            else:
                self.places.put(Place.REMOVED_BY_OTHERS, rows)
        elif self.log.is_whole:
            self.places.put(Place.NOWHERE, rows)
            yield self._differs(
                Kind.FILE_NOT_COMMITTED,
                f"entry {entry.sequence} is committed, but no version has its file {path} with "
                f"{plural(rows, 'row')}",
                entry,
                path,
            )
        else:
            self._missing[path] = rows

    def _set_aside(
        self, file: FinishedFile, entry: Entry, *, is_held: bool
    ) -> Iterator[Difference]:
        """Count a file that the log says is held, or given up."""
        path, removed = file.filename, self.log.removed.get(file.filename, BEFORE)
        name, repaired = file_name(path), removed in self.log.repairs
        self.places.set_aside(name, file.record_count, is_held=is_held, is_repaired=repaired)
        self._expected.give_up(path, file.record_count)
        if path in self.log.active:
            state = "is held" if is_held else "was given up"
            yield self._differs(
                Kind.FILE_GIVEN_UP_ACTIVE,
                f"{path} of entry {entry.sequence} {state}, and is in the table",
                entry,
                path,
            )

    def _no_transaction(self, entry: Entry, path: str) -> Iterator[Difference]:
        """Report an entry whose files are in the log, once."""
        name = (entry.pipeline, entry.journal, entry.sequence)
        if name not in self._without:
            self._without.add(name)
            yield self._differs(
                Kind.TRANSACTION_MISSING,
                f"the log has {path} of entry {entry.sequence}, but its transactions do not say "
                "that the entry is committed",
                entry,
                path,
            )

    def _is_forgotten(self, entry: Entry, journal: JournalBooks) -> bool:
        return any(
            one.forgotten is not None and one.forgotten[0] <= entry.sequence <= one.forgotten[1]
            for one in self.log.settled.get(journal.name, ())
        )

    def _compare(self, file: FinishedFile, one: Active, entry: Entry) -> Iterator[Difference]:
        for kind, what in disagreements(file, one, self.log.shape_at(one.version)):
            told = f"entry {entry.sequence} says of {file.filename}: {what}"
            yield self._differs(kind, told, entry, file.filename)

    def _replaced(self, entry: Entry, journal: JournalBooks) -> Iterator[Difference]:
        """Look up what an entry does to other files: all of it was done, or nothing."""
        done = [one for one in entry.replaced if self._is_done(one, entry, journal)]
        for one in done:
            if one.new is not None:
                yield from self._name(one.new, entry)
        if not journal.is_committed(entry):
            self._waits(entry.data_files, entry)
            for one in done:
                yield from self._no_transaction(entry, _named(one))
            return
        if done:
            self._expected.take(entry, done, journal.version_of(entry))
        for one in done:
            yield from self._in_place(one, entry, journal)
        if done and len(done) < len(entry.replaced) and self.log.is_whole:
            first = next(one for one in entry.replaced if one not in done)
            message = (
                f"{len(done)} of the {len(entry.replaced)} files of entry {entry.sequence} took "
                f"their places; {_named(first)} did not"
            )
            yield self._differs(Kind.PROMOTION_HALF, message, entry, _named(first))

    def _merged(self, entry: Entry, journal: JournalBooks) -> Iterator[Difference]:
        """Look up the files that an entry made fewer of: all of it was done, or nothing."""
        new = [file for one in entry.merged for file in one.new]
        done = [file for file in new if self._is_known(file.filename)]
        for file in done:
            yield from self._name(file, entry)
        if not journal.is_committed(entry):
            self._waits(new, entry)
            for file in done:
                yield from self._no_transaction(entry, file.filename)
            return
        if done:
            self._expected.take(entry, (), journal.version_of(entry))
        for one in entry.merged if done else ():
            for old in one.old:
                self._gone(old.path, left=old.rows, deleted=old.deleted)
        for file in done:
            yield from self._look_up(file, entry, journal)
        if done and len(done) < len(new) and self.log.is_whole:
            message = f"{len(done)} of {len(new)} files of entry {entry.sequence} took their places"
            yield self._differs(Kind.PROMOTION_HALF, message, entry, done[0].filename)

    def _is_done(self, one: Replacement, entry: Entry, journal: JournalBooks) -> bool:
        """Whether a file was put in its place or, where none is, the old one was taken out."""
        if one.new is not None:
            return self._is_known(one.new.filename)
        return journal.is_committed(entry) and not journal.is_passed_over(entry)

    def _in_place(
        self, one: Replacement, entry: Entry, journal: JournalBooks
    ) -> Iterator[Difference]:
        """Look up a file that has gone, and the one that has taken its place."""
        left = 0 if one.new is None else one.new.record_count
        self._gone(one.old, left=left, deleted=one.deleted)
        if one.left_out:
            self.places.put(Place.RETRACTED, one.left_out)
        if one.new is not None:
            yield from self._look_up(one.new, entry, journal)

    def _gone(self, old: str, *, left: int, deleted: int) -> None:
        """Look up a file that has gone: how many rows of it another has, or others had deleted."""
        taken_out = self._taken_out.pop(old, None) is not None
        explained = self._missing.pop(old, None) is not None or taken_out
        if explained:
            self._put_left(left, deleted)
        elif old not in self.named:
            self._left_of[old] = left, deleted

    def _put_left(self, rows: int, deleted: int) -> None:
        if rows:
            self.places.put(Place.REPLACED, rows)
        self._put_deleted(deleted)

    def _put_deleted(self, rows: int) -> None:
        """Count rows of a file that others deleted in place, by a deletion vector."""
        if rows:
            self.places.put(Place.REMOVED_BY_OTHERS, rows)

    def _waits(self, files: Iterable[FinishedFile], entry: Entry) -> None:
        self.waiting += [WaitingDataFile(entry.pipeline, entry.sequence, file) for file in files]

    def _is_known(self, path: str) -> bool:
        return path in self.log.active or path in self.log.removed

    def _check_shape(self, entry: Entry) -> Iterator[Difference]:
        """Check that the table could hold the entry's files when they were added to it."""
        version = next(
            (
                one.version
                for file in entry.data_files
                if (one := self.log.active.get(file.filename)) is not None
            ),
            BEFORE,
        )
        shape = self.log.shape_at(version) if version in self.log.ours else None
        if shape is None or not self._is_new(entry, shape):
            return
        for reason in why_not_held(entry.table_schema, entry.partition_columns, shape):
            yield Difference(
                kind=Kind.SCHEMA_DIFFERS,
                message=f"entry {entry.sequence} and the table at version {version}: {reason}",
                pipeline=entry.pipeline,
                entry=entry.sequence,
                version=version,
            )

    def _is_new(self, entry: Entry, shape: TableShape) -> bool:
        """Whether the two were not compared before."""
        key = (f"{entry.table_schema}{entry.partition_columns}", id(shape))
        found = key not in self._shapes
        self._shapes.add(key)
        return found

    def _differs(self, kind: Kind, message: str, entry: Entry, file: str) -> Difference:
        return Difference(
            kind=kind, message=message, pipeline=entry.pipeline, entry=entry.sequence, file=file
        )


def _named(one: Replacement) -> str:
    return one.old if one.new is None else one.new.filename
