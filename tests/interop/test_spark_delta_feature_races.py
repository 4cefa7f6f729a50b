"""Two penguins and Spark append to a table with a feature at the same moment: all come in.

These are the features that deltalake does not write; of the others, it is the rival.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.support import delta_spark as spark
from tests.support.races import AGAINST_SPARK, Race, in_commit_timestamps

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]
COLUMNS = "(id BIGINT NOT NULL, name STRING, date DATE) USING delta"


NOT_OF_APPENDS = (
    *("allowColumnDefaults", "domainMetadata", "typeWidening", "typeWidening-preview"),
    *("checkpointProtection", "vacuumProtocolCheck"),
)
"""Features that ask nothing of an append: a table may have all of them."""


def supported(names: Sequence[str]) -> str:
    each = (f"'delta.feature.{name}'='supported'" for name in names)
    return f"TBLPROPERTIES({', '.join(each)})"


TABLES = {
    NOT_OF_APPENDS: supported(NOT_OF_APPENDS),
    ("clustering",): "CLUSTER BY (id)",
    ("rowTracking",): "TBLPROPERTIES('delta.enableRowTracking'='true')",
    ("inCommitTimestamp",): "TBLPROPERTIES('delta.enableInCommitTimestamps'='true')",
}


def check_row_ids(root: Path) -> None:
    found = [row["row_id"] for row in spark.table(root).select("_metadata.row_id").collect()]
    assert None not in found
    assert len(set(found)) == len(found)


def check_times(root: Path) -> None:
    times = in_commit_timestamps(root)
    assert times == sorted(set(times))


def check_clustering(root: Path) -> None:
    (detail,) = spark.sql(f"DESCRIBE DETAIL delta.`{root}`").collect()
    assert detail["clusteringColumns"] == ["id"]


INVARIANTS: dict[str, Callable[[Path], None]] = {
    "rowTracking": check_row_ids,
    "inCommitTimestamp": check_times,
    "clustering": check_clustering,
}


def test_these_are_the_features_that_deltalake_does_not_write() -> None:
    assert {name for names in TABLES for name in names} == AGAINST_SPARK


@pytest.mark.parametrize("names", TABLES, ids=lambda names: names[0])
def test_two_penguins_and_spark_at_the_same_time(tmp_path: Path, names: tuple[str, ...]) -> None:
    root = tmp_path / "table"
    spark.sql(f"CREATE TABLE delta.`{root}` {COLUMNS} {TABLES[names]}")
    race = Race(root, 2)
    statement = f"INSERT INTO delta.`{root}` VALUES (1, 'n1', NULL), (2, 'n2', NULL)"
    race.against(lambda: spark.sql(statement).collect())
    race.drain()
    wanted = race.names | {1: "n1", 2: "n2"}
    spark.forget()
    rows = spark.table(root).collect()
    assert len(rows) == len(wanted)
    assert {row["id"]: row["name"] for row in rows} == wanted
    first = (root / "_delta_log" / f"{0:020}.json").read_text().splitlines()
    (protocol,) = (json.loads(line)["protocol"] for line in first if '"protocol"' in line)
    assert set(names) <= set(protocol["writerFeatures"])
    for name in INVARIANTS.keys() & set(names):
        INVARIANTS[name](root)
