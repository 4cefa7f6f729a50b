"""A file that kills its worker is found and named; the rest goes on."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from blizzard.events import JobSplit
from blizzard.flow import UnitOutcome, Work, WorkUnit
from blizzard.runner import RunFailed, WorkersDied
from tests.support.builders import Bench, ndjson, pipeline_settings, put, rows
from tests.support.runner import InProcessRunner


@dataclass
class Deadly:
    """A runner whose workers die whenever they touch a file of a certain name."""

    poison: str
    jobs: list[int] = field(default_factory=list)
    parallelism: int = 2

    def run(self, units: Sequence[WorkUnit], work: Work) -> list[UnitOutcome]:
        self.jobs.append(len(units))
        if any(self.poison in file.path for unit in units for file in unit.files):
            raise WorkersDied("the Python workers of a job died")
        return InProcessRunner().run(units, work)


def test_a_file_that_kills_its_worker_is_named_alone_and_the_rest_goes_on(tmp_path: Path) -> None:
    """W19: by halving, down to the single file."""
    for number in range(20):
        put(tmp_path / "in", f"{number:02d}.ndjson", ndjson(rows(2)))
    put(tmp_path / "in", "05-poison.ndjson", ndjson(rows(2)))
    runner = Deadly("poison")
    bench = Bench(pipeline_settings(tmp_path / "in", tmp_path / "table"), runner=runner)
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


def test_a_run_that_fails_for_a_reason_of_its_own_names_no_file(tmp_path: Path) -> None:
    """A cluster that is gone says nothing of the files: the batch is tried again."""

    class Gone:
        parallelism = 2

        def run(self, units: Sequence[WorkUnit], work: Work) -> list[UnitOutcome]:
            raise RunFailed("Spark is gone")

    put(tmp_path / "in", "a.ndjson", ndjson(rows(2)))
    bench = Bench(pipeline_settings(tmp_path / "in", tmp_path / "table"), runner=Gone())
    with pytest.raises(RunFailed):
        bench.pipeline().step()

    assert len(bench.entries()) == 1
    assert bench.again(runner=InProcessRunner()).pipeline().step()


def survives(bench: Bench) -> bool:
    """Say whether a new process drains the source and lives."""
    pipeline = bench.again().pipeline()
    try:
        while pipeline.step():
            pass
    except SystemExit:
        return False
    return True


def test_a_file_that_kills_the_driver_is_given_up_alone_and_the_rest_goes_on(
    tmp_path: Path,
) -> None:
    """W19: each start takes fewer files, until the one that does it is alone."""

    class KillsTheProcess:
        parallelism = 2

        def run(self, units: Sequence[WorkUnit], work: Work) -> list[UnitOutcome]:
            if any("poison" in file.path for unit in units for file in unit.files):
                raise SystemExit("killed")
            return InProcessRunner().run(units, work)

    for number in range(8):
        put(tmp_path / "in", f"{number}.ndjson", ndjson(rows(2)))
    put(tmp_path / "in", "5-poison.ndjson", ndjson(rows(2)))
    bench = Bench(pipeline_settings(tmp_path / "in", tmp_path / "table"), runner=KillsTheProcess())
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

    class Killed:
        parallelism = 2

        def run(self, units: Sequence[WorkUnit], work: Work) -> list[UnitOutcome]:
            raise SystemExit("killed")

    for number in range(8):
        put(tmp_path / "in", f"{number}.ndjson", ndjson(rows(2)))
    bench = Bench(pipeline_settings(tmp_path / "in", tmp_path / "table"), runner=Killed())
    for _ in range(2):
        with pytest.raises(SystemExit):
            bench.again().pipeline().step()
    bench.again(runner=InProcessRunner()).pipeline().step()

    assert len(bench.entries()[1].sources) == 8
