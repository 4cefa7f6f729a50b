"""Tables of Spark's that call columns otherwise in their files: blizzard and penguin write them."""

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from tests.support import delta_spark as spark
from tests.support.compactions import crowded
from tests.support.mapped import DECLARED, MappedLake, row
from tests.support.promotions import ID
from tests.support.tables import Penguin

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]
COLUMNS = (
    "(id BIGINT NOT NULL, old STRING, gone INT, who STRUCT<a: BIGINT, x: STRING>, "
    "list ARRAY<STRUCT<c: BIGINT>>, pairs MAP<STRING, STRUCT<d: BIGINT>>, date DATE) "
    "USING delta PARTITIONED BY (date)"
)
VALUES = (
    "(1, 'n1', 7, struct(1, NULL), array(struct(1), struct(NULL)), map('k', struct(1)), "
    "DATE'2026-01-01')"
)


@pytest.mark.parametrize("mode", ["name", "id"])
def test_columns_that_spark_renamed_dropped_and_added_are_written(
    tmp_path: Path, mode: str
) -> None:
    name = f"delta.`{tmp_path / 'table'}`"
    spark.sql(
        f"CREATE TABLE {name} {COLUMNS} TBLPROPERTIES('delta.columnMapping.mode'='{mode}', "
        "'delta.minReaderVersion'='2','delta.minWriterVersion'='5')"
    )
    spark.sql(f"INSERT INTO {name} SELECT * FROM VALUES {VALUES}")
    spark.sql(f"ALTER TABLE {name} RENAME COLUMN old TO name")
    spark.sql(f"ALTER TABLE {name} DROP COLUMN gone")
    spark.sql(f"ALTER TABLE {name} RENAME COLUMN who.x TO b")
    lake = MappedLake(tmp_path)
    committed(lake, 2, 3)
    spark.sql(f"ALTER TABLE {name} ADD COLUMN (gone STRING)")
    committed(lake, 4, declared=f"{DECLARED}    - {{name: gone, type: string}}\n", every=1)
    spark.sql(f"OPTIMIZE {name}")
    committed(lake, 5)
    found = spark.rows(lake.table.root)
    assert [{key: one[key] for key in row(1)} for one in found] == [*map(row, range(1, 6))]
    assert {one["gone"] for one in found} == {None}
    for number in (2, 5):
        conditions = f"name = 'n{number}' AND who.a = {number} AND date = DATE'2026-01-01'"
        where = spark.table(lake.table.root).where(conditions).select("id")
        assert [one["id"] for one in where.collect()] == [number]
    if mode == "name":
        by_deltalake = pa.table(DeltaTable(str(lake.table.root)).scan().read_all())
        assert sorted(map(str, by_deltalake["name"].to_pylist())) == [
            f"n{one}" for one in range(1, 6)
        ]


@pytest.mark.parametrize("mode", ["name", "id"])
def test_rows_are_taken_out_of_columns_that_spark_renamed(tmp_path: Path, mode: str) -> None:
    """What stays is read by Spark under every name, its own files and ours alike."""
    fields = {"fields": [ID, {"name": "user", "type": "string"}], "provenance": ["file"]}
    desk = crowded(tmp_path, fields, files=0)
    name = f"delta.`{desk.table}`"
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT, person STRING, user INT, _file STRING) USING delta "
        f"TBLPROPERTIES('delta.columnMapping.mode'='{mode}', "
        "'delta.minReaderVersion'='2','delta.minWriterVersion'='5')"
    )
    spark.sql(f"INSERT INTO {name} VALUES (100, 'user-100', 1, NULL), (101, 'user-101', 2, NULL)")
    spark.sql(f"ALTER TABLE {name} DROP COLUMN user")
    spark.sql(f"ALTER TABLE {name} RENAME COLUMN person TO user")
    for number in range(4):
        rows = [{"id": 2 * number + one, "user": f"user-{2 * number + one}"} for one in (0, 1)]
        desk.land(f"{number}.ndjson", *rows)
        desk.ingest()
    desk.tidy()
    assert len(desk.active) == 2
    desk.take_back("1.ndjson")
    desk.forget("user IN ('user-5', 'user-100')")
    assert {row["id"]: row["user"] for row in spark.rows(desk.table)} == {
        number: f"user-{number}" for number in (0, 1, 4, 6, 7, 101)
    }
    found = spark.table(desk.table).where("user = 'user-7'").select("id").collect()
    assert [row["id"] for row in found] == [7]
    spark.sql(f"UPDATE {name} SET user = 'x' WHERE id = 6")
    spark.sql(f"OPTIMIZE {name}")
    assert {row["user"] for row in spark.rows(desk.table) if row["id"] == 6} == {"x"}
    # The row of Spark's own that was erased is none of the journals'.
    assert desk.audited().is_balanced


def committed(lake: MappedLake, *numbers: int, declared: str = DECLARED, every: int = 100) -> None:
    """Land rows, and have both programs bring them into the table."""
    lake.land(*numbers)
    lake.write(declared)
    penguin = Penguin(lake.table, options={"checkpoint_interval": every}).drain()
    assert (penguin.codes, penguin.held) == ({}, {})
