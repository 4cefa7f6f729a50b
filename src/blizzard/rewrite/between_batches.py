"""Rewrites that a run makes between its batches: changed files replaced, small files merged."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from blizzard.events import (
    CompactionFailed,
    CompactionGaveWay,
    CompactionStarted,
    ContentReplaced,
    FilesCompacted,
    ReplacementWaits,
)
from blizzard.ingest import Ingest
from blizzard.model.source.file import SourceFile
from blizzard.model.stores import OpenReader
from blizzard.rewrite.compact import CompactionPlan, KnownOrigins, compact
from blizzard.rewrite.replace import Renewed, renew
from blizzard.rewrite.table_state import PromotionWaits
from blizzard.rewrite.transaction import RewriteDone
from lakebed.errors import LakeError, ObjectMissing
from lakebed.storage.store import Store
from lakebed.telemetry.events import Emit, code_of

REST_SECS = 30.0
"""Time between two attempts to replace the rows of changed files."""


@dataclass(slots=True)
class BetweenBatches:
    """Rewrites rows of one pipeline when that is due, and reports the outcome."""

    compacts_at: float
    _rested: float = -REST_SECS
    _known: KnownOrigins = field(default_factory=KnownOrigins)

    def renew(
        self, store: Store, files: Sequence[SourceFile], ingest: Ingest, open_source: OpenReader
    ) -> Renewed:
        """Supersede the rows of changed files with their new content (`on_change: replace`).

        While an attempt waits for penguin, the next one does not read the journals every second.
        """
        now, name, emit = ingest.clock.seconds(), ingest.settings.name, ingest.emit
        if self._rested <= now < self._rested + REST_SECS:
            return Renewed()
        renewed = renew(store, files, ingest, open_source)
        self._rested = now if renewed.waits is not None else -REST_SECS
        if renewed.entries:
            emit(
                ContentReplaced(
                    pipeline=name,
                    entry=renewed.entries[0],
                    files=len(renewed.keys),
                    rows=renewed.rows,
                    removed=renewed.removed,
                )
            )
        if renewed.waits is not None:
            emit(ReplacementWaits(pipeline=name, reason=renewed.waits))
        return renewed

    def compact(self, store: Store, ingest: Ingest, *, at_end: bool) -> int | None:
        """Merge small data files if that is due, or at the end of a run; return the entry.

        What keeps it from that is reported, and is no failure of a batch.
        """
        clock, settings, emit = ingest.clock, ingest.settings, ingest.emit
        name, now = settings.name, clock.seconds()
        if now < self.compacts_at and not at_end:
            return None
        self.compacts_at = now + settings.sink.compact.every
        emit(CompactionStarted(pipeline=name))
        try:
            done = compact(store, settings, ingest.runner, clock=clock, known=self._known)
        except PromotionWaits as waits:
            emit(CompactionGaveWay(pipeline=name, reason=waits.message))
        except ObjectMissing:
            pass  # There is no table yet.
        except LakeError as error:
            emit(CompactionFailed(pipeline=name, code=code_of(error), error=str(error)))
        else:
            _report(done, name, emit)
            return done.entry
        return None


def _report(done: RewriteDone[CompactionPlan], name: str, emit: Emit) -> None:
    if done.gave_way is not None:
        emit(CompactionGaveWay(pipeline=name, reason=done.gave_way))
    for one in done.failed:
        emit(CompactionFailed(pipeline=name, code=one.code, error=one.message))
    if done.entry is not None:
        new = [file for one in done.replaced for file in one.new]
        emit(
            FilesCompacted(
                pipeline=name,
                entry=done.entry,
                files=sum(len(one.old) for one in done.replaced),
                into=len(new),
                bytes=sum(file.size for file in new),
            )
        )
