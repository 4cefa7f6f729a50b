"""Convert a folder of Parquet files to a Delta table: all of it in one version, or nothing.

1. List every file, and read its footer.
2. Derive the table's columns and partition columns from all files.
3. List every file again, to see that none has changed.
4. Write version 0, create-only: this creates the table. Then write a checkpoint.

A process may die at any step; the next run begins anew. Of two concurrent runs one writes version
0, and the other finds it.
"""

import pickle
from dataclasses import dataclass, field, replace
from functools import partial
from tempfile import TemporaryFile
from typing import IO

from lakebed import layout
from lakebed.clock import Clock
from lakebed.deltalog.delta_types import TableFacts, by_name, struct_of
from lakebed.deltalog.segment import has_log
from lakebed.documents.reading import parse_json
from lakebed.errors import LakeError
from lakebed.storage.lister import IncrementalLister
from lakebed.storage.objects import LARGEST_VERSION, ahead
from lakebed.storage.store import AlreadyThere, Created, Reader, Store, prove
from lakebed.units import plural
from penguin.adopt.folder import NOT_PARQUET, AdoptedFolder, AdoptOptions, Survey, values_of
from penguin.adopt.new_table import NewTable, new_table, schema_key
from penguin.delta.table import Log
from penguin.delta.version import added, conversion, encoded
from penguin.foreign import rules
from penguin.foreign.inspect import Verdict, verdict_on
from penguin.model.backlog import Candidate, ForeignFile, LeftOut
from penguin.model.commit import Add
from penguin.model.settings import FolderUnfit, TableSettings
from penguin.plan.stats import delta_statistics

FIRST_LINE = 64 * 1024
"""Bytes that always include the first line of an adopting version."""
NO_COLUMNS = struct_of([])
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
    version: int | None = None
    """The version that holds the files; None while there is no table."""
    before: bool = False
    """Whether it was adopted before, or by another process meanwhile."""
    checkpoint_error: str | None = None
    """Why the checkpoint failed; the table exists nevertheless."""


def added_file(
    file: ForeignFile, survey: Survey, table: NewTable, totals: AdoptedTotals
) -> Add | LeftOut:
    """Return a file's add action and count it into the totals, or return why it is left out."""
    path, facts = file.found.path, table.facts
    if (unreadable := layout.why_unreadable(path)) is not None:
        return LeftOut(path=path, code=rules.UNFIT, reason=f"{unreadable}; rename it")
    if (reason := table.refused.get(file.schema_key)) is not None:
        return LeftOut(path=path, code=rules.REFUSED, reason=reason)
    try:
        values_of(path.rpartition("/")[0])
        inside = frozenset(by_name(survey.schemas[file.schema_key].schema))
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


def read_facts(store: Reader, one: Candidate) -> Verdict | None:
    """Inspect a file; None if it changes or disappears meanwhile."""
    verdict = verdict_on(store, one)
    if isinstance(verdict, ForeignFile):
        # A table made from existing files cannot require anything of them.
        schema = rules.as_the_table_sees_it(verdict.schema, {}, None, ())
        return replace(verdict, schema=schema, schema_key=schema_key(schema))
    if verdict is not None and verdict.code == rules.OF_BLIZZARD:
        return replace(verdict, reason=WHY_OF_BLIZZARD)
    return verdict


CONCURRENT = 32
KEEPS_CHANGING = "files of this folder changed meanwhile; adopt it while no program writes to it"


@dataclass(slots=True, kw_only=True)
class Adopter:
    """Turns one folder into a table."""

    settings: TableSettings
    wanted: AdoptOptions
    store: Store
    clock: Clock
    concurrent: int = CONCURRENT
    """Footers read concurrently."""
    _lister: IncrementalLister = field(default_factory=IncrementalLister)

    def plan(self) -> Adoption:
        """Return what would be adopted, or why not. Write nothing to the folder."""
        return self._before() or self._assemble()[0]

    def adopt(self) -> Adoption:
        """Turn the folder into a table if every file fits; otherwise change nothing."""
        found = self._before() or self._commit(*self._assemble())
        return found if found.version is None else self._with_checkpoint(found)

    def _before(self) -> Adoption | None:
        """Return the earlier adoption of the folder; FolderUnfit for any other table."""
        if not has_log(self.store):
            return None
        totals = read_first_version(self.store)
        if totals is None:
            raise FolderUnfit(
                "this folder is a Delta table already; to commit more files to it, run penguin "
                "with the table in its configuration, and set file_pattern if the names differ",
                folder=self.store.uri,
            )
        return Adoption(version=0, before=True, totals=totals)

    def _assemble(self) -> tuple[Adoption, bytes]:
        """Inspect every file; return the adoption and the log lines that add its files.

        The facts of the footers wait in a temporary file until all schemas are known.
        """
        with TemporaryFile(prefix="penguin-adopt-") as spool:
            survey, folder = self._lister.attempt(lambda: self._survey(spool))
            table = new_table(survey, self.wanted, self.settings) if survey.files else None
            totals, lines, left_out = AdoptedTotals(), bytearray(), list[LeftOut]()
            spool.seek(0)
            for _ in range(survey.files if table else 0):
                verdict = pickle.load(spool)  # noqa: S301 - written by this process
                if isinstance(verdict, ForeignFile) and table is not None:
                    verdict = added_file(verdict, survey, table, totals)
                if isinstance(verdict, LeftOut):
                    left_out.append(verdict)
                else:
                    lines += encoded([added(verdict)])
        if self._lister.attempt(self._listed_again) != survey.digest():
            raise FolderUnfit(KEEPS_CHANGING, folder=self.store.uri)
        if table is None and all(one.code == NOT_PARQUET for one in folder.troubles.values()):
            raise FolderUnfit("there is no Parquet file in this folder", folder=self.store.uri)
        found = (*folder.troubles.values(), *left_out)
        skips = self.wanted.skip_unreadable and table is not None
        adoption = Adoption(
            totals=totals,
            table=None if table is None else table.facts,
            troubles=tuple(one for one in found if not (skips and one.skippable)),
            skipped=tuple(one for one in found if skips and one.skippable),
            hidden=tuple(folder.hidden),
        )
        return adoption, bytes(lines)

    def _survey(self, spool: IO[bytes]) -> tuple[Survey, AdoptedFolder]:
        """Inspect every file, and keep what was found in the temporary file."""
        survey, folder = Survey(), AdoptedFolder(self.store, self._lister)
        spool.seek(0)
        for one, verdict in ahead(partial(read_facts, self.store), folder.files(), self.concurrent):
            if verdict is None:
                raise FolderUnfit(KEEPS_CHANGING, folder=self.store.uri)
            survey.take(one, verdict)
            # The survey keeps each schema once.
            short = isinstance(verdict, ForeignFile) and replace(verdict, schema=NO_COLUMNS)
            pickle.dump(short or verdict, spool)
        return survey, folder

    def _listed_again(self) -> str:
        """Return the digest of a second listing."""
        again = Survey()
        for file in AdoptedFolder(self.store, self._lister).files():
            again.note(file)
        return again.digest()

    def _commit(self, found: Adoption, adds: bytes) -> Adoption:
        """Write version 0 unless there are troubles; leave another writer's as it is."""
        if found.troubles or found.table is None or not found.totals.files:
            return found
        metadata = commit_metadata(found.totals)
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
                return self._before() or found

    def _check_size(self, size: int, files: int) -> None:
        if size > LARGEST_VERSION:
            raise FolderUnfit(
                f"{plural(files, 'file')} would take {size:,} bytes in one version of the log, and "
                f"a version has {LARGEST_VERSION:,} at most; adopt the folders below this one as "
                "tables of their own",
                folder=self.store.uri,
            )

    def _with_checkpoint(self, found: Adoption) -> Adoption:
        """Write the checkpoint if there is none."""
        try:
            table = None if self.store.head(layout.LAST_CHECKPOINT) else Log(self.store).open()
            if table is not None and table.version == 0:
                table.checkpoint()
        except LakeError as error:
            return replace(found, checkpoint_error=str(error))
        return found


def commit_metadata(totals: AdoptedTotals) -> dict[str, object]:
    """Return the commit metadata of the adoption."""
    return {
        "step": layout.ADOPTION_STEP,
        "entries": {},
        "others": {"files": totals.files},
        "adopted": {"files": totals.files, "rows": totals.rows, "bytes": totals.bytes},
    }


def read_first_version(store: Reader) -> AdoptedTotals | None:
    """Return the totals of a table's adoption; None if its log has none."""
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
        case {"commitInfo": {"penguin": {"step": layout.ADOPTION_STEP, "adopted": totals}}}:
            files, rows, size = (int(totals.get(key, 0)) for key in ("files", "rows", "bytes"))
            return AdoptedTotals(files=files, rows=rows, bytes=size)
    return None
