"""Spark's VACUUM and appends beside penguin's: the same files go, and every row comes in."""

import json
from collections.abc import Callable, Sequence
from datetime import date, timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable

from penguin.upkeep.vacuum import KeptReason
from tests.support import delta_spark as spark
from tests.support.races import AGAINST_SPARK, Race, in_commit_timestamps
from tests.support.tables import EVENTS, Numbered, Penguin, TableDirectory
from tests.support.upkeep import data, grow_old, order

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]
COLUMNS = "(id BIGINT NOT NULL, name STRING, date DATE) USING delta"
VECTORS = "'delta.enableDeletionVectors'='true'"
FEED = "'delta.enableChangeDataFeed'='true'"
OLD = "'delta.deletedFileRetentionDuration'='interval 7 days'"


def appended(table: TableDirectory, *ids: int) -> None:
    rows = [{"id": one, "name": f"n{one}", "date": date(2026, 1, 1)} for one in ids]
    table.journal(partitions=(), schema=Numbered(EVENTS.fields)).batch(rows)
    Penguin(table).drain()


def by_spark(table: TableDirectory) -> set[str]:
    """Return what Spark would delete, but for folders, which penguin leaves."""
    spark.forget()
    found = spark.sql(f"VACUUM delta.`{table.root}` DRY RUN").collect()
    paths = {Path(row["path"].removeprefix("file:")) for row in found}
    return {str(path.relative_to(table.root)) for path in paths if path.is_file()}


@pytest.mark.parametrize("properties", [OLD, f"{OLD},{VECTORS}", f"{OLD},{FEED}"])
def test_spark_would_delete_the_same_files(tmp_path: Path, properties: str) -> None:
    name = f"delta.`{tmp_path / 'table'}`"
    spark.sql(f"CREATE TABLE {name} {COLUMNS} TBLPROPERTIES({properties})")
    table = TableDirectory(tmp_path / "table")
    appended(table, 1, 2, 3)
    appended(table, 4)
    spark.sql(f"DELETE FROM {name} WHERE id = 2")
    spark.sql(f"OPTIMIZE {name}")
    table.store.replace("orphan-of-a-killed-writer.parquet", b"x")
    grow_old(table.root, 8)
    appended(table, 5)
    spark.sql(f"UPDATE {name} SET name = 'x' WHERE id = 5")
    before = table.delta().version() if VECTORS not in properties else None
    expected = by_spark(table)
    # What an entry names and the log does not is all that they differ in.
    waiting = table.journal().batch([{"id": 6, "name": "n6", "date": date(2026, 1, 1)}])
    seen = order(table.settings()).plan(table.store)
    assert seen is not None
    assert expected
    assert set(seen.some) == expected
    there = data(table.root)
    done = order(table.settings()).carry_out(table.store)
    assert done is not None
    assert there - data(table.root) == {path for path in expected if not path.startswith("_")}
    assert by_spark(table) == set()
    assert [row["id"] for row in spark.rows(table.root)] == [1, 3, 4, 5]
    # One of its files was removed today. The version before it is that of a week ago, which Spark
    # does not travel to, and deltalake does.
    travelled = spark.sql(f"SELECT id, name FROM {name} VERSION AS OF 5 WHERE id = 5").collect()
    assert [row["name"] for row in travelled] == ["n5"]
    if before is not None:
        found = DeltaTable(str(table.root), version=4).to_pyarrow_table(columns=["id"])
        assert {*found["id"].to_pylist()} == {1, 3, 4}
    Penguin(table).drain()
    assert waiting.files[0].filename in data(table.root)
    assert [row["id"] for row in spark.rows(table.root)] == [1, 3, 4, 5, 6]


def test_files_that_wait_are_what_spark_takes_and_penguin_does_not(tmp_path: Path) -> None:
    """HOLES W15, W21."""
    table = TableDirectory(tmp_path / "table")
    appended(table, 1)
    waiting = table.journal().batch([{"id": 2, "name": "n2", "date": date(2026, 1, 1)}])
    grow_old(table.root, 15)
    assert by_spark(table) == {waiting.files[0].filename}
    seen = order(table.settings(), older_than=timedelta(0), ignore_retention=True).plan(table.store)
    assert seen is not None
    assert (seen.files, seen.kept) == (0, {KeptReason.WAITING: 1})


NOT_OF_APPENDS = (
    *("allowColumnDefaults", "domainMetadata", "typeWidening", "typeWidening-preview"),
    *("checkpointProtection", "vacuumProtocolCheck"),
)
"""Features that ask nothing of an append: a table may have all of them."""


def supported(names: Sequence[str]) -> str:
    each = (f"'delta.feature.{name}'='supported'" for name in names)
    return f"TBLPROPERTIES({', '.join(each)})"


TABLES = {
    NOT_OF_APPENDS: supported(NOT_OF_APPENDS),
    ("clustering",): "CLUSTER BY (id)",
    ("rowTracking",): "TBLPROPERTIES('delta.enableRowTracking'='true')",
    ("inCommitTimestamp",): "TBLPROPERTIES('delta.enableInCommitTimestamps'='true')",
}


def check_row_ids(root: Path) -> None:
    found = [row["row_id"] for row in spark.table(root).select("_metadata.row_id").collect()]
    assert None not in found
    assert len(set(found)) == len(found)


def check_times(root: Path) -> None:
    times = in_commit_timestamps(root)
    assert times == sorted(set(times))


def check_clustering(root: Path) -> None:
    (detail,) = spark.sql(f"DESCRIBE DETAIL delta.`{root}`").collect()
    assert detail["clusteringColumns"] == ["id"]


INVARIANTS: dict[str, Callable[[Path], None]] = {
    "rowTracking": check_row_ids,
    "inCommitTimestamp": check_times,
    "clustering": check_clustering,
}


def test_these_are_the_features_that_deltalake_does_not_write() -> None:
    assert {name for names in TABLES for name in names} == AGAINST_SPARK


@pytest.mark.parametrize("names", TABLES, ids=lambda names: names[0])
def test_two_penguins_and_spark_at_the_same_time(tmp_path: Path, names: tuple[str, ...]) -> None:
    root = tmp_path / "table"
    spark.sql(f"CREATE TABLE delta.`{root}` {COLUMNS} {TABLES[names]}")
    race = Race(root, 2)
    statement = f"INSERT INTO delta.`{root}` VALUES (1, 'n1', NULL), (2, 'n2', NULL)"
    race.against(lambda: spark.sql(statement).collect())
    race.drain()
    wanted = race.names | {1: "n1", 2: "n2"}
    spark.forget()
    rows = spark.table(root).collect()
    assert len(rows) == len(wanted)
    assert {row["id"]: row["name"] for row in rows} == wanted
    first = (root / "_delta_log" / f"{0:020}.json").read_text().splitlines()
    (protocol,) = (json.loads(line)["protocol"] for line in first if '"protocol"' in line)
    assert set(names) <= set(protocol["writerFeatures"])
    for name in INVARIANTS.keys() & set(names):
        INVARIANTS[name](root)
