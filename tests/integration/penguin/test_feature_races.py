"""Two penguins and deltalake append to a table with a feature at the same moment: all come in.

Features that deltalake does not write are raced against Spark (tests/interop).
"""

import json
from functools import partial
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from lakebed.deltalog.table_features import FEATURES
from lakebed.layout import DELTA_LOG
from tests.support.first_version import FIELDS, MAPPED, protocol_of, write_first
from tests.support.races import AGAINST_SPARK, Race

LOCAL = [*FIELDS, {"name": "at", "type": "timestamp_ntz", "nullable": True, "metadata": {}}]
Feature = dict[str, Any]
TABLES: dict[str, Feature] = {
    "appendOnly": {"properties": {"appendOnly": "true"}},
    "invariants": {},
    "checkConstraints": {},
    "generatedColumns": {},
    "changeDataFeed": {"properties": {"enableChangeDataFeed": "true"}},
    "columnMapping": {
        "reader": True,
        "fields": MAPPED,
        "properties": {"columnMapping.mode": "name", "columnMapping.maxColumnId": "3"},
    },
    "deletionVectors": {"reader": True, "properties": {"enableDeletionVectors": "true"}},
    "timestampNtz": {"reader": True, "fields": LOCAL},
    "v2Checkpoint": {"reader": True, "properties": {"checkpointPolicy": "v2"}},
}
ROUNDS = 3


def make(race: Race, feature: str, of: Feature) -> None:
    """Write version 0 of a table with a feature, as some other engine would."""
    names = {"reader": [feature]} if of.get("reader") else {}
    protocol = protocol_of(*([] if names else [feature]), **names)
    write_first(race.table.store, protocol, of.get("fields", FIELDS), properties_of(of))


def properties_of(feature: Feature) -> dict[str, str]:
    return {f"delta.{key}": value for key, value in feature.get("properties", {}).items()}


def test_every_feature_that_is_appended_to_has_a_race() -> None:
    assert {*TABLES, *AGAINST_SPARK} == {one.name for one in FEATURES}


@pytest.mark.parametrize("feature", TABLES)
def test_two_penguins_and_deltalake_at_the_same_time(tmp_path, feature):
    of = TABLES[feature]
    race = Race(tmp_path / "table", 2)
    make(race, feature, of)
    before = DeltaTable(str(race.table.root)).protocol()
    for number in range(ROUNDS):
        values: dict[str, Any] = {
            "id": pa.array([number], pa.int64()),
            "name": [f"n{number}"],
            "date": pa.nulls(1, pa.date32()),
        }
        if of.get("fields") is LOCAL:
            values["at"] = pa.nulls(1, pa.timestamp("us"))
        rows = pa.table(values)
        race.against(partial(write_deltalake, str(race.table.root), rows, mode="append"))
    race.drain()
    table = DeltaTable(str(race.table.root))
    wanted = race.names | {number: f"n{number}" for number in range(ROUNDS)}
    seen = pa.table(table.scan().read_all())
    assert len(seen) == len(wanted)
    assert dict(zip(*(seen[one].to_pylist() for one in ("id", "name")), strict=True)) == wanted
    # Nothing but rows was added: the table is what it was.
    assert table.protocol() == before
    assert properties_of(of).items() <= table.metadata().configuration.items()
    log = race.table.root / DELTA_LOG
    adds = [
        json.loads(line)["add"]
        for one in sorted(log.glob("*.json"))
        if one.stem.isdigit()
        for line in one.read_text().splitlines()
        if '"add"' in line
    ]
    assert len({one["path"] for one in adds}) == len(adds)
