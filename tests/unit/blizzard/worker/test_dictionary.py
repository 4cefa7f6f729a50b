"""A dictionary where values repeat, and none where they do not."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from blizzard.model.settings import RollingPolicy
from blizzard.worker.parquet import RollingWriter
from lakebed.clock import Clock
from lakebed.schema import Field, Schema
from lakebed.types import FieldType


def test_a_dictionary_is_chosen_by_the_data_column_by_column(tmp_path: Path) -> None:
    schema = Schema(
        (
            Field(name="fresh", type=FieldType.STRING),
            Field(name="same", type=FieldType.STRING),
            Field(name="few", type=FieldType.INT64),
        )
    ).arrow()
    rows = 5_000
    batch = pa.RecordBatch.from_arrays(
        [
            pa.array([f"value {number}" for number in range(rows)]),
            pa.array(["again"] * rows),
            pa.array([number % 10 for number in range(rows)], pa.int64()),
        ],
        schema=schema,
    )
    writer = RollingWriter(
        schema=schema, policy=RollingPolicy(), marks={}, folder=tmp_path, clock=Clock()
    )
    list(writer.write(batch, "a"))
    (closed,) = writer.close()
    group = pq.read_metadata(closed.path).row_group(0)

    dictionaries = {
        group.column(index).path_in_schema: group.column(index).has_dictionary_page
        for index in range(group.num_columns)
    }
    assert dictionaries == {"fresh": False, "same": True, "few": True}
