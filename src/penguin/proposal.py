"""The next commit of a table: decided once, carried out by a step and shown by a plan.

`propose` is the only way from a view of a table to its next commit. It reads, and never writes.
"""

from collections.abc import Callable
from dataclasses import replace

from lakebed.deltalog.delta_types import TableFacts
from lakebed.deltalog.versions import is_unused
from lakebed.storage.store import Reader
from penguin.backlog.look import TableView
from penguin.backlog.redo_conflicts import came_back, given_up, put_back
from penguin.committer import MissingFiles, missing_files
from penguin.held import HeldFile, releasable
from penguin.model.backlog import PipelineBacklog, WaitingEntry
from penguin.model.commit import CommitProposal, Releasable
from penguin.model.settings import TableSettings
from penguin.plan.commit import NO_QUESTIONS, NO_TABLE, PlanQuestions, plan_commit, without
from penguin.plan.join import join_others


def propose(
    settings: TableSettings,
    store: Reader,
    view: TableView,
    *,
    retry: tuple[HeldFile, ...] | None = None,
    looked: Callable[[int, int], None] = lambda _done, _files: None,
) -> CommitProposal:
    """Decide on the next commit of a table, from one view of it.

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
    retried = _may_go_in(store, view, view.held if retry is None else retry)
    planned = draft_commit(
        settings, facts, view.backlogs, store, retried, questions=questions, looked=looked
    )
    joined = join_others(settings, facts, planned.commit, view.others, store, questions.unused)
    return replace(
        planned,
        commit=joined.commit,
        stopped=(*view.stopped, *planned.stopped),
        waiting=(*view.waiting, *planned.waiting),
        left_out=(*view.others.left_out, *joined.left_out),
        unfit=joined.left_out,
    )


def _may_go_in(
    store: Reader, view: TableView, held: tuple[HeldFile, ...]
) -> tuple[Releasable, ...]:
    """Find the entries of held files, but those that an entry which waits gives up."""
    lost = given_up(store, held, view.transactions)
    return releasable(store, tuple(file for file in held if file.name not in lost))


def draft_commit(
    settings: TableSettings,
    facts: TableFacts | None,
    backlogs: tuple[PipelineBacklog, ...],
    store: Reader,
    releasable: tuple[Releasable, ...] = (),
    *,
    questions: PlanQuestions = NO_QUESTIONS,
    asked: bool = False,
    looked: Callable[[int, int], None] = lambda _done, _files: None,
) -> CommitProposal:
    """Plan the next commit of files that are all there.

    With `asked` an operator wants what was set aside to go in, also where that changes the schema.
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
        found = MissingFiles() if commit is None else missing_files(store, commit, looked)
        if not found.gone and not found.waiting:
            return replace(planned, waiting=waiting, retried=releasable)
        lacking |= found.gone
        # What an earlier entry waits for comes before findings of a later one.
        cut = {one.pipeline for one in found.waiting}
        waiting = (*(one for one in waiting if one.pipeline not in cut), *found.waiting)
        backlogs = without(backlogs, found.waiting)
