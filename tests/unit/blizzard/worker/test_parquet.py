"""Parquet files on the disk, rolled by size."""

import os
import random
import string
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from blizzard.model.files import ClosedFile
from blizzard.model.settings import RollingPolicy
from blizzard.worker.output.parquet import RollingWriter
from blizzard.worker.rewrite_group import closed_file
from lakebed.clock import Clock
from lakebed.documents.data_file import ColumnStatistics
from tests.support.builders import ID_AND_NAME

SCHEMA = ID_AND_NAME.arrow()


def writer(folder: Path, policy: RollingPolicy | None = None) -> RollingWriter:
    return RollingWriter(
        schema=SCHEMA,
        policy=policy or RollingPolicy(),
        marks={"pipeline": "events", "journal": "j-1"},
        folder=folder,
        clock=Clock(),
    )


def batch(number: int, start: int = 0) -> pa.RecordBatch:
    chance = random.Random(start)
    names = ["".join(chance.choices(string.ascii_letters, k=40)) for _ in range(number)]
    return pa.record_batch([pa.array(range(start, start + number)), pa.array(names)], schema=SCHEMA)


def write_all(
    target: RollingWriter, batches: list[pa.RecordBatch], source: str = "s:a"
) -> list[ClosedFile]:
    closed = [file for each in batches for file in target.write(each, source)]
    return closed + list(target.close())


def test_a_required_column_is_required_in_parquet(tmp_path):
    (closed,) = write_all(writer(tmp_path), [batch(1)])
    schema = pq.read_metadata(closed.path).schema
    assert [schema.column(index).max_definition_level for index in range(2)] == [0, 1]


def test_a_file_names_the_sources_with_rows_in_it_and_no_other(tmp_path):
    target = writer(tmp_path, RollingPolicy(file_size=20_000, row_group_size=10**9))
    big, small, empty = batch(500), batch(10), batch(0)
    closed = [*target.write(big, "s:a"), *target.write(small, "s:b"), *target.write(empty, "s:c")]
    closed += [*target.write(small, "s:a"), *target.write(small, "s:b"), *target.close()]
    assert [file.sources for file in closed] == [("s:a",), ("s:b", "s:a")]


def test_an_abandoned_file_is_not_left_open_and_what_was_buffered_is_gone(tmp_path):
    target = writer(tmp_path, RollingPolicy(row_group_size=1000))
    assert list(target.write(batch(100), "s:a")) == []
    assert open_files(tmp_path)
    target.abandon()
    assert open_files(tmp_path) == []
    assert list(target.close()) == []


def open_files(folder: Path) -> list[str]:
    handles = (Path("/proc/self/fd") / name for name in os.listdir("/proc/self/fd"))  # noqa: PTH208
    targets = (os.readlink(handle) for handle in handles if handle.is_symlink())  # noqa: PTH115
    return [target for target in targets if target.startswith(str(folder))]


FLOATS = pa.schema([("x", pa.float64()), ("in", pa.struct([("y", pa.float32())]))])


def test_floats_have_bounds_unless_one_is_infinite(tmp_path):
    rows = [{"x": -0.5, "in": {"y": 1.5}}, {"x": 2.5, "in": {"y": float("inf")}}]
    target = RollingWriter(
        schema=FLOATS, policy=RollingPolicy(), marks={}, folder=tmp_path, clock=Clock()
    )
    (closed,) = write_all(target, [pa.RecordBatch.from_pylist(rows, FLOATS)])
    assert closed.statistics == {
        "x": ColumnStatistics(null_count=0, minimum=-0.5, maximum=2.5),
        "in.y": ColumnStatistics(null_count=0),
    }


@pytest.mark.parametrize(("y", "bounds"), [(0.25, 0.25), (float("nan"), None)])
def test_floats_of_a_file_that_is_written_anew_have_bounds_unless_one_is_nan(tmp_path, y, bounds):
    path = tmp_path / "f.parquet"
    pq.write_table(pa.Table.from_pylist([{"x": 1.5, "in": {"y": y}}, {"x": None}], FLOATS), path)
    found = closed_file(Clock().fresh_id(), path, 2, {}, None).statistics
    assert (found["x"].minimum, found["in.y"].maximum) == (bounds and 1.5, bounds)
