"""Convert a folder of Parquet files to a Delta table: all of it in one version, or nothing.

1. List every file, and read its footer unless an earlier run cached it.
2. Derive the table's columns and partition columns from all files.
3. List every file again. If none changed, compose version 0.
4. Write version 0, create-only: this creates the table. Then write a checkpoint.

A process may die at any step; the next run continues from the cached footers. Of two concurrent
runs one writes version 0, and the other finds it.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from tempfile import TemporaryDirectory

from lakebed import layout
from lakebed.clock import Clock
from lakebed.deltalog.delta_types import TableFacts, by_name
from lakebed.deltalog.segment import has_log
from lakebed.documents.reading import parse_json
from lakebed.errors import LakeError, ObjectMissing
from lakebed.storage.lister import IncrementalLister
from lakebed.storage.objects import LARGEST_VERSION, ahead
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import AlreadyThere, Created, Reader, Store, prove
from lakebed.units import plural
from penguin.adopt.folder import (
    NOT_PARQUET,
    AdoptedFolder,
    AdoptOptions,
    FileRecord,
    Survey,
    note,
    values_of,
)
from penguin.adopt.new_table import (
    FILES_PER_SEGMENT,
    KnownFiles,
    NewTable,
    SegmentWriter,
    delete_state,
    new_table,
    schema_key,
)
from penguin.delta.table import Log
from penguin.delta.version import added, conversion, encoded
from penguin.foreign import rules
from penguin.foreign.inspect import verdict_on
from penguin.model.backlog import Candidate, ForeignFile, LeftOut
from penguin.model.commit import Add
from penguin.model.settings import FolderUnfit, TableSettings
from penguin.plan.stats import delta_statistics

FIRST_LINE = 64 * 1024
"""Bytes that always include the first line of an adopting version."""
WRONG_FOLDER = "move the file, or name the partition columns and their types with --partition-by"


@dataclass(slots=True, kw_only=True)
class AdoptedTotals:
    """Files, rows and bytes of an adoption or of its plan."""

    files: int = 0
    rows: int = 0
    bytes: int = 0
    empty_files: tuple[str, ...] = ()
    """Files without rows; they are adopted as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adoption:
    """Outcome of adopting a folder, or its plan."""

    totals: AdoptedTotals = field(default_factory=AdoptedTotals)
    table: TableFacts | None = None
    troubles: tuple[LeftOut, ...] = ()
    """Why the folder cannot be adopted; empty if it can."""
    skipped: tuple[LeftOut, ...] = ()
    """Files that `--skip-unreadable` leaves out."""
    hidden: tuple[str, ...] = ()
    footers_read: int = 0
    """Footers that this run read; an earlier run cached the others."""
    version: int | None = None
    """The version that holds the files; None while there is no table."""
    before: bool = False
    """Whether it was adopted before, or by another process meanwhile."""
    checkpoint_error: str | None = None
    """Why the checkpoint failed; the table exists nevertheless."""


def added_file(file: ForeignFile, table: NewTable, totals: AdoptedTotals) -> Add | LeftOut:
    """Return a file's add action and count it into the totals, or return why it is left out."""
    path, facts = file.found.path, table.facts
    if (unreadable := layout.why_unreadable(path)) is not None:
        return LeftOut(path=path, code=rules.UNFIT, reason=f"{unreadable}; rename it")
    if (reason := table.refused.get(file.schema_key)) is not None:
        return LeftOut(path=path, code=rules.REFUSED, reason=reason)
    try:
        values_of(path.rpartition("/")[0])
        inside = frozenset(by_name(file.schema))
        values = rules.partition_values(file.found, facts.partition_columns, inside)
        finished = file.finished(rules.typed_values(values, facts))
    except ValueError as wrong:
        return LeftOut(path=path, code=rules.UNFIT, reason=f"{wrong}; {WRONG_FOLDER}")
    totals.files += 1
    totals.rows += file.rows
    totals.bytes += file.found.facts.size
    if not file.rows:
        totals.empty_files += (path,)
    seen = table.seen[file.schema_key]
    return Add.of(finished, delta_statistics(finished, written=seen, table=facts), {})


WHY_OF_BLIZZARD = (
    "blizzard wrote it, and only the journal of its table says whether its rows count; adopt a "
    "folder without such files"
)


def read_record(store: Reader, one: Candidate) -> FileRecord | None:
    """Inspect a file; None if it changes or disappears meanwhile."""
    verdict = verdict_on(store, one)
    if verdict is None:
        return None
    if isinstance(verdict, ForeignFile):
        # A table made from existing files cannot require anything of them.
        schema = rules.as_the_table_sees_it(verdict.schema, {}, None, ())
        verdict = replace(verdict, schema=schema, schema_key=schema_key(schema))
    elif verdict.code == rules.OF_BLIZZARD:
        verdict = replace(verdict, reason=WHY_OF_BLIZZARD)
    return FileRecord(one, verdict)


CONCURRENT = 32
MOST_ROUNDS = 5
"""Attempts before adoption gives up on a folder that keeps changing."""


class _Changed(Exception):
    """Files changed since they were inspected."""


@dataclass(slots=True, kw_only=True)
class Adopter:
    """Turns one folder into a table."""

    settings: TableSettings
    wanted: AdoptOptions
    store: Store
    clock: Clock
    concurrent: int = CONCURRENT
    """Footers read concurrently."""
    segment: int = FILES_PER_SEGMENT
    """Files per segment of the footer cache."""
    _lister: IncrementalLister = field(default_factory=IncrementalLister)
    _footers: int = 0
    """How many footers were read."""
    _denied: dict[str, FileRecord] = field(default_factory=dict)
    """Files without read permission; not cached, since permissions change without changing the
    file."""

    def plan(self) -> Adoption:
        """Return what would be adopted, or why not. Write nothing to the folder."""
        before = self._before()
        if before is not None:
            return before
        with TemporaryDirectory(prefix="penguin-adopt-") as kept:
            return self._repeated(Store(kept, StorageOptions()), lambda found, _adds: found)

    def adopt(self) -> Adoption:
        """Turn the folder into a table if every file fits; otherwise change nothing.

        The footer cache stays in the folder then, so that a second attempt reads only changed
        files.
        """
        found = self._before() or self._repeated(self.store, self._commit)
        return found if found.version is None else self._finish(found)

    def _before(self) -> Adoption | None:
        """Return the earlier adoption of the folder; FolderUnfit for any other table."""
        if not has_log(self.store):
            return None
        return _already_adopted(self._first_version()[1])

    def _first_version(self) -> tuple[str, AdoptedTotals]:
        first = read_first_version(self.store)
        if first is None:
            raise FolderUnfit(
                "this folder is a Delta table already; to commit more files to it, run penguin "
                "with the table in its configuration, and set file_pattern if the names differ",
                folder=self.store.uri,
            )
        return first

    def _repeated(self, keeps: Store, finish: Callable[[Adoption, bytes], Adoption]) -> Adoption:
        """Survey and assemble until no file changes in between."""
        for _ in range(MOST_ROUNDS):
            try:
                survey, folder = self._lister.attempt(lambda: self._survey(keeps))
                if not survey.files:
                    return self._nothing(folder)
                return finish(*self._lister.attempt(partial(self._assemble, keeps, survey)))
            except (_Changed, ObjectMissing):
                # Another process may have created the table and deleted the cache.
                before = self._before()
                if before is not None:
                    return before
        raise FolderUnfit(
            "files of this folder keep changing; adopt it while no program writes to it",
            folder=self.store.uri,
        )

    def _nothing(self, folder: AdoptedFolder) -> Adoption:
        if all(one.code == NOT_PARQUET for one in folder.troubles.values()):
            raise FolderUnfit("there is no Parquet file in this folder", folder=self.store.uri)
        return Adoption(troubles=tuple(folder.troubles.values()), hidden=tuple(folder.hidden))

    def _known(self, keeps: Store) -> KnownFiles:
        return KnownFiles([self.store] if keeps is self.store else [self.store, keeps])

    def _survey(self, keeps: Store) -> tuple[Survey, AdoptedFolder]:
        """Inspect every file, and cache the footers that were not cached yet."""
        survey, folder = Survey(), AdoptedFolder(self.store, self._lister)
        known, self._denied = self._known(keeps), {}
        writer = SegmentWriter(keeps, str(self.clock.fresh_id()), self.segment)
        questions = ((file, known.of(file)) for file in folder.files())
        for (_, before), record in ahead(self._record, questions, self.concurrent):
            if record is None:
                writer.flush()
                raise _Changed
            survey.take(record)
            if before is None:
                self._footers += 1
                if isinstance(record.verdict, LeftOut) and record.verdict.code == rules.DENIED:
                    self._denied[record.found.path] = record
                else:
                    writer.add(record)
        writer.flush()
        return survey, folder

    def _record(self, asked: tuple[Candidate, FileRecord | None]) -> FileRecord | None:
        """Inspect a file unless it is cached; None if it changes meanwhile."""
        one, known = asked
        return known if known is not None else read_record(self.store, one)

    def _assemble(self, keeps: Store, survey: Survey) -> tuple[Adoption, bytes]:
        """Return the adoption and the log lines that add its files.

        Raise _Changed if this second listing differs from the survey's.
        """
        table = new_table(survey, self.wanted, self.settings)
        totals, digest, lines = AdoptedTotals(), hashlib.sha256(), bytearray()
        known, folder = self._known(keeps), AdoptedFolder(self.store, self._lister)
        left_out: list[LeftOut] = []
        for file in folder.files():
            record = known.of(file) or self._denied.get(file.path)
            if record is None:
                raise _Changed
            note(digest, file)
            result: Add | LeftOut = (
                record.verdict
                if isinstance(record.verdict, LeftOut)
                else added_file(record.verdict, table, totals)
            )
            if isinstance(result, LeftOut):
                left_out.append(result)
            else:
                lines += encoded([added(result)])
        if digest.hexdigest() != survey.digest():
            raise _Changed
        found, skips = (*folder.troubles.values(), *left_out), self.wanted.skip_unreadable
        adoption = Adoption(
            totals=totals,
            table=table.facts,
            troubles=tuple(one for one in found if not (skips and one.skippable)),
            skipped=tuple(one for one in found if skips and one.skippable),
            hidden=tuple(folder.hidden),
            footers_read=self._footers,
        )
        return adoption, bytes(lines)

    def _commit(self, found: Adoption, adds: bytes) -> Adoption:
        """Write version 0 unless there are troubles; leave another writer's as it is."""
        if found.troubles or found.table is None or not found.totals.files:
            return found
        token = str(self.clock.fresh_id())
        metadata = commit_metadata(token, found.totals)
        begin = conversion(
            Log(self.store).creation(found.table, metadata),
            ((layout.SCAN_TRANSACTION, 1),),
            metadata,
            self.clock.now(),
            found.totals.files,
        )
        body = encoded(begin) + adds
        self._check_size(len(body), found.totals.files)
        prove(self.store, layout.CREATE_ONLY_PROOF)
        match self.store.create(layout.log_version(0), body):
            case Created():
                return replace(found, version=0)
            case AlreadyThere():
                # It may be ours: after a lost response the store retries and finds it.
                theirs, totals = self._first_version()
                return replace(found, version=0) if theirs == token else _already_adopted(totals)

    def _check_size(self, size: int, files: int) -> None:
        if size > LARGEST_VERSION:
            raise FolderUnfit(
                f"{plural(files, 'file')} would take {size:,} bytes in one version of the log, and "
                f"a version has {LARGEST_VERSION:,} at most; adopt the folders below this one as "
                "tables of their own",
                folder=self.store.uri,
            )

    def _finish(self, found: Adoption) -> Adoption:
        """Write the checkpoint if there is none, then delete the footer cache."""
        try:
            table = None if self.store.head(layout.LAST_CHECKPOINT) else Log(self.store).open()
            if table is not None and table.version == 0:
                table.checkpoint()
        except LakeError as error:
            found = replace(found, checkpoint_error=str(error))
        delete_state(self.store)
        return found


def commit_metadata(token: str, totals: AdoptedTotals) -> dict[str, object]:
    """Return the commit metadata of the adoption."""
    return {
        "step": layout.ADOPTION_STEP,
        "token": token,
        "entries": {},
        "others": {"files": totals.files},
        "adopted": {"files": totals.files, "rows": totals.rows, "bytes": totals.bytes},
    }


def read_first_version(store: Reader) -> tuple[str, AdoptedTotals] | None:
    """Return the token and totals of a table's adoption; None if its log has none."""
    facts = store.head(layout.log_version(0))
    if facts is None:
        return None
    end = min(facts.size, FIRST_LINE)
    line, _, _ = store.part(facts.path, 0, end, etag=facts.etag).partition(b"\n")
    try:
        metadata = parse_json(line)
    except ValueError:
        return None
    match metadata:
        case {"commitInfo": {"penguin": {"step": step, "token": str(token), "adopted": totals}}}:
            files, rows, size = (int(totals.get(key, 0)) for key in ("files", "rows", "bytes"))
            found = AdoptedTotals(files=files, rows=rows, bytes=size)
            return (token, found) if step == layout.ADOPTION_STEP else None
    return None


def _already_adopted(totals: AdoptedTotals) -> Adoption:
    return Adoption(version=0, before=True, totals=totals)
