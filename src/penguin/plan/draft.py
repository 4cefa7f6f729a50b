"""The next commit of a table, drafted: what the plan names is looked at once more.

It is planned again without what is not there.
"""

from collections.abc import Callable
from dataclasses import replace

from lakebed.deltalog.delta_types import TableFacts
from lakebed.storage.store import Reader
from penguin.committer import MissingFiles, missing_files
from penguin.model.backlog import Backlog, Waiting
from penguin.model.commit import Proposal, Releasable
from penguin.model.settings import TableSettings
from penguin.plan.commit import NO_QUESTIONS, PlanQuestions, plan_commit, without


def draft_commit(
    settings: TableSettings,
    facts: TableFacts | None,
    backlogs: tuple[Backlog, ...],
    store: Reader,
    releasable: tuple[Releasable, ...] = (),
    *,
    questions: PlanQuestions = NO_QUESTIONS,
    asked: bool = False,
    looked: Callable[[int, int], None] = lambda _done, _files: None,
) -> Proposal:
    """Plan the next commit of files that are all there.

    With `asked` an operator wants what was set aside to go in, also where that changes the schema.
    """
    lacking: dict[str, str] = {}
    waiting: tuple[Waiting, ...] = ()
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
        # What an earlier entry waits for comes before whatever was found of a later one.
        cut = {one.pipeline for one in found.waiting}
        waiting = (*(one for one in waiting if one.pipeline not in cut), *found.waiting)
        backlogs = without(backlogs, found.waiting)
