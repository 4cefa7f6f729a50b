"""Tables in a real Hive metastore: registered once, kept up, and found by Spark by their names."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pyspark
import pytest

from lakebed.clock import Clock
from lakebed.deltalog.delta_types import TableFacts
from lakebed.telemetry.events import Event
from lakebed.types import CatalogType
from penguin.catalog.catalog import (
    CatalogConflict,
    CatalogMissing,
    CatalogUnavailable,
    open_catalog,
    register,
)
from penguin.catalog.hive import HiveCatalog, protocol
from penguin.model.settings import CatalogSettings
from penguin.pipeline import TableRun
from tests.support.delta_spark import CONF
from tests.support.tables import TableDirectory, rows_of

SITE = """<configuration>
<property><name>hive.async.log.enabled</name><value>false</value></property>
</configuration>
"""


@contextmanager
def metastore(folder: Path) -> Iterator[str]:
    """Run a metastore until the end of the block; give its address."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "hive-site.xml").write_text(SITE)
    jars = Path(pyspark.__file__).parent / "jars" / "*"
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port = int(held.getsockname()[1])
    given = {
        "javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder}/db;create=true",
        "datanucleus.schema.autoCreateAll": "true",
        "hive.metastore.schema.verification": "false",
        "hive.metastore.warehouse.dir": str(folder / "warehouse"),
    }
    process = subprocess.Popen(
        [
            *("java", "-Xmx300m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"),
            *("-Dlog4j.configuration=none", f"-Dderby.stream.error.file={folder}/derby.log"),
            *("-cp", f"{folder}:{jars}", "org.apache.hadoop.hive.metastore.HiveMetaStore"),
            *("-p", str(port)),
            *(part for name, value in given.items() for part in ("--hiveconf", f"{name}={value}")),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=folder,
    )
    try:
        _wait_for(port, process)
        yield f"thrift://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def _wait_for(port: int, process: "subprocess.Popen[bytes]") -> None:
    end = time.monotonic() + 300
    while True:
        assert process.poll() is None, "the metastore did not start"
        assert time.monotonic() < end
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)


pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]

READ = """
import sys
from pyspark.sql import SparkSession
builder = SparkSession.builder.master("local[1]").enableHiveSupport()
for pair in sys.argv[2:]:
    builder = builder.config(*pair.split("=", 1))
spark = builder.getOrCreate()
rows = spark.sql(f"SELECT id FROM {sys.argv[1]} ORDER BY id").collect()
print("ids", [row["id"] for row in rows])
print("columns", spark.table(sys.argv[1]).columns)
"""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with metastore(tmp_path_factory.mktemp("metastore")) as found:
        yield found


@pytest.fixture
def settings(address: str, request: pytest.FixtureRequest) -> CatalogSettings:
    name = request.node.name.lower()[-60:]
    return CatalogSettings(type=CatalogType.HIVE, database="default", table=name, uri=address)


@pytest.fixture
def catalog(settings: CatalogSettings) -> Iterator[HiveCatalog]:
    opened = HiveCatalog(settings)
    yield opened
    opened.close()


def facts(*names: str) -> TableFacts:
    fields = [{"name": name, "type": "long", "nullable": True} for name in names]
    return TableFacts(
        version=0,
        schema={"type": "struct", "fields": fields},
        partition_columns=(),
        configuration={},
    )


def test_a_table_is_registered_and_kept_up(
    catalog: HiveCatalog, settings: CatalogSettings, tmp_path: Path
) -> None:
    uri = f"file://{tmp_path}/table"
    assert register(catalog, settings, facts("id"), uri)
    assert not register(catalog, settings, facts("id"), uri)
    client = catalog._client
    table = client.get_table("default", settings.table)
    table.parameters["pii"], table.sd.cols[0].comment = "no", "who"
    context = protocol().EnvironmentContext(properties={})
    client.alter_table_with_environment_context("default", settings.table, table, context)
    assert register(catalog, settings, facts("id", "more"), uri)
    table = client.get_table("default", settings.table)
    assert table.tableType == "EXTERNAL_TABLE"
    assert (table.parameters["pii"], table.sd.cols[0].comment) == ("no", "who")
    assert [one.name for one in table.sd.cols] == ["id", "more"]
    with pytest.raises(CatalogConflict, match="another place"):
        register(catalog, settings, facts("id"), f"file://{tmp_path}/other")


def test_a_database_is_not_made(settings: CatalogSettings) -> None:
    opened = HiveCatalog(replace(settings, database="nowhere"))
    with pytest.raises(CatalogMissing, match="no database nowhere"):
        opened.find()
    opened.close()


def test_a_metastore_that_does_not_answer(settings: CatalogSettings) -> None:
    with pytest.raises(CatalogUnavailable, match="does not answer"):
        HiveCatalog(replace(settings, uri="thrift://127.0.0.1:1"))


def test_spark_reads_a_table_that_a_run_has_registered(
    settings: CatalogSettings, tmp_path: Path
) -> None:
    table = TableDirectory(tmp_path / "table")
    table.journal().batch(rows_of(1, 2))
    events: list[Event] = []
    named = replace(settings, table="events", location=f"file://{table.root}")
    run = TableRun(
        settings=table.settings(catalog=named),
        emit=events.append,
        clock=Clock(),
        open_store=lambda: table.store,
        open_catalog=open_catalog,
    )
    while run.step():
        pass
    run.finish()
    conf = {**CONF, "spark.hadoop.hive.metastore.uris": settings.uri or ""}
    pairs = [f"{key}={value}" for key, value in conf.items()]
    done = subprocess.run(
        [sys.executable, "-c", READ, "default.events", *pairs],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert "ids [1, 2]" in done.stdout, done.stderr[-2000:]
    assert "columns ['id', 'name', 'date']" in done.stdout
