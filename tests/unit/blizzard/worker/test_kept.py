"""Rows of a file until its last line has parsed: in memory, and on the disk once there are many."""

import pyarrow as pa
import pytest

from blizzard.worker.output.groups import Slice
from blizzard.worker.output.kept import Kept


@pytest.fixture
def kept(tmp_path):
    return Kept(tmp_path, in_memory=100)


def rows(first: int, size: int = 60) -> Slice:
    return Slice(pa.record_batch({"id": [first, first + 1]}), size)


def ids(slices) -> list[int]:
    return [value for one in slices for value in one.batch["id"].to_pylist()]


def test_rows_for_which_there_is_no_room_in_memory_are_on_the_disk_and_come_in_order(
    kept, tmp_path
):
    kept.add([rows(0), rows(2), rows(4)])
    assert [each.name for each in tmp_path.iterdir()] == ["kept-0.arrow"]
    assert ids(kept.take()) == [0, 1, 2, 3, 4, 5]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("end", [lambda kept: list(kept.take()), Kept.forget])
def test_once_rows_are_gone_there_is_room_in_memory_again(kept, tmp_path, end):
    kept.add([rows(0), rows(2)])
    end(kept)
    kept.add([rows(4)])
    assert not list(tmp_path.iterdir())
    assert ids(kept.take()) == [4, 5]
