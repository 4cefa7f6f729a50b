"""Rows give their partitions, penguin or blizzard commits, and every reader finds every row."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from deltalake import DeltaTable

from blizzard.handoff.publish import Publisher
from blizzard.model.settings import PipelineSettings
from lakebed.clock import Clock
from lakebed.columns.schema import Field, Schema
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import Store
from lakebed.types import FieldType, Handoff
from penguin.model.settings import TableSettings
from penguin.pipeline import InlineCommitter
from tests.support.builders import ndjson, pipeline_settings, put
from tests.support.pipelines import pipeline_of
from tests.support.readers import ids, polars_ids, rows
from tests.support.runner import InProcessRunner
from tests.support.tables import commit_table

DECLARED = Schema(
    (
        Field(name="id", type=FieldType.INT64, nullable=False),
        Field(name="ts", type=FieldType.TIMESTAMP),
        Field(name="region", type=FieldType.STRING),
        Field(name="hour", type=FieldType.INT32),
        Field(name="live", type=FieldType.BOOLEAN),
    )
)
REGIONS = [
    "eu",
    "a/b",
    "50%",
    "a=b",
    "with space",
    "ünï😀",
    "tab\there",
    "",
    None,
    "x'y\"z",
    "a+b&c",
]
START = datetime(2024, 2, 28, 20, tzinfo=UTC)


def event(number: int) -> dict[str, Any]:
    return {
        "id": number,
        "ts": None if number % 17 == 0 else START + timedelta(minutes=47 * (number % 23)),
        "region": REGIONS[number % len(REGIONS)],
        "live": [True, False, None][number % 3],
    }


def expected(number: int) -> dict[str, Any]:
    found = event(number)
    at = found["ts"]
    return found | {
        "region": found["region"] or None,
        "date": at and at.date(),
        "hour": at and at.hour,
    }


def landed(folder: Path, count: int, start: int = 0) -> None:
    found = [event(number) for number in range(start, start + count)]
    body = ndjson(row | {"ts": row["ts"] and row["ts"].isoformat()} for row in found)
    put(folder, f"{start:06}.ndjson", body)


def settings_of(root: Path, **sink: Any) -> PipelineSettings:
    settings = pipeline_settings(
        root / "in",
        root / "table",
        template="date=%Y-%m-%d/hour=%H/region=%s/live=%s",
        timestamp_field="ts",
        schema=DECLARED,
    )
    return replace(settings, sink=replace(settings.sink, **sink))


def check(table: Path, count: int) -> None:
    """Hold the table to its input, whole and under filters on the partition columns."""
    wanted = [expected(number) for number in range(count)]
    assert sorted(rows(table), key=lambda row: row["id"]) == wanted
    assert polars_ids(table) == list(range(count))
    column = pl.col
    leap = date(2024, 2, 29)
    for sql, expression, keeps in (
        ("date = date '2024-02-29'", column("date") == leap, lambda r: r["date"] == leap),
        ("date IS NULL", column("date").is_null(), lambda r: r["date"] is None),
        ("hour < 3", column("hour") < 3, lambda r: r["hour"] is not None and r["hour"] < 3),
        ("region = 'a/b'", column("region") == "a/b", lambda r: r["region"] == "a/b"),
        ("region = '50%'", column("region") == "50%", lambda r: r["region"] == "50%"),
        ("region IS NULL", column("region").is_null(), lambda r: r["region"] is None),
        ("live", column("live"), lambda r: r["live"] is True),
    ):
        found = [row["id"] for row in wanted if keeps(row)]
        assert found
        assert ids(table, sql) == found, sql
        assert polars_ids(table, expression) == found, sql


@pytest.mark.parametrize("handoff", Handoff)
def test_penguin_commits_what_rows_were_divided_into(tmp_path: Path, handoff: Handoff) -> None:
    """W09, L08, L18, W10: values of every type and kind, over two batches."""
    settings = settings_of(tmp_path, handoff=handoff)
    for start in (0, 120):
        landed(tmp_path / "in", 120, start)
        assert pipeline_of(settings, InProcessRunner()).step()
        table = TableSettings(name="t", table_uri=str(tmp_path / "table"))
        store = Store(table.table_uri, StorageOptions())
        commit_table(table, store, lambda _event: None, Clock())
    check(tmp_path / "table", 240)

    delta = DeltaTable(str(tmp_path / "table"))
    assert delta.metadata().partition_columns == ["date", "hour", "region", "live"]
    types = {field.name: field.type.type for field in delta.schema().fields}
    assert (types["date"], types["hour"], types["live"]) == ("date", "integer", "boolean")


def test_blizzard_commits_them_itself_and_a_filter_reads_its_files_only(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    uri = settings.sink.table_uri
    commit = InlineCommitter.of(None, uri, StorageOptions(), emit=lambda _e: None, clock=Clock())
    for start in (0, 120):
        landed(tmp_path / "in", 120, start)
        pipeline = pipeline_of(settings, InProcessRunner(), publisher=Publisher(commit=commit))
        while pipeline.step():
            pass
    check(tmp_path / "table", 240)
    everything = DeltaTable(uri).file_uris()
    paths = DeltaTable(uri).file_uris(file_pruning_predicate=[("date", "=", "2024-02-29")])
    assert 0 < len(paths) < len(everything)
    assert all("/date=2024-02-29/" in path for path in paths)
