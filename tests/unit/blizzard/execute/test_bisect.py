"""A file that kills its worker is found and named; the rest goes on."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from blizzard.events import JobSplit
from blizzard.execute.bisect import may_be_a_death
from blizzard.execute.runner import RunFailed, Runner, RunnerDied, StartNotice, WorkersDied
from blizzard.model.work import UnitOutcome, Work, WorkUnit
from lakebed.errors import JournalConflict, LakeError, StoreDenied
from lakebed.storage.store import Store
from tests.support.builders import Bench, ndjson, pipeline_settings, put, rows
from tests.support.runner import InProcessRunner, RunsOnly
from tests.support.stores import refusing


@dataclass
class Deadly(RunsOnly):
    """A runner that comes to an end whenever it touches a file of a certain name."""

    error: BaseException
    poison: str = ""
    jobs: list[int] = field(default_factory=list)
    parallelism: int = 2

    def run(self, units: Sequence[WorkUnit], work: Work) -> list[UnitOutcome]:
        self.jobs.append(len(units))
        if any(self.poison in file.path for unit in units for file in unit.files):
            raise self.error
        return InProcessRunner().run(units, work)


KILLED = SystemExit("killed")


def bench_of(root: Path, runner: Runner, *names: str, **given: Any) -> Bench:
    """Land files of two rows each for a pipeline."""
    for name in names or ("a.ndjson",):
        put(root / "in", name, ndjson(rows(2)))
    return Bench(pipeline_settings(root / "in", root / "table"), runner=runner, **given)


def test_a_file_that_kills_its_worker_is_named_alone_and_the_rest_goes_on(tmp_path: Path) -> None:
    """W19: by halving, down to the single file."""
    runner = Deadly(WorkersDied("the Python workers of a job died"), "poison")
    names = (f"{number:02d}.ndjson" for number in range(20))
    bench = bench_of(tmp_path, runner, *names, "05-poison.ndjson")
    bench.pipeline().step()
    entry = bench.entries()[1]
    failed = [record for record in entry.sources if record.failure]

    assert [record.path for record in failed] == ["05-poison.ndjson"]
    assert failed[0].failure is not None
    assert failed[0].failure.code == "worker_died"
    assert sum(record.rows for record in entry.sources) == 40
    assert sum(file.record_count for file in entry.files) == 40
    assert len(runner.jobs) < 15, "halving, not one by one"
    assert bench.said(JobSplit)
    assert not bench.again().pipeline().step(), "it is not read again"


def drained_after(bench: Bench, runs: int) -> list[tuple[str, str | None]]:
    """Let processes come to nothing, one after the other, then one that works; give what it did."""
    for _ in range(runs):
        with pytest.raises((SystemExit, LakeError)):
            bench.again().pipeline().step()
    bench.again(runner=InProcessRunner(), store=Store).pipeline().step()
    return [
        (record.path, record.failure.code if record.failure else None)
        for entry in bench.entries()
        for record in entry.sources
    ]


def test_a_spark_that_is_down_for_many_runs_is_no_death_of_a_file(tmp_path: Path) -> None:
    """HOLES L25: the process lives and says why; whoever starts it once an hour loses nothing."""
    bench = bench_of(tmp_path, Deadly(RunFailed("Spark did not start on spark://nowhere:7077")))

    assert drained_after(bench, 12) == [("a.ndjson", None)]


@dataclass
class KilledInTheRun(RunsOnly):
    """The process is killed while Spark starts or, if a unit has reported, while it reads."""

    starts: list[StartNotice]
    reports: bool
    parallelism: int = 2

    def run(self, units: Sequence[WorkUnit], work: Work) -> list[UnitOutcome]:
        if self.reports:
            self.starts[-1].heard()
        raise SystemExit("killed")


@pytest.mark.parametrize("reports", [False, True])
def test_a_start_counts_from_the_first_report_of_a_unit_on(tmp_path: Path, reports: bool) -> None:
    """HOLES L25: who is killed while Spark starts, or waits for executors, died of no file."""
    made: list[StartNotice] = []
    bench = bench_of(tmp_path, KilledInTheRun(made, reports))
    for _ in range(12):
        made.append(StartNotice(units_report=True))
        pipeline = bench.again().pipeline()
        pipeline.start = made[-1]
        try:
            pipeline.step()
        except SystemExit:
            continue
    bench.again(runner=InProcessRunner()).pipeline().step()
    (record,) = (record for entry in bench.entries() for record in entry.sources)

    assert (record.failure and record.failure.code) == ("worker_died" if reports else None)


def test_a_journal_that_cannot_be_written_is_no_death_of_a_file(tmp_path: Path) -> None:
    """HOLES L25: the batch came to nothing, and the process lived to tell it."""
    store = refusing("1.json", StoreDenied("access was refused"))
    bench = bench_of(tmp_path, InProcessRunner(), store=store)

    assert drained_after(bench, 12) == [("a.ndjson", None)]


def test_a_panic_of_a_library_is_no_death() -> None:
    """HOLES L25: it passes every `except Exception`, and the process lives all the same."""
    panic = type("PanicException", (BaseException,), {})

    assert not may_be_a_death(panic("an index out of bounds"))
    assert not may_be_a_death(StoreDenied("refused"))
    assert may_be_a_death(SystemExit())
    assert may_be_a_death(RunnerDied("gone"))
    assert may_be_a_death(JournalConflict("another writes")), "its note is not ours to change"


def test_what_runs_the_units_and_dies_with_them_counts(tmp_path: Path) -> None:
    """W19: a file that takes Spark's own process down must not stop a pipeline for ever."""
    bench = bench_of(tmp_path, Deadly(RunnerDied("Spark is gone; it is being restarted")))

    assert drained_after(bench, 5) == [("a.ndjson", "worker_died")]


def test_no_note_of_a_start_stays_behind_an_entry(tmp_path: Path) -> None:
    """Be it this process's note or that of one that died."""
    made: list[StartNotice] = [StartNotice(units_report=True)]
    bench = bench_of(tmp_path, KilledInTheRun(made, True))
    pipeline = bench.pipeline()
    pipeline.start = made[0]
    with pytest.raises(SystemExit):
        pipeline.step()
    assert list(bench.table.rglob("*.started.json"))
    silent = bench.again(runner=InProcessRunner()).pipeline()
    silent.start = StartNotice(units_report=True)
    silent.step()

    assert not list(bench.table.rglob("*.started.json"))


def survives(bench: Bench) -> bool:
    """Whether a new process drains the source and lives."""
    pipeline = bench.again().pipeline()
    try:
        while pipeline.step():
            pass
    except SystemExit:
        return False
    return True


def test_a_file_that_kills_the_driver_is_given_up_alone_and_the_rest_goes_on(tmp_path: Path):
    """W19: each start takes fewer files, until the one that does it is alone."""
    names = (f"{number}.ndjson" for number in range(8))
    bench = bench_of(tmp_path, Deadly(KILLED, "poison"), *names, "5-poison.ndjson")
    starts = 0
    while not survives(bench):
        starts += 1
    records = [record for entry in bench.entries() for record in entry.sources]
    failed = [record for record in records if record.failure]

    assert starts < 30
    assert [record.path for record in failed] == ["5-poison.ndjson"]
    assert failed[0].failure is not None
    assert failed[0].failure.code == "worker_died"
    assert sum(record.rows for record in records) == 16


def test_a_process_that_was_killed_twice_takes_the_whole_batch_again(tmp_path: Path) -> None:
    """Restarts for other reasons make no small files."""
    bench = bench_of(tmp_path, Deadly(KILLED), *(f"{number}.ndjson" for number in range(8)))
    for _ in range(2):
        with pytest.raises(SystemExit):
            bench.again().pipeline().step()
    bench.again(runner=InProcessRunner()).pipeline().step()

    assert len(bench.entries()[1].sources) == 8
