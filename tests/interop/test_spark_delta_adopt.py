"""Spark with Delta on a table that penguin adopted: it reads, skips files, and goes on writing."""

from datetime import date
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest
from pyspark.sql import functions as fn

from tests.support import delta_spark as spark
from tests.support.adoptions import ParquetFolder
from tests.support.foreign import Directory
from tests.support.readers import ids, polars_ids

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]


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
