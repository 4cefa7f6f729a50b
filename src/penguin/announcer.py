"""What is announced about a table: each thing once, not at every poll, and again if it changes."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from lakebed.clock import Clock
from lakebed.documents.data_file import FinishedFile
from lakebed.documents.pending_meta import EntryName
from lakebed.telemetry.events import Emit, code_of
from penguin.backlog.look import TableView
from penguin.events.backlog import (
    FEW,
    BacklogSeen,
    EntryNotHandedOff,
    FilesLookedAt,
    FilesUnnamed,
    MetasLeftAlone,
)
from penguin.events.commits import (
    CompactionPassedOver,
    EntryRejected,
    FilesHeld,
    PromotionPassedOver,
    RetractionPassedOver,
)
from penguin.events.foreign_files import (
    FilesLeftOut,
    FilesPassedOver,
    FilterBoundsOthersOnly,
    OthersSeen,
)
from penguin.events.health import (
    FilesWaitNoLonger,
    FilesWaitTooLong,
    PipelineMended,
    PipelineStopped,
)
from penguin.held import HeldFile
from penguin.model.backlog import Stopped, Waiting
from penguin.model.commit import CommitPlan, HoldCode
from penguin.model.foreign_file import LeftOut, PassedOver
from penguin.model.settings import TableSettings


@dataclass(slots=True, kw_only=True)
class Announcer:
    """Announces what happens to one table, and remembers what it has announced."""

    table: str
    emit: Emit
    clock: Clock
    stopped: dict[str, Stopped] = field(default_factory=dict)
    """The pipelines that cannot go on now."""
    waiting: tuple[Waiting, ...] = ()
    """The entries that are not handed off now."""
    held_files: tuple[HeldFile, ...] = ()
    """The files that are set aside now."""
    _announced_strays: set[str] = field(default_factory=set)
    _announced_left_out: frozenset[LeftOut] = frozenset()
    _announced_passed_over: PassedOver = field(default_factory=PassedOver)
    _announced_bounds: bool = False
    _announced_unnamed: bool = False
    _alarmed: bool = False

    def backlog(self, view: TableView, seconds: float) -> None:
        """Announce how much is waiting, and since when; the look took so long."""
        self.held_files = view.held
        waiting = [ready.entry for backlog in view.backlogs for ready in backlog.entries]
        journaled = (datetime.fromisoformat(entry.created).timestamp() for entry in waiting)
        self.emit(
            BacklogSeen(
                table=self.table,
                version=view.version,
                entries=len(waiting),
                files=sum(len(entry.files) for entry in waiting),
                oldest=min(journaled, default=None),
                held=Counter(file.meta.code for file in view.held),
                seconds=seconds,
            )
        )
        others = view.others
        self.emit(
            OthersSeen(
                table=self.table,
                sweep=None if others.listing is None else others.listing.sweep,
                listed=0 if others.listing is None else others.listing.files,
                waiting=len(others.files) + others.more,
                left_out=len(others.left_out),
                passed_over=others.passed_over.files,
            )
        )
        if others.listing is not None and others.listing.sweep:
            self._passed_over(others.passed_over)

    def _passed_over(self, now: PassedOver) -> None:
        """Announce files that a scan does not take, once, and again when they change.

        Only a sweep sees all of them. What another engine is writing comes and goes between two.
        """
        if now.files and now != self._announced_passed_over:
            self.emit(
                FilesPassedOver(table=self.table, files=now.files, some=now.some, reason=now.reason)
            )
        self._announced_passed_over = now

    def bounds(self, settings: TableSettings, view: TableView) -> None:
        """Announce once that a filter of folders leaves out nothing that a journal names."""
        given = {
            "partition_filter": settings.partition_filter is not None,
            "sweep_horizon": settings.sweep_horizon is not None,
            "file_pattern": settings.file_pattern is not None and not view.searched,
        }
        keys = tuple(name for name, is_set in given.items() if is_set)
        if keys and view.declared and not self._announced_bounds:
            self._announced_bounds = True
            self.emit(FilterBoundsOthersOnly(table=self.table, keys=keys, searched=view.searched))

    def unnamed(self, view: TableView, find: Callable[[], Iterable[str]]) -> None:
        """Announce files of blizzard's that no entry names, once: a dead attempt left them."""
        if self._announced_unnamed or not view.others.ours or view.stopped:
            return
        self._announced_unnamed = True
        if left := sorted(find()):
            self.emit(FilesUnnamed(table=self.table, files=len(left), some=tuple(left[:FEW])))

    def looked(self, done: int, files: int) -> None:
        """Announce how far the look at the next commit's files is."""
        self.emit(FilesLookedAt(table=self.table, done=done, files=files))

    def strays(self, strays: Mapping[str, str]) -> None:
        """Announce metas that are left alone once, those with the same reason together."""
        by_reason: dict[str, list[str]] = {}
        for path, reason in sorted(strays.items()):
            if path not in self._announced_strays:
                by_reason.setdefault(reason, []).append(path)
        for reason, paths in by_reason.items():
            self.emit(MetasLeftAlone(table=self.table, reason=reason, paths=tuple(paths)))
        self._announced_strays = set(strays)

    def left_out(self, now: tuple[LeftOut, ...]) -> None:
        """Announce files of other programs that are not committed, once, by reason."""
        by_reason: dict[tuple[str, str], list[str]] = {}
        for file in now:
            if file not in self._announced_left_out:
                by_reason.setdefault((file.code, file.reason), []).append(file.path)
        for (code, reason), paths in by_reason.items():
            self.emit(FilesLeftOut(table=self.table, code=code, reason=reason, paths=tuple(paths)))
        self._announced_left_out = frozenset(now)

    def waits(self, now: tuple[Waiting, ...]) -> None:
        """Announce an entry that is not handed off yet, once."""
        for entry in now:
            if entry not in self.waiting:
                self.emit(
                    EntryNotHandedOff(
                        table=self.table,
                        pipeline=entry.pipeline,
                        entry=entry.sequence,
                        reason=entry.reason,
                    )
                )
        self.waiting = now

    def halts(self, now: tuple[Stopped, ...]) -> None:
        """Announce a stopped pipeline once, not at every poll, and one that continues."""
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
            self.emit(PipelineMended(table=self.table, pipeline=pipeline, code=code))

    def held(self, plan: CommitPlan) -> None:
        """Announce the files that a commit left out, those with the same reasons together."""
        together: dict[tuple[EntryName, HoldCode, tuple[str, ...]], list[FinishedFile]] = {}
        for hold in plan.holds:
            together.setdefault((hold.entry, hold.code, hold.reasons), []).append(hold.file)
        for (entry, code, reasons), files in together.items():
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

    def not_promoted(self, plan: CommitPlan) -> None:
        """Announce the promotions and retractions that a commit settled without effect."""
        kinds: dict[str, Callable[..., EntryRejected]] = {
            "promote": PromotionPassedOver,
            "compact": CompactionPassedOver,
        }
        for one in plan.not_promoted:
            rejected = kinds.get(one.kind) or partial(RetractionPassedOver, kind=one.kind)
            self.emit(
                rejected(
                    table=self.table,
                    pipeline=one.entry.pipeline,
                    entry=one.entry.sequence,
                    reasons=one.reasons,
                )
            )

    def watch(self, view: TableView, left_out: tuple[LeftOut, ...]) -> None:
        """Raise an alarm once when files have waited so long that a VACUUM may delete them."""
        danger = view.danger(left_out, self.clock.now())
        if danger is not None and not self._alarmed:
            self.emit(
                FilesWaitTooLong(
                    table=self.table,
                    since=danger.waiting_since.isoformat(),
                    retention_secs=danger.retention.total_seconds(),
                    danger=danger.sentence(),
                )
            )
        # What waits behind a pipeline that stopped is not in sight.
        unseen = self._alarmed and bool(view.stopped)
        if danger is None and self._alarmed and not unseen:
            self.emit(FilesWaitNoLonger(table=self.table))
        self._alarmed = danger is not None or unseen
