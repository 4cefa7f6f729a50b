"""Spark with Delta and penguin on the same tables: each reads what the other wrote, row for row."""

import os
import random
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from deltalake.transaction import AddAction
from pyspark.sql import Column
from pyspark.sql import functions as fn

from blizzard.config import load as blizzard_config
from lakebed.clock import Clock
from lakebed.deltalog.log_contents import parse_interval
from lakebed.layout import DELTA_LOG
from lakebed.storage.store import Store
from lakebed.types import RESCUED, Evolution
from penguin.config import load as penguin_config
from penguin.model.settings import LogRolledBack
from penguin.operate.replay import LogReplay
from tests.support import delta_spark as spark
from tests.support import readers
from tests.support.foreign import Directory
from tests.support.intervals import INTERVALS, length, strange
from tests.support.landing import FIELDS, Landing, config
from tests.support.pipelines import pipeline_of
from tests.support.runner import InProcessRunner
from tests.support.tables import commit_table

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]
FILTERS_PER_STATE = 36
Row = dict[str, Any]


class Lake:
    """blizzard's worker and penguin on one table, with an oracle of its rows."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.table = folder / "table"
        self.landing = Landing(folder / "landing")
        self.rows: list[Row] = []
        self.fields = FIELDS

    def declare(self, *, without: tuple[str, ...] = (), **types: str) -> "Lake":
        """Change the declared schema."""
        lines = []
        for line in FIELDS.splitlines():
            name = line.split("name: ")[1].split(",")[0]
            kind = line.split("type: ")[1].split("}")[0].split(",")[0]
            if name not in without:
                lines.append(line.replace(f"type: {kind}", f"type: {types.get(name, kind)}"))
        self.fields = "\n".join(lines) + "\n"
        return self

    def ingest(self, *days: str, evolution: Evolution = Evolution.MERGE, every: int = 10) -> "Lake":
        """Land a file a day, make an entry of them, and commit it."""
        for day in days:
            name = f"date={day}/{len(self.rows)}.ndjson"
            declared = {line.split("name: ")[1].split(",")[0] for line in self.fields.splitlines()}
            self.rows += [
                {
                    **{key: value if key in declared else None for key, value in row.items()},
                    "date": date.fromisoformat(day),
                }
                for row in self.landing.land(name, 40)
            ]
        file = config(self.folder, partitioned=True)
        file.write_text(file.read_text().replace(FIELDS, self.fields))
        (pipeline,) = blizzard_config.load([file], [], {}).pipelines
        work = pipeline_of(pipeline, InProcessRunner())
        while work.step():
            pass
        self.commit(evolution, every)
        return self

    def commit(self, evolution: Evolution = Evolution.MERGE, every: int = 10) -> int:
        """Commit what waits, as penguin does."""
        (settings,) = penguin_config.load([self.folder / "pipeline.yaml"], [], {}).tables
        settings = replace(settings, evolution=evolution, checkpoint_interval=every)
        store = Store(settings.table_uri, settings.storage_options)
        return commit_table(settings, store, lambda _event: None, Clock())

    def wanted(self, columns: list[str]) -> list[Row]:
        ordered = sorted(self.rows, key=lambda row: int(row["id"]))
        return [{name: row[name] for name in columns} for row in ordered]

    def check(self) -> None:
        """Hold all rows, as Spark, deltalake and polars read them, against the oracle."""
        columns = [name for name in spark.table(self.table).columns if name != RESCUED]
        wanted = self.wanted(columns)
        by_spark = [_plain(row) for row in spark.rows(self.table)]
        found = sorted(readers.rows(self.table), key=lambda row: int(row["id"]))
        # What is not declared any more is rescued, and both read the same of it.
        assert [row.pop(RESCUED, None) for row in by_spark] == [
            row.pop(RESCUED, None) for row in found
        ]
        assert by_spark == found == wanted
        assert readers.polars_ids(self.table) == [row["id"] for row in wanted]


def _plain(row: Row) -> Row:
    """Turn what Spark gives into what the oracle holds."""
    for name, value in row.items():
        if isinstance(value, datetime):
            row[name] = value.astimezone(UTC)
        elif isinstance(value, bytearray):
            row[name] = bytes(value)
    return row


def filters(rows: list[Row], columns: list[str], seed: int) -> Iterator[tuple[str, Column, Any]]:
    """Generate filters on every column: as words, as Spark says them, and as plain Python."""
    chance = random.Random(seed)
    for place in range(FILTERS_PER_STATE):
        name = columns[place % len(columns)]
        column = fn.col(name)
        values = [row[name] for row in rows if row[name] is not None]
        kind = chance.choice(["=", "<", ">=", "!=", "in", "null", "not null"])
        if not values or kind == "null":
            yield f"{name} null", column.isNull(), lambda row, n=name: row[n] is None
        elif kind == "not null":
            yield f"{name} not null", column.isNotNull(), lambda row, n=name: row[n] is not None
        elif kind == "in":
            some = [chance.choice(values), chance.choice(values)]
            yield (
                f"{name} in {some}",
                column.isin(*map(fn.lit, some)),
                lambda row, n=name, s=some: row[n] in s,
            )
        else:
            yield _comparison(name, kind, chance.choice(values))


def _comparison(name: str, kind: str, value: Any) -> tuple[str, Column, Any]:
    column, literal = fn.col(name), fn.lit(value)
    if kind == "=":
        return f"{name} = {value}", column == literal, lambda row: row[name] == value
    if kind == "!=":
        return (
            f"{name} != {value}",
            column != literal,
            lambda row: row[name] is not None and row[name] != value,
        )
    if kind == "<":
        return (
            f"{name} < {value}",
            column < literal,
            lambda row: row[name] is not None and row[name] < value,
        )
    return (
        f"{name} >= {value}",
        column >= literal,
        lambda row: row[name] is not None and row[name] >= value,
    )


def as_written(lake: Lake) -> None:
    lake.ingest("2024-01-01", "2024-01-02").ingest("2024-01-03")


def checkpointed(lake: Lake) -> None:
    lake.ingest("2024-01-01", "2024-01-02", every=1).ingest("2024-01-03", every=1)
    assert list((lake.table / "_delta_log").glob("*.checkpoint.parquet"))


def merged(lake: Lake) -> None:
    """Columns came later, and some files have a narrower type than the table."""
    lake.declare(without=("extra", "flag", "at")).ingest("2024-01-01")
    lake.declare().ingest("2024-01-02", every=1)
    lake.declare(id="int32", amount="float32", without=("name",))
    lake.landing.chance = SmallIds(3)
    lake.ingest("2024-01-03")
    for row in lake.rows[-40:]:
        # A float32 holds the nearest value.
        row["amount"] = None if row["amount"] is None else _float32(row["amount"])


def overwritten(lake: Lake) -> None:
    """Columns were dropped, widened and brought back, each in the schema only."""
    lake.declare().ingest("2024-01-01", evolution=Evolution.OVERWRITE)
    lake.declare(without=("ratio", "name"), small="int64")
    lake.ingest("2024-01-02", evolution=Evolution.OVERWRITE)
    lake.declare(without=("ratio",), small="int64")
    lake.ingest("2024-01-03", evolution=Evolution.OVERWRITE)
    assert "ratio" not in spark.table(lake.table).columns


def compacted_by_deltalake(lake: Lake) -> None:
    merged(lake)
    DeltaTable(str(lake.table)).optimize.compact()
    lake.declare().ingest("2024-01-01")


def compacted_by_spark(lake: Lake) -> None:
    overwritten(lake)
    lake.ingest("2024-01-01", "2024-01-02", evolution=Evolution.OVERWRITE)
    spark.sql(f"OPTIMIZE delta.`{lake.table}`")
    lake.ingest("2024-01-01", evolution=Evolution.OVERWRITE)


class SmallIds(random.Random):
    """Draws numbers small enough for an int32."""

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        if (start, stop) == (10**6, None):
            return super().randrange(1000)
        return super().randrange(start, stop, step)


def _float32(value: float) -> float:
    return float(pa.scalar(value, pa.float32()).as_py())


STATES = [as_written, checkpointed, merged, overwritten, compacted_by_deltalake, compacted_by_spark]


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
def test_spark_finds_exactly_the_rows_under_every_filter(tmp_path: Path, state: Any) -> None:
    """W04, W06, W13: before and after evolution, checkpoint and OPTIMIZE."""
    lake = Lake(tmp_path)
    state(lake)
    lake.check()
    columns = [name for name in spark.table(lake.table).columns if name != RESCUED]
    asked = list(filters(lake.rows, columns, seed=len(state.__name__)))
    found = spark.ids_under(lake.table, [condition for _, condition, _ in asked])
    for (words, _, keeps), ids in zip(asked, found, strict=True):
        assert ids == sorted(row["id"] for row in lake.rows if keeps(row)), words


def test_penguin_goes_on_with_a_table_that_spark_writes_to(tmp_path: Path) -> None:
    """D09, D10, D11: append, delete with and without deletion vectors, OPTIMIZE, VACUUM."""
    lake = Lake(tmp_path)
    lake.ingest("2024-01-01", "2024-01-02")
    name = f"delta.`{lake.table}`"

    def delete(condition: str, keeps: Any) -> None:
        spark.sql(f"DELETE FROM {name} WHERE {condition}")
        lake.rows = [row for row in lake.rows if keeps(row)]

    own = {**dict.fromkeys(lake.rows[0]), "id": 7, "name": "spark", "date": date(2024, 1, 1)}
    spark.sql(f"INSERT INTO {name} (id, name, date) VALUES (7, 'spark', DATE'2024-01-01')")
    lake.rows.append(own)
    lake.ingest("2024-01-03")
    delete("small < -50", lambda row: row["small"] is None or row["small"] >= -50)
    lake.ingest("2024-01-01")
    lake.check()

    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.enableDeletionVectors' = true)")
    delete("flag", lambda row: row["flag"] is not True)
    vectors = list(lake.table.rglob("deletion_vector*"))
    assert vectors, "no deletion vector was written"
    lake.ingest("2024-01-02", every=1)
    lake.check()

    orphan = next(lake.table.glob("date=2024-01-02/*.parquet"))
    shutil.copy(orphan, orphan.with_name(f"part-00000-{Clock().fresh_id()}-c000.snappy.parquet"))
    spark.sql(f"OPTIMIZE {name}")
    lake.ingest("2024-01-03")
    spark.sql(f"VACUUM {name} RETAIN 0 HOURS")
    lake.ingest("2024-01-04", every=1)
    assert lake.commit() == 0
    lake.check()


def test_intervals_of_table_properties_are_as_long_as_spark_says() -> None:
    """HOLES L31: what is removed from a log is decided by them."""
    for text, microseconds in INTERVALS:
        assert spark.interval(text) == length(microseconds), text
    for text in strange(1500, seed=11):
        assert parse_interval(text) in (None, spark.interval(text)), text


def aged(root: Path, days: float) -> None:
    """Let all there is of a log be so old."""
    at = time.time() - days * 86_400
    for file in (root / DELTA_LOG).iterdir():
        os.utime(file, (at, at))


def test_a_log_that_penguin_has_cleaned_up_is_read_by_spark(tmp_path: Path) -> None:
    """HOLES L31: all that is left can be read, from the first version on."""
    lake = Lake(tmp_path)
    for day in ("2024-01-01", "2024-01-02", "2024-01-03"):
        lake.ingest(day, every=2)
    aged(lake.table, 31)
    lake.ingest("2024-01-04", every=1)
    left = sorted((lake.table / DELTA_LOG).glob("*.json"))
    assert int(left[0].stem) == 4
    lake.check()
    first = spark.session().read.format("delta").option("versionAsOf", 4).load(str(lake.table))
    assert first.count() == len(lake.rows)


def test_what_spark_deleted_stays_out_whatever_its_checkpoints_are(tmp_path: Path) -> None:
    """HOLES D21: a checkpoint of the second kind, and none of the versions before it."""
    table = Directory(tmp_path / "table")
    table.file(1)
    table.penguin().drain()
    gone = table.file(2)
    delta, size = table.delta(), (table.root / gone).stat().st_size
    add = AddAction(gone, size, {"date": "2024-01-01"}, 0, True, "{}")
    delta.create_write_transaction([add], "append", delta.schema(), partition_by=["date"])
    name = f"delta.`{table.root}`"
    spark.sql(f"DELETE FROM {name} WHERE id = 2")
    properties = "'delta.checkpointPolicy' = 'v2', 'delta.checkpointInterval' = '1'"
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ({properties})")
    spark.sql(f"INSERT INTO {name} (id, date) VALUES (3, '2024-01-01')")
    log = table.root / DELTA_LOG
    last = table.delta().version()
    assert [path for path in log.glob(f"{last:020d}.checkpoint.*") if len(path.name) > 60]
    for version in range(last):
        (log / f"{version:020d}.json").unlink()
    table.penguin().drain()
    assert sorted(row["id"] for row in spark.rows(table.root)) == [1, 3]


def test_transactions_that_spark_has_dropped_double_no_row(tmp_path: Path) -> None:
    """HOLES D23: with the property that penguin refuses, set for a while."""
    lake = Lake(tmp_path)
    lake.ingest("2024-01-01", "2024-01-02").ingest("2024-01-01", "2024-01-02")
    name = f"delta.`{lake.table}`"
    spark.sql(f"OPTIMIZE {name}")
    forgets = "delta.setTransactionRetentionDuration"
    properties = f"'{forgets}' = '0 days', 'delta.checkpointInterval' = '1'"
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ({properties})")
    spark.sql(f"ALTER TABLE {name} UNSET TBLPROPERTIES ('{forgets}')")
    for version in range(DeltaTable(str(lake.table)).version()):
        (lake.table / DELTA_LOG / f"{version:020d}.json").unlink()
    with pytest.raises(LogRolledBack, match="its transactions were dropped"):
        lake.commit()
    (settings,) = penguin_config.load([lake.folder / "pipeline.yaml"], [], {}).tables
    store = Store(settings.table_uri, settings.storage_options)
    order = LogReplay(settings=settings, store=store, clock=Clock(), pause=lambda _seconds: None)
    (rolled_back,) = order.rolled_back()
    assert rolled_back.evidence.up_to == rolled_back.receipt.sequence
    order.replay_lost(rolled_back)
    lake.ingest("2024-01-03")
    lake.check()
