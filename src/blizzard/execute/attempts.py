"""What attempts at the units of a batch report while it runs: a start counts, and counters move.

A start of a batch counts from the first report on: before that, no file was opened, so that no
file can have killed the process. Counters move with every report. Work that did not
come into the journal (an attempt that Spark repeated, a file that failed at its end, a batch that
was never journaled) is counted once more, as discarded: done less discarded is what is journaled.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from blizzard.events import WorkDiscarded, WorkDone
from blizzard.model.progress import Done, Report
from lakebed.errors import LakeError
from lakebed.telemetry.events import Emit

NOTHING = Done()


def balanced(
    heard: Mapping[str, Done], winners: Sequence[tuple[str, Done]], journaled: Done
) -> tuple[Done, Done]:
    """Return what was done beyond the reports, and what was done and is not in the journal.

    `heard` is the last report of every attempt, `winners` what the attempts whose outcome counts
    have done in the end. Reports may be lost, so the journal is never behind the counters' truth.
    """
    rest = NOTHING
    for attempt, done in winners:
        rest += done.since(heard.get(attempt, NOTHING))
    everything = sum(heard.values(), rest)
    never_told = replace(journaled.since(everything), write_seconds=[])
    return rest + never_told, replace(everything.since(journaled), write_seconds=[])


class Attempts:
    """Takes in the reports of one pipeline's running units."""

    def __init__(self, pipeline: str, emit: Emit, *, units_report: bool = False) -> None:
        self._pipeline = pipeline
        self._emit = emit
        self._units_report = units_report
        # Held while a start is written down: no unit reads a byte before its call is answered.
        self._lock = threading.Lock()
        self._running = False
        self._note: Callable[[], None] | None = None
        self._heard: dict[str, Done] = {}

    @contextmanager
    def running(self, note_start: Callable[[], None]) -> Iterator[None]:
        """Take reports while a batch runs; its start is noted with the first one.

        Where units cannot report, it is noted at once.
        """
        with self._lock:
            self._discard()
            self._running = True
            if self._units_report:
                self._note = note_start
            else:
                note_start()
        try:
            yield
        finally:
            with self._lock:
                self._running, self._note = False, None

    def heard(self, report: Report) -> None:
        """Take in a report; one that comes after the batch has ended changes nothing."""
        with self._lock:
            if not self._running:
                return
            if self._note is not None:
                # A store that does not answer now is asked again with the next report.
                with contextlib.suppress(LakeError):
                    self._note()
                    self._note = None
            new = report.done.since(self._heard.get(report.attempt, NOTHING))
            self._heard[report.attempt] = report.done
            if new != NOTHING:
                self._tell(new)

    def settle(self, winners: Sequence[tuple[str, Done]], journaled: Done) -> None:
        """Bring the counters to what the journal says, and count what did not come into it."""
        with self._lock:
            rest, discarded = balanced(self._heard, winners, journaled)
            self._heard = {}
            self._tell(rest)
            self._tell_discarded(discarded)

    def _discard(self) -> None:
        """Count what an earlier batch has done that never came into the journal."""
        discarded = sum(self._heard.values(), NOTHING)
        self._heard = {}
        self._tell_discarded(discarded)

    def _tell(self, done: Done) -> None:
        self._emit(WorkDone(pipeline=self._pipeline, done=done))

    def _tell_discarded(self, done: Done) -> None:
        if replace(done, write_seconds=[]) != NOTHING:
            self._emit(WorkDiscarded(pipeline=self._pipeline, done=done))
