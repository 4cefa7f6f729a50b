"""Spark with Delta reads every nested type as it came in, and skips files by fields of structs."""

import random
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Column
from pyspark.sql import functions as fn

from tests.integration.blizzard.test_every_type import check, land, run, settings_of
from tests.support import delta_spark as spark
from tests.support.every_type import FIRST, THEN, Row, Rows

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
