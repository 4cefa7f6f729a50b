"""Peers that are fetched for the race alone: chDB, DataFusion, Daft, as their documentation says.

It runs on a Python that has them and nothing of this project, so it imports nothing of it. A line
of JSON in (`source`, `table`, `fields`, `by_hour`), a line out (`seconds`, or `error`), as
`bench.contestant` does it.
"""

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, ClassVar

CORES = 2

Field = dict[str, Any]
"""A field as a user declares it: `name`, `type`, and `fields` or `items`."""


class ChDB:
    """`INSERT INTO FUNCTION file(…, Parquet) SELECT … FROM file(…, JSONEachRow)`."""

    kinds: ClassVar = {
        "string": "Nullable(String)",
        "int64": "Nullable(Int64)",
        "float64": "Nullable(Float64)",
        "boolean": "Nullable(Bool)",
        "timestamp": "Nullable(DateTime64(6, 'UTC'))",
    }

    def __init__(self) -> None:
        from chdb import session  # noqa: PLC0415

        self._session = session.Session(tempfile.mkdtemp())

    def run(self, job: dict[str, Any]) -> None:
        """Read everything with the declared types, write Parquet."""
        table = Path(job["table"])
        table.mkdir(parents=True)
        columns = ", ".join(f"`{each['name']}` {self._kind(each)}" for each in job["fields"])
        structure = columns.replace("\\", "\\\\").replace("'", "\\'")
        target, by, rows = f"{table}/all.parquet", "", "*"
        if job["by_hour"]:
            target = f"{table}/part-{{_partition_id}}.parquet"
            by, rows = "PARTITION BY formatDateTime(at, '%Y-%m-%d-%H')", "*"
        self._session.query(
            f"INSERT INTO FUNCTION file('{target}', Parquet) {by} "
            f"SELECT {rows} FROM file('{job['source']}/*', JSONEachRow, '{structure}') "
            f"SETTINGS max_threads = {CORES}, date_time_input_format = 'best_effort', "
            "output_format_parquet_compression_method = 'snappy'"
        )

    def _kind(self, field: Field) -> str:
        if "items" in field:
            return f"Array({self._kind(field['items'])})"
        if "fields" in field:
            inner = ", ".join(f"`{each['name']}` {self._kind(each)}" for each in field["fields"])
            return f"Tuple({inner})"
        return self.kinds[field["type"]]


class DataFusion:
    """`read_json(…, schema=…)` and `write_parquet`."""

    def __init__(self) -> None:
        from datafusion import SessionConfig, SessionContext  # noqa: PLC0415

        self._context = SessionContext(SessionConfig().with_target_partitions(CORES))

    def run(self, job: dict[str, Any]) -> None:
        """Read everything with the declared types, write Parquet."""
        from datafusion import (  # noqa: PLC0415
            DataFrameWriteOptions,
            ParquetWriterOptions,
            col,
            functions,
            lit,
        )

        name = next(path.name for path in Path(job["source"]).iterdir())
        packed = {".gz": "gzip", ".zst": "zstd"}.get(Path(name).suffix)
        rows = self._context.read_json(
            job["source"],
            schema=arrow_schema(job["fields"]),
            file_extension=name[name.index(".") :],
            file_compression_type=packed,
        )
        by = []
        if job["by_hour"]:
            by = ["date", "hour"]
            for key, form in zip(by, ("%Y-%m-%d", "%H"), strict=True):
                rows = rows.with_column(key, functions.to_char(col("at"), lit(form)))
        rows.write_parquet_with_options(
            job["table"] + "/",
            ParquetWriterOptions(compression="snappy"),
            DataFrameWriteOptions(partition_by=by),
        )


class Daft:
    """`read_json(…, schema=…)` and `write_parquet`."""

    def __init__(self) -> None:
        os.environ["DAFT_PROGRESS_BAR"] = "0"
        import daft  # noqa: PLC0415

        self._daft = daft

    def run(self, job: dict[str, Any]) -> None:
        """Read everything with the declared types, write Parquet."""
        daft = self._daft
        schema = {each["name"]: self._kind(each) for each in job["fields"]}
        rows = daft.read_json(job["source"] + "/*", infer_schema=False, schema=schema)
        by = None
        if job["by_hour"]:
            at = daft.col("at")
            rows = rows.with_columns({"date": at.strftime("%Y-%m-%d"), "hour": at.strftime("%H")})
            by = ["date", "hour"]
        rows.write_parquet(job["table"], compression="snappy", partition_cols=by)

    def _kind(self, field: Field) -> Any:  # noqa: ANN401 - a type of Daft
        kind = self._daft.DataType
        if "items" in field:
            return kind.list(self._kind(field["items"]))
        if "fields" in field:
            return kind.struct({each["name"]: self._kind(each) for each in field["fields"]})
        kinds = {
            "string": kind.string(),
            "int64": kind.int64(),
            "float64": kind.float64(),
            "boolean": kind.bool(),
            "timestamp": kind.timestamp("us", "UTC"),
        }
        return kinds[field["type"]]


def arrow_schema(fields: list[Field]) -> Any:  # noqa: ANN401 - of Arrow
    """Return the schema of Arrow."""
    import pyarrow as pa  # noqa: PLC0415

    kinds = {
        "string": pa.string(),
        "int64": pa.int64(),
        "float64": pa.float64(),
        "boolean": pa.bool_(),
        "timestamp": pa.timestamp("us", "UTC"),
    }

    def kind_of(field: Field) -> Any:  # noqa: ANN401 - of Arrow
        if "items" in field:
            return pa.list_(kind_of(field["items"]))
        if "fields" in field:
            return pa.struct([(each["name"], kind_of(each)) for each in field["fields"]])
        return kinds[field["type"]]

    return pa.schema([(each["name"], kind_of(each)) for each in fields])


CONTESTANTS: dict[str, type[ChDB | DataFusion | Daft]] = {
    "chDB": ChDB,
    "DataFusion": DataFusion,
    "Daft": Daft,
}


def main() -> None:
    """Answer line by line until there are no more."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", buffering=1)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what libraries print is no answer
    contestant = CONTESTANTS[sys.argv[1]]()
    answers.write("{}\n")
    for line in sys.stdin:
        job = json.loads(line)
        began = time.perf_counter()
        try:
            contestant.run(job)
        except BaseException as error:  # noqa: BLE001 - a panic is no Exception, and a result, too
            words = " ".join(str(error).split())
            answers.write(json.dumps({"error": f"{type(error).__name__}: {words[:300]}"}) + "\n")
        else:
            answers.write(json.dumps({"seconds": time.perf_counter() - began}) + "\n")


if __name__ == "__main__":
    main()
