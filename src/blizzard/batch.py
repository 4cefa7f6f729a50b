"""Running a batch's units so that a file that kills its worker does not wedge the pipeline.

When a job fails, something in it kills Python workers (a crash of a library, too little memory).
The units are halved and run again, down to the single file: that one is named `worker_died`, the
rest goes on.
"""

from collections.abc import Sequence
from dataclasses import replace

from blizzard.events import JobSplit, UnitsEnded
from blizzard.flow import UnitOutcome, Work, WorkUnit
from blizzard.outcome import Settled, settle
from blizzard.runner import Runner, WorkersDied
from lake.entry import Failure, SourceRecord, Stage
from lake.telemetry.events import Emit


def run_units(units: Sequence[WorkUnit], work: Work, runner: Runner, emit: Emit) -> Settled:
    """Run all units, splitting where the workers die, and settle what came of them."""
    try:
        ran, outcomes = _run(list(units), work, runner, emit)
    finally:
        emit(UnitsEnded(pipeline=work.marks["pipeline"]))
    return settle(ran, outcomes)


def _run(
    units: list[WorkUnit], work: Work, runner: Runner, emit: Emit
) -> tuple[list[WorkUnit], list[UnitOutcome]]:
    if not units:
        return [], []
    try:
        return units, runner.run(units, work)
    except WorkersDied as failed:
        halves = halved(units)
        if halves is None:
            (unit,) = units
            return units, [died(unit, str(failed))]
        emit(JobSplit(pipeline=work.marks["pipeline"], units=len(units), reason=str(failed)))
        ran: list[WorkUnit] = []
        outcomes: list[UnitOutcome] = []
        for half in halves:
            some, came = _run(half, work, runner, emit)
            ran += some
            outcomes += came
        return ran, outcomes


def halved(units: list[WorkUnit]) -> tuple[list[WorkUnit], list[WorkUnit]] | None:
    """Split units, or the files of a last unit, in two; None where one file is left."""
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
    """Say of a file that is alone in its job that it kills its worker."""
    (file,) = unit.files
    failure = Failure(
        stage=Stage.PARSE,
        code="worker_died",
        message=f"the worker that read it died each time it was tried: {reason}",
    )
    record = SourceRecord(
        source=file.source,
        path=file.path,
        size=file.size,
        etag=file.etag,
        skipped=file.skip,
        failure=failure,
    )
    return UnitOutcome(unit=unit.name, sources=(record,), files=())
