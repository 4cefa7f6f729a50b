"""Five penguins and Spark on one table at the same time: whoever comes first, all is right."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event, Lock

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from lakebed.layout import DELTA_LOG
from penguin.model.errors import CommitFailed
from tests.support import delta_spark as spark
from tests.support.tables import EVENTS, Numbered, Penguin, TableDirectory

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]
COLUMNS = "(id BIGINT NOT NULL, name STRING, date DATE) USING delta CLUSTER BY (id)"
PROPERTIES = (
    "'delta.enableRowTracking'='true', 'delta.enableInCommitTimestamps'='true', "
    "'delta.enableDeletionVectors'='true', 'delta.checkpointPolicy'='v2'"
)
PENGUINS, MOST_BATCHES, TRIES = 5, 2, 8


class Race:
    """One table, what must be in it, and five penguins, each with a pipeline of its own."""

    def __init__(self, root: Path) -> None:
        self.table = TableDirectory(root)
        self.names: dict[int, str] = {}
        self._lock = Lock()
        self._last = 100
        for one in range(PENGUINS):
            self.table.journal(f"p{one}", partitions=(), schema=Numbered(EVENTS.fields))

    def against(self, statement: str) -> None:
        """Run a statement of Spark's while all penguins commit."""
        done = Event()
        with ThreadPoolExecutor(PENGUINS) as pool:
            racing = [pool.submit(self._commit, one, done) for one in range(PENGUINS)]
            try:
                _tried(lambda: spark.sql(statement).collect())
            finally:
                done.set()
        for one in racing:
            one.result()

    def _commit(self, number: int, done: Event) -> None:
        journal = self.table.journal(f"p{number}")
        for _ in range(MOST_BATCHES):
            rows = [{"id": each, "name": f"n{each}", "date": None} for each in self._ids()]
            journal.batch(rows)
            self.drain()
            if done.is_set():
                return

    def _ids(self) -> Iterator[int]:
        with self._lock:
            self._last += 2
            fresh = (self._last - 1, self._last)
            self.names |= {each: f"n{each}" for each in fresh}
        return iter(fresh)

    def drain(self) -> None:
        """Let a penguin of its own commit whatever waits, of all pipelines."""
        for _ in range(TRIES):
            try:
                Penguin(self.table, options={"checkpoint_interval": 7}).drain()
            except CommitFailed:
                continue  # The others were faster each time; a service looks again, too.
            return
        raise AssertionError("a penguin never came through")


def _tried(statement: Callable[[], object]) -> None:
    """Run a statement until Spark does not lose against an append any more."""
    for left in reversed(range(TRIES)):
        try:
            statement()
        except Exception as lost:
            if "Concurrent" not in type(lost).__name__ + str(lost)[:200] or not left:
                raise
        else:
            return


def test_five_penguins_and_spark_at_the_same_time(tmp_path: Path) -> None:
    """On a table that tracks rows, orders its versions by their own times, and is clustered."""
    name = f"delta.`{tmp_path / 'table'}`"
    spark.sql(f"CREATE TABLE {name} {COLUMNS} TBLPROPERTIES({PROPERTIES})")
    spark.sql(f"INSERT INTO {name} SELECT id, concat('n', id), NULL FROM range(1, 9)")
    race = Race(tmp_path / "table")
    before = row_ids(race.table.root)
    race.against(f"INSERT INTO {name} SELECT id, concat('n', id), NULL FROM range(9, 11)")
    race.against(f"DELETE FROM {name} WHERE id IN (2, 9)")
    race.against(
        f"MERGE INTO {name} t USING (SELECT explode(array(3, 11)) AS id) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET name = 'merged' "
        "WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, 'merged')"
    )
    race.against(f"OPTIMIZE {name}")
    race.against(f"ALTER TABLE {name} ADD COLUMN (extra STRING)")
    race.against(f"VACUUM {name}")
    race.drain()
    # Files that wait for their commit are no part of the table: only now may all others go.
    spark.sql(f"VACUUM {name} RETAIN 0 HOURS")

    names = {one: f"n{one}" for one in (1, 4, 5, 6, 7, 8, 10)} | {3: "merged", 11: "merged"}
    wanted = names | race.names
    found = {row["id"]: row["name"] for row in spark.rows(race.table.root)}
    assert found == wanted
    assert spark.table(race.table.root).count() == len(wanted)
    ids = row_ids(race.table.root)
    assert None not in ids.values()
    assert len(set(ids.values())) == len(wanted)
    assert {one: ids[one] for one in before if one != 2} == {
        one: number for one, number in before.items() if one != 2
    }
    detail = spark.sql(f"DESCRIBE DETAIL {name}").collect()[0]
    assert detail["clusteringColumns"] == ["id"]
    times = in_commit_timestamps(race.table)
    assert times == sorted(set(times))
    history = spark.sql(f"DESCRIBE HISTORY {name}").collect()
    assert [row["version"] for row in history] == [*reversed(range(len(times)))]
    assert Penguin(race.table).drain().held == {}
    seen = pa.table(DeltaTable(str(race.table.root)).scan().read_all())
    assert dict(zip(*(seen[one].to_pylist() for one in ("id", "name")), strict=True)) == wanted


def row_ids(root: Path) -> dict[int, int]:
    """Return the id that Spark knows each row by, which stays whatever file it is in."""
    found = spark.table(root).select("id", "_metadata.row_id").collect()
    return {row["id"]: row["row_id"] for row in found}


def in_commit_timestamps(table: TableDirectory) -> list[int]:
    """Return what the versions of a log say of their time, in the order of the log."""
    files = sorted((table.root / DELTA_LOG).glob("*.json"))
    versions = (one for one in files if one.stem.isdigit())
    first = (json.loads(one.read_text().splitlines()[0]) for one in versions)
    return [one["commitInfo"]["inCommitTimestamp"] for one in first]
