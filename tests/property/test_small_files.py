"""Which small files are put together: statements about all tables."""

from collections import Counter
from dataclasses import replace
from math import log

from hypothesis import given
from hypothesis import strategies as st

from blizzard.plan.small_files import Policy, SmallFile, groups_of
from lakebed.layout import TablePath

NOW = 10_000_000
TARGET = 1000

files = st.builds(
    lambda size, rows, part, written, sortable: (size, rows, part, written, sortable),
    st.integers(1, 2 * TARGET),
    st.integers(0, 500),
    st.integers(0, 2),
    st.integers(NOW - 5000, NOW),
    st.booleans(),
)
policies = st.builds(
    Policy,
    file_size=st.just(TARGET),
    min_files=st.integers(2, 6),
    quiet_ms=st.integers(0, 4000),
    max_bytes=st.integers(2 * TARGET, 20 * TARGET),
    max_files=st.integers(2, 50),
    cluster_by=st.sampled_from([(), ("user",)]),
)


def table(given_files):
    return [
        SmallFile(
            path=TablePath(f"{place:04}.parquet"),
            size=size,
            rows=rows,
            partition=(("part", str(part)),),
            written=written,
            sortable=sortable,
        )
        for place, (size, rows, part, written, sortable) in enumerate(given_files)
    ]


@given(st.lists(files, max_size=60), policies)
def test_only_small_and_quiet_files_of_one_partition_are_taken_once_and_become_fewer(some, policy):
    groups = groups_of(table(some), policy, NOW)
    taken = [file for group in groups for file in group.files]
    assert len({file.path for file in taken}) == len(taken)
    for file in taken:
        assert file.size < policy.enough
        assert NOW - file.written >= policy.quiet_ms
        assert file.rows
    for group in groups:
        assert len({(file.partition, file.sortable) for file in group.files}) == 1
        assert 1 <= group.outputs < len(group.files)
        assert len(group.files) >= 2
        assert [file.written for file in group.files] == sorted(f.written for f in group.files)
        assert bool(group.sorted_by) == (bool(policy.cluster_by) and group.files[0].sortable)


@given(st.lists(files, max_size=60), policies)
def test_a_run_reads_no_more_than_it_may_and_no_file_is_much_too_large(some, policy):
    groups = groups_of(table(some), policy, NOW)
    assert sum(group.size for group in groups) <= policy.max_bytes
    assert sum(len(group.files) for group in groups) <= policy.max_files
    for group in groups:
        assert group.size / group.outputs <= 1.75 * TARGET


@given(st.lists(files, max_size=60), policies)
def test_every_row_comes_into_a_file_with_twice_as_many_rows_where_files_still_come(some, policy):
    young = [(1, 1, part, NOW, sortable) for part in range(3) for sortable in (False, True)]
    groups = groups_of(table([*some, *young]), replace(policy, quiet_ms=1), NOW)
    for group in groups:
        assert 2 * max(file.rows for file in group.files) <= group.rows / group.outputs
        assert len(group.files) >= policy.min_files or group.size >= policy.enough


@given(st.lists(files, max_size=60), policies)
def test_every_row_comes_into_a_file_with_a_quarter_more_rows_at_least(some, policy):
    for group in groups_of(table(some), policy, NOW):
        assert 1.25 * max(file.rows for file in group.files) <= group.rows / group.outputs


@given(st.lists(files, max_size=60), policies, st.randoms())
def test_the_order_in_which_files_are_listed_makes_no_difference(some, policy, chance):
    listed = table(some)
    shuffled = list(listed)
    chance.shuffle(shuffled)
    assert groups_of(listed, policy, NOW) == groups_of(shuffled, policy, NOW)


@given(
    st.lists(st.integers(1, TARGET), min_size=1, max_size=120),
    st.floats(0.4, 1.0),
    st.sampled_from([(), ("user",)]),
)
def test_a_row_is_rewritten_a_bounded_number_of_times(sizes, shrinks, by):
    """Files arrive one by one, and each time all that is worth it is done, until nothing is."""
    policy = Policy(file_size=TARGET, quiet_ms=0, min_files=2, cluster_by=by)
    there: list[SmallFile] = []
    rewritten: Counter[TablePath] = Counter()
    inside: dict[TablePath, list[TablePath]] = {}
    count = 0
    for size in sizes:
        count += 1
        name = TablePath(f"{count:05}")
        there.append(
            SmallFile(path=name, size=size, rows=size, partition=(), written=count, sortable=True)
        )
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
                each = group.rows // group.outputs
                for _place in range(group.outputs):
                    count += 1
                    new = TablePath(f"{count:05}")
                    inside[new] = origins
                    there.append(
                        SmallFile(
                            path=new,
                            size=max(1, int(group.size * shrinks / group.outputs)),
                            rows=each,
                            partition=(),
                            written=count,
                            sortable=True,
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
