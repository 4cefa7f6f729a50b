"""A Parquet file that has been open too long inside a task is rolled."""

from pathlib import Path

import pyarrow as pa

from blizzard.model.settings import RollingPolicy
from blizzard.worker.output.parquet import RollingWriter
from tests.support.builders import ID_AND_NAME, Hands


def batch(number: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"id": number, "name": "x"}], schema=ID_AND_NAME.arrow())


def test_a_file_is_closed_with_the_rows_that_come_once_it_is_old(tmp_path: Path) -> None:
    """The age counts from the file's first row, not from the start of the task."""
    hands = Hands()
    writer = RollingWriter(
        schema=ID_AND_NAME.arrow(),
        policy=RollingPolicy(rollover=300),
        marks={},
        folder=tmp_path,
        clock=hands.clock,
    )
    hands.at += 1000
    assert list(writer.write(batch(1), "a")) == []
    hands.at += 299
    assert list(writer.write(batch(2), "a")) == []
    hands.at += 1
    (closed,) = writer.write(batch(3), "a")
    assert closed.rows == 3
    assert list(writer.write(batch(4), "a")) == []
    (last,) = writer.close()
    assert last.rows == 1
