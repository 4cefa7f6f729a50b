"""Announcements about a table: each is made once, and again only when it changes."""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

from lakebed.clock import Clock
from lakebed.documents.pending_meta import HeldMeta
from lakebed.telemetry.events import Emit, code_of
from penguin.backlog.table_view import TableView
from penguin.events.backlog import (
    BacklogSeen,
    EntryNotHandedOff,
    FilesAtRisk,
    FilesIgnored,
    FilesLeftOut,
    FilesNoLongerAtRisk,
    ForeignFilesSearched,
    MetasSkipped,
    PipelineResumed,
    PipelineStopped,
    TableWaiting,
)
from penguin.events.commits import REJECTED, EntryRejected, FilesHeld
from penguin.model.backlog import LeftOut, Stopped, WaitingEntry
from penguin.model.commit import CommitPlan

T = TypeVar("T", bound=Hashable)
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


def grouped(pairs: Iterable[tuple[K, V]]) -> dict[K, tuple[V, ...]]:
    """Group values by key, in order."""
    found: dict[K, list[V]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return {key: tuple(values) for key, values in found.items()}


@dataclass(slots=True, kw_only=True)
class Announcer:
    """Emits events about one table, and remembers what it has announced."""

    table: str
    emit: Emit
    clock: Clock
    stopped: dict[str, Stopped] = field(default_factory=dict)
    """The pipelines that are stopped now."""
    waiting: tuple[WaitingEntry, ...] = ()
    """The entries that are not handed off now."""
    held_files: tuple[HeldMeta, ...] = ()
    """The files that are held now."""
    is_missing: bool = False
    """Whether there is neither a table nor a journal now."""
    _known: dict[str, frozenset[object]] = field(default_factory=dict)
    """The last announcement, by subject."""
    _alarmed: bool = False

    def _new(self, subject: str, now: Iterable[T]) -> list[T]:
        """Return items that were absent at the last call, and remember the current ones."""
        there = list(now)
        before, self._known[subject] = self._known.get(subject, frozenset()), frozenset(there)
        return [one for one in there if one not in before]

    def missing(self, uri: str, *, missing: bool) -> None:
        """Announce once that a place has neither a table nor a journal."""
        self.is_missing = missing
        if self._new("missing", [True] if missing else []):
            self.emit(TableWaiting(table=self.table, table_uri=uri))

    def backlog(self, view: TableView, seconds: float) -> None:
        """Announce how much is waiting and since when; `seconds` is the time of the inspection."""
        self.held_files = view.held
        waiting = [ready.entry for backlog in view.backlogs for ready in backlog.entries]
        journaled = (datetime.fromisoformat(entry.created).timestamp() for entry in waiting)
        self.emit(
            BacklogSeen(
                table=self.table,
                version=view.version,
                entries=None if view.stopped else len(waiting),
                files=sum(len(entry.files) for entry in waiting),
                oldest=min(journaled, default=None),
                held=Counter(file.code for file in view.held),
                seconds=seconds,
            )
        )
        others = view.others
        self.emit(
            ForeignFilesSearched(
                table=self.table,
                sweep=others.sweep,
                listed=others.listed,
                waiting=len(others.files) + others.more,
                left_out=len(others.left_out),
                ignored=others.ignored.files,
            )
        )
        if not others.sweep:
            return  # Only a sweep sees all files that a scan does not take.
        for now in self._new("ignored", [others.ignored]):
            if now.files:
                self.emit(
                    FilesIgnored(
                        table=self.table, files=now.files, some=now.some, reason=now.reason
                    )
                )

    def strays(self, strays: Mapping[str, str]) -> None:
        """Announce metas that are left alone, once, grouped by reason."""
        new = self._new("strays", sorted(strays.items()))
        for reason, paths in grouped((reason, path) for path, reason in new).items():
            self.emit(MetasSkipped(table=self.table, reason=reason, paths=paths))

    def left_out(self, now: tuple[LeftOut, ...]) -> None:
        """Announce foreign files that are not committed, once, grouped by reason."""
        new = self._new("left out", now)
        by_reason = grouped(((file.code, file.reason), file.path) for file in new)
        for (code, reason), paths in by_reason.items():
            self.emit(FilesLeftOut(table=self.table, code=code, reason=reason, paths=paths))

    def waits(self, now: tuple[WaitingEntry, ...]) -> None:
        """Announce entries that are not handed off yet, once."""
        self.waiting = now
        for entry in self._new("waiting", now):
            self.emit(
                EntryNotHandedOff(
                    table=self.table,
                    pipeline=entry.pipeline,
                    entry=entry.sequence,
                    reason=entry.reason,
                )
            )

    def halts(self, now: tuple[Stopped, ...]) -> None:
        """Announce pipelines that stopped, each once, and those that continue."""
        before, self.stopped = self.stopped, {each.pipeline: each for each in now}
        for stopped in now:
            known = before.get(stopped.pipeline)
            if known is None or str(known.error) != str(stopped.error):
                self.emit(
                    PipelineStopped(
                        table=self.table,
                        pipeline=stopped.pipeline,
                        code=code_of(stopped.error),
                        error=str(stopped.error),
                        code_before=None if known is None else code_of(known.error),
                    )
                )
        for pipeline in before.keys() - self.stopped.keys():
            code = code_of(before[pipeline].error)
            self.emit(PipelineResumed(table=self.table, pipeline=pipeline, code=code))

    def held(self, plan: CommitPlan) -> None:
        """Announce the files that a commit holds, grouped by entry and reasons."""
        holds = (((hold.entry, hold.code, hold.reasons), hold.file) for hold in plan.holds)
        for (entry, code, reasons), files in grouped(holds).items():
            self.emit(
                FilesHeld(
                    table=self.table,
                    pipeline=entry.pipeline,
                    entry=entry.sequence,
                    code=code.value,
                    reasons=reasons,
                    paths=tuple(file.filename for file in files),
                    rows=sum(file.record_count for file in files),
                )
            )

    def rejected(self, plan: CommitPlan) -> None:
        """Announce the entries that a commit rejected: settled without effect."""
        for one in plan.rejected:
            what, way_out = REJECTED[one.kind]
            self.emit(
                EntryRejected(
                    table=self.table,
                    pipeline=one.entry.pipeline,
                    entry=one.entry.sequence,
                    reasons=one.reasons,
                    kind=one.kind,
                    what=what,
                    way_out=way_out,
                )
            )

    def watch(self, view: TableView, left_out: tuple[LeftOut, ...]) -> None:
        """Raise an alarm once when files have waited so long that a VACUUM may delete them."""
        danger = view.danger(left_out, self.clock.now())
        if danger is not None and not self._alarmed:
            self.emit(
                FilesAtRisk(
                    table=self.table,
                    since=danger.waiting_since.isoformat(),
                    retention_secs=danger.retention.total_seconds(),
                    danger=danger.sentence(),
                )
            )
        # Files behind a stopped pipeline are unseen, so the alarm stays.
        unseen = self._alarmed and bool(view.stopped)
        if danger is None and self._alarmed and not unseen:
            self.emit(FilesNoLongerAtRisk(table=self.table))
        self._alarmed = danger is not None or unseen
