"""Files of other programs join a commit, one by one. Pure.

Each is held against the table as it is after the pipelines' entries and the files before it. One
that does not fit is left out with its reason, and blocks nobody.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import assert_never

from lakebed.deltalog.delta_types import DeltaSchema, TableFacts, names_in_log
from lakebed.documents.data_file import FinishedFile
from lakebed.layout import TablePath, why_unreadable
from lakebed.listing.incremental import folder_and_name
from lakebed.partition import Template
from penguin.foreign.columns import as_the_table_sees_it
from penguin.foreign.rules import (
    REFUSED,
    UNFIT,
    name_taken,
    new_columns,
    partition_values,
    typed_values,
)
from penguin.model.commit import Add, CommitPlan, ForeignAdds
from penguin.model.foreign_file import ForeignFile, LeftOut
from penguin.model.table import Changes, Decision, Evolves, Fits, Refused


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinRules:
    """The decisions that are asked for, and what the configuration says."""

    decide: Callable[[TableFacts, DeltaSchema], Decision]
    new_table: Callable[[DeltaSchema, tuple[str, ...]], TableFacts]
    statistics: Callable[[FinishedFile, DeltaSchema, TableFacts], str]
    template: Template | None
    max_files: int
    replacement: Callable[[TableFacts, DeltaSchema, tuple[str, ...]], Evolves | None] = (
        lambda _table, _schema, _apart: None
    )
    """What a table becomes for a file that it cannot hold, if no row was ever written to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """The commit with the files that fit, and those that do not."""

    commit: CommitPlan | None
    left_out: tuple[LeftOut, ...] = ()


def join(
    table: TableFacts | None,
    commit: CommitPlan | None,
    files: tuple[ForeignFile, ...],
    scan: int | None,
    terms: JoinRules,
    *,
    scanned: int | None = None,
    removals: Mapping[str, int] | None = None,
) -> Joined:
    """Add files to a commit, or make one of them, up to as many files as a commit may hold."""
    draft = _Draft(table, commit, terms)
    for one in files:
        if len(draft.adds) >= terms.max_files:
            break
        if one.found.path not in draft.adds:
            draft.take(one)
    return Joined(
        commit=draft.commit(commit, scan, scanned, removals), left_out=tuple(draft.left_out)
    )


class _Unfit(Exception):
    """A file cannot join, for this reason."""

    def __init__(self, reason: str, code: str = UNFIT) -> None:
        super().__init__(reason)
        self.code = code


class _Draft:
    """A commit in the making; a file is taken, or the draft stays as it was."""

    def __init__(
        self, table: TableFacts | None, commit: CommitPlan | None, terms: JoinRules
    ) -> None:
        self.terms = terms
        self.table = table if commit is None else commit.table
        self.after = table if commit is None else commit.after
        self.changes = Changes() if commit is None else commit.changes
        self.adds = {} if commit is None else {str(add.path): add for add in commit.adds}
        self.taken: list[ForeignFile] = []
        self.names: dict[str, str] = {}
        """The files that are taken, by their transactions."""
        self.left_out: list[LeftOut] = []
        self.replaces = commit is not None and commit.replaces

    def take(self, one: ForeignFile) -> None:
        transaction = one.found.transaction
        if transaction in self.names:
            self.left_out.append(name_taken(one.found, self.names[transaction]))
            return
        try:
            self._take(one, Evolves(self.after, Changes()) if self.after else None)
        except _Unfit as reason:
            try:
                self._take_first(one)
            except _Unfit:
                self._leave(one, reason.code, str(reason))

    def _take_first(self, one: ForeignFile) -> None:
        """Take a file that the table cannot hold; a table without rows takes on its schema."""
        if self.table is None or self.after is None or self.adds:
            raise _Unfit("the table has rows, or is yet to be created")
        made = self._new_table(one)
        found = self.terms.replacement(self.after, made.schema, made.partition_columns)
        if found is None:
            raise _Unfit("the table is not to be replaced")
        self._take(one, found)
        self.replaces = True

    def _take(self, one: ForeignFile, start: Evolves | None) -> None:
        """Take a file into the table as it is, or as it becomes before anything is added."""
        unreadable = why_unreadable(one.found.path)
        if unreadable is not None:
            raise _Unfit(f"{unreadable}; give it another name, with %3A or %2A in a folder's")
        table = self.table or self._new_table(one)
        after = start.table if start is not None else table
        apart = after.partition_columns
        seen = as_the_table_sees_it(one.schema, one.statistics, after.schema, apart)
        decision = self.terms.decide(after, seen)
        match decision:
            case Fits():
                changes = Changes()
            case Evolves(after, changes):
                pass
            case Refused(reasons):
                raise _Unfit("; ".join(reasons), REFUSED)
            case _:
                assert_never(decision)
        names = frozenset(field["name"] for field in one.schema["fields"])
        try:
            values = typed_values(partition_values(one.found, apart, names), after)
        except ValueError as reason:
            raise _Unfit(str(reason)) from None
        file = one.finished(values)
        self.table, self.after = table, after
        before = Changes() if start is None else start.changes
        self.changes = self.changes.then(before).then(changes)
        self.adds[file.filename] = add_of(
            file, self.terms.statistics(file, seen, after), names_in_log(after)
        )
        self.taken.append(one)
        self.names[one.found.transaction] = one.found.path

    def _new_table(self, one: ForeignFile) -> TableFacts:
        try:
            schema, apart = new_columns(one.schema, one.found, self.terms.template)
        except ValueError as reason:
            raise _Unfit(str(reason)) from None
        relaxed = as_the_table_sees_it(schema, {}, None, ())
        return self.terms.new_table(relaxed, apart)

    def _leave(self, one: ForeignFile, code: str, reason: str) -> None:
        found = one.found
        self.left_out.append(
            LeftOut(
                path=found.path,
                code=code,
                reason=reason,
                asked_by=found.asked_by,
                modified=found.modified,
            )
        )

    def commit(
        self,
        before: CommitPlan | None,
        scan: int | None,
        scanned: int | None,
        removals: Mapping[str, int] | None,
    ) -> CommitPlan | None:
        if not self.taken or self.table is None or self.after is None:
            return before
        others = ForeignAdds(
            paths=tuple(one.found.path for one in self.taken),
            singly=tuple(one.found.path for one in self.taken if not one.found.is_covered),
            scan=scan,
            scanned=scanned,
            removals=removals,
            late=tuple(one.found.path for one in self.taken if one.found.late),
            watermarks=_highest(one.found.path for one in self.taken),
        )
        adds = tuple(self.adds.values())
        return replace(
            before
            or CommitPlan(table=self.table, after=self.after, changes=self.changes, adds=adds),
            after=self.after,
            changes=self.changes,
            adds=adds,
            others=others,
            replaces=self.replaces,
        )


def add_of(file: FinishedFile, stats: str, names: Mapping[str, str]) -> Add:
    """Return a file of another program as it will be in the log, by the names of columns there."""
    return Add(
        path=file.filename,
        size=file.size,
        rows=file.record_count,
        partition_values={
            names.get(key, key): value for key, value in file.partition_values.items()
        },
        modification_time=file.modification_time,
        stats=stats,
        pipeline=NO_PIPELINE,
        sequence=0,
    )


NO_PIPELINE = ""
"""What stands for the pipeline of a file that none wrote."""


def _highest(paths: Iterable[TablePath]) -> dict[str, str]:
    highest: dict[str, str] = {}
    for path in paths:
        folder, name = folder_and_name(path)
        highest[folder] = max(name, highest.get(folder, name))
    return highest
