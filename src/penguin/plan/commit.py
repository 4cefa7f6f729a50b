"""Plan one commit from the waiting entries of pipelines and from held files. Pure.

An entry is settled whole, in one commit. Its files that the table cannot hold, or that are gone,
are held by that commit, each with a mark of its own; the rest is added, and the pipeline goes on.
An invalid entry stops its pipeline at that entry; its earlier entries and the other pipelines go
on.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from lakebed.deltalog.delta_types import TableFacts, names_in_log, struct_of, why_no_table
from lakebed.documents.entry import Entry
from lakebed.documents.pending_meta import EntryName, HeldState
from lakebed.documents.records import FinishedFile
from lakebed.errors import LakeError
from lakebed.layout import file_name, held_transaction
from lakebed.types import Evolution
from penguin.model.backlog import PipelineBacklog, ReadyEntry, Stopped, Transactions, WaitingEntry
from penguin.model.commit import (
    Add,
    Advance,
    Changes,
    CommitPlan,
    CommitProposal,
    EntryRefused,
    Evolves,
    Hold,
    HoldCode,
    RejectedEntry,
    Releasable,
)
from penguin.model.settings import FileReleased, SchemaRefused, TableSettings
from penguin.plan.column_rules import (
    check_books,
    check_configured_partitions,
    check_files,
    check_names,
    check_rewrites,
    reasons_against_rewritten,
)
from penguin.plan.evolution import created_as, decide_on, replacement
from penguin.plan.stats import delta_statistics

NO_TABLE = "there is no table whose files could be replaced"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanQuestions:
    """The questions that a plan asks the log."""

    transactions: Transactions = lambda _app_id: None
    unused: Callable[[], bool] = lambda: False
    """Whether no row was ever written to the table: then its first files define it."""
    why_not_replaced: Callable[[Sequence[FinishedFile]], str | None] = lambda _files: NO_TABLE
    """Why files of the table cannot be replaced; None if they can."""
    came_back: Callable[[frozenset[str]], Mapping[str, str]] = lambda _names: {}
    """How rows of superseded files came back into the table, by file name."""
    put_back: Callable[[Entry], str | None] = lambda _entry: None
    """What may have brought back files that an entry supersedes, since it was planned."""

    def held_state(self, name: str) -> int | None:
        """Return the mark of a held file."""
        return self.transactions(held_transaction(name))


NO_QUESTIONS = PlanQuestions()


def plan_commit(
    settings: TableSettings,
    table: TableFacts | None,
    backlogs: tuple[PipelineBacklog, ...],
    questions: PlanQuestions = NO_QUESTIONS,
    *,
    releasable: tuple[Releasable, ...] = (),
    lacking: Mapping[str, str] | None = None,
    asked: bool = False,
) -> CommitProposal:
    """Fill one commit with entries in turn, then with held files.

    `lacking` says what is wrong with files that are missing or differ from what was written.
    """
    draft = _EntryDraft(
        settings=settings,
        plan=empty_plan(table),
        has_table=table is not None,
        questions=questions,
        lacking=lacking or {},
    )
    stopped: dict[str, Stopped] = {}
    later: set[str] = set()
    for backlog, ready in _in_turn(backlogs):
        if backlog.pipeline in stopped or backlog.pipeline in later:
            continue
        if draft.is_full_for(ready) or draft.comes_alone(ready):
            break
        if draft.settles_what(ready):
            later.add(backlog.pipeline)
            continue
        try:
            draft.take(ready)
        except LakeError as error:
            stopped[backlog.pipeline] = Stopped(
                pipeline=backlog.pipeline, error=error, sequence=ready.entry.sequence
            )
    for held in releasable:
        draft.release(held, asked=asked)
    return CommitProposal(commit=draft.commit(backlogs), stopped=tuple(stopped.values()))


def _in_turn(backlogs: tuple[PipelineBacklog, ...]) -> Iterator[tuple[PipelineBacklog, ReadyEntry]]:
    """Yield the first entry of each pipeline, then the second, so that none starves."""
    longest = max((len(backlog.entries) for backlog in backlogs), default=0)
    for place in range(longest):
        for backlog in backlogs:
            if place < len(backlog.entries):
                yield backlog, backlog.entries[place]


NOT_MADE = TableFacts(version=None, schema=struct_of(()), partition_columns=(), configuration={})
"""A table that neither exists nor has been decided on."""


@dataclass(slots=True, kw_only=True)
class CommitDraft:
    """A commit that is being planned."""

    settings: TableSettings
    plan: CommitPlan
    has_table: bool
    """Whether the table exists, or the plan creates it."""

    def evolve(self, table: TableFacts, becomes: Evolves, *, replaces: bool = False) -> None:
        """Evolve the planned table for files."""
        plan = self.plan
        self.has_table, plan.table, plan.after = True, table, becomes.table
        plan.changes = plan.changes.then(becomes.changes)
        plan.replaces = plan.replaces or replaces


def empty_plan(table: TableFacts | None) -> CommitPlan:
    """Return an empty commit to a table."""
    before = table or NOT_MADE
    return CommitPlan(table=before, after=before)


@dataclass(slots=True, kw_only=True)
class _EntryDraft(CommitDraft):
    """A commit of entries; each is taken whole or not at all."""

    questions: PlanQuestions
    lacking: Mapping[str, str]
    taken: dict[str, list[ReadyEntry]] = field(default_factory=dict)

    def is_full_for(self, ready: ReadyEntry) -> bool:
        files = len(self.plan.adds) + len(self.plan.holds) + len(ready.entry.data_files)
        return bool(self.taken) and files > self.settings.max_files_per_commit

    def comes_alone(self, ready: ReadyEntry) -> bool:
        """Whether an entry needs a version of its own: one that only compacts is not mixed.

        Readers of changes skip such a version as a whole.
        """
        return self.plan.rearranges or (bool(self.taken) and ready.entry.operation == "rewrite")

    def settles_what(self, ready: ReadyEntry) -> bool:
        """Whether an entry gives up or replaces files of this very commit: then it must wait.

        The log has yet to decide on those files. This happens only where a log has lost commits.
        """
        here = {hold.name for hold in self.plan.holds} | {file_name(add) for add in self.plan.adds}
        replaced = (file_name(file.filename) for file in ready.entry.outgoing)
        return not here.isdisjoint((*ready.entry.redone, *replaced))

    def take(self, ready: ReadyEntry) -> None:
        entry, plan = ready.entry, self.plan
        check_configured_partitions(self.settings.partition_columns, ready)
        check_books(ready)
        # Without columns, a later entry creates the table.
        if self.has_table or entry.files or entry.table_schema["fields"]:
            table = plan.table if self.has_table else self._new_table(ready)
            check_names(ready, plan.adds)
            take = self._replace if entry.replaces else self._append
            take(ready, table, plan.after if self.has_table else table)
        self.taken.setdefault(entry.pipeline, []).append(ready)

    def _append(self, ready: ReadyEntry, table: TableFacts, after: TableFacts) -> None:
        entry, plan = ready.entry, self.plan
        given_up = _given_up(ready, self.questions)
        decision = self._decide(after, entry)
        made = self._replacement(decision, after, entry)
        if made is not None:
            decision = made
            table = made.table if table.version is None else table
        if isinstance(decision, EntryRefused):
            if not self.has_table:
                # Without a table there is no log to record that they are held.
                raise SchemaRefused(entry.sequence, decision.reasons, path=ready.path)
            plan.holds += _hold(ready, entry.files, HoldCode.SCHEMA_REFUSED, decision.reasons)
            plan.discarded |= given_up
            return
        after = decision.table
        check_files(entry.files, after, ready)
        lacking = [file for file in entry.files if file.filename in self.lacking]
        units = {file.unit for file in lacking}
        self.evolve(table, decision, replaces=made is not None)
        plan.adds |= {
            file.filename: _added(file, ready, after)
            for file in entry.files
            if file.unit not in units
        }
        plan.discarded |= given_up
        # The files of a unit stand or fall together: its sources are read again as a whole.
        why = tuple(f"{file.filename}: {self.lacking[file.filename]}" for file in lacking)
        broken = tuple(file for file in entry.files if file.unit in units)
        plan.holds += _hold(ready, broken, HoldCode.FILE_MISSING, why)

    def _replace(self, ready: ReadyEntry, table: TableFacts, after: TableFacts) -> None:
        """Apply an entry that removes or replaces files, completely or not at all.

        If it is rejected, the rows of those files stay in the table: nothing waits for the entry,
        and the command can be run again. A file is never added without removing the one it
        supersedes; rows that were read to supersede others are discarded as well.
        """
        entry, plan = ready.entry, self.plan
        check_rewrites(ready)
        # Remaining rows fit as their file did: only new rows may need new columns.
        decision: Evolves | EntryRefused = Evolves(after, Changes())
        if entry.files or (entry.operation == "overwrite" and not entry.left_out):
            decision = self._decide(after, _with_all_columns(entry, after))
        reasons = self._reasons_against(entry, decision, after)
        if not reasons and isinstance(decision, Evolves):
            check_files(entry.data_files, decision.table, ready)
            for file in entry.data_files:
                # It was written in place, under any hand-off.
                plan.adds[file.filename] = replace(_added(file, ready, decision.table), outbox=None)
            plan.removes |= {one.filename: one for one in entry.outgoing}
            plan.rearranges = entry.operation == "rewrite"
            plan.left_out += entry.left_out
            self.evolve(table, decision)
            return
        name = EntryName(entry.pipeline, entry.journal, entry.sequence)
        mark = entry.replacement_mark
        before = self.questions.held_state(mark)
        plan.rejected.append(
            RejectedEntry(entry=name, kind=entry.kind, reasons=reasons, mark=mark, before=before)
        )
        # Files read for this entry are new, so they have no mark yet.
        plan.discarded |= {file_name(file.filename): None for file in entry.files}
        self.evolve(table, Evolves(after, Changes()))

    def _reasons_against(
        self, entry: Entry, decision: Evolves | EntryRefused, after: TableFacts
    ) -> tuple[str, ...]:
        """Return why the files of an entry cannot be removed or replaced."""
        if isinstance(decision, EntryRefused):
            return decision.reasons
        if named := tuple(reasons_against_rewritten(after, entry)):
            return named
        lacking = [file for file in entry.data_files if file.filename in self.lacking]
        if lacking:
            return tuple(f"{file.filename}: {self.lacking[file.filename]}" for file in lacking)
        if any(one.filename in self.plan.removes for one in entry.outgoing):
            return ("another entry in the same commit replaces the same files",)
        why = self.questions.why_not_replaced(entry.outgoing) if entry.outgoing else None
        if why is None and entry.supersedes and (how := self.questions.put_back(entry)) is not None:
            why = f"rows that it supersedes may be in the table again: {how}"
        return () if why is None else (why,)

    def _decide(self, table: TableFacts, entry: Entry) -> Evolves | EntryRefused:
        return decide_on(table, entry.table_schema, entry.partition_columns, self.settings)

    def _made(self, entry: Entry) -> TableFacts:
        return created_as(entry.table_schema, entry.partition_columns, self.settings)

    def _new_table(self, ready: ReadyEntry) -> TableFacts:
        wrong = why_no_table(ready.entry.table_schema)
        if wrong is not None:
            raise SchemaRefused(ready.entry.sequence, (wrong,), path=ready.path)
        return self._made(ready.entry)

    def _replacement(
        self, decision: Evolves | EntryRefused, after: TableFacts, entry: Entry
    ) -> Evolves | None:
        """Return what the table becomes instead, if it refuses an entry and holds no row yet."""
        if not isinstance(decision, EntryRefused) or self.plan.adds or not entry.files:
            return None
        if after.version is None:
            made = self._made(entry)  # An entry without files would have created another table.
            is_better = not isinstance(self._decide(made, entry), EntryRefused)
            return Evolves(made, Changes()) if is_better else None
        schema, apart = entry.table_schema, entry.partition_columns
        return replacement(after, schema, apart, self.settings, self.questions.unused)

    def release(self, held: Releasable, *, asked: bool) -> None:
        """Add the held files of a unit, if the table can hold them now and none is missing.

        Of a unit with a missing file nothing is added: its sources are to be read again.
        """
        plan, entry = self.plan, held.ready.entry
        if not self.has_table or plan.rearranges:
            return
        names = [file.filename for file in held.files]
        unfit = self.lacking.keys() | plan.adds.keys()
        if any(name in unfit or file_name(name) in plan.discarded for name in names):
            return
        if plan.adds and len(plan.adds) + len(names) > self.settings.max_files_per_commit:
            return
        decision = self._decide(plan.after, entry)
        made = self._replacement(decision, plan.after, entry)
        decision = made or decision
        if isinstance(decision, EntryRefused):
            return
        after = decision.table
        # If newer files replaced the schema, a held file must not restore the old one by itself.
        overwrites = self.settings.evolution is Evolution.OVERWRITE and not asked
        if made is None and overwrites and after is not plan.after:
            return
        try:
            check_files(held.files, after, held.ready)
        except LakeError:
            return
        self.evolve(plan.table, decision, replaces=made is not None)
        for file in held.files:
            plan.adds[file.filename] = _added(file, held.ready, after)
            plan.released.append(file_name(file.filename))

    def commit(self, backlogs: tuple[PipelineBacklog, ...]) -> CommitPlan | None:
        if not (self.taken or self.plan.released) or not self.has_table:
            return None
        entries = [ready.entry for taken in self.taken.values() for ready in taken]
        self.plan.supersedes = frozenset().union(*(entry.supersedes for entry in entries))
        self.plan.advances = tuple(
            Advance(before=backlog.position, entries=tuple(self.taken[backlog.pipeline]))
            for backlog in backlogs
            if backlog.pipeline in self.taken
        )
        return self.plan


def _with_all_columns(entry: Entry, table: TableFacts) -> Entry:
    """Return a promotion with all columns that the table has by now: it drops none."""
    named = {one["name"] for one in entry.table_schema["fields"]}
    others = [one for one in table.schema["fields"] if one["name"] not in named]
    fields = [*entry.table_schema["fields"], *others]
    return replace(entry, table_schema={**entry.table_schema, "fields": fields})


def _given_up(ready: ReadyEntry, questions: PlanQuestions) -> dict[str, HeldState | None]:
    """Return the held files that an entry gives up, because their sources are read again.

    Raise if one was released meanwhile or came back: its rows would be added a second time.
    """
    names = ready.entry.supersedes
    states = {name: questions.held_state(name) for name in sorted(names)}
    for name, how in (questions.came_back(names) if names else {}).items():
        raise FileReleased(
            f"entry {ready.entry.sequence} has the sources of {name} read again, but the rows of "
            f"that file are in the table again: {how}. `penguin discard {name} --yes` takes them "
            "out, and the entry can be committed; or restore the table to a version in which "
            "they are not",
            path=ready.path,
        )
    for name, state in states.items():
        if state not in (HeldState.HELD, HeldState.GONE):
            raise FileReleased(
                f"entry {ready.entry.sequence} reads the sources of {name} again, but that file "
                f"is not held: its rows may be in the table; `penguin discard {name} --yes` "
                "removes the file from the table again, and the entry can be committed",
                path=ready.path,
            )
    return {name: HeldState.HELD for name, state in states.items() if state == HeldState.HELD}


def _added(file: FinishedFile, ready: ReadyEntry, table: TableFacts) -> Add:
    stats = delta_statistics(file, written=ready.entry.table_schema, table=table)
    return Add.of(file, stats, names_in_log(table), ready)


def _hold(
    ready: ReadyEntry, files: tuple[FinishedFile, ...], code: HoldCode, reasons: tuple[str, ...]
) -> list[Hold]:
    entry = ready.entry
    name = EntryName(entry.pipeline, entry.journal, entry.sequence)
    return [
        Hold(file=file, entry=name, code=code, reasons=reasons, outbox=ready.outbox(file))
        for file in files
    ]


def without(
    backlogs: tuple[PipelineBacklog, ...], stopped: tuple[Stopped | WaitingEntry, ...]
) -> tuple[PipelineBacklog, ...]:
    """Return the backlogs without entries that cannot be committed, and all after them."""
    places = {one.pipeline: one.sequence for one in stopped}
    return tuple(
        backlog if backlog.pipeline not in places else backlog.before(places[backlog.pipeline] or 0)
        for backlog in backlogs
    )
