"""Plans, rolled files and compactions lose no file, double none, and come to an end."""

import itertools
import math
from collections import Counter
from dataclasses import replace
from math import log

from hypothesis import given
from hypothesis import strategies as st

from blizzard.model.settings import RollingPolicy, Sizing
from blizzard.model.source.forecast import Forecast
from blizzard.plan.planner import Planner, units_per_core, work
from blizzard.plan.trigger import Policy, SmallFile, groups_of
from blizzard.worker.output.parquet import OpenFile, file_is_full, row_group_is_full
from lakebed.layout import TablePath
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
    for unit in Planner(parallelism=cores, file_size=SIZE).plan(files):
        assert all(dict(file.partition_values) == unit.partition_values for file in unit.files)
        for file in unit.files:
            if file.part is not None:  # Only a plain file is cut, and each part is a unit.
                assert file.codec is Codec.NONE
                assert len(unit.files) == 1
            part = (file.part.start, file.part.end) if file.part else (0, file.size)
            planned.setdefault(file.key, []).append(part)
    assert planned.keys() == {file.key for file in files}
    for file in files:
        parts = planned[file.key]
        assert (parts[0][0], parts[-1][1]) == (0, file.size)
        assert all(before[1] == after[0] for before, after in itertools.pairwise(parts))


@given(FILES, CORES, st.randoms())
def test_units_are_about_alike_and_no_more_than_are_needed(files, cores, random):
    """Nor do they depend on the order of the listing."""
    share = Forecast().filled(files, SIZE) / cores
    all_work = sum(work(file) for file in files)
    room = max(SMALLEST_UNIT, math.ceil(all_work / cores / units_per_core(share)))
    units = Planner(parallelism=cores, file_size=SIZE).plan(files)
    shuffled = random.sample(files, len(files))
    assert Planner(parallelism=cores, file_size=SIZE).plan(shuffled) == units
    for unit in units:
        weights = [work(file) for file in unit.files]
        assert len(weights) == 1 or sum(weights) <= 1.5 * room + max(weights)
    assert len({unit.name for unit in units}) == len(units)
    assert all(unit.files for unit in units)
    groups = {tuple(file.partition_values.items()) for file in files}
    cuts = sum(file.part is not None for unit in units for file in unit.files)
    whole = all_work / room
    assert len(units) - cuts <= 1.5 * whole + len(groups)


POLICIES = st.builds(
    RollingPolicy, file_size=st.integers(1, 2**40), row_group_size=st.integers(1, 2**40)
)
OPEN = st.builds(
    OpenFile,
    encoded=st.integers(0, 2**41),
    buffered=st.integers(0, 2**41),
    ratio=st.floats(0.001, 10),
)


@given(OPEN, POLICIES)
def test_memory_is_one_row_group(file, policy):
    """W18: whatever is known of the file, no more than a row group stays buffered.

    A file that has reached its target is full.
    """
    if file.buffered >= policy.row_group_size:
        assert row_group_is_full(file, policy)
    if not file.buffered:
        assert not row_group_is_full(file, policy)
    if file.encoded >= policy.file_size:
        assert file_is_full(file, policy)
    if file.encoded < policy.file_size * 0.8:
        assert not file_is_full(file, policy)


NOW = 10_000_000
TARGET = 1000

files = st.builds(
    lambda size, rows, part, written: (size, rows, part, written),
    st.integers(1, 2 * TARGET),
    st.integers(0, 500),
    st.integers(0, 2),
    st.integers(NOW - 5000, NOW),
)
policies = st.builds(
    Policy,
    file_size=st.just(TARGET),
    min_files=st.integers(2, 6),
    quiet_ms=st.integers(0, 4000),
    max_bytes=st.integers(2 * TARGET, 20 * TARGET),
    max_files=st.integers(2, 50),
)


def table(given_files):
    return [
        SmallFile(
            path=TablePath(f"{place:04}.parquet"),
            size=size,
            rows=rows,
            partition=(("part", str(part)),),
            written=written,
        )
        for place, (size, rows, part, written) in enumerate(given_files)
    ]


@given(st.lists(files, max_size=60), policies, st.randoms())
def test_only_small_and_quiet_files_of_one_partition_are_taken_once_and_become_fewer(
    some, policy, chance
):
    """A run reads no more than it may, and the order in which files are listed means nothing."""
    listed = table(some)
    groups = groups_of(listed, policy, NOW)
    assert groups_of(chance.sample(listed, len(listed)), policy, NOW) == groups
    assert sum(group.size for group in groups) <= policy.max_bytes
    assert sum(len(group.files) for group in groups) <= policy.max_files
    taken = [file for group in groups for file in group.files]
    assert len({file.path for file in taken}) == len(taken)
    for file in taken:
        assert file.size < policy.enough
        assert NOW - file.written >= policy.quiet_ms
        assert file.rows
    for group in groups:
        assert len({file.partition for file in group.files}) == 1
        assert len(group.files) >= 2
        assert [file.written for file in group.files] == sorted(f.written for f in group.files)
        assert group.size <= 1.75 * TARGET, "no file is much too large"
        # Every row comes into a file with a quarter more rows at least.
        assert 1.25 * max(file.rows for file in group.files) <= group.rows


@given(st.lists(files, max_size=60), policies)
def test_every_row_comes_into_a_file_with_twice_as_many_rows_where_files_still_come(some, policy):
    young = [(1, 1, part, NOW) for part in range(3)]
    groups = groups_of(table([*some, *young]), replace(policy, quiet_ms=1), NOW)
    for group in groups:
        assert 2 * max(file.rows for file in group.files) <= group.rows
        assert len(group.files) >= policy.min_files or group.size >= policy.enough


@given(
    st.lists(st.integers(1, TARGET), min_size=1, max_size=120),
    st.floats(0.4, 1.0),
)
def test_a_row_is_rewritten_a_bounded_number_of_times(sizes, shrinks):
    """Files arrive one by one, and each time all that is worth it is done, until nothing is."""
    policy = Policy(file_size=TARGET, quiet_ms=0, min_files=2)
    there: list[SmallFile] = []
    rewritten: Counter[TablePath] = Counter()
    inside: dict[TablePath, list[TablePath]] = {}
    count = 0
    for size in sizes:
        count += 1
        name = TablePath(f"{count:05}")
        there.append(SmallFile(path=name, size=size, rows=size, partition=(), written=count))
        inside[name] = [name]
        rounds = 0
        while groups := groups_of(there, policy, NOW):
            rounds += 1
            assert rounds < 50
            for group in groups:
                gone = {file.path for file in group.files}
                there = [file for file in there if file.path not in gone]
                origins = [one for file in group.files for one in inside.pop(file.path)]
                rewritten.update(origins)
                count += 1
                new = TablePath(f"{count:05}")
                inside[new] = origins
                there.append(
                    SmallFile(
                        path=new,
                        size=max(1, int(group.size * shrinks)),
                        rows=group.rows,
                        partition=(),
                        written=count,
                    )
                )
    most = max(rewritten.values(), default=0)
    rows = sum(sizes)
    assert most <= log(max(2, rows), 1.25)


def test_files_that_are_large_enough_are_never_touched():
    policy = Policy(file_size=TARGET, quiet_ms=0)
    large = [
        SmallFile(path=TablePath(f"{n}"), size=750, rows=10, partition=(), written=n)
        for n in range(100)
    ]
    assert groups_of(large, policy, NOW) == ()
    assert groups_of([replace(one, size=749) for one in large], policy, NOW)
