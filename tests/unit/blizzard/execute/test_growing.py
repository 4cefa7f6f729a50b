"""Units that meet fields without a column run again; what else happens meanwhile loses nothing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from blizzard.events import ColumnsFound, JobSplit, UnitsNotRun
from blizzard.execute.runner import RunFailed, WorkersDied
from blizzard.model.settings import DecodeLimits, RollingPolicy, Sizing
from blizzard.model.work import UnitOutcome, Work, WorkUnit
from blizzard.outcomes import TooManyFailures
from lakebed.columns.schema import Schema
from lakebed.types import RESCUED, OnMismatch, UnknownFields
from tests.support.builders import Bench, ndjson, pipeline_settings, put
from tests.support.runner import InProcessRunner

Wraps = Callable[[Sequence[WorkUnit], Work], list[UnitOutcome] | None]


@dataclass
class Told(InProcessRunner):
    """A runner that says which units it ran with which columns, and may do something else."""

    instead: Wraps = lambda _units, _work: None
    jobs: list[tuple[list[str], list[str]]] = field(default_factory=list)

    def run(self, units: Sequence[WorkUnit], work: Work) -> list[UnitOutcome]:
        names = [one.name for one in work.file_schema.fields]
        self.jobs.append(([unit.name for unit in units], names))
        answer = self.instead(units, work)
        return super().run(units, work) if answer is None else answer


def growing(tmp_path: Path, runner: Told, **given: Any) -> Bench:
    settings = pipeline_settings(
        tmp_path / "in",
        tmp_path / "table",
        unknown_fields=UnknownFields.ADD,
        on_mismatch=OnMismatch.RESCUE,
        **given,
    )
    return Bench(settings, runner=runner)


def by_partition(tmp_path: Path, runner: Told, **given: Any) -> Bench:
    """Return a pipeline of which each partition is a unit."""
    return growing(tmp_path, runner, template="date=%Y-%m-%d", **given)


def table(bench: Bench) -> list[dict[str, Any]]:
    """Read the rows that the journal names, with the columns that their files have."""
    found = [
        row
        for entry in bench.entries()
        for file in entry.files
        for row in pq.ParquetFile(bench.table / file.filename).read().to_pylist()
    ]
    return sorted(found, key=lambda row: row["id"])


def lands(tmp_path: Path, name: str, *records: dict[str, Any]) -> None:
    put(tmp_path / "in", name, ndjson(records))


def test_only_units_that_met_something_new_run_again(tmp_path: Path) -> None:
    lands(tmp_path, "date=2024-01-01/a.ndjson", {"id": 1, "n": 1})
    lands(tmp_path, "date=2024-01-02/b.ndjson", {"id": 2})
    runner = Told()
    bench = by_partition(tmp_path, runner)
    bench.pipeline().step()

    (first, before), (again, after) = runner.jobs
    assert (len(first), len(again)) == (2, 1)
    assert set(after) - set(before) == {"n"}
    assert [(row["id"], row.get("n")) for row in table(bench)] == [(1, 1), (2, None)]
    assert len(bench.entries()[1].files) == 2
    assert bench.said(ColumnsFound) == [ColumnsFound(pipeline="default", columns={"n": "int64"})]


def test_a_unit_that_is_split_while_it_runs_again_loses_and_doubles_nothing(tmp_path: Path) -> None:
    for number in range(6):
        lands(tmp_path, f"{number}.ndjson", {"id": number, "n": number})

    def dies(units: Sequence[WorkUnit], work: Work) -> list[UnitOutcome] | None:
        grown = any(one.name == "n" for one in work.file_schema.fields)
        if grown and any("3" in file.path for unit in units for file in unit.files):
            raise WorkersDied("the Python workers of a job died")
        return None

    bench = growing(tmp_path, Told(instead=dies))
    bench.pipeline().step()

    assert bench.said(JobSplit)
    failed = [record.path for record in bench.entries()[1].sources if record.failure]
    assert failed == ["3.ndjson"]
    assert [(row["id"], row["n"]) for row in table(bench)] == [(n, n) for n in (0, 1, 2, 4, 5)]


def test_a_unit_that_was_split_before_runs_again_as_it_was_split(tmp_path: Path) -> None:
    for number in range(4):
        lands(tmp_path, f"{number}.ndjson", {"id": number, **({"n": 7} if number == 2 else {})})

    def dies_once(units: Sequence[WorkUnit], _work: Work) -> list[UnitOutcome] | None:
        if len(units) > 1 or len(units[0].files) > 1:
            raise WorkersDied("the Python workers of a job died")
        return None

    runner = Told(instead=dies_once)
    bench = growing(tmp_path, runner)
    bench.pipeline().step()

    assert [row.get("n") for row in table(bench)] == [None, None, 7, None]
    assert [len(units) for units, columns in runner.jobs if "n" in columns] == [1]


def test_parts_of_one_file_of_which_only_some_met_the_field(tmp_path: Path) -> None:
    records = [{"id": number} for number in range(4000)]
    records[3500]["n"] = 5
    lands(tmp_path, "a.ndjson", *records)
    runner = Told(parallelism=4)
    sink = replace(growing(tmp_path, runner).settings.sink, rolling=RollingPolicy(file_size=8_000))
    bench = growing(tmp_path, runner, sizing=Sizing(smallest_unit=8_000), sink=sink)
    bench.pipeline().step()

    (first, _before), (again, _after) = runner.jobs
    assert 0 < len(again) < len(first)
    assert [row["id"] for row in table(bench)] == list(range(4000))
    assert [row["id"] for row in table(bench) if row.get("n") == 5] == [3500]
    (record,) = bench.entries()[1].sources
    assert (record.lines, record.rows, record.complete) == (4000, 4000, True)
    assert record.rescued == {}


def test_what_does_not_get_to_run_again_stands_as_it_was_read(tmp_path: Path) -> None:
    """A stop, or a bound: the values are in `_rescued`, and the column is there from now on."""
    lands(tmp_path, "a.ndjson", {"id": 1, "n": 1})

    def stops(units: Sequence[WorkUnit], work: Work) -> list[UnitOutcome] | None:
        if all(one.name != "n" for one in work.file_schema.fields):
            return None
        return [UnitOutcome(unit=unit.name, sources=(), files=()) for unit in units]

    bench = growing(tmp_path, Told(instead=stops))
    bench.pipeline().step()
    assert [(row["id"], row[RESCUED]) for row in table(bench)] == [(1, '{"n":1}')]

    lands(tmp_path, "b.ndjson", {"id": 2, "n": 2})
    after = bench.again(runner=Told(), run_id="run-2")
    after.pipeline().step()
    assert [row.get("n") for row in table(after)] == [None, 2]
    assert len(after.entries()) == 3


def test_too_many_failures_leave_what_was_read_before_they_were_met(tmp_path: Path) -> None:
    lands(tmp_path, "date=2024-01-01/a.ndjson", {"id": 1, "n": 1})
    put(tmp_path / "in", "date=2024-01-02/bad.ndjson", b"{\n")
    bench = by_partition(tmp_path, Told(), max_failures=1)
    with pytest.raises(TooManyFailures):
        bench.pipeline().step()
    paths = {record.path: record.failure for record in bench.entries()[1].sources}
    assert paths["date=2024-01-02/bad.ndjson"] is not None
    after = bench.again(
        runner=Told(), run_id="run-2", settings=replace(bench.settings, max_failures=None)
    )
    while after.pipeline().step():
        pass
    assert [row["id"] for row in table(after)] == [1]


@pytest.mark.parametrize("others", [0, 1])
def test_a_cluster_that_is_gone_while_units_run_again_leaves_what_was_read(
    tmp_path: Path, others: int
) -> None:
    lands(tmp_path, "date=2024-01-01/a.ndjson", {"id": 1, "n": 1})
    for number in range(others):
        lands(tmp_path, f"date=2024-01-02/{number}.ndjson", {"id": 2 + number})

    def goes(_units: Sequence[WorkUnit], work: Work) -> list[UnitOutcome] | None:
        if any(one.name == "n" for one in work.file_schema.fields):
            raise RunFailed("Spark is gone")
        return None

    bench = by_partition(tmp_path, Told(instead=goes))
    bench.pipeline().step()
    assert [row["id"] for row in table(bench)] == [1, 2][: 1 + others]
    assert table(bench)[0][RESCUED] == '{"n":1}'
    (left,) = bench.said(UnitsNotRun)
    assert "values without a column stay in _rescued" in left.sentence()
    assert "1 unit could not be run: Spark is gone" in left.sentence()


def test_a_batch_that_is_handed_in_early_grows_all_the_same(tmp_path: Path) -> None:
    for number in range(3):
        lands(tmp_path, f"date=2024-01-0{number + 1}/a.ndjson", {"id": number, "n": number})
    bench = by_partition(tmp_path, Told())

    def slow(units: Sequence[WorkUnit], work: Work) -> list[UnitOutcome] | None:
        """Let the first unit of each job take longer than a batch may."""
        if work.infer_share is None and len(units) > 1:
            done = InProcessRunner().run(units[:1], work)
            rest = [
                UnitOutcome(unit=unit.name, sources=(), files=(), handed_in=True)
                for unit in units[1:]
            ]
            return [*done, *rest]
        return None

    bench = replace(bench, runner=Told(instead=slow))
    pipeline = bench.pipeline()
    while pipeline.step():
        pass
    assert [(row["id"], row.get("n")) for row in table(bench)] == [(n, n) for n in range(3)]
    assert len(bench.entries()) > 2


def test_a_stop_during_the_look_journals_nothing_and_the_next_run_looks_again(tmp_path: Path):
    lands(tmp_path, "a.ndjson", {"id": 1})
    lands(tmp_path, "b.ndjson", {"id": 2, "late": True})

    def stopped(units: Sequence[WorkUnit], work: Work) -> list[UnitOutcome] | None:
        if work.infer_share is not None:
            half = [replace(unit, files=unit.files[:1]) for unit in units]
            return InProcessRunner().run(half, work)
        return [UnitOutcome(unit=unit.name, sources=(), files=()) for unit in units]

    bench = growing(tmp_path, Told(instead=stopped), schema=Schema(()), infer=True)
    assert bench.pipeline().step() is False
    assert [entry.kind for entry in bench.entries()] == ["open"]
    after = bench.again(runner=Told(), run_id="run-2")
    after.pipeline().step()
    assert table(after) == [{"id": 1, "late": None}, {"id": 2, "late": True}]


@pytest.mark.parametrize("good", [{"id": 9}, {"id": 9, "m": 1}])
def test_a_file_that_fails_gives_no_column(tmp_path: Path, good: dict[str, Any]) -> None:
    """It fails in a later block than that in which its field was met."""
    bad = ndjson([{"id": number, "n": number, "m": "x"} for number in range(200)]) + b"{oops\n"
    put(tmp_path / "in", "a.ndjson", bad)
    lands(tmp_path, "b.ndjson", good)
    sizing = Sizing(decoding=DecodeLimits(block_bytes=1_000, short_bytes=100))
    runner = Told()
    bench = growing(tmp_path, runner, sizing=sizing)
    bench.pipeline().step()

    entry = bench.entries()[1]
    assert [record.path for record in entry.sources if record.failure] == ["a.ndjson"]
    found = {one["name"]: one["type"] for one in entry.table_schema["fields"]}
    assert "n" not in found
    # Nor does it decide the type of a column that another file gives.
    assert found.get("m") == ("long" if "m" in good else None)
    assert [row["id"] for row in table(bench)] == [9]
