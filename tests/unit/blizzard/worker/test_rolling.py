"""When a row group is full, and when a file is."""

from blizzard.model.settings import RollingPolicy
from blizzard.worker.output.parquet import OpenFile, file_is_full, row_group_is_full

POLICY = RollingPolicy(file_size=1000, row_group_size=400)


def holding(*, encoded: int = 0, buffered: int = 0, ratio: float = 1.0) -> OpenFile:
    return OpenFile(encoded=encoded, buffered=buffered, ratio=ratio)


def test_a_row_group_is_full_when_enough_is_buffered():
    assert not row_group_is_full(holding(buffered=399), POLICY)
    assert row_group_is_full(holding(buffered=400), POLICY)


def test_a_row_group_is_closed_early_when_it_should_fill_the_file():
    assert row_group_is_full(holding(encoded=900, buffered=200, ratio=0.5), POLICY)
    assert not row_group_is_full(holding(encoded=900, buffered=199, ratio=0.5), POLICY)


def test_an_empty_row_group_is_never_closed():
    assert not row_group_is_full(holding(encoded=5000), POLICY)


def test_a_file_that_lacks_a_twentieth_of_the_target_is_full():
    assert file_is_full(holding(encoded=950), POLICY)
    assert not file_is_full(holding(encoded=949, buffered=5000), POLICY)


def test_a_file_that_has_been_open_for_too_long_is_full():
    policy = RollingPolicy(file_size=1000, row_group_size=400, rollover=5)
    assert not file_is_full(OpenFile(encoded=1, buffered=1, ratio=1.0, age=4.9), policy)
    assert file_is_full(OpenFile(encoded=1, buffered=1, ratio=1.0, age=5.0), policy)
    assert not row_group_is_full(OpenFile(encoded=1, buffered=1, ratio=1.0, age=4.9), policy)
    assert row_group_is_full(OpenFile(encoded=1, buffered=1, ratio=1.0, age=5.0), policy)
