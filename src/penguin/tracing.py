"""Spans of commits in the traces of the batches whose rows they make visible, from events.

Each of those batches has a span for penguin's part, below its own: the inspection of the table, the
reading of what was found, the commit, and the checkpoint if the commit caused one. An inspection
without work makes no trace.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass

from lakebed.telemetry.events import Event
from lakebed.telemetry.export.spans import BATCH, Span, TracedBatch
from lakebed.terminal.console import picked
from penguin.events.backlog import BacklogSeen
from penguin.events.commits import CheckpointFailed, CheckpointWritten, EntriesCommitted

MOST_ENTRIES = 100
"""The most entries of one commit with spans of their own."""
PART = "penguin"


@dataclass(frozen=True, slots=True)
class _Looked:
    began: float
    ended: float


class CommitTracer:
    """Listens to the events of every table."""

    def __init__(self, put: Callable[[Span], None], seconds: Callable[[], float]) -> None:
        self._put, self._seconds = put, seconds
        self._lock = threading.Lock()
        self._looked: dict[str, _Looked] = {}
        self._last: dict[str, TracedBatch] = {}

    def __call__(self, event: Event) -> None:
        """Handle an event."""
        now = self._seconds()
        with self._lock:
            match event:
                case BacklogSeen():
                    self._looked[event.table] = _Looked(now - event.seconds, now)
                case EntriesCommitted():
                    self._committed(event, now)
                case CheckpointWritten():
                    self._checkpoint(event.table, event.version, now - event.seconds, now)
                case CheckpointFailed():
                    self._checkpoint(event.table, event.version, now, now, error=event.error)
                case _:
                    pass

    def _committed(self, event: EntriesCommitted, now: float) -> None:
        commit = now - event.seconds
        looked = self._looked.pop(event.table, _Looked(commit, commit))
        told = picked(event, "table version")
        sums = picked(event, "entries files rows")
        for settled in event.settled[-MOST_ENTRIES:]:
            batch = TracedBatch(
                pipeline=settled.pipeline, journal=settled.journal, entry=settled.entry
            )
            self._last[event.table] = batch
            for name, below, took, facts in (
                (PART, BATCH, (looked.began, now), told),
                ("poll", PART, (looked.began, looked.ended), told),
                ("read", PART, (looked.ended, commit), told),
                ("commit", PART, (commit, now), told | sums),
            ):
                self._put(batch.part(name, below=below, took=took, attributes=facts))

    def _checkpoint(
        self, table: str, version: int, start: float, end: float, error: str | None = None
    ) -> None:
        """Add a checkpoint to the trace of the last batch committed before it."""
        batch = self._last.get(table)
        if batch is not None:
            self._put(
                batch.part(
                    "checkpoint",
                    str(end),
                    below=PART,
                    took=(start, end),
                    attributes={"table": table, "version": version},
                    error=error,
                )
            )
