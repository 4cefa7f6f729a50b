"""Small files that were put together, as Spark sees it: nothing but fewer files."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame

from blizzard.inspect.audit.findings import FindingKind
from tests.support import delta_spark as spark
from tests.support.compactions import Crowded, crowded_by_day
from tests.support.promotions import ID

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]
MAPPED = (
    "'delta.columnMapping.mode'='name','delta.minReaderVersion'='2','delta.minWriterVersion'='5'"
)


def read(desk: Crowded, **options: Any) -> DataFrame:
    return spark.session().read.format("delta").options(**options).load(str(desk.table))


def operations(desk: Crowded) -> list[str]:
    """Return what was done to the table, the last first."""
    found = spark.sql(f"DESCRIBE HISTORY delta.`{desk.table}`").collect()
    return [row["operation"] for row in found]


def streamed(desk: Crowded, folder: Path, first: int) -> list[int]:
    """Return the ids that a stream is given which begins with a version."""
    stream = spark.session().readStream.format("delta").option("startingVersion", first)
    query = (
        stream.load(str(desk.table))
        .writeStream.format("memory")
        .queryName("given")
        .option("checkpointLocation", str(folder))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return [row["id"] for row in spark.sql("SELECT id FROM given ORDER BY id").collect()]


def test_spark_reads_the_same_rows_and_both_go_on(tmp_path: Path) -> None:
    desk = crowded_by_day(tmp_path)
    name = f"delta.`{desk.table}`"
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES('delta.enableChangeDataFeed'='true')")
    before, version = spark.rows(desk.table), desk.version
    assert desk.tidy().failed == ()
    assert (len(desk.active), desk.version) == (2, version + 1)

    assert spark.rows(desk.table) == before
    then = read(desk, versionAsOf=version).orderBy("id")
    assert [row.asDict() for row in then.collect()] == before
    (found,) = spark.table(desk.table).where("user = 'user-48-1' AND id > 100").collect()
    assert found["id"] == 105
    assert operations(desk)[0] == "OPTIMIZE"
    assert read(desk, readChangeFeed="true", startingVersion=version + 1).count() == 0
    desk.lands_every_day(4)
    new = [8, 9, 108, 109]
    assert streamed(desk, tmp_path / "stream", version + 1) == new

    assert desk.audited().is_balanced
    spark.sql(f"DELETE FROM {name} WHERE id IN (2, 107)")
    changes = read(desk, readChangeFeed="true", startingVersion=version + 1)
    told = sorted((row["_change_type"], row["id"]) for row in changes.collect())
    assert told == [("delete", 2), ("delete", 107), *(("insert", one) for one in new)]
    for number in range(5, 8):
        desk.lands_every_day(number)
    desk.tidy()
    spark.sql(f"OPTIMIZE {name}")
    desk.lands_every_day(8)
    assert operations(desk)[:3] == ["WRITE", "OPTIMIZE", "OPTIMIZE"]
    ids = [one for one in (*range(18), *range(100, 118)) if one not in (2, 107)]
    spark.sql(f"VACUUM {name} RETAIN 0 HOURS")
    assert [row["id"] for row in spark.rows(desk.table)] == ids
    assert desk.ids() == ids
    # The books are whole but for what Spark has deleted.
    assert [one.kind for one in desk.audited().differences] == [FindingKind.ROWS_REMOVED]


def test_a_table_that_spark_maps_is_compacted_also_once_a_column_is_renamed(tmp_path: Path) -> None:
    desk = crowded_by_day(tmp_path)
    name = f"delta.`{desk.table}`"
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES({MAPPED})")
    before = spark.rows(desk.table)
    assert desk.tidy().failed == ()
    assert len(desk.active) == 2
    assert spark.rows(desk.table) == before
    for number in range(4, 8):
        desk.lands_every_day(number)
    spark.sql(f"ALTER TABLE {name} RENAME COLUMN user TO person")
    desk.written["compact"]["cluster_by"] = ["person"]
    person = {"name": "person", "type": "string"}
    desk.configure({"fields": [ID, person], "provenance": ["file", "line"]})
    renamed = spark.rows(desk.table)
    assert desk.tidy().failed == ()
    assert len(desk.active) == 2
    assert spark.rows(desk.table) == renamed
    found = {row["id"]: row["person"] for row in renamed}
    assert len(found) == 32
    assert {row["id"]: row["user"] for row in before}.items() <= found.items()
    # Files are left out by the bounds that the log has of the column.
    where = spark.table(desk.table).where("person = 'user-44-1'").select("id")
    assert sorted(row["id"] for row in where.collect()) == [13, 113]
