"""A folder of Parquet files becomes a Delta table: all of it in one version, or nothing.

1. Every file is listed, and its footer is read unless an earlier run has kept what is in it.
2. What the files have in common decides what the table is.
3. Every file is listed once more. If all are as they were, they are put together as version 0.
4. Version 0 is written, create-only: that moment makes the table. A checkpoint follows.

A process may die at any of this. The next one goes on with what was kept, and finds the table or
not. Of two at once one writes version 0, and the other finds it.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from tempfile import TemporaryDirectory

from lakebed.clock import Clock
from lakebed.deltalog.delta_types import by_name
from lakebed.deltalog.segment import has_log
from lakebed.errors import LakeError, ObjectMissing
from lakebed.layout import (
    CREATE_ONLY_PROOF,
    LAST_CHECKPOINT,
    SCAN_TRANSACTION,
    log_checkpoint,
    log_version,
    why_unreadable,
)
from lakebed.storage.ahead import ahead
from lakebed.storage.create_only import prove
from lakebed.storage.objects import LARGEST_VERSION
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import AlreadyThere, Created, Reader, Store
from lakebed.units import plural
from penguin.adopt.folder import Folder
from penguin.adopt.new_table import (
    PART,
    Workplace,
    add_line,
    new_table,
    read_first_version,
    told_of,
    write_first_checkpoint,
)
from penguin.adopt.survey import Survey, note, values_of
from penguin.adopt.working_state import (
    FILES_PER_SEGMENT,
    KnownFiles,
    SegmentWriter,
    delete_state,
    schema_key,
)
from penguin.delta.table import Log
from penguin.delta.version import conversion, encoded
from penguin.foreign.columns import as_the_table_sees_it
from penguin.foreign.inspect import BlizzardFile, verdict_on
from penguin.foreign.rules import (
    DENIED,
    OF_BLIZZARD,
    REFUSED,
    UNFIT,
    partition_values,
    typed_values,
)
from penguin.model.adoption import Adoption, FileRecord, NewTable, Totals, Trouble, Wanted
from penguin.model.commit import Add
from penguin.model.errors import FolderUnfit
from penguin.model.foreign_file import Candidate, ForeignFile, LeftOut
from penguin.model.settings import TableSettings
from penguin.plan.stats import delta_statistics

WRONG_FOLDER = "move the file, or name the partition columns and their types with --partition-by"


@dataclass(slots=True)
class Assembly:
    """Files of one table, one after the other."""

    table: NewTable
    files: int = 0
    rows: int = 0
    bytes: int = 0
    empty: list[str] = field(default_factory=list)

    def add(self, record: FileRecord) -> Add | Trouble:
        """Return a file as the log will have it, or why it cannot."""
        found, file = record.found, record.file
        if record.trouble is not None or file is None:
            return record.trouble or Trouble(file=found.path, code=UNFIT, reason="it has no rows")
        unreadable = why_unreadable(found.path)
        if unreadable is not None:
            return Trouble(file=found.path, code=UNFIT, reason=f"{unreadable}; rename it")
        reason = self.table.refused.get(record.schema_key)
        if reason is not None:
            return Trouble(file=found.path, code=REFUSED, reason=reason)
        facts = self.table.facts
        try:
            values_of(found.path.rpartition("/")[0])
            inside = frozenset(by_name(file.schema))
            values = partition_values(found, facts.partition_columns, inside)
            finished = file.finished(typed_values(values, facts))
        except ValueError as wrong:
            return Trouble(file=found.path, code=UNFIT, reason=f"{wrong}; {WRONG_FOLDER}")
        self.files += 1
        self.rows += file.rows
        self.bytes += found.size
        if not file.rows:
            self.empty.append(found.path)
        seen = self.table.seen[record.schema_key]
        return Add.of(finished, delta_statistics(finished, written=seen, table=facts), {})

    def totals(self) -> Totals:
        """Return what all files are together."""
        return Totals(
            files=self.files, rows=self.rows, bytes=self.bytes, empty_files=tuple(self.empty)
        )


WHY_OF_BLIZZARD = (
    "blizzard wrote it, and only the journal of its table says whether its rows count; adopt a "
    "folder without such files"
)


def read_record(store: Reader, one: Candidate) -> FileRecord | None:
    """Return what a file is; None where it changes or goes while it is looked at."""
    verdict = verdict_on(store, one)
    match verdict:
        case None:
            return None
        case BlizzardFile():
            trouble = Trouble(file=one.path, code=OF_BLIZZARD, reason=WHY_OF_BLIZZARD)
            return FileRecord(found=one, trouble=trouble)
        case LeftOut(code=code, reason=reason):
            # No table can hold some of its columns, or it is no whole Parquet file.
            trouble = Trouble(file=one.path, code=code, reason=reason, skippable=code == UNFIT)
            return FileRecord(found=one, trouble=trouble)
        case ForeignFile():
            # A table of files that are there already requires nothing of them.
            schema = as_the_table_sees_it(verdict.schema, {}, None, ())
            file = ForeignFile(
                found=one, rows=verdict.rows, schema=schema, statistics=verdict.statistics
            )
            return FileRecord(found=one, file=file, schema_key=schema_key(schema))


CONCURRENT = 32
MOST_ROUNDS = 5
"""How often files may change while they are looked at."""
TELL_EVERY = 100
"""Files between two words on how far it is."""

Looked = Callable[[str, int, int | None], None]
"""Is told what is being done, of how many files it is done, and of how many in all, if known."""


class _Changed(Exception):
    """Files are not as they were when they were looked at."""


@dataclass(slots=True, kw_only=True)
class Adopter:
    """Makes one folder a table."""

    settings: TableSettings
    wanted: Wanted
    store: Store
    clock: Clock
    looked: Looked = lambda _what, _done, _files: None
    concurrent: int = CONCURRENT
    """How many footers are read at a time."""
    segment: int = FILES_PER_SEGMENT
    """Files after which what was read of them is kept."""
    _footers: int = 0
    """How many footers were read."""
    _denied: dict[str, FileRecord] = field(default_factory=dict)
    """Files that we may not read; that is not kept, for it may change without a sign on them."""

    def look(self) -> Adoption:
        """Return what would be adopted, or why not. Nothing is written to the folder."""
        before = self._before()
        if before is not None:
            return before
        with TemporaryDirectory(prefix="penguin-adopt-") as kept:
            return self._rounds(Store(kept, StorageOptions()), lambda found, _work: found)

    def adopt(self) -> Adoption:
        """Make the folder a table, if every file can be in it; if one cannot, nothing is done.

        What was read stays in the folder then, so that a second attempt reads only what changed.
        """
        found = self._before() or self._rounds(self.store, self._commit)
        return found if found.version is None else self._finish(found)

    def _before(self) -> Adoption | None:
        """Return what the folder was adopted as; FolderUnfit for any other table."""
        if not has_log(self.store):
            return None
        return _as_before(self._first_version()[1])

    def _first_version(self) -> tuple[str, Totals]:
        first = read_first_version(self.store)
        if first is None:
            raise FolderUnfit(
                "this folder is a Delta table already; to commit more files to it, run penguin "
                "with the table in its configuration, and file_pattern for names of your own",
                folder=self.store.uri,
            )
        return first

    def _rounds(self, keeps: Store, finish: Callable[[Adoption, Workplace], Adoption]) -> Adoption:
        """Look at all files until none has changed between two looks."""
        for _ in range(MOST_ROUNDS):
            try:
                survey, folder = self._survey(keeps)
                if not survey.files:
                    return self._nothing(folder)
                table = new_table(survey, self.wanted, self.settings)
                with TemporaryDirectory(prefix="penguin-adopt-") as place:
                    work = Workplace.in_folder(place)
                    return finish(self._assemble(keeps, survey, table, work), work)
            except (_Changed, ObjectMissing):
                # Whoever has made the table meanwhile has deleted what was kept.
                before = self._before()
                if before is not None:
                    return before
        raise FolderUnfit(
            "files of this folder change all the time; adopt it while nobody writes to it",
            folder=self.store.uri,
        )

    def _nothing(self, folder: Folder) -> Adoption:
        names = folder.names()
        if not names.troubles:
            raise FolderUnfit("there is no Parquet file in this folder", folder=self.store.uri)
        return Adoption(troubles=names.troubles, hidden=names.hidden)

    def _known(self, keeps: Store) -> KnownFiles:
        return KnownFiles([self.store] if keeps is self.store else [self.store, keeps])

    def _survey(self, keeps: Store) -> tuple[Survey, Folder]:
        """Look at every file, and keep what was read of those that nobody had looked at."""
        survey, folder = Survey(), Folder(self.store)
        known, self._denied = self._known(keeps), {}
        writer = SegmentWriter(keeps, str(self.clock.fresh_id()), self.segment)
        questions = ((one, known.of(one)) for one in folder.files())
        for (_, before), record in ahead(self._record, questions, self.concurrent):
            if record is None:
                writer.flush()
                raise _Changed
            survey.take(record)
            if before is None:
                self._footers += 1
                if record.trouble is not None and record.trouble.code == DENIED:
                    self._denied[record.found.path] = record
                elif writer.add(record) and self._is_overtaken():
                    raise _Changed
            if survey.files % TELL_EVERY == 0:
                self.looked("reading footers", survey.files, None)
        writer.flush()
        return survey, folder

    def _is_overtaken(self) -> bool:
        """Whether somebody else has made the table meanwhile."""
        return self.store.head(log_version(0)) is not None

    def _record(self, asked: tuple[Candidate, FileRecord | None]) -> FileRecord | None:
        """Return what a file is; None where it changes while it is looked at."""
        one, known = asked
        return known if known is not None else read_record(self.store, one)

    def _assemble(self, keeps: Store, survey: Survey, table: NewTable, work: Workplace) -> Adoption:
        """Put all files together for the log, by a second listing that must be like the first."""
        assembly, digest = Assembly(table), hashlib.sha256()
        known, folder = self._known(keeps), Folder(self.store)
        troubles: list[Trouble] = []
        with work.adds.open("wb") as lines:
            for done, one in enumerate(folder.files(), start=1):
                record = known.of(one) or self._denied.get(one.path)
                if record is None:
                    raise _Changed
                note(digest, one)
                added = assembly.add(record)
                if isinstance(added, Trouble):
                    troubles.append(added)
                else:
                    lines.write(add_line(added))
                if done % TELL_EVERY == 0:
                    self.looked("writing the log", done, survey.files)
        if digest.hexdigest() != survey.digest():
            raise _Changed
        names, skips = folder.names(), self.wanted.skip_unreadable
        found = (*names.troubles, *troubles)
        return Adoption(
            totals=assembly.totals(),
            table=table.facts,
            troubles=tuple(one for one in found if not (skips and one.skippable)),
            skipped=tuple(one for one in found if skips and one.skippable),
            hidden=names.hidden,
            footers_read=self._footers,
        )

    def _commit(self, found: Adoption, work: Workplace) -> Adoption:
        """Write version 0, if nothing speaks against it; somebody else's stays as it is."""
        if found.troubles or found.table is None or not found.totals.files:
            return found
        token = str(self.clock.fresh_id())
        told = told_of(token, found.totals)
        begin = conversion(
            Log(self.store).creation(found.table, told),
            ((SCAN_TRANSACTION, 1),),
            told,
            self.clock.now(),
            found.totals.files,
        )
        body = work.put_together(encoded(begin))
        self._check_size(body.stat().st_size, found.totals.files)
        prove(self.store, CREATE_ONLY_PROOF)
        match self.store.create(log_version(0), body.read_bytes()):
            case Created():
                return replace(found, version=0)
            case AlreadyThere():
                # It may be ours: where an answer is lost the store tries again, and finds it.
                theirs, totals = self._first_version()
                return replace(found, version=0) if theirs == token else _as_before(totals)

    def _check_size(self, size: int, files: int) -> None:
        if size > LARGEST_VERSION:
            raise FolderUnfit(
                f"{plural(files, 'file')} would take {size:,} bytes in one version of the log, and "
                f"a version has {LARGEST_VERSION:,} at most; adopt the folders below this one as "
                "tables of their own",
                folder=self.store.uri,
            )

    def _finish(self, found: Adoption) -> Adoption:
        """Write the checkpoint if there is none, then delete what was kept for the next run."""
        try:
            self._checkpoint()
        except LakeError as error:
            found = replace(found, checkpoint_error=str(error))
        delete_state(self.store)
        return found

    def _checkpoint(self) -> None:
        if self.store.head(LAST_CHECKPOINT) is not None:
            return
        with TemporaryDirectory(prefix="penguin-adopt-") as place:
            work = Workplace.in_folder(place)
            with work.fetch(self.store).open("rb") as lines:
                last = write_first_checkpoint(lines, work.checkpoint)
            self.store.upload(
                log_checkpoint(0),
                work.checkpoint,
                part_size=PART,
                multipart=work.checkpoint.stat().st_size > PART,
                max_parts=4,
            )
        # A later one, of a penguin that commits already, stays.
        self.store.create(LAST_CHECKPOINT, last)


def _as_before(totals: Totals) -> Adoption:
    return Adoption(version=0, before=True, totals=totals)
