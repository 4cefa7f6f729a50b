"""Spark with Delta reads every type, nested column and replaced schema that penguin accepts."""

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

from lakebed.columns.schema import Field, Schema
from lakebed.documents.source_record import SourceRecord
from lakebed.types import Evolution, FieldType
from penguin.plan.column_rules import READ_AS
from tests.support import delta_spark as spark
from tests.support.foreign import Directory
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
