"""NDJSON in, a Delta table out, on a real local Spark; every reader sees exactly the input."""

import json
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pytest

from blizzard.config import load as blizzard_config
from blizzard.pipeline import Pipeline
from lakebed.clock import Clock
from lakebed.storage.store import Store
from penguin.config import load as penguin_config
from tests.support.landing import Landing, config
from tests.support.pipelines import pipeline_of
from tests.support.readers import ids, polars_ids, rows
from tests.support.spark import shared_runner
from tests.support.tables import commit_table

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("session")]


def ingest(file: Path) -> list[Pipeline]:
    """Drain every pipeline of a configuration on the shared Spark session."""
    settings = blizzard_config.load([file], [], {})
    pipelines = [pipeline_of(each, shared_runner()) for each in settings.pipelines]
    for pipeline in pipelines:
        while pipeline.step():
            pass
    return pipelines


def commit(file: Path) -> None:
    for table in penguin_config.load([file], [], {}).tables:
        store = Store(table.table_uri, table.storage_options)
        commit_table(table, store, lambda _event: None, Clock())


def sort_key(row: dict[str, Any]) -> int:
    return int(row["id"])


def filters() -> Iterator[tuple[str, pl.Expr, Any]]:
    """Filters on every column, as SQL, as polars says it, and as plain Python."""
    column = pl.col
    yield "id > 500000000000", column("id") > 500000000000, lambda r: r["id"] > 500000000000
    yield "small = 7", column("small") == 7, lambda r: r["small"] == 7
    yield "small IS NULL", column("small").is_null(), lambda r: r["small"] is None
    for name in ("plain", "", "ünïcode 😀", "𠀀 above the planes", "x" * 80, "tab\there"):
        yield f"name = '{name}'", column("name") == name, lambda r, n=name: r["name"] == n
    yield "name >= 'x'", column("name") >= "x", lambda r: r["name"] is not None and r["name"] >= "x"
    yield "ratio < 10", column("ratio") < 10, lambda r: r["ratio"] is not None and r["ratio"] < 10
    yield "amount > 999000", column("amount") > 999000, lambda r: (r["amount"] or 0) > 999000
    yield "flag", column("flag"), lambda r: r["flag"] is True
    yield "flag IS NOT NULL", column("flag").is_not_null(), lambda r: r["flag"] is not None
    day = date(2000, 1, 1)
    yield "day < date '2000-01-01'", column("day") < day, lambda r: r["day"] and r["day"] < day
    yield "extra IS NULL", column("extra").is_null(), lambda r: r["extra"] is None
    yield "raw IS NOT NULL", column("raw").is_not_null(), lambda r: r["raw"] is not None


def test_the_table_equals_the_input_row_for_row_and_under_every_filter(tmp_path: Path) -> None:
    """Plain, gzip of two members and zstd of two frames, over two batches (D01, L13, L17)."""
    landing = Landing(tmp_path / "landing")
    file = config(tmp_path)
    for batch in range(2):
        for suffix in ("ndjson", "ndjson.gz", "jsonl.zst", "json", "jsonl.gz", "json.zst"):
            landing.land(f"batch-{batch}.{suffix}", 400)
        ingest(file)
        commit(file)

    table = tmp_path / "table"
    found = sorted(rows(table), key=sort_key)
    assert found == sorted(landing.rows, key=sort_key)
    assert polars_ids(table) == landing.ids
    for sql, expression, keeps in filters():
        expected = sorted(row["id"] for row in landing.rows if keeps(row))
        assert ids(table, sql) == expected, sql
        assert polars_ids(table, expression) == expected, sql
    at = sorted(row["at"] for row in landing.rows if row["at"])[1000]
    expected = sorted(row["id"] for row in landing.rows if row["at"] and row["at"] >= at)
    assert ids(table, f"at >= timestamp '{at.isoformat()}'") == expected
    assert polars_ids(table, pl.col("at") >= at) == expected


def test_partitions_come_from_the_source_path(tmp_path: Path) -> None:
    """Partition values stand in the log, prune files, and are a date column."""
    landing = Landing(tmp_path / "landing")
    for day in ("2024-01-01", "2024-01-02", "2024-02-29"):
        for number in range(3):
            landing.land(f"date={day}/part-{number}.ndjson.gz", 100)
    file = config(tmp_path, partitioned=True)
    ingest(file)
    commit(file)

    table = tmp_path / "table"
    assert {path.parent.name for path in table.glob("date=*/*.parquet")} == {
        "date=2024-01-01", "date=2024-01-02", "date=2024-02-29",
    }  # fmt: skip
    expected = sorted(row["id"] for row in landing.rows if row["date"] == "2024-02-29")
    assert ids(table, "date = date '2024-02-29'") == expected
    assert polars_ids(table, pl.col("date") == date(2024, 2, 29)) == expected
    assert ids(table) == landing.ids


def test_partitions_come_from_the_rows(tmp_path: Path) -> None:
    """Each row of a file goes to the day and the flag that it says itself (L08, L18, W09)."""
    landing = Landing(tmp_path / "landing")
    for number in range(3):
        landing.land(f"part-{number}.ndjson.gz", 300)
    template = '{prefix_template: "year=%Y/flag=%s/name=%s", timestamp_field: at}'
    file = config(tmp_path, sink=f"partition_by: {template}")
    ingest(file)
    commit(file)

    table = tmp_path / "table"
    found = sorted(rows(table), key=sort_key)
    assert found == sorted(
        (
            {key: value for key, value in row.items() if key != "name"}
            | {"year": row["at"] and f"{row['at'].year:04}", "name": row["name"] or None}
            for row in landing.rows
        ),
        key=sort_key,
    )
    assert (table / "year=__HIVE_DEFAULT_PARTITION__").exists()
    expected = sorted(row["id"] for row in landing.rows if row["flag"] is True)
    assert ids(table, "flag") == expected
    assert polars_ids(table, pl.col("flag")) == expected


@pytest.mark.parametrize("codec", ["snappy", "gzip", "zstd", "lz4", "uncompressed"])
def test_files_roll_at_the_wished_size_on_every_codec(tmp_path: Path, codec: str) -> None:
    """file_size_mb, row_group_size_bytes and compression reach the files."""
    landing = Landing(tmp_path / "landing")
    landing.land("big.ndjson", 12_000)
    sizes = "file_size_mb: 0.1, row_group_size_bytes: 60000"
    sink = f"compression: {codec}\n  " + sizes.replace(", ", "\n  ")
    file = config(tmp_path, sink=sink, source="batch_size: 300")
    ingest(file)
    commit(file)

    footers = [pq.read_metadata(path) for path in (tmp_path / "table").glob("*.parquet")]
    assert len(footers) >= 2
    assert max(footer.num_row_groups for footer in footers) >= 2
    assert {footer.row_group(0).column(0).compression for footer in footers} == {codec.upper()}
    assert ids(tmp_path / "table") == landing.ids


def test_several_pipelines_share_one_session_and_keep_their_books_apart(tmp_path: Path) -> None:
    """Two pipelines into two tables, and a third into the table of the first."""
    landings = {name: Landing(tmp_path / name) for name in ("a", "b", "c")}
    for name, landing in landings.items():
        landing.chance.seed(name)
        landing.land("x.ndjson", 200)
    fields = "[{name: id, type: int64}, {name: name, type: string}]"
    file = tmp_path / "many.yaml"
    file.write_text(
        "pipelines:\n"
        + "".join(
            f"  {name}:\n    source: {{path: '{tmp_path}/{name}'}}\n"
            f"    sink: {{path: '{tmp_path}/{table}'}}\n    schema: {{fields: {fields}}}\n"
            for name, table in (("a", "t1"), ("b", "t2"), ("c", "t1"))
        )
        + f"tables:\n  one: {{table_uri: '{tmp_path}/t1'}}\n  two: {{table_uri: '{tmp_path}/t2'}}\n"
    )
    ingest(file)
    commit(file)

    assert ids(tmp_path / "t1") == sorted(landings["a"].ids + landings["c"].ids)
    assert ids(tmp_path / "t2") == landings["b"].ids


def test_bad_files_are_out_whole_and_named_and_all_others_are_in(tmp_path: Path) -> None:
    """The journal says file, stage, code, line and field; no row of them is in (L14, L15)."""
    landing = Landing(tmp_path / "landing")
    landing.land("good.ndjson", 50)
    good_line = b'{"id": 1}\n'
    landing.write("no-json.ndjson", good_line * 3 + b"{oops\n" + good_line)
    landing.write("wrong-type.ndjson.gz", good_line * 9 + b'{"id": 1, "small": "7"}\n')
    landing.write("missing.jsonl", good_line + b'{"name": "nobody"}\n')
    landing.write("bytes.json", good_line + b'{"id": 2, "name": "\xff"}\n')
    (tmp_path / "landing/cut.ndjson.gz").write_bytes(
        landing.write("whole.ndjson.gz", good_line * 1000).read_bytes()[:-9]
    )
    (tmp_path / "landing/whole.ndjson.gz").unlink()
    (tmp_path / "landing/empty.ndjson.gz").touch()
    landing.write("zero-lines.ndjson", b"")
    file = config(tmp_path)
    (pipeline,) = ingest(file)
    commit(file)

    assert ids(tmp_path / "table") == landing.ids
    assert pipeline.statistics.files_processed == 2
    assert pipeline.statistics.files_failed == 6
    entry = json.loads(
        (tmp_path / "table/_blizzard/default/journal/00000000000000000001.json").read_text()
    )
    failures = {
        source["path"]: tuple(failure.get(key) for key in ("stage", "code", "line", "field"))
        for source in entry["sources"]
        if (failure := source.get("failure"))
    }
    assert failures == {
        "no-json.ndjson": ("parse", "not_json", 4, None),
        "wrong-type.ndjson.gz": ("parse", "wrong_type", 10, "small"),
        "missing.jsonl": ("parse", "required_field_missing", 2, "id"),
        "bytes.json": ("parse", "not_utf8", 2, None),
        "cut.ndjson.gz": ("decompress", "decompress_failed", None, None),
        "empty.ndjson.gz": ("decompress", "decompress_failed", None, None),
    }
