"""Every cell of docs/table-features.md, on a table that has the feature and a file."""

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakebed.deltalog.snapshot import LogReader, Snapshot
from lakebed.deltalog.table_features import FEATURES, TableFeature
from lakebed.deltalog.tables import first_rows
from lakebed.errors import LakeError, TableUnsupported
from penguin.delta.table import Log
from tests.support.first_version import MAPPED, protocol_of, write_first
from tests.support.row_tracking import NAMED
from tests.support.tables import TableDirectory

READERS = {
    "columnMapping", "deletionVectors", "timestampNtz", "v2Checkpoint", "typeWidening",
    "typeWidening-preview", "vacuumProtocolCheck", "variantType", "catalogManaged",
}  # fmt: skip
"""The features that readers must know, too."""
WITH_DOMAINS = {"clustering", "rowTracking"}
PROPERTIES = {
    "rowTracking": NAMED,
    "columnMapping": {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "1"},
    "inCommitTimestamp": {"delta.enableInCommitTimestamps": "true"},
    "deletionVectors": {"delta.enableDeletionVectors": "true"},
}


def make(table: TableDirectory, feature: str) -> None:
    """Write a table of one file with one row, as an engine that knows the feature would."""
    reader = [feature] if feature in READERS else []
    names = [] if reader else [feature]
    names += ["domainMetadata"] if feature in WITH_DOMAINS else []
    column: dict[str, Any] = {"name": "id", "type": "long", "nullable": True, "metadata": {}}
    if feature == "columnMapping":
        column["metadata"] = MAPPED[0]["metadata"]
    pq.write_table(pa.table({"id": pa.array([7], pa.int64())}), table.root / "a.parquet")
    file = {
        "path": "a.parquet", "partitionValues": {}, "dataChange": True,
        "size": (table.root / "a.parquet").stat().st_size, "modificationTime": 1,
        "stats": '{"numRecords":1}',
    }  # fmt: skip
    write_first(
        table.store,
        protocol_of(*names, reader=reader),
        [column],
        PROPERTIES.get(feature, {}),
        info={"operation": "WRITE", "inCommitTimestamp": 1},
        adds=[file],
    )


@pytest.mark.parametrize("feature", FEATURES, ids=lambda one: one.name)
def test_a_feature_is_as_its_row_says(tmp_path, feature: TableFeature):
    table = TableDirectory(tmp_path / "table")
    make(table, feature.name)
    found = Log(table.store).open()
    assert found is not None
    assert found.why_no_removal() is None
    assert can_be_shown(LogReader(table.store)) is feature.reads


@pytest.mark.parametrize("feature", ["identityColumns", "variantType", "catalogManaged", "new"])
def test_any_other_feature_is_refused_by_name(tmp_path, feature: str):
    table = TableDirectory(tmp_path / "table")
    make(table, feature)
    with pytest.raises(TableUnsupported, match=f"table feature {feature}, .* a table of its own"):
        Log(table.store).open()


def can_be_shown(log: LogReader) -> bool:
    """Whether the rows of a table are read by the library, as commands that show some do."""
    try:
        found = log.newest()
        assert isinstance(found, Snapshot)
        return first_rows(found, ("id",), 1) == ((7,),)
    except LakeError:
        return False
