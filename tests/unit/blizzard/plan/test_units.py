"""How files are packed into units."""

import pytest

from blizzard.model.files import SourceFile
from blizzard.model.settings import RollingPolicy, Sizing
from blizzard.model.source.forecast import PARQUET_PER_NDJSON, Forecast
from blizzard.plan.recognise import MOST_UNITS_PER_CORE, plan, units_at_leisure
from tests.support.builders import source_file

FILE_SIZE = RollingPolicy().file_size
FILLS = int(FILE_SIZE / PARQUET_PER_NDJSON)


def load(count: int, size: int) -> list[SourceFile]:
    return [source_file(f"{number:05}", size=size) for number in range(count)]


def test_a_large_load_gives_every_core_several_units():
    files = load(400, FILLS // 10)  # ten files for each of four cores
    assert len(plan(files, parallelism=4, file_size=FILE_SIZE)) == 4 * MOST_UNITS_PER_CORE


@pytest.mark.parametrize("count", [4, 20, 40, 79])
def test_a_load_that_fills_few_files_gives_every_core_one_unit(count: int):
    """Each unit writes files of its own: three of them would write files of a third."""
    units = plan(load(count, FILLS // 10), parallelism=4, file_size=FILE_SIZE)
    assert len(units) == 4
    sizes = [sum(file.size for file in unit.files) for unit in units]
    assert max(sizes) - min(sizes) <= FILLS // 10


def test_no_small_rest_becomes_a_unit_of_its_own():
    units = plan(load(10, Sizing().smallest_unit), parallelism=4, file_size=FILE_SIZE)
    assert sorted(len(unit.files) for unit in units) == [2, 2, 3, 3]


@pytest.mark.parametrize(("number", "expected"), [(100, 1), (5000, 4)])
def test_very_many_small_files_are_shared_though_they_fill_no_file(number: int, expected: int):
    """What each of them costs beside its bytes would keep one core busy while others rest."""
    units = plan(load(number, 2000), parallelism=4, file_size=FILE_SIZE)
    assert [len(unit.files) for unit in units] == [number // expected] * expected


@pytest.mark.parametrize(("tenths", "units"), [(4, 1), (10, 1), (24, 2), (40, 4), (79, 8)])
def test_where_nobody_waits_there_are_as_many_units_as_files_to_fill(tenths: int, units: int):
    """Eight cores with two files to fill would write eight files of a quarter."""
    files = load(tenths, FILLS // 10)
    assert len(plan(files, parallelism=8, file_size=FILE_SIZE, hurry=False)) == units


def test_no_core_works_for_minutes_while_others_rest():
    a_minute = Sizing().largest_unit
    assert units_at_leisure(1.0, 3 * a_minute, cores=8) == 3
    assert units_at_leisure(1.0, 30 * a_minute, cores=8) == 8
    assert units_at_leisure(100.0, a_minute, cores=8) == 8 * MOST_UNITS_PER_CORE


def test_what_was_learned_decides_how_many_files_a_load_fills():
    files = load(40, FILLS // 10)
    half = Forecast(ratio=PARQUET_PER_NDJSON / 2, learned=True)
    assert len(plan(files, parallelism=8, file_size=FILE_SIZE, hurry=False, forecast=half)) == 2
    four = Forecast(partitions=4.0, learned=True)
    assert len(plan(files, parallelism=8, file_size=FILE_SIZE, hurry=False, forecast=four)) == 1
