"""The status of a table, and what its next commit would do. Read-only.

The next commit is planned as a step plans it, and not made.
"""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from lakebed.clock import Clock
from lakebed.deltalog.snapshot import LogReader
from lakebed.deltalog.versions import Commit, read_commits
from lakebed.documents.pending_meta import HeldMeta
from lakebed.storage.store import Reader
from lakebed.telemetry.events import code_of
from penguin.backlog.redo_conflicts import discarded
from penguin.backlog.table_view import TableView, inspect
from penguin.foreign.rules import LEFT_ALONE
from penguin.foreign.search import ForeignSearch
from penguin.model.backlog import Danger, IgnoredFiles, LeftOut, ReadyEntry, Stopped, instant
from penguin.model.commit import CommitProposal
from penguin.model.settings import TableSettings
from penguin.proposal import propose


@dataclass(frozen=True, slots=True, kw_only=True)
class NextCommit:
    """What the next commit would do, or why it would not."""

    view: TableView
    """Everything read, including what the next commit leaves for later."""
    proposal: CommitProposal

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """Return the foreign files that are not committed, and the metas that are left alone."""
        metas = (
            LeftOut(path=path, code=LEFT_ALONE, reason=reason, asked_by=path)
            for path, reason in sorted(self.view.strays.items())
        )
        return (*self.proposal.left_out, *metas)


def explain(
    settings: TableSettings,
    store: Reader,
    *,
    everything: bool = False,
    clock: Clock | None = None,
    log: LogReader | None = None,
) -> NextCommit:
    """Return what the next commit would do, with a read-only store.

    With `everything` the journals are read to their ends, not only up to a commit's worth. `log`
    may be one that earlier calls have read.
    """
    bound = sys.maxsize if everything else settings.max_files_per_commit
    view = inspect(
        replace(settings, max_files_per_commit=bound),
        store,
        log or LogReader(store),
        search=ForeignSearch(settings=settings, clock=clock or Clock()),
    )
    return NextCommit(view=view, proposal=propose(settings, store, view))


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppedStatus:
    """An entry, or an unreadable journal, that stops its pipeline."""

    pipeline: str
    entry: int | None
    """None if the cause is not one entry."""
    code: str
    reasons: tuple[str, ...]
    since: str | None = None
    """When the entry was journaled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelinePosition:
    """One pipeline's status. Counts are None if its journal cannot be read."""

    pipeline: str
    committed_entry: int | None
    pending_entries: int | None = None
    pending_files: int | None = None
    pending_rows: int | None = None
    lag_secs: float | None = None
    """The age of the oldest uncommitted entry; 0 without one."""
    stopped: StoppedStatus | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignFilesStatus:
    """The status of foreign files."""

    pending_files: int = 0
    left_out: tuple[LeftOut, ...] = ()
    watermarks: Mapping[str, str] = field(default_factory=dict)
    """The highest committed name of each folder, if folders are scanned."""
    ignored: IgnoredFiles | None = None
    """Parquet files that a scan ignores; None if folders are not searched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableStatus:
    """The status of one table; `version` is None before it is created."""

    version: int | None
    last_commit: Commit | None
    pipelines: tuple[PipelinePosition, ...]
    held: tuple[HeldMeta, ...] = ()
    """The held files."""
    discarded: tuple[HeldMeta, ...] = ()
    """Discarded files whose sources were not read again."""
    others: ForeignFilesStatus = field(default_factory=ForeignFilesStatus)
    danger: Danger | None = None
    """Files have been waiting so long that a VACUUM may soon delete them."""

    @property
    def uncounted(self) -> tuple[str, ...]:
        """Name the stopped pipelines whose waiting entries are unknown."""
        return tuple(one.pipeline for one in self.pipelines if one.pending_entries is None)

    @property
    def lag_secs(self) -> float | None:
        """Return the age of the oldest uncommitted entry of all pipelines; None if unknown."""
        ages = [one.lag_secs for one in self.pipelines if one.lag_secs is not None]
        return None if len(ages) < len(self.pipelines) else max(ages, default=0.0)


def table_status(
    settings: TableSettings,
    store: Reader,
    now: datetime,
    *,
    everything: bool = True,
    log: LogReader | None = None,
) -> TableStatus:
    """Return the status of a table, from the same inspection and plan as the next step's.

    Without `everything` the journals are read up to the next commit's worth, not to their ends.
    `log` may be one that earlier calls have read.
    """
    shown = explain(settings, store, everything=everything, clock=Clock(now.timestamp), log=log)
    view = shown.view
    return TableStatus(
        version=view.version,
        last_commit=next(iter(read_commits(store, view.version or 0, 1)), None),
        pipelines=tuple(sorted(_pipelines(shown, now), key=lambda status: status.pipeline)),
        held=view.held,
        discarded=discarded(store, view.transactions) if everything else (),
        others=_others(shown),
        danger=view.danger(shown.proposal.left_out, now),
    )


def _others(shown: NextCommit) -> ForeignFilesStatus:
    others = shown.view.others
    refused = {file.path for file in shown.proposal.left_out}
    committable = [file for file in others.files if file.found.path not in refused]
    return ForeignFilesStatus(
        pending_files=len(committable) + others.more,
        left_out=shown.left_out,
        watermarks=others.watermarks,
        ignored=others.ignored if shown.view.searched else None,
    )


def _pipelines(shown: NextCommit, now: datetime) -> Iterator[PipelinePosition]:
    stopped = {each.pipeline: each for each in shown.proposal.stopped}
    for backlog in shown.view.backlogs:
        files = [file for ready in backlog.entries for file in ready.entry.files]
        yield PipelinePosition(
            pipeline=backlog.pipeline,
            committed_entry=backlog.position.sequence,
            pending_entries=len(backlog.entries),
            pending_files=len(files),
            pending_rows=sum(file.record_count for file in files),
            lag_secs=_age(backlog.entries[0].entry.created, now) if backlog.entries else 0.0,
            stopped=_stopped(stopped.pop(backlog.pipeline, None), backlog.entries),
        )
    for one in stopped.values():
        # Without a backlog, what is committed of it is uncertain.
        yield PipelinePosition(pipeline=one.pipeline, committed_entry=None, stopped=_stopped(one))


def _stopped(stopped: Stopped | None, entries: tuple[ReadyEntry, ...] = ()) -> StoppedStatus | None:
    if stopped is None:
        return None
    created = (one.entry.created for one in entries if one.entry.sequence == stopped.sequence)
    return StoppedStatus(
        pipeline=stopped.pipeline,
        entry=stopped.sequence,
        code=code_of(stopped.error),
        reasons=getattr(stopped.error, "reasons", (str(stopped.error),)),
        since=next(created, None),
    )


def _age(created: str, now: datetime) -> float | None:
    at = instant(created)
    return None if at is None else max(0.0, (now - at).total_seconds())
