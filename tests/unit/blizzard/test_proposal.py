"""A plan cannot differ from the run: both go through one sequence."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from blizzard.cli.run.dry_run import NextBatch, explain
from blizzard.handoff.publish import CommitsBehind
from blizzard.model.work import UnitOutcome, Work, WorkUnit
from lakebed.storage.store import Reader
from tests.support.builders import Bench, PatientLog, ndjson, put, rows, tree
from tests.support.runner import InProcessRunner


@dataclass
class Recorded(InProcessRunner):
    """Keeps the units that it is given; the process may die with them."""

    given: list[WorkUnit] = field(default_factory=list)
    dies: bool = False

    def run(self, units: Sequence[WorkUnit], work: Work) -> list[UnitOutcome]:
        self.given = list(units)
        if self.dies:
            raise SystemExit("killed")
        return super().run(units, work)


def plan(bench: Bench) -> NextBatch:
    return explain(
        bench.settings,
        lambda place: Reader(place.uri, place.options),
        parallelism=2,
        clock=bench.hands.clock,
    )


def keys(units: Sequence[WorkUnit]) -> list[list[str]]:
    return [[file.key for file in unit.files] for unit in units]


@pytest.mark.parametrize("deaths", [0, 3, 5, 7])
def test_a_plan_takes_as_few_files_as_the_run_after_so_many_deaths(tmp_path, bench, deaths):
    for number in range(6):
        put(tmp_path / "in", f"{number}.ndjson", ndjson(rows(2)))
    for _ in range(deaths):
        with pytest.raises(SystemExit):
            bench.again(runner=Recorded(dies=True)).pipeline().step()
    before = tree(tmp_path)
    planned = plan(bench)
    assert tree(tmp_path) == before
    runner = Recorded()
    bench.again(runner=runner).pipeline().step()
    assert keys(planned.units) == keys(runner.given)
    assert bench.entries()[-1].sequence == planned.entry


def test_a_plan_is_refused_where_the_run_takes_no_new_work(tmp_path, bench):
    put(tmp_path / "in", "a.ndjson", ndjson(rows(2)))
    bench.pipeline().step()
    put(tmp_path / "in", "b.ndjson", ndjson(rows(2)))
    assert plan(bench).refusal is None
    bench.hands.at += 30 * 86_400
    pipeline = bench.again().pipeline()
    pipeline.log = PatientLog(pipeline.settings, keeps=timedelta(days=7))
    with pytest.raises(CommitsBehind) as refused:
        pipeline.step()
    planned = plan(bench)
    assert str(planned.refusal) == str(refused.value)
    assert planned.units == ()
