"""Tables in AWS Glue, as moto plays it: registered once, kept up, and never in a commit's way."""

import os
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from botocore.session import Session

from lakebed.clock import Clock
from lakebed.columns.schema import Field, Schema
from lakebed.deltalog.delta_types import TableFacts
from lakebed.storage.options import StorageOptions
from lakebed.telemetry.events import Event
from lakebed.types import CatalogType, FieldType
from penguin.catalog.catalog import (
    CatalogConflict,
    CatalogDenied,
    CatalogMissing,
    CatalogUnavailable,
    OpenCatalog,
    open_catalog,
    register,
)
from penguin.catalog.glue import GlueCatalog
from penguin.events.commits import TableNotRegistered, TableRegistered
from penguin.model.settings import CatalogSettings
from penguin.pipeline import InlineCommitter, TableRun
from tests.support.s3 import KEY, SECRET
from tests.support.tables import EVENTS, TableDirectory, rows_of

URI = "s3://lake/events"


def facts(*columns: tuple[str, object]) -> TableFacts:
    fields = [{"name": name, "type": told, "nullable": True} for name, told in columns]
    return TableFacts(
        version=0,
        schema={"type": "struct", "fields": fields},
        partition_columns=(),
        configuration={},
    )


FACTS = facts(("ID", "long"), ("tags", {"type": "array", "elementType": "string"}))


@pytest.fixture
def glue(s3: str) -> Any:
    session = Session()
    session.set_credentials(KEY, SECRET)
    client = session.create_client("glue", region_name="us-east-1", endpoint_url=s3)
    for database in client.get_databases()["DatabaseList"]:
        client.delete_database(Name=database["Name"])
    client.create_database(DatabaseInput={"Name": "lake"})
    yield client
    client.close()


@pytest.fixture
def settings(s3: str) -> CatalogSettings:
    return CatalogSettings(
        type=CatalogType.GLUE,
        database="lake",
        table="events",
        endpoint=s3,
        options=StorageOptions({"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}),
    )


@pytest.fixture
def catalog(settings: CatalogSettings) -> Iterator[GlueCatalog]:
    opened = GlueCatalog(settings)
    yield opened
    opened.close()


def described(glue: Any) -> dict[str, Any]:
    found: dict[str, Any] = glue.get_table(DatabaseName="lake", Name="events")["Table"]
    return found


def test_a_table_is_registered_as_athena_and_spark_know_it(glue, catalog, settings):
    assert register(catalog, settings, FACTS, URI)
    found = described(glue)
    assert found["TableType"] == "EXTERNAL_TABLE"
    assert found["Parameters"]["table_type"] == "DELTA"
    assert found["Parameters"]["spark.sql.sources.provider"] == "delta"
    storage = found["StorageDescriptor"]
    assert storage["Location"] == storage["SerdeInfo"]["Parameters"]["path"] == URI
    assert [(one["Name"], one["Type"]) for one in storage["Columns"]] == [
        ("id", "bigint"),
        ("tags", "array<string>"),
    ]
    assert not register(catalog, settings, FACTS, URI)


def test_new_columns_are_told_and_what_others_have_said_stays(glue, catalog, settings):
    register(catalog, settings, FACTS, URI)
    found = described(glue)
    found["StorageDescriptor"]["Columns"][0]["Comment"] = "who"
    glue.update_table(
        DatabaseName="lake",
        TableInput={
            "Name": "events",
            "Owner": "data-team",
            "Description": "all events",
            "Parameters": {**found["Parameters"], "pii": "no"},
            "StorageDescriptor": found["StorageDescriptor"],
        },
    )
    wider = facts(("id", "long"), ("tags", "string"), ("price", "decimal(18,2)"))
    assert register(catalog, settings, wider, f"{URI}/")
    found = described(glue)
    assert (found["Owner"], found["Description"]) == ("data-team", "all events")
    assert found["Parameters"]["pii"] == "no"
    columns = found["StorageDescriptor"]["Columns"]
    assert columns[0]["Comment"] == "who"
    assert [one["Type"] for one in columns] == ["bigint", "string", "decimal(18,2)"]


def test_what_is_there_under_the_name_is_not_taken_over(glue, catalog, settings):
    elsewhere = {"Location": "s3://other/place"}
    parameters = {"table_type": "DELTA"}
    glue.create_table(
        DatabaseName="lake",
        TableInput={"Name": "events", "StorageDescriptor": elsewhere, "Parameters": parameters},
    )
    with pytest.raises(CatalogConflict, match="another place"):
        register(catalog, settings, FACTS, URI)
    plain = {"Name": "events", "StorageDescriptor": {"Location": URI}}
    glue.update_table(DatabaseName="lake", TableInput=plain)
    with pytest.raises(CatalogConflict, match="not a Delta table"):
        register(catalog, settings, FACTS, URI)
    assert "Columns" not in described(glue)["StorageDescriptor"]


def test_a_database_is_not_made(settings: CatalogSettings, glue: Any) -> None:
    opened = GlueCatalog(replace(settings, database="nowhere"))
    with pytest.raises(CatalogMissing, match="no database nowhere"):
        register(opened, settings, FACTS, URI)
    opened.close()
    assert [one["Name"] for one in glue.get_databases()["DatabaseList"]] == ["lake"]


def test_errors_are_told_without_what_botocore_says(settings: CatalogSettings) -> None:
    away = GlueCatalog(replace(settings, endpoint="http://127.0.0.1:1"))
    with pytest.raises(CatalogUnavailable, match="does not answer"):
        away.find()
    away.close()
    with pytest.raises(CatalogDenied, match="profile"):
        GlueCatalog(replace(settings, options=StorageOptions({"AWS_PROFILE": "none-such"})))


def run_of(
    table: TableDirectory,
    settings: CatalogSettings | None,
    opening: OpenCatalog = open_catalog,
    clock: Clock | None = None,
) -> tuple[TableRun, list[Event]]:
    events: list[Event] = []
    run = TableRun(
        settings=table.settings(catalog=settings),
        emit=events.append,
        clock=clock or Clock(),
        open_store=lambda: table.store,
        open_catalog=opening,
        pause=lambda _seconds: None,
    )
    return run, events


def drain(run: TableRun) -> None:
    while run.step():
        pass
    run.finish()


def test_a_run_registers_its_table_and_tells_new_columns(tmp_path, glue, settings):
    table = TableDirectory(tmp_path / "table")
    table.journal().batch(rows_of(1))
    run, events = run_of(table, settings)
    drain(run)
    names = [one["Name"] for one in described(glue)["StorageDescriptor"]["Columns"]]
    assert names == ["id", "name", "date"]
    table.journal().schema = Schema((*EVENTS.fields, Field(name="more", type=FieldType.STRING)))
    table.journal().batch([{**rows_of(2)[0], "more": "x"}])
    drain(run)
    names = [one["Name"] for one in described(glue)["StorageDescriptor"]["Columns"]]
    assert sorted(names) == ["date", "id", "more", "name"]
    told = [one for one in events if isinstance(one, TableRegistered)]
    assert [one.changed for one in told] == [True, True]


def test_a_catalog_that_fails_changes_nothing_for_commits(tmp_path, glue, settings):
    table = TableDirectory(tmp_path / "table")
    table.journal().batch(rows_of(1))
    tried: list[str] = []

    def opening(given: CatalogSettings) -> GlueCatalog:
        tried.append(given.name)
        if len(tried) == 1:
            raise RuntimeError(os.fsdecode(b"a library's own words"))
        return GlueCatalog(given)

    later = [0.0]
    clock = Clock(seconds=lambda: time.time() + later[0])
    run, events = run_of(table, settings, opening, clock)
    drain(run)
    assert table.ids() == [1]
    (failed,) = [one for one in events if isinstance(one, TableNotRegistered)]
    assert (failed.error, failed.code) == ("RuntimeError", "catalog_unavailable")
    table.journal().batch(rows_of(2))
    drain(run)
    assert (table.ids(), len(tried)) == ([1, 2], 1)  # Not yet: it waits a little.
    later[0] = 30.0
    drain(run)
    assert len(tried) == 2
    assert described(glue)["Name"] == "events"
    assert isinstance(events[-1], TableRegistered)


def test_commits_of_blizzard_itself_register_the_table(tmp_path, glue, settings):
    """`sink.commit: inline`: the catalog is told beside the commits, and waited for at the end."""
    table = TableDirectory(tmp_path / "table")
    table.journal().batch(rows_of(1))
    events: list[Event] = []
    commit = InlineCommitter.of(
        table.settings(catalog=settings),
        str(table.root),
        StorageOptions(),
        emit=events.append,
        clock=Clock(),
    )
    assert commit() == 1
    commit.finish()
    assert described(glue)["Name"] == "events"
    assert [one.changed for one in events if isinstance(one, TableRegistered)] == [True]
