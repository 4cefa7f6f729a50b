"""A batch that ends before all of its files are read, by too many failures or half of it."""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from blizzard.events import BatchCutShort, UnitsNotRun
from blizzard.execute.runner import RunFailed, WorkersDied
from blizzard.model.progress import Bounds, Supervisor
from blizzard.model.settings import RollingPolicy
from blizzard.model.work import UnitOutcome, Work, WorkUnit
from blizzard.outcomes import TooManyFailures
from blizzard.worker.download import OpenedStores
from blizzard.worker.progress import ProgressClient, ProgressServer
from blizzard.worker.unit import run_unit
from lakebed.documents.records import SourceRecord
from tests.support.bounds import BAD, FOR_EVER, SMALL_PIECES, settings_of
from tests.support.builders import Bench, Hands, listed, ndjson, put, rows, unit, work
from tests.support.readers import journaled_ids as ids
from tests.support.runner import InProcessRunner, RunsOnly

# By failures


def limited(bench: Bench) -> list[SourceRecord]:
    """Let a pipeline come to its limit, and give the files of the entry that was written."""
    with pytest.raises(TooManyFailures):
        bench.pipeline().step()
    return list(bench.entries()[-1].sources)


def test_no_more_files_of_a_unit_fail_than_are_allowed(tmp_path: Path) -> None:
    """HOLES W30: small files that are decoded already included; what succeeded is kept."""
    put(tmp_path / "in", "a.ndjson", ndjson(rows(3)))
    for number in range(25):
        put(tmp_path / "in", f"bad-{number:02}.ndjson", BAD)
    together = replace(SMALL_PIECES.decoding, max_combined=256)
    sizing = replace(SMALL_PIECES, decoding=together)
    bench = Bench(settings_of(tmp_path, max_failures=3, sizing=sizing))
    found = limited(bench)

    assert [each.path for each in found if each.failure] == [
        "bad-00.ndjson",
        "bad-01.ndjson",
        "bad-02.ndjson",
    ]
    assert ids(bench.table) == [0, 1, 2]
    assert "handed off (" in " ".join(event.sentence() for event in bench.events)
    # The next run goes on with the others, and stops as well.
    assert len(limited(bench.again())) == 3


@pytest.mark.parametrize("begun", [True, False])
def test_no_more_files_of_all_units_fail_than_are_allowed(tmp_path: Path, begun: bool) -> None:
    """HOLES W30: the driver adds up what the units say; one that has not begun does not."""
    sizing = replace(SMALL_PIECES, smallest_unit=1 if begun else 10**9)
    for number in range(25):
        put(tmp_path / "in", f"date=2024-01-{number + 1:02}/bad.ndjson", BAD * 3)
        put(tmp_path / "in", f"date=2024-01-{number + 1:02}/good.ndjson", ndjson(rows(2)))
    bench = Bench(settings_of(tmp_path, max_failures=3, template="date=%Y-%m-%d", sizing=sizing))
    found = limited(bench)

    assert sum(each.failure is not None for each in found) == 3
    assert sum(each.failure is None for each in found) >= 2
    assert len(found) < 8


def test_no_more_files_fail_by_their_path_than_are_allowed(tmp_path: Path) -> None:
    """HOLES W30: and where they reach the limit, nothing is read any more."""
    for number in range(25):
        put(tmp_path / "in", f"{number:02}.ndjson", ndjson(rows(3)))
    put(tmp_path / "in", "date=2024-01-01/a.ndjson", ndjson(rows(3)))
    bench = Bench(settings_of(tmp_path, max_failures=3, template="date=%Y-%m-%d"))
    found = limited(bench)

    assert [each.path for each in found] == ["00.ndjson", "01.ndjson", "02.ndjson"]


def test_a_file_that_fails_again_does_not_count_again(tmp_path: Path) -> None:
    """HOLES W30: distinct files count, in the driver and in a unit alike."""
    put(tmp_path / "in", "a.ndjson", BAD)
    bench = replace(Bench(settings_of(tmp_path, max_failures=2)), once=False)
    pipeline = bench.pipeline()
    pipeline.step()
    bench.hands.at += 300
    assert pipeline.step()
    # As another object it is tried again, and fails as before.
    put(tmp_path / "in", "a.ndjson", BAD * 2)
    put(tmp_path / "in", "b.ndjson", ndjson(rows(3)))
    bench.hands.at += 1_000
    assert pipeline.step()
    assert [each.path for each in bench.entries()[-1].sources] == ["a.ndjson", "b.ndjson"]
    assert ids(bench.table) == [0, 1, 2]


def test_tasks_that_run_at_the_same_time_exceed_the_limit_by_one_file_each(tmp_path: Path) -> None:
    """HOLES W30: a task tells of a failure at once, and hears whether another one is allowed."""
    tasks, limit = 4, 3
    hands = Hands()
    supervisor = Supervisor(Bounds(failures=limit), hands.seconds)
    server = ProgressServer(
        "127.0.0.1",
        stop_requested=lambda: False,
        heard=lambda *_: None,
        instruction=supervisor.answer,
    )
    for number in range(tasks):
        for bad in range(10):
            put(tmp_path / "in", f"{number}/{bad}.ndjson", BAD)
    files = listed(tmp_path / "in")
    given = work(
        tmp_path / "in", tmp_path / "table", bounds=Bounds(failures=limit), sizing=SMALL_PIECES
    )
    together = threading.Barrier(tasks)

    def run(number: int) -> int:
        mine = unit([file for file in files if file.path.startswith(f"{number}/")], str(number))
        with ProgressClient(server.address, f"p/{number}", patience=300) as line:
            together.wait()
            return len(run_unit(mine, given, OpenedStores(given), line).sources)

    with ThreadPoolExecutor(tasks) as pool:
        failed = sum(pool.map(run, range(tasks)))
    server.close()

    assert limit <= failed <= limit + tasks - 1


# Units of one batch do not take each other's work away


@dataclass
class Troubled(RunsOnly):
    """A runner whose first job dies, so that the units are run in halves."""

    trouble: type[Exception] | None = None
    jobs: int = 0
    parallelism: int = 2

    def run(self, units: Sequence[WorkUnit], work: Work) -> list[UnitOutcome]:
        self.jobs += 1
        if self.jobs == 1:
            raise WorkersDied("the workers died")
        if self.jobs == 3 and self.trouble is not None:
            raise self.trouble("Spark is gone")
        return InProcessRunner().run(units, work)


def test_what_the_first_half_has_read_is_journaled_though_the_second_cannot_run(tmp_path: Path):
    """HOLES L32: a finished unit is not thrown away because others of its batch are not run."""
    put(tmp_path / "in", "large.ndjson", ndjson(rows(1_000)))
    settings = settings_of(
        tmp_path, sizing=replace(SMALL_PIECES, smallest_unit=4_000, units_per_core=3)
    )
    # All of it is enough for a batch; half of it is not.
    enough = RollingPolicy(file_size=3_000, rollover=FOR_EVER, inactivity=FOR_EVER)
    settings = replace(settings, sink=replace(settings.sink, rolling=enough))
    bench = replace(Bench(settings, runner=Troubled(RunFailed)), once=False)
    pipeline = bench.pipeline()
    assert pipeline.step()
    (first,) = bench.entries()[1].sources

    assert not first.complete
    assert 0 < first.rows < 1_000
    assert "not run and left to the next batch: 2 units" in bench.said(UnitsNotRun)[0].sentence()
    assert not bench.said(BatchCutShort), "it was not its age"
    assert pipeline.step(), "what is left waits for no trigger"
    assert ids(bench.table) == list(range(1_000))


def test_a_second_half_that_cannot_run_is_an_error_where_the_first_has_nothing(tmp_path: Path):
    """HOLES L32: there is nothing to be journaled."""

    class Gone(Troubled):
        def run(self, units: Sequence[WorkUnit], work: Work) -> list[UnitOutcome]:
            self.jobs += 1
            raise RunFailed("Spark is gone") if self.jobs > 1 else WorkersDied("they died")

    for number in range(2):
        put(tmp_path / "in", f"{number}.ndjson", ndjson(rows(3)))
    with pytest.raises(RunFailed):
        Bench(settings_of(tmp_path), runner=Gone()).pipeline().step()


def test_the_limit_of_failures_holds_over_both_halves(tmp_path: Path) -> None:
    """HOLES W30: also where workers died in between."""
    for number in range(20):
        is_bad = number == 0 or number >= 10
        put(tmp_path / "in", f"{number:02}.ndjson", BAD if is_bad else ndjson(rows(1, number)))
    bench = Bench(settings_of(tmp_path, max_failures=3), runner=Troubled())

    assert [each.path for each in limited(bench) if each.failure is not None] == [
        "00.ndjson",
        "10.ndjson",
        "11.ndjson",
    ]
    assert ids(bench.table) == list(range(1, 10))


def test_a_second_half_is_not_run_where_the_first_has_reached_the_limit(tmp_path: Path) -> None:
    """HOLES W30: not even a job is started for it."""
    for number in range(20):
        put(tmp_path / "in", f"{number:02}.ndjson", BAD)
    runner = Troubled()

    assert len(limited(Bench(settings_of(tmp_path, max_failures=3), runner=runner))) == 3
    assert runner.jobs == 2
