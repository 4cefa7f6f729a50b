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
from lakebed.types import ParquetCodec
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


@pytest.mark.parametrize("codec", ParquetCodec)
def test_the_footer_says_the_codec_that_was_asked_for(tmp_path, codec):
    (closed,) = write_all(writer(tmp_path, RollingPolicy(codec=codec)), [batch(5000)])
    metadata = pq.read_metadata(closed.path)
    found = {metadata.row_group(0).column(index).compression for index in range(2)}
    assert found == {codec.value.upper()}


def test_a_file_holds_several_row_groups_and_every_row_once(tmp_path):
    policy = RollingPolicy(row_group_size=50_000)
    (closed,) = write_all(writer(tmp_path, policy), [batch(300, n * 300) for n in range(20)])
    assert pq.read_metadata(closed.path).num_row_groups > 3
    assert pq.read_table(closed.path).column("id").to_pylist() == list(range(6000))


def test_closed_files_say_what_is_on_the_disk(tmp_path):
    (closed,) = write_all(writer(tmp_path), [batch(10, 5)])
    assert closed.path == tmp_path / f"{closed.name}.parquet"
    assert closed.name.version == 7
    assert closed.size == closed.path.stat().st_size
    assert closed.rows == 10
    assert closed.statistics["id"] == ColumnStatistics(null_count=0, minimum=5, maximum=14)


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


def test_a_writer_goes_on_after_it_was_closed(tmp_path):
    target = writer(tmp_path)
    first, second = write_all(target, [batch(1)], "s:a"), write_all(target, [batch(2)], "s:b")
    assert [(file.rows, file.sources) for file in first + second] == [(1, ("s:a",)), (2, ("s:b",))]


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
