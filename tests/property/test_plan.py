"""A plan loses no file, doubles none, and is the same every time."""

import itertools
import math

from hypothesis import given
from hypothesis import strategies as st

from blizzard.model.settings import Sizing
from blizzard.model.source.forecast import Forecast
from blizzard.plan.recognise import plan, units_per_core, work
from lakebed.types import Codec
from tests.support.builders import source_file

SMALLEST_UNIT = Sizing().smallest_unit
FILES = st.lists(
    st.builds(
        source_file,
        st.text("ab/1", min_size=1, max_size=5),
        source=st.sampled_from(["x", "y"]),
        size=st.integers(0, 3 * SMALLEST_UNIT),
        codec=st.sampled_from(list(Codec)),
        partition_values=st.fixed_dictionaries(
            {"date": st.sampled_from(["2024-01-01", "2024-01-02", None]), "r": st.just("a")}
        ),
    ),
    unique_by=lambda file: file.key,
    max_size=40,
)
CORES = st.integers(1, 16)
SIZE = SMALLEST_UNIT  # a data file; the loads fill some


@given(FILES, CORES)
def test_every_byte_of_every_file_is_in_exactly_one_unit(files, cores):
    """D12, D13."""
    planned: dict[str, list[tuple[int, int]]] = {}
    for unit in plan(files, parallelism=cores, file_size=SIZE):
        for file in unit.files:
            part = (file.part.start, file.part.end) if file.part else (0, file.size)
            planned.setdefault(file.key, []).append(part)
    assert planned.keys() == {file.key for file in files}
    for file in files:
        parts = planned[file.key]
        assert (parts[0][0], parts[-1][1]) == (0, file.size)
        assert all(before[1] == after[0] for before, after in itertools.pairwise(parts))


@given(FILES, CORES)
def test_only_a_large_plain_file_is_cut(files, cores):
    for unit in plan(files, parallelism=cores, file_size=SIZE):
        for file in unit.files:
            if file.part is not None:
                assert file.codec is Codec.NONE
                assert len(unit.files) == 1


@given(FILES, CORES)
def test_a_unit_holds_files_of_one_partition_and_says_which(files, cores):
    for unit in plan(files, parallelism=cores, file_size=SIZE):
        assert all(dict(file.partition_values) == unit.partition_values for file in unit.files)


@given(FILES, CORES, st.randoms())
def test_the_plan_does_not_depend_on_the_order_of_the_listing(files, cores, random):
    shuffled = list(files)
    random.shuffle(shuffled)
    assert plan(shuffled, parallelism=cores, file_size=SIZE) == plan(
        files, parallelism=cores, file_size=SIZE
    )


@given(FILES, CORES)
def test_units_are_about_alike_and_no_more_than_are_needed(files, cores):
    share = Forecast().filled(files, SIZE) / cores
    all_work = sum(work(file) for file in files)
    room = max(SMALLEST_UNIT, math.ceil(all_work / cores / units_per_core(share)))
    units = plan(files, parallelism=cores, file_size=SIZE)
    for unit in units:
        weights = [work(file) for file in unit.files]
        assert len(weights) == 1 or sum(weights) <= 1.5 * room + max(weights)
    assert len({unit.name for unit in units}) == len(units)
    assert all(unit.files for unit in units)
    groups = {tuple(file.partition_values.items()) for file in files}
    cuts = sum(file.part is not None for unit in units for file in unit.files)
    whole = all_work / room
    assert len(units) - cuts <= 1.5 * whole + len(groups)
