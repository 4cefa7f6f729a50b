"""A batch that ends before all of its files are read, by too many failures or half of it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from blizzard.events import BatchCutShort, UnitsNotRun
from blizzard.execute.runner import RunFailed, WorkersDied
from blizzard.model.settings import RollingPolicy
from blizzard.model.work import UnitOutcome, Work, WorkUnit
from blizzard.outcomes import TooManyFailures
from lakebed.documents.records import SourceRecord
from tests.support.bounds import BAD, FOR_EVER, SMALL_PIECES, settings_of
from tests.support.builders import Bench, ndjson, put, rows
from tests.support.readers import journaled_ids as ids
from tests.support.runner import InProcessRunner, RunsOnly

# By failures


def limited(bench: Bench) -> list[SourceRecord]:
    """Let a pipeline come to its limit, and give the files of the entry that was written."""
    with pytest.raises(TooManyFailures):
        bench.pipeline().step()
    return list(bench.entries()[-1].sources)


def test_a_batch_with_too_many_failures_is_the_last(tmp_path: Path) -> None:
    """HOLES W30: what succeeded is kept, and the next run reads nothing that has failed."""
    put(tmp_path / "in", "a.ndjson", ndjson(rows(3)))
    for number in range(5):
        put(tmp_path / "in", f"bad-{number}.ndjson", BAD)
    bench = Bench(settings_of(tmp_path, max_failures=3))

    assert sum(each.failure is not None for each in limited(bench)) == 5
    assert ids(bench.table) == [0, 1, 2]
    assert "handed off (" in " ".join(event.sentence() for event in bench.events)


def test_a_file_that_fails_again_does_not_count_again(tmp_path: Path) -> None:
    """HOLES W30: distinct files count."""
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
    assert "2 units could not be run: Spark is gone" in bench.said(UnitsNotRun)[0].sentence()
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
