"""When a batch starts, and how its files are packed into units."""

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from blizzard.model.settings import RollingPolicy, Sizing
from blizzard.model.source.file import SourceFile
from blizzard.model.source.forecast import PARQUET_PER_NDJSON, Forecast
from blizzard.plan.planner import MOST_UNITS_PER_CORE, Planner, units_at_leisure
from blizzard.plan.trigger import Timing, is_full
from tests.support.builders import NOON, Bench, ndjson, pipeline_settings, put, rows, source_file

POLICY = RollingPolicy(file_size=1_000_000, rollover=300, inactivity=60)


@pytest.mark.parametrize(
    ("age", "quiet", "size", "more", "starts"),
    [
        (10, 10, 10, False, False),
        (59, 59, 10, False, False),
        (60, 60, 10, False, True),
        (299, 1, 10, False, False),
        (300, 1, 10, False, True),
        (1, 1, 20_000_000, False, True),
        (1, 1, 9_000_000, False, False),
        (1, 1, 10, True, True),
    ],
)
def test_a_batch_starts_when_full_or_old_or_quiet(
    age: float, quiet: float, size: int, more: bool, starts: bool
) -> None:
    settings = pipeline_settings(Path("/in"), Path("/table"))
    settings = replace(settings, sink=replace(settings.sink, rolling=POLICY))
    files = (
        replace(source_file("first", size=size), modified=NOON - timedelta(seconds=age)),
        replace(source_file("last", size=0), modified=NOON - timedelta(seconds=quiet)),
    )
    assert Timing(settings=settings).is_time(files, more=more, cores=2, now=NOON) is starts


@pytest.mark.parametrize(
    ("sizes", "starts"),
    [
        ((5_000_000, 5_000_000), True),
        ((9_000_000, 4_000_000), False),
        ((10_000_000, 1), True),
        ((4_900_000, 4_900_000, 4_900_000, 4_900_000), False),
    ],
)
def test_a_partition_counts_with_the_files_that_it_fills(sizes: tuple[int, ...], starts: bool):
    """Two files fill two cores; halves of four partitions would be four files of a half."""
    files = [
        source_file(f"{number}", size=size, partition_values={"region": str(number)})
        for number, size in enumerate(sizes)
    ]
    assert is_full(files, POLICY, parallelism=2, forecast=Forecast()) is starts


def test_rows_of_many_partitions_wait_until_they_fill_a_file_of_each() -> None:
    files = [source_file(size=20_000_000)]
    assert is_full(files, POLICY, parallelism=2, forecast=Forecast())
    assert not is_full(files, POLICY, parallelism=2, forecast=Forecast(partitions=2.1))


def test_a_store_whose_clock_is_ahead_delays_nothing_for_ever(tmp_path: Path) -> None:
    """A file from the future has arrived when we first saw it (L22)."""
    put(tmp_path / "in", "a.ndjson", ndjson(rows(1)))
    bench = Bench(pipeline_settings(tmp_path / "in", tmp_path / "table"), once=False)
    # The test's clock stands in 2024; the file's time is that of the machine, years later.
    assert datetime.fromtimestamp((tmp_path / "in/a.ndjson").stat().st_mtime, NOON.tzinfo) > NOON
    pipeline = bench.pipeline()

    assert not pipeline.step()
    bench.hands.at += 60
    assert pipeline.step()


FILE_SIZE = RollingPolicy().file_size
FILLS = int(FILE_SIZE / PARQUET_PER_NDJSON)


def load(count: int, size: int) -> list[SourceFile]:
    return [source_file(f"{number:05}", size=size) for number in range(count)]


def test_a_large_load_gives_every_core_several_units():
    files = load(400, FILLS // 10)  # ten files for each of four cores
    assert len(Planner(parallelism=4, file_size=FILE_SIZE).plan(files)) == 4 * MOST_UNITS_PER_CORE


@pytest.mark.parametrize("count", [4, 20, 40, 79])
def test_a_load_that_fills_few_files_gives_every_core_one_unit(count: int):
    """Each unit writes files of its own: three of them would write files of a third."""
    units = Planner(parallelism=4, file_size=FILE_SIZE).plan(load(count, FILLS // 10))
    assert len(units) == 4
    sizes = [sum(file.size for file in unit.files) for unit in units]
    assert max(sizes) - min(sizes) <= FILLS // 10


def test_no_small_rest_becomes_a_unit_of_its_own():
    units = Planner(parallelism=4, file_size=FILE_SIZE).plan(load(10, Sizing().smallest_unit))
    assert sorted(len(unit.files) for unit in units) == [2, 2, 3, 3]


@pytest.mark.parametrize(("number", "expected"), [(100, 1), (5000, 4)])
def test_very_many_small_files_are_shared_though_they_fill_no_file(number: int, expected: int):
    """What each of them costs beside its bytes would keep one core busy while others rest."""
    units = Planner(parallelism=4, file_size=FILE_SIZE).plan(load(number, 2000))
    assert [len(unit.files) for unit in units] == [number // expected] * expected


@pytest.mark.parametrize(("tenths", "units"), [(4, 1), (10, 1), (24, 2), (40, 4), (79, 8)])
def test_where_nobody_waits_there_are_as_many_units_as_files_to_fill(tenths: int, units: int):
    """Eight cores with two files to fill would write eight files of a quarter."""
    files = load(tenths, FILLS // 10)
    assert len(Planner(parallelism=8, file_size=FILE_SIZE, hurry=False).plan(files)) == units


def test_no_core_works_for_minutes_while_others_rest():
    a_minute = Sizing().largest_unit
    assert units_at_leisure(1.0, 3 * a_minute, cores=8) == 3
    assert units_at_leisure(1.0, 30 * a_minute, cores=8) == 8
    assert units_at_leisure(100.0, a_minute, cores=8) == 8 * MOST_UNITS_PER_CORE


def test_what_was_learned_decides_how_many_files_a_load_fills():
    files = load(40, FILLS // 10)
    planner = Planner(parallelism=8, file_size=FILE_SIZE, hurry=False)
    half = Forecast(ratio=PARQUET_PER_NDJSON / 2, learned=True)
    assert len(replace(planner, forecast=half).plan(files)) == 2
    four = Forecast(partitions=4.0, learned=True)
    assert len(replace(planner, forecast=four).plan(files)) == 1
