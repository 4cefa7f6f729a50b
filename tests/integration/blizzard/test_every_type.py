"""Every type, nested: from lines to a table, by every way into the log, and through a change."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from blizzard.config.load import load
from blizzard.handoff.publish import Publisher
from blizzard.model.settings import PipelineSettings
from lakebed.clock import Clock
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import Store
from lakebed.types import Handoff
from penguin.model.settings import TableSettings
from penguin.pipeline import InlineCommitter
from tests.support.every_type import FIRST, THEN, Row, Rows, ndjson_of, plain
from tests.support.pipelines import pipeline_of
from tests.support.readers import ids, polars_ids, rows
from tests.support.runner import InProcessRunner
from tests.support.tables import commit_table

BY_TIME = {"prefix_template": "month=%Y-%m/tiny=%s", "timestamp_field": "user.local"}


def settings_of(folder: Path, ddl: str, **sink: Any) -> PipelineSettings:
    """Return the one pipeline of a configuration."""
    document = {
        "source": {"path": str(folder / "in")},
        "sink": {"path": str(folder / "table"), **sink},
        "schema": {"ddl": ddl},
    }
    (folder / "pipeline.yaml").write_text(json.dumps(document))
    (settings,) = load([folder / "pipeline.yaml"], [], {}).pipelines
    return settings


def land(folder: Path, made: list[Row], *, later: bool) -> None:
    (folder / "in").mkdir(exist_ok=True)
    (folder / "in" / f"{made[0]['id']:04}.ndjson").write_bytes(ndjson_of(made, later=later))


def run(folder: Path, settings: PipelineSettings, *, by_penguin: bool) -> None:
    """Make an entry of what has landed, and commit it."""
    uri = str(folder / "table")
    commit = InlineCommitter.of(None, uri, StorageOptions(), emit=lambda _e: None, clock=Clock())
    publisher = None if by_penguin else Publisher(commit=commit)
    pipeline = pipeline_of(settings, InProcessRunner(), publisher=publisher)
    while pipeline.step():
        pass
    assert pipeline.statistics.files_failed == 0
    if by_penguin:
        table = TableSettings(name="t", table_uri=uri)
        commit_table(table, Store(uri, StorageOptions()), lambda _event: None, Clock())


def check(table: Path, wanted: list[Row]) -> None:
    """Hold the table to its input, whole and under filters on fields of structs."""
    found = sorted(rows(table), key=lambda row: row["id"])
    assert [{name: plain(row[name]) for name in wanted[0]} for row in found] == wanted
    user = pl.col("user").struct
    for sql, expression, keeps in (
        ("user['id'] > 25", user.field("id") > 25, lambda u: u and u["id"] > 25),
        (
            "user['price'] < 0",
            user.field("price") < 0,
            lambda u: u and u["price"] is not None and u["price"] < 0,
        ),
        (
            "user['deep']['name'] IS NULL",
            user.field("deep").struct.field("name").is_null(),
            lambda u: not u or not u["deep"] or u["deep"]["name"] is None,
        ),
    ):
        keep = [row["id"] for row in wanted if keeps(row["user"])]
        assert 0 < len(keep) < len(wanted)
        assert ids(table, sql) == keep, sql
        assert polars_ids(table, expression) == keep, sql


@pytest.mark.parametrize("how", [*Handoff, "inline"])
@pytest.mark.parametrize("partitioned", [False, True])
def test_every_type_comes_in_and_structs_grow(tmp_path: Path, how: str, partitioned: bool) -> None:
    by_penguin = how != "inline"
    sink: dict[str, Any] = {"handoff": how} if by_penguin else {}
    if partitioned:
        sink["partition_by"] = BY_TIME
    wanted: list[Row] = []
    for ddl, later, start in ((FIRST, False, 0), (THEN, True, 20), (FIRST, False, 40)):
        made = Rows(later=later, start=start).take(20)
        land(tmp_path, made, later=later)
        run(tmp_path, settings_of(tmp_path, ddl, **sink), by_penguin=by_penguin)
        wanted += made
    check(tmp_path / "table", wanted)
    if partitioned:
        months = {row["id"]: row["month"] for row in rows(tmp_path / "table", ["id", "month"])}
        local = {row["id"]: row["user"] and row["user"]["local"] for row in wanted}
        assert months == {key: at and f"{at:%Y-%m}" for key, at in local.items()}


def test_a_table_made_for_every_type_says_so_and_its_files_have_ids(tmp_path: Path) -> None:
    land(tmp_path, Rows().take(20), later=False)
    run(tmp_path, settings_of(tmp_path, FIRST), by_penguin=True)
    delta = DeltaTable(str(tmp_path / "table"))
    protocol = delta.protocol()
    assert (protocol.min_reader_version, protocol.min_writer_version) == (3, 7)
    assert protocol.reader_features == ["timestampNtz"]
    # Spark reads no table with required columns that does not say that it has invariants.
    assert sorted(protocol.writer_features or ()) == ["invariants", "timestampNtz"]
    (file,) = delta.file_uris()
    schema = str(pq.read_metadata(file).schema)
    assert schema.count("field_id=-1") == 1 + sum(
        schema.count(group) for group in (" list {", " key_value {")
    )


def test_a_time_without_a_zone_is_added_only_to_a_table_that_is_made_for_it(tmp_path: Path) -> None:
    """The files are held with the reason, never committed to a table that cannot hold them."""
    plain_ddl = "id BIGINT, at TIMESTAMP"
    for number, ddl in enumerate((plain_ddl, f"{plain_ddl}, user STRUCT<local: TIMESTAMP_NTZ>")):
        (tmp_path / "in").mkdir(exist_ok=True)
        (tmp_path / "in" / f"{number}.ndjson").write_text(f'{{"id":{number}}}\n')
        run(tmp_path, settings_of(tmp_path, ddl), by_penguin=True)
    assert ids(tmp_path / "table") == [0]
    held = [path.read_text() for path in (tmp_path / "table/_staging/held").iterdir()]
    assert len(held) == 1
    assert "user.local: type timestamp_ntz needs the table feature timestampNtz" in held[0]


def test_a_time_without_a_zone_is_added_to_a_table_that_has_one(tmp_path: Path) -> None:
    first = "id BIGINT, one TIMESTAMP_NTZ"
    for number, ddl in enumerate((first, f"{first}, user STRUCT<local: TIMESTAMP_NTZ>")):
        (tmp_path / "in").mkdir(exist_ok=True)
        body = f'{{"id":{number},"user":{{"local":"2024-01-01T00:00:00"}}}}\n'
        (tmp_path / "in" / f"{number}.ndjson").write_text(body)
        run(tmp_path, settings_of(tmp_path, ddl), by_penguin=True)
    found = {row["id"]: row["user"] for row in rows(tmp_path / "table")}
    assert found[0] is None
    assert found[1]["local"].isoformat() == "2024-01-01T00:00:00"
