"""Run a batch's units so that a file that kills its worker does not block the pipeline.

If a job fails because Python workers die (a crash in a library, too little memory), its units are
halved and run again, down to the single file, which fails with `worker_died`. If the driver itself
dies, the next one sees how often the batch was started without an end and takes fewer files.
Failures before any file is opened do not count against files.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from blizzard.events import InferenceEnded, JobSplit, UnitsEnded, UnitsNotRun
from blizzard.execute.merge import Ran, SettledBatch, settle
from blizzard.execute.runner import RunFailed, Runner, RunnerDied, WorkersDied
from blizzard.model.seen import Seen, joined
from blizzard.model.source.file import SourceFile
from blizzard.model.source.partly_read import failed, untouched
from blizzard.model.work import UnitOutcome, Work, WorkUnit
from lakebed.documents.entry import Started
from lakebed.documents.records import Failure, FailureStage, SourceRecord
from lakebed.errors import JournalConflict, panic_as_error
from lakebed.telemetry.events import Emit

PATIENCE = 2
"""Starts of a batch without an entry before it gets smaller."""
PATIENCE_ALONE = 3
"""Starts of a single file without an entry before it fails."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Portion:
    """The files to take of a batch that was started before, and the files to fail."""

    take: tuple[SourceFile, ...]
    died: tuple[SourceFile, ...] = ()
    note: Started = field(default_factory=Started)


def portion(files: tuple[SourceFile, ...], before: Started) -> Portion:
    """Halve the batch each time the process died with it, down to the file at fault.

    If the process was killed for another reason nothing is lost: the next batch is whole again.
    """
    starts = before.starts + 1
    room = max(1, len(files) >> max(0, starts - 1 - PATIENCE))
    take = files[:room]
    alone = take[0].key if starts > PATIENCE and len(take) == 1 else None
    tries = before.alone_starts + 1 if alone is not None and alone == before.alone else 1
    if alone is not None and tries > PATIENCE_ALONE:
        return Portion(take=(), died=take, note=before)
    return Portion(
        take=take,
        note=Started(starts=starts, alone=alone, alone_starts=tries if alone is not None else 0),
    )


def may_be_a_death(error: BaseException) -> bool:
    """Whether one of the files may have caused this end of a batch.

    A process that survives to handle an error did not die with the batch. After a journal conflict
    the other blizzard's record of the start is left untouched.
    """
    ours = panic_as_error(error)
    return not isinstance(ours, Exception) or isinstance(ours, RunnerDied | JournalConflict)


ROUNDS = 3
"""The most times that units are run again for new columns."""

Grow = Callable[[Mapping[str, Seen]], Work | None]
"""Takes the types of values without a column; returns the work with new columns, or None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitRuns:
    """Runs the units of one pipeline's batches."""

    pipeline: str
    runner: Runner
    emit: Emit

    def run(self, units: Sequence[WorkUnit], work: Work, grow: Grow) -> SettledBatch:
        """Run all units, bisecting jobs whose workers die, and merge the outcomes.

        Units that find values without a column are run again with new columns; no entry names what
        they wrote the first time.
        """
        try:
            ran = self._run(list(units), work)
            for _round in range(ROUNDS):
                wider = grow(joined(outcome.seen for _unit, outcome in ran))
                if wider is None:
                    break
                ran = self._run_again(ran, wider)
        finally:
            self.emit(UnitsEnded(pipeline=self.pipeline))
        return settle(ran, work.quarantine)

    def infer(self, units: Sequence[WorkUnit], work: Work) -> Mapping[str, Seen]:
        """Infer the types of values in all units; unreadable files contribute nothing.

        `UnitsEnded` is emitted only on failure, since the batch continues with `run`.
        """
        try:
            ran = self._run(list(units), work)
        except BaseException:
            self.emit(UnitsEnded(pipeline=self.pipeline))
            raise
        self.emit(InferenceEnded(pipeline=self.pipeline))
        return joined(outcome.seen for _unit, outcome in ran)

    def _run_again(self, ran: Ran, work: Work) -> Ran:
        """Run the units again that found values without a column, and keep the other outcomes.

        If a stop or a bound prevents a unit from running again, its first outcome is kept: the
        values are in `_rescued`.
        """
        kept = [(unit, outcome) for unit, outcome in ran if not outcome.seen]
        first = {unit.name: outcome for unit, outcome in ran if outcome.seen}
        again = [unit for unit, outcome in ran if outcome.seen]
        better = [
            (unit, came if came.sources or came.resolved else first.get(unit.name, came))
            for unit, came in self._run_next(again, work, kept, ran_before=True)
        ]
        # Keep the parts of a file in order. A unit that was split holds whole files.
        order = {unit.name: place for place, (unit, _outcome) in enumerate(ran)}
        return sorted([*kept, *better], key=lambda pair: order.get(pair[0].name, len(order)))

    def _run(self, units: list[WorkUnit], work: Work) -> Ran:
        if not units:
            return []
        try:
            return list(zip(units, self.runner.run(units, work), strict=True))
        except WorkersDied as failed:
            if any(unit.replay is not None for unit in units):
                raise  # A replay cannot be split.
            halves = halved(units)
            if halves is None:
                (unit,) = units
                return [(unit, died(unit, str(failed)))]
            self.emit(JobSplit(pipeline=self.pipeline, units=len(units), reason=str(failed)))
            ran: Ran = []
            for half in halves:
                ran += self._run_next(half, work, ran)
            return ran

    def _run_next(
        self, units: list[WorkUnit], work: Work, before: Ran, *, ran_before: bool = False
    ) -> Ran:
        """Run units after others of the same batch, whose outcomes are kept in any case."""
        records = [record for _unit, outcome in before for record in outcome.sources]
        try:
            return self._run(units, work)
        except RunFailed as failed_to_run:
            if not ran_before and not records:
                raise
            # Journal the others' outcomes first. The next batch meets the same error.
            reason = str(failed_to_run)
            self.emit(UnitsNotRun(pipeline=self.pipeline, units=len(units), reason=reason))
            return [(unit, UnitOutcome(unit=unit.name, sources=(), files=())) for unit in units]


def halved(units: list[WorkUnit]) -> tuple[list[WorkUnit], list[WorkUnit]] | None:
    """Halve the units, or the files of a single unit; return None for a single file."""
    if len(units) > 1:
        middle = len(units) // 2
        return units[:middle], units[middle:]
    (unit,) = units
    if len(unit.files) == 1:
        return None
    middle = len(unit.files) // 2
    return (
        [replace(unit, name=f"{unit.name}a", files=unit.files[:middle])],
        [replace(unit, name=f"{unit.name}b", files=unit.files[middle:])],
    )


def died(unit: WorkUnit, reason: str) -> UnitOutcome:
    """Return the outcome of a file that kills its worker even alone."""
    (file,) = unit.files
    why = f"the worker reading it died on every attempt: {reason}"
    return UnitOutcome(unit=unit.name, sources=(given_up(file, why),), files=())


def given_up(file: SourceFile, why: str) -> SourceRecord:
    """Return the failure record of a file that kills its reader."""
    failure = Failure(stage=FailureStage.PARSE, code="worker_died", message=why)
    return failed(untouched(file), failure)
