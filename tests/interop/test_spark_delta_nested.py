"""Spark with Delta on nested types, on tables with features, and on compacted tables."""

import random
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from blizzard.inspect.audit.findings import FindingKind
from penguin.delta.table import Log
from tests.integration.blizzard.test_every_type import check, land, run, settings_of
from tests.support import delta_spark as spark
from tests.support.compactions import Crowded, crowded_by_day
from tests.support.every_type import FIRST, THEN, Row, Rows
from tests.support.promotions import ID
from tests.support.tables import EVENTS, Numbered, Penguin, TableDirectory, opened

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]

LEAVES = (
    "tiny",
    "small",
    "local",
    "price",
    "sum",
    "user.id",
    "user.name",
    "user.price",
    "user.local",
    "user.at",
    "user.day",
    "user.late",
    "user.deep.tiny",
    "user.deep.name",
    "mixed.id",
)
COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "=": lambda one, other: one == other,
    "<": lambda one, other: one < other,
    ">": lambda one, other: one > other,
    "<=": lambda one, other: one <= other,
}


def utc(value: Any, name: str = "") -> Any:
    """Turn what Spark gives into what the oracle holds; instants are called `at`."""
    match value:
        case dict():
            return {key: utc(one, key) for key, one in value.items()}
        case list():
            return [utc(one) for one in value]
        case bytearray():
            return bytes(value)
        case datetime() if name == "at":
            return value.astimezone(UTC)
    return value


def value_at(row: Row, path: str) -> Any:
    found: Any = row
    for name in path.split("."):
        found = None if found is None else found[name]
    return found


def literal(value: Any) -> str:
    match value:
        case datetime():
            kind = "TIMESTAMP_NTZ" if value.tzinfo is None else "TIMESTAMP"
            return f"{kind}'{value.isoformat(sep=' ')}'"
        case date():
            return f"DATE'{value.isoformat()}'"
        case Decimal():
            return f"CAST('{value:f}' AS DECIMAL(38,3))"
        case _:
            return repr(value)


def filters(rows: list[Row]) -> Iterator[tuple[str, list[int]]]:
    """Yield conditions on every field, each with the ids that it finds."""
    chance = random.Random(5)
    for path in LEAVES:
        held = [(row["id"], value_at(row, path)) for row in rows]
        values = [one for _, one in held if one is not None]
        value, sign = chance.choice(values), chance.choice(sorted(COMPARISONS))
        test = COMPARISONS[sign]
        found = [number for number, one in held if one is not None and test(one, value)]
        yield f"{path} {sign} {literal(value)}", found
        yield f"{path} IS NULL", [number for number, one in held if one is None]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Row]]:
    """Return a table of six files whose structs have grown, and its rows."""
    folder = tmp_path_factory.mktemp("nested")
    wanted: list[Row] = []
    for batch, (ddl, later) in enumerate(((FIRST, False), (THEN, True), (FIRST, False)) * 2):
        some = Rows(later=later, start=batch * 10).take(10)
        land(folder, some, later=later)
        run(folder, settings_of(folder, ddl), by_penguin=True)
        wanted += some
    return folder / "table", wanted


def test_spark_reads_every_nested_type_as_it_came_in(made: tuple[Path, list[Row]]) -> None:
    table, wanted = made
    check(table, wanted)  # as deltalake and polars read it
    conf = spark.session().conf
    for vectorized in ("true", "false"):
        conf.set("spark.sql.parquet.enableVectorizedReader", vectorized)
        try:
            found = [utc(row) for row in spark.rows(table)]
        finally:
            conf.set("spark.sql.parquet.enableVectorizedReader", "true")
        assert [{name: row[name] for name in wanted[0]} for row in found] == wanted


def test_a_filter_on_a_nested_field_finds_the_same_rows_with_and_without_skipping(
    made: tuple[Path, list[Row]],
) -> None:
    """W13."""
    table, wanted = made
    cases = list(filters(wanted))
    conditions: list[Column] = [fn.expr(condition) for condition, _ in cases]
    expected = dict(cases)
    for skipping in ("true", "false"):
        spark.session().conf.set("spark.databricks.delta.stats.skipping", skipping)
        try:
            found = spark.ids_under(table, conditions)
        finally:
            spark.session().conf.set("spark.databricks.delta.stats.skipping", "true")
        assert dict(zip(expected, found, strict=True)) == expected, skipping


def test_spark_skips_files_by_fields_of_structs(made: tuple[Path, list[Row]]) -> None:
    table, wanted = made
    by_id = next(row for row in wanted if row["user"])["user"]["id"]
    lowest = min(row["user"]["price"] for row in wanted if row["user"] and row["user"]["price"])
    for condition in (f"user.id = {by_id}", f"user.price = {literal(lowest)}"):
        files = spark.table(table).where(fn.expr(condition)).inputFiles()
        assert len(files) == 1, condition


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
    columns = COLUMNS.replace("BIGINT", "INT") if kind == "widened" else COLUMNS
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
    person = {"name": "person", "type": "string"}
    desk.configure({"fields": [ID, person], "provenance": ["file", "line"]})
    renamed = spark.rows(desk.table)
    assert desk.tidy().failed == ()
    assert len(desk.active) == 2
    assert spark.rows(desk.table) == renamed
    found = {row["id"]: row["person"] for row in renamed}
    assert len(found) == 32
    assert {row["id"]: row["user"] for row in before}.items() <= found.items()
    where = spark.table(desk.table).where("person = 'user-44-1'").select("id")
    assert sorted(row["id"] for row in where.collect()) == [13, 113]
