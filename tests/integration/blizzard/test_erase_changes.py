"""Files of the change data feed hold rows, too: they are history, not garbage."""

from datetime import UTC, datetime, timedelta

import pytest
from deltalake import DeltaTable

from lakebed.deltalog import tables
from lakebed.layout import log_version
from tests.support.change_files import BOTH, write_changes
from tests.support.erasures import landed

X = "user = 'x'"


@pytest.fixture
def desk(tmp_path):
    desk = landed(tmp_path)
    write_changes(desk.table, [{"id": 1, "user": "x"}])
    return desk


def test_they_are_told_as_history_that_a_vacuum_deletes(desk):
    """Also after a checkpoint, which does not have them, and beside what no version names."""
    sink, version = desk.settings.sink, desk.table / log_version(desk.version)
    committed = datetime.fromtimestamp(version.stat().st_mtime, UTC)
    until = committed + tables.file_retention(sink.table_uri, sink.storage_options)
    left = [one for one in desk.held(X).data_files if one.path in BOTH]
    assert {(one.path, one.rows, one.why) for one in left} == {(p, 1, "changes") for p in BOTH}
    for one in left:
        assert abs(one.deleted_from - until) < timedelta(seconds=1)
    shown = " ".join(desk.cli("erase", "--where", X).output.split())
    assert "2 data files of the change data feed, read through it until VACUUM deletes" in shown
    assert "not named by the Delta log" not in shown
    DeltaTable(str(desk.table)).create_checkpoint()
    desk.land("e.ndjson", {"id": 8, "user": "y"})
    desk.ingest()
    (desk.table / "dU/cdc-1.parquet").write_bytes((desk.table / BOTH[1]).read_bytes())
    found = {one.path: one.why for one in desk.held(X).data_files}
    assert found == {**dict.fromkeys(BOTH, "changes"), "dU/cdc-1.parquet": "unnamed"}


def test_gc_deletes_none_of_them_and_does_not_call_them_unnamed(desk):
    (found,) = [desk.said("gc", "--delete", "--older-than", "0m")]
    assert found["left_alone"] == 0
    assert all((desk.table / path).exists() for path in BOTH)
    DeltaTable(str(desk.table)).create_checkpoint()
    desk.said("gc", "--delete", "--older-than", "0m")
    assert all((desk.table / path).exists() for path in BOTH)
