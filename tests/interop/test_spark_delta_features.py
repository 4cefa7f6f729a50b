"""Tables with features that Spark made: penguin appends, Spark reads, and both go on in turns."""

from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from penguin.delta.table import Log
from tests.support import delta_spark as spark
from tests.support.tables import EVENTS, Numbered, Penguin, TableDirectory, opened

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]
COLUMNS = "(id BIGINT NOT NULL, name STRING, date DATE) USING delta"
ROWS = "'delta.enableRowTracking'='true'"
TIMES = "'delta.enableInCommitTimestamps'='true'"
WIDE = "'delta.enableTypeWidening'='true'"
V2 = "'delta.checkpointPolicy'='v2'"
MAPPED = (
    "'delta.columnMapping.mode'='name','delta.minReaderVersion'='2','delta.minWriterVersion'='5'"
)
TABLES = {
    "rows": (f"TBLPROPERTIES({ROWS})", ""),
    "times": (f"TBLPROPERTIES({TIMES})", ""),
    "clustered": ("CLUSTER BY (id)", ""),
    "widened": (f"TBLPROPERTIES({WIDE})", "ALTER TABLE {} ALTER COLUMN id TYPE BIGINT"),
    "mapped": ("", f"ALTER TABLE {{}} SET TBLPROPERTIES({MAPPED})"),
    "all": (f"CLUSTER BY (id) TBLPROPERTIES({ROWS},{TIMES},{WIDE},{V2})", ""),
}


def appended(table: TableDirectory, *ids: int, **options: int) -> None:
    """Commit an entry of one file with these rows."""
    rows = [{"id": one, "name": f"n{one}", "date": date(2026, 1, 1)} for one in ids]
    table.journal(partitions=(), schema=Numbered(EVENTS.fields)).batch(rows)
    penguin = Penguin(table, options=options).drain()
    assert (penguin.codes, penguin.held) == ({}, {})


@pytest.mark.parametrize("kind", TABLES)
def test_spark_and_penguin_append_in_turns(tmp_path: Path, kind: str) -> None:
    name = f"delta.`{tmp_path / 'table'}`"
    made, altered = TABLES[kind]
    # In one table Spark widens the type of the ids, in the other penguin does.
    narrow = kind in ("widened", "all")
    columns = COLUMNS.replace("BIGINT", "INT") if narrow else COLUMNS
    spark.sql(f"CREATE TABLE {name} {columns} {made}")
    spark.sql(f"INSERT INTO {name} VALUES (1, 'n1', DATE'2026-01-01'), (2, 'n2', NULL)")
    if altered:
        spark.sql(altered.format(name))
    table = TableDirectory(tmp_path / "table")
    appended(table, 3, 4)
    appended(table, 5)
    spark.sql(f"INSERT INTO {name} VALUES (6, 'n6', NULL)")
    # Now a checkpoint of ours is what Spark begins with.
    appended(table, 7, checkpoint_interval=1)
    assert [row["id"] for row in spark.rows(table.root)] == [*range(1, 8)]
    assert [row["name"] for row in spark.rows(table.root)] == [f"n{one}" for one in range(1, 8)]
    if kind in ("rows", "all"):
        check_rows(table)
    if kind in ("times", "all"):
        check_times(table)
    if kind in ("rows", "times", "clustered", "mapped"):
        found = pa.table(DeltaTable(str(table.root)).scan().read_all())
        assert sorted(map(str, found["id"].to_pylist())) == [*map(str, range(1, 8))]
    assert dict(spark.table(table.root).dtypes)["id"] == "bigint"
    spark.sql(f"OPTIMIZE {name}")
    appended(table, 8)
    spark.session().catalog.clearCache()
    assert [row["id"] for row in spark.rows(table.root)] == [*range(1, 9)]
    if kind in ("rows", "all"):
        check_rows(table)


def check_rows(table: TableDirectory) -> None:
    """Hold the ids of rows, as Spark reads them: each row has one, and no two have the same."""
    frame = spark.table(table.root)
    found = frame.select("id", "_metadata.row_id", "_metadata.row_commit_version").collect()
    ids = [row["row_id"] for row in found]
    assert None not in ids
    assert len(set(ids)) == len(found)
    # Ids follow one another as the rows were committed, and versions with them.
    ordered = sorted(found, key=lambda row: int(row["row_id"]))
    assert [row["id"] for row in ordered] == sorted(row["id"] for row in found)
    versions = [row["row_commit_version"] for row in ordered]
    assert versions == sorted(versions)


def check_times(table: TableDirectory) -> None:
    """Hold the timestamps of versions, as Spark reads them: each is later than the one before."""
    history = spark.sql(f"DESCRIBE HISTORY delta.`{table.root}`").collect()
    at = [row["timestamp"] for row in sorted(history, key=lambda row: int(row["version"]))]
    assert at == sorted(set(at))
    known = opened(Log(table.store)).in_commit_timestamp
    assert known is not None
    assert datetime.fromtimestamp(known / 1000, UTC) == at[-1].astimezone(UTC)
