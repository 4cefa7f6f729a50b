"""The next commit of a table: a step carries it out, a dry run shows it.

`propose` is the only way from a view of a table to its next commit. It reads and never writes.

Foreign files join the commit of the pipelines' entries, one by one. Each is compared with the table
after the entries and the files before it; one that does not fit is left out with its reason, and
blocks no other.
"""

from dataclasses import dataclass, field, replace

from lakebed.deltalog.delta_types import TableFacts, names_in_log
from lakebed.deltalog.versions import is_unused
from lakebed.documents.pending_meta import HeldMeta
from lakebed.layout import why_unreadable
from lakebed.partition import Template
from lakebed.storage.store import Reader
from penguin.backlog.redo_conflicts import came_back, given_up, put_back
from penguin.backlog.table_view import TableView
from penguin.committer import MissingFiles, missing_files
from penguin.foreign import rules
from penguin.foreign.search import ForeignFiles, recheck
from penguin.held import releasable
from penguin.model.backlog import ForeignFile, LeftOut, PipelineBacklog, WaitingEntry
from penguin.model.commit import (
    Add,
    CommitPlan,
    CommitProposal,
    EntryRefused,
    ForeignAdds,
    Releasable,
)
from penguin.model.settings import TableSettings
from penguin.plan.commit import (
    NO_QUESTIONS,
    NO_TABLE,
    CommitDraft,
    PlanQuestions,
    empty_plan,
    plan_commit,
    without,
)
from penguin.plan.evolution import created_as, decide_on
from penguin.plan.stats import delta_statistics


def propose(
    settings: TableSettings,
    store: Reader,
    view: TableView,
    *,
    retry: tuple[HeldMeta, ...] | None = None,
) -> CommitProposal:
    """Decide the next commit of a table, from one view of it.

    With `retry` only these held files are tried again, otherwise all.
    """
    if view.is_idle:
        return CommitProposal(left_out=view.others.left_out)
    facts = view.facts
    questions = PlanQuestions(
        transactions=view.transactions,
        unused=lambda: facts is not None and is_unused(store, facts.version or 0),
        why_not_replaced=(
            view.table.why_not_replaced if view.table is not None else lambda _files: NO_TABLE
        ),
        came_back=lambda names: came_back(store, names, view.transactions),
        put_back=lambda entry: put_back(store, entry, facts.version if facts else None),
    )
    retried = _releasable(store, view, view.held if retry is None else retry)
    planned = draft_commit(settings, facts, view.backlogs, store, retried, questions=questions)
    joined = join_others(settings, facts, planned.commit, view.others, store)
    return replace(
        planned,
        commit=joined.commit,
        stopped=(*view.stopped, *planned.stopped),
        waiting=(*view.waiting, *planned.waiting),
        left_out=(*view.others.left_out, *joined.left_out),
        unfit=joined.left_out,
    )


def _releasable(
    store: Reader, view: TableView, held: tuple[HeldMeta, ...]
) -> tuple[Releasable, ...]:
    """Find the entries of held files, except of files that a waiting entry gives up."""
    lost = given_up(store, held, view.transactions)
    return releasable(store, (file for file in held if file.name not in lost))


def draft_commit(
    settings: TableSettings,
    facts: TableFacts | None,
    backlogs: tuple[PipelineBacklog, ...],
    store: Reader,
    releasable: tuple[Releasable, ...] = (),
    *,
    questions: PlanQuestions = NO_QUESTIONS,
    asked: bool = False,
) -> CommitProposal:
    """Plan the next commit, with only files that exist.

    With `asked` an operator orders held files to be committed, even if that changes the schema.
    """
    lacking: dict[str, str] = {}
    waiting: tuple[WaitingEntry, ...] = ()
    while True:
        planned = plan_commit(
            settings,
            facts,
            backlogs,
            questions,
            releasable=releasable,
            lacking=lacking,
            asked=asked,
        )
        commit = planned.commit
        found = MissingFiles() if commit is None else missing_files(store, commit)
        if not found.gone and not found.waiting:
            return replace(planned, waiting=waiting, retried=releasable)
        lacking |= found.gone
        # An earlier waiting entry replaces findings of later ones.
        cut = {one.pipeline for one in found.waiting}
        waiting = (*(one for one in waiting if one.pipeline not in cut), *found.waiting)
        backlogs = without(backlogs, found.waiting)


def join_others(
    settings: TableSettings,
    table: TableFacts | None,
    commit: CommitPlan | None,
    others: ForeignFiles,
    store: Reader,
) -> CommitProposal:
    """Add foreign files that are still unchanged to a commit.

    Without a commit they make one, up to as many files as a commit may hold.
    """
    if commit is not None and commit.rearranges:
        return CommitProposal(commit=commit)  # A compaction stays alone.
    there, gone = recheck(store, others)
    draft = _ForeignDraft(
        settings=settings,
        plan=commit or empty_plan(table),
        has_table=commit is not None or table is not None,
    )
    for one in there:
        if len(draft.plan.adds) >= settings.max_files_per_commit:
            break
        if one.found.path not in draft.plan.adds:
            draft.take(one)
    if draft.taken:
        commit = draft.plan
        commit.others = ForeignAdds(
            taken=tuple(one.found for one in draft.taken.values()),
            scan=others.scan,
            scanned=others.scanned,
        )
    return CommitProposal(commit=commit, left_out=(*draft.left_out, *gone))


class _Unfit(Exception):
    """A file cannot join the commit; the message says why."""

    def __init__(self, reason: str, code: str = rules.UNFIT) -> None:
        super().__init__(reason)
        self.code = code


@dataclass(slots=True, kw_only=True)
class _ForeignDraft(CommitDraft):
    """A commit that foreign files join; refusing one leaves the draft unchanged."""

    taken: dict[str, ForeignFile] = field(default_factory=dict)
    """The files that join, by their transactions."""
    left_out: list[LeftOut] = field(default_factory=list)

    def take(self, one: ForeignFile) -> None:
        twin = self.taken.get(one.found.transaction)
        if twin is not None:
            self.left_out.append(rules.name_taken(one.found, twin.found.path))
            return
        try:
            self._take(one)
        except _Unfit as reason:
            self.left_out.append(rules.leave_out(one.found, reason.code, str(reason)))

    def _take(self, one: ForeignFile) -> None:
        unreadable = why_unreadable(one.found.path)
        if unreadable is not None:
            raise _Unfit(f"{unreadable}; give it another name, with %3A or %2A in a folder's")
        table = self.plan.table if self.has_table else self._new_table(one)
        after = self.plan.after if self.has_table else table
        apart = after.partition_columns
        seen = rules.as_the_table_sees_it(one.schema, one.statistics, after.schema, apart)
        decision = decide_on(after, seen, apart, self.settings, floats=False)
        if isinstance(decision, EntryRefused):
            raise _Unfit("; ".join(decision.reasons), rules.REFUSED)
        after = decision.table
        names = frozenset(field["name"] for field in one.schema["fields"])
        try:
            values = rules.typed_values(rules.partition_values(one.found, apart, names), after)
        except ValueError as reason:
            raise _Unfit(str(reason)) from None
        file = one.finished(values)
        self.evolve(table, decision)
        stats = delta_statistics(file, written=seen, table=after)
        self.plan.adds[file.filename] = Add.of(file, stats, names_in_log(after))
        self.taken[one.found.transaction] = one

    def _new_table(self, one: ForeignFile) -> TableFacts:
        written = self.settings.partition_template
        template = None if written is None else Template.parse(written)
        try:
            schema, apart = rules.new_columns(one.schema, one.found, template)
        except ValueError as reason:
            raise _Unfit(str(reason)) from None
        relaxed = rules.as_the_table_sees_it(schema, {}, None, ())
        return created_as(relaxed, apart, self.settings, floats=False)
