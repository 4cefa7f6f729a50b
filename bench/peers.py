"""The peers: what else one would use, each as its documentation says, on the same two cores."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from bench.ours import CORES
from bench.workloads import Workload
from lakebed.columns.schema import Field
from lakebed.types import FieldType

SPARK = {
    FieldType.STRING: "string",
    FieldType.INT64: "bigint",
    FieldType.FLOAT64: "double",
    FieldType.BOOLEAN: "boolean",
    FieldType.TIMESTAMP: "timestamp",
    FieldType.JSON: "string",
}
DUCKDB = {
    FieldType.STRING: "VARCHAR",
    FieldType.INT64: "BIGINT",
    FieldType.FLOAT64: "DOUBLE",
    FieldType.BOOLEAN: "BOOLEAN",
    FieldType.TIMESTAMP: "TIMESTAMPTZ",
    FieldType.JSON: "JSON",
}


def spark_type(field: Field) -> str:
    """Return a field's type as Spark's DDL writes it."""
    if field.items is not None:
        return f"ARRAY<{spark_type(field.items)}>"
    if field.fields:
        return f"STRUCT<{', '.join(f'`{each.name}`: {spark_type(each)}' for each in field.fields)}>"
    return SPARK[field.type]


def duckdb_type(field: Field) -> str:
    """Return a field's type as DuckDB writes it."""
    if field.items is not None:
        return f"{duckdb_type(field.items)}[]"
    if field.fields:
        return f"STRUCT({', '.join(f'{each.name} {duckdb_type(each)}' for each in field.fields)})"
    return DUCKDB[field.type]


DELTA = "io.delta:delta-spark_4.2_2.13:4.4.0"


class Spark:
    """Spark's own reader and writer, warm."""

    def __init__(self, **conf: str) -> None:
        from pyspark.sql import SparkSession  # noqa: PLC0415

        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        builder = SparkSession.builder.master(f"local[{CORES}]")
        fixed = {
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.sql.session.timeZone": "UTC",
            # As much as it likes: with its default of one gigabyte it collects garbage for long.
            "spark.driver.memory": "4g",
        }
        for key, value in (fixed | conf).items():
            builder = builder.config(key, value)
        self._session = builder.getOrCreate()
        self._session.sparkContext.setLogLevel("OFF")

    def run(self, workload: Workload, source: Path, table: Path) -> None:
        """Read everything with the declared schema, write Parquet."""
        rows = self._session.read.schema(_ddl(workload)).json(str(source))
        _written(_by_hour(rows, workload).write, workload).parquet(str(table))


class SparkStream(Spark):
    """Structured Streaming into a Delta table, as much as there is."""

    def __init__(self) -> None:
        delta = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
        super().__init__(
            **{
                "spark.jars.packages": DELTA,
                "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
                "spark.sql.catalog.spark_catalog": delta,
            }
        )

    def run(self, workload: Workload, source: Path, table: Path) -> None:
        """Read everything with the declared schema, write a Delta table."""
        rows = self._session.readStream.schema(_ddl(workload)).json(str(source))
        stream = _by_hour(rows, workload).writeStream.format("delta")
        if workload.by_hour:
            stream = stream.partitionBy("date", "hour")
        place = stream.option("checkpointLocation", str(table.with_suffix(".checkpoint")))
        query = place.trigger(availableNow=True).start(str(table))
        query.awaitTermination()


def _ddl(workload: Workload) -> str:
    return ", ".join(f"`{field.name}` {spark_type(field)}" for field in workload.schema.fields)


def _by_hour(rows: Any, workload: Workload) -> Any:  # noqa: ANN401 - pyspark has no types here
    from pyspark.sql import functions as fn  # noqa: PLC0415

    if not workload.by_hour:
        return rows
    return rows.withColumn("date", fn.to_date("at")).withColumn("hour", fn.date_format("at", "HH"))


def _written(write: Any, workload: Workload) -> Any:  # noqa: ANN401 - pyspark has no types here
    write = write.option("compression", "snappy")
    return write.partitionBy("date", "hour") if workload.by_hour else write


class SparkFromTheCommandLine:
    """The same in a process of its own: Spark's start counts."""

    def run(self, workload: Workload, source: Path, table: Path) -> None:
        """Read everything with the declared schema, write Parquet."""
        script = (
            "import sys; from pathlib import Path; from bench.peers import Spark; "
            "from bench.workloads import WORKLOADS; "
            "key, source, table = sys.argv[1:]; "
            "Spark().run(WORKLOADS[key], Path(source), Path(table))"
        )
        command = [sys.executable, "-c", script, workload.key, str(source), str(table)]
        subprocess.run(command, check=True, capture_output=True)


class DuckDB:
    """`COPY (read_json …) TO … parquet`."""

    def __init__(self) -> None:
        import duckdb  # noqa: PLC0415

        self._connection = duckdb.connect()
        self._connection.execute(f"SET threads={CORES}; SET TimeZone='UTC'")

    def run(self, workload: Workload, source: Path, table: Path) -> None:
        """Read everything with the declared types, write Parquet."""
        columns = ", ".join(f"'{f.name}': '{duckdb_type(f)}'" for f in workload.schema.fields)
        by_hour = ", strftime(\"at\", '%Y-%m-%d') AS date, strftime(\"at\", '%H') AS hour"
        partition = ", PARTITION_BY (date, hour)"
        table.mkdir(parents=True)
        target = table if workload.by_hour else table / "all.parquet"
        self._connection.execute(
            f"COPY (SELECT *{by_hour if workload.by_hour else ''} FROM "
            f"read_json('{source}/*', format='newline_delimited', columns={{{columns}}})) "
            f"TO '{target}' (FORMAT parquet, COMPRESSION snappy"
            f"{partition if workload.by_hour else ''})"
        )


class Polars:
    """`scan_ndjson().sink_parquet()`."""

    def __init__(self) -> None:
        os.environ["POLARS_MAX_THREADS"] = str(CORES)

    def run(self, workload: Workload, source: Path, table: Path) -> None:
        """Read everything with the declared types, write Parquet."""
        import polars as pl  # noqa: PLC0415

        kinds: dict[FieldType, Any] = {
            FieldType.STRING: pl.String,
            FieldType.INT64: pl.Int64,
            FieldType.FLOAT64: pl.Float64,
            FieldType.BOOLEAN: pl.Boolean,
            FieldType.TIMESTAMP: pl.String,
            FieldType.JSON: pl.String,
        }

        def kind_of(field: Field) -> Any:  # noqa: ANN401 - a type of Polars
            if field.items is not None:
                return pl.List(kind_of(field.items))
            if field.fields:
                return pl.Struct({each.name: kind_of(each) for each in field.fields})
            return kinds[field.type]

        fields = workload.schema.fields
        rows = pl.scan_ndjson(
            str(source / "*"), schema={field.name: kind_of(field) for field in fields}
        ).with_columns(
            pl.col(field.name).str.to_datetime(
                "%Y-%m-%dT%H:%M:%S%.f%#z" if workload.hard else "%Y-%m-%dT%H:%M:%S%.fZ",
                time_unit="us",
                time_zone="UTC",
            )
            for field in fields
            if field.type is FieldType.TIMESTAMP
        )
        table.mkdir(parents=True)
        if not workload.by_hour:
            rows.sink_parquet(table / "all.parquet", compression="snappy")
            return
        at = pl.col("at")
        rows = rows.with_columns(date=at.dt.strftime("%Y-%m-%d"), hour=at.dt.strftime("%H"))
        rows.sink_parquet(
            pl.PartitionBy(table, key=["date", "hour"], include_key=False),
            compression="snappy",
            mkdir=True,
        )
