"""What the next commit of a table would do: the look and the proposal of a step, and no more."""

import sys
from dataclasses import dataclass, replace

from lakebed.clock import Clock
from lakebed.deltalog.snapshot import LogReader
from lakebed.storage.store import Reader
from penguin.backlog.look import TableView, look
from penguin.backlog.redo_conflicts import discarded
from penguin.foreign.ignored import why_ignored
from penguin.foreign.rules import meta_left_alone
from penguin.foreign.search import Search
from penguin.held import HeldFile
from penguin.model.backlog import Danger
from penguin.model.commit import Proposal
from penguin.model.foreign_file import LeftOut
from penguin.model.settings import TableSettings
from penguin.proposal import propose


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What the next commit would do, or why it would not."""

    view: TableView
    """All that was read, also what the next commit leaves for later."""
    proposal: Proposal
    discarded: tuple[HeldFile, ...] = ()
    """The files that were given up, and whose sources were not read again."""
    danger: Danger | None = None
    """Files have been waiting so long that a VACUUM may soon delete them."""
    ignored_for: str | None = None
    """Why files of other programs are not searched for; None where they are."""

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """Return what is not committed of other programs: files, and metas that are left alone."""
        metas = sorted(self.view.strays.items())
        return (*self.proposal.left_out, *(meta_left_alone(*one) for one in metas))


def explain(
    settings: TableSettings,
    store: Reader,
    *,
    everything: bool = False,
    clock: Clock | None = None,
    log: LogReader | None = None,
) -> Explanation:
    """Return what the next commit would do. What it is handed cannot write.

    With `everything` the journals are read to their ends, not only up to a commit's worth. Who
    knows the log from earlier looks hands it in.
    """
    bound = sys.maxsize if everything else settings.max_files_per_commit
    clock = clock or Clock()
    view = look(
        replace(settings, max_files_per_commit=bound),
        store,
        log or LogReader(store),
        search=Search(settings=settings, clock=clock),
    )
    proposal = propose(settings, store, view)
    return Explanation(
        view=view,
        proposal=proposal,
        discarded=discarded(store, view.transactions) if everything else (),
        danger=view.danger(proposal.left_out, clock.now()),
        ignored_for=None if view.searched else why_ignored(view.handoff, declared=view.declared),
    )
