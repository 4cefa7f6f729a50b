"""Spark with Delta reads every type, mapped and adopted table, and what the page shows."""

import json
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark.sql import functions as fn

from lakebed.columns.schema import Field, Schema
from lakebed.deltalog.delta_types import READ_AS
from lakebed.documents.records import SourceRecord
from lakebed.types import Evolution, FieldType
from tests.support import delta_spark
from tests.support import delta_spark as spark
from tests.support.adoptions import ParquetFolder
from tests.support.compactions import crowded
from tests.support.foreign import Directory
from tests.support.mapped import DECLARED, MappedLake, row
from tests.support.orders import TOTALS, example, orders
from tests.support.promotions import ID
from tests.support.readers import ids, polars_ids
from tests.support.tables import EVENTS, Penguin, TableDirectory, rows_of

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]
Row = dict[str, Any]
PAIRS = [
    *((table, file) for table, files in READ_AS.items() for file in sorted(files)),
    ("decimal(12,2)", "decimal(7,2)"),
    ("decimal(30,2)", "decimal(15,2)"),
    ("decimal(18,4)", "decimal(18,4)"),
]
ARROW: dict[str, pa.DataType] = {
    "long": pa.int64(),
    "integer": pa.int32(),
    "short": pa.int16(),
    "byte": pa.int8(),
    "double": pa.float64(),
    "float": pa.float32(),
}
WRAPS: dict[str, tuple[Any, Any, Any]] = {
    "plain": (lambda kind: kind, lambda kind: kind, lambda value: value),
    "struct": (
        lambda kind: {"type": "struct", "fields": [_field("in", kind)]},
        lambda kind: pa.struct([("in", kind)]),
        lambda value: {"in": value},
    ),
    "array": (
        lambda kind: {"type": "array", "elementType": kind, "containsNull": True},
        pa.list_,
        lambda value: [value, None],
    ),
    "map": (
        lambda kind: {
            "type": "map",
            "keyType": "string",
            "valueType": kind,
            "valueContainsNull": True,
        },
        lambda kind: pa.map_(pa.string(), kind),
        lambda value: {"k": value},
    ),
}


def _field(name: str, kind: Any, *, nullable: bool = True) -> Row:
    return {"name": name, "type": kind, "nullable": nullable, "metadata": {}}


def _arrow(kind: str) -> pa.DataType:
    if kind in ARROW:
        return ARROW[kind]
    precision, scale = json.loads(f"[{kind[8:-1]}]")
    return pa.decimal128(precision, scale)


def _value(kind: str) -> Any:
    return Decimal("12.50") if kind.startswith("decimal") else 12.5 if kind == "float" else 100


@pytest.mark.parametrize("decimals_as_integers", [False, True])
def test_every_narrower_type_that_penguin_accepts_is_read_by_spark(
    tmp_path: Path, decimals_as_integers: bool
) -> None:
    """W06: alone, in structs, in lists and in maps, by both of Spark's Parquet readers."""
    table = TableDirectory(tmp_path / "table")
    plain = Schema((Field(name="id", type=FieldType.INT64, nullable=False),))
    journal = table.journal(schema=plain, partitions=())
    expected = []
    for number, side in ((1, 0), (2, 1)):
        fields = [_field("id", "long", nullable=False)]
        columns: Row = {"id": pa.array([number], pa.int64())}
        row: Row = {"id": number}
        for pair in PAIRS:
            for wrap, (delta, arrow, wrapped) in WRAPS.items():
                name = f"{wrap}_{pair[0]}_{pair[1]}".replace("(", "_").replace(")", "")
                name = name.replace(",", "_")
                value = wrapped(_value(pair[1]))
                fields.append(_field(name, delta(pair[side])))
                kind = arrow(_arrow(pair[side]))
                given = list(value.items()) if wrap == "map" else value
                columns[name] = pa.array([given], kind)
                row[name] = value
        file = journal.file([{"id": number}])
        target = table.root / file.filename
        data = pa.table(columns)
        required = data.schema.set(0, pa.field("id", pa.int64(), nullable=False))
        pq.write_table(data.cast(required), target, store_decimal_as_integer=decimals_as_integers)
        journal.batch(
            files=(replace(file, size=target.stat().st_size),),
            sources=(SourceRecord(source="in", path="a", size=1, etag=None, lines=1, rows=1),),
            table_schema={"type": "struct", "fields": fields},
        )
        expected.append(row)
    assert Penguin(table).drain().codes == {}
    conf = spark.session().conf
    for vectorized in ("true", "false"):
        conf.set("spark.sql.parquet.enableVectorizedReader", vectorized)
        try:
            assert spark.rows(table.root) == expected, vectorized
        finally:
            conf.set("spark.sql.parquet.enableVectorizedReader", "true")
    found = sorted(table.rows(), key=lambda row: row["id"])
    for row in found:
        for name in row:
            if name.startswith("map"):
                row[name] = dict(row[name])
    assert found == expected
    assert pl.read_delta(str(table.root)).height == 2


def test_spark_reads_nested_columns_and_odd_folders_of_other_programs(tmp_path: Path) -> None:
    """HOLES W25: structs that change, structs in maps, and a path that would be read as a URI."""
    table = Directory(tmp_path / "table")
    wide, small = pa.struct([("a", pa.int64())]), pa.struct([("a", pa.int32())])
    other = pa.struct([("b", pa.string())])

    def write(number: int, who: pa.DataType, value: Row, inside: pa.DataType, folder: str) -> None:
        columns = {
            "id": pa.array([number]),
            "who": pa.array([value], who),
            "m": pa.array([{"k": {"a": number}}], pa.map_(pa.string(), inside)),
        }
        table.file(folder=folder, data=pa.table(columns))
        table.hands.at += 1
        table.penguin(evolution=Evolution.OVERWRITE).drain()

    write(1, wide, {"a": 7}, wide, "p=12%3A30")
    write(2, other, {"b": "x"}, small, "p=2")
    write(3, wide, {"a": 8}, wide, "p=12:30")
    more = pa.struct([("a", pa.int64()), ("b", pa.int64())])
    write(4, wide, {"a": 9}, more, "p=2")
    wanted = [
        {"id": 1, "who": {"a": 7, "b": None}, "m": {"k": {"a": 1}}, "p": "12:30"},
        {"id": 2, "who": {"a": None, "b": "x"}, "m": {"k": {"a": 2}}, "p": "2"},
    ]
    assert spark.rows(table.root) == wanted
    frame = pl.scan_delta(str(table.root)).sort("id").collect()
    assert frame.select("id", "who", "m", "p").to_dicts() == wanted


def test_spark_reads_a_table_whose_first_schema_was_replaced(tmp_path: Path) -> None:
    """HOLES W43: other types and other partition columns, in a version of their own."""
    directory = TableDirectory(tmp_path / "table")
    wrong = Schema((Field(name="id", type=FieldType.STRING), Field(name="p", type=FieldType.DATE)))
    journal = directory.journal(schema=wrong, partitions=("p",))
    journal.batch()
    Penguin(directory).drain()
    journal.schema, journal.partitions = EVENTS, ("date",)
    journal.batch(rows_of(1, 2))
    Penguin(directory).drain()
    day = date(2026, 1, 1)
    wanted = [{"id": number, "name": f"n{number}", "date": day} for number in (1, 2)]
    assert spark.rows(directory.root) == wanted
    spark.sql(f"INSERT INTO delta.`{directory.root}` VALUES (3, 'spark', DATE'2026-01-02')")
    assert directory.ids() == [1, 2, 3]


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


def adopted(root: Path) -> ParquetFolder:
    """Adopt files of two schemas in typed partitions, one of them null, one with zeros in front."""
    folder = ParquetFolder(root)
    at = pa.array([None, 1_700_000_000_123_456], pa.timestamp("us"))
    for number, month in enumerate(("01", "07", "__HIVE_DEFAULT_PARTITION__", "12")):
        low = number * 10
        narrow = pa.table({"id": pa.array([low, low + 1], pa.int32()), "name": ["a", None]})
        wide = pa.table({"id": pa.array([low + 2, low + 3], pa.int64()), "at": at})
        folder.file(f"day=2024-01-0{1 + number}/m={month}/a.parquet", narrow)
        folder.file(f"day=2024-01-0{1 + number}/m={month}/b c%25.parquet", wide)
    types = {"day": "date", "m": "integer"}
    found = folder.adopt(partition_columns=tuple(types), partition_types=types)
    assert found.version == 0
    return folder


def test_spark_reads_skips_and_goes_on(tmp_path: Path):
    folder = adopted(tmp_path / "table")
    every = sorted(low + place for low in (0, 10, 20, 30) for place in range(4))
    rows = spark.rows(folder.root)
    assert [row["id"] for row in rows] == every == ids(folder.root) == polars_ids(folder.root)
    assert {(row["day"], row["m"]) for row in rows} == {
        (date(2024, 1, 1), 1),
        (date(2024, 1, 2), 7),
        (date(2024, 1, 3), None),
        (date(2024, 1, 4), 12),
    }
    conditions = [
        *(fn.col("m") == 7, fn.col("m").isNull(), fn.col("day") > "2024-01-03"),
        *(fn.col("id") >= 32, fn.col("name") == "a", fn.col("at").isNotNull()),
    ]
    assert spark.ids_under(folder.root, conditions) == [
        *([10, 11, 12, 13], [20, 21, 22, 23], [30, 31, 32, 33]),
        *([32, 33], [0, 10, 20, 30], [3, 13, 23, 33]),
    ]
    # Partitions and bounds keep files from being read: those are damaged now.
    damaged = folder.root / "day=2024-01-01/m=01"
    kept = {file: file.read_bytes() for file in damaged.iterdir()}
    for file in kept:
        file.write_bytes(b"nobody reads this" * 100)
    spark.session().catalog.clearCache()
    pruned = spark.ids_under(folder.root, [fn.col("m") == 12, fn.col("id") > 9])
    assert pruned == [[30, 31, 32, 33], every[4:]]
    for file, body in kept.items():
        file.write_bytes(body)
    _goes_on(folder, every)


def _goes_on(folder: ParquetFolder, every: list[int]) -> None:
    """Let Spark delete and compact, and penguin commit what comes after that."""
    name = f"delta.`{folder.root}`"
    spark.sql(f"DELETE FROM {name} WHERE m = 7")
    spark.sql(f"OPTIMIZE {name}")
    visitor = Directory(folder.root)
    folder.file("day=2024-01-05/m=02/late.parquet", pa.table({"id": [99], "name": ["z"]}))
    visitor.penguin(file_pattern="*.parquet").drain()
    left = [one for one in every if not 10 <= one < 20] + [99]
    assert [row["id"] for row in spark.rows(folder.root)] == left
    assert ids(folder.root) == left
    assert polars_ids(folder.root, pl.col("m") == 2) == [99]
    told = spark.sql(f"DESCRIBE HISTORY {name}").collect()
    history = {row["version"]: row["operation"] for row in told}
    assert history[0] == "CONVERT"


def test_spark_reads_the_checkpoint_of_the_first_version(tmp_path: Path):
    folder = adopted(tmp_path / "table")
    version = folder.root / "_delta_log/00000000000000000000.json"
    # Spark wants the version to be there; what is in it comes from the checkpoint.
    version.write_text(version.read_text().splitlines()[0] + "\n")
    assert len(spark.rows(folder.root)) == 16


def test_spark(tmp_path: Path):
    code = example("Spark", orders(tmp_path))
    assert delta_spark.PACKAGE in code
    session = delta_spark.session()  # The page's builder finds this one.
    names: dict[str, Any] = {}
    exec(code, names)
    assert [tuple(row) for row in names["totals"]] == TOTALS
    assert names["spark"] is session
