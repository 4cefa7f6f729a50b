"""Five penguins and Spark on one table at the same time: whoever comes first, all is right."""

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from tests.support import delta_spark as spark
from tests.support.races import Race, in_commit_timestamps
from tests.support.tables import Penguin

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]
COLUMNS = "(id BIGINT NOT NULL, name STRING, date DATE) USING delta CLUSTER BY (id)"
PROPERTIES = (
    "'delta.enableRowTracking'='true', 'delta.enableInCommitTimestamps'='true', "
    "'delta.enableDeletionVectors'='true', 'delta.checkpointPolicy'='v2'"
)
PENGUINS = 5


def against(race: Race, statement: str) -> None:
    """Run a statement of Spark's while all penguins commit."""
    race.against(lambda: spark.sql(statement).collect())


def test_five_penguins_and_spark_at_the_same_time(tmp_path: Path) -> None:
    """On a table that tracks rows, orders its versions by their own times, and is clustered."""
    name = f"delta.`{tmp_path / 'table'}`"
    spark.sql(f"CREATE TABLE {name} {COLUMNS} TBLPROPERTIES({PROPERTIES})")
    spark.sql(f"INSERT INTO {name} SELECT id, concat('n', id), NULL FROM range(1, 9)")
    race = Race(tmp_path / "table", PENGUINS)
    before = row_ids(race.table.root)
    against(race, f"INSERT INTO {name} SELECT id, concat('n', id), NULL FROM range(9, 11)")
    against(race, f"DELETE FROM {name} WHERE id IN (2, 9)")
    against(
        race,
        f"MERGE INTO {name} t USING (SELECT explode(array(3, 11)) AS id) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET name = 'merged' "
        "WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, 'merged')",
    )
    against(race, f"OPTIMIZE {name}")
    against(race, f"ALTER TABLE {name} ADD COLUMN (extra STRING)")
    against(race, f"VACUUM {name}")
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
    times = in_commit_timestamps(race.table.root)
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
