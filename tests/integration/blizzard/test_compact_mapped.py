"""Small files of tables that map their columns: put together under the same names, or refused."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from lakebed.columns.field_ids import FIELD_ID
from penguin.model.errors import TableUnsupported
from tests.support.builders import entries
from tests.support.compactions import Crowded, crowded
from tests.support.erasures import USER
from tests.support.mapped import field, make_mapped
from tests.support.promotions import ID
from tests.support.tables import TableDirectory

DECLARED = {"fields": [{**ID, "nullable": False}, USER]}
DATED = {"prefix_template": "date=%Y-%m-%d"}
SAME = [
    field("id", "long", 1, "id"),
    field("user", "string", 2, "user"),
    field("date", "date", 10, "date"),
]
"""Columns that have their own names in files."""


def mapped(folder: Path, mode: str, fields: list[dict[str, Any]]) -> Crowded:
    """Return a table of another engine's with four small files of blizzard's."""
    desk = crowded(folder, DECLARED, files=0, partition_by=DATED)
    make_mapped(TableDirectory(desk.table), mode, fields)
    for number in range(4):
        desk.land(f"date=2024-01-01/{number}.ndjson", {"id": number, "user": f"user-{number}"})
        desk.ingest()
    return desk


@pytest.mark.parametrize("mode", ["name", "id"])
def test_a_table_that_calls_its_columns_otherwise_is_refused_before_anything_is_written(
    tmp_path, mode
):
    fields = [field("id", "long", 1), field("user", "string", 2), field("date", "date", 10)]
    desk = mapped(tmp_path, mode, fields)
    assert len(desk.active) == 4
    before = {path for path in desk.table.rglob("*") if path.is_file()}
    with pytest.raises(TableUnsupported, match="column mapping"):
        desk.compact()
    for arguments in (("compact", "--dry-run"), ("compact", "--yes")):
        refused = desk.cli(*arguments)
        assert refused.exit_code != 0
        assert "column mapping" in refused.output
    assert {path for path in desk.table.rglob("*") if path.is_file()} == before
    assert [one.kind for one in entries(desk.table)] == ["open", *["batch"] * 4]


def test_where_names_are_the_same_new_files_have_the_ids_of_the_table(tmp_path):
    desk = mapped(tmp_path, "name", SAME)
    table = TableDirectory(desk.table)
    before = sorted(table.rows(), key=lambda row: int(row["id"]))
    assert desk.tidy().failed == ()
    (path,) = desk.active
    assert sorted(table.rows(), key=lambda row: int(row["id"])) == before
    assert table.ids("user = 'user-2'") == [2]
    schema = pq.read_schema(desk.table / path)
    assert [one.metadata for one in schema] == [{FIELD_ID: b"1"}, {FIELD_ID: b"2"}]
    # What comes after it is written as before.
    desk.land("date=2024-01-01/later.ndjson", {"id": 9, "user": "x"})
    desk.ingest()
    assert table.ids() == [0, 1, 2, 3, 9]


def test_a_compaction_gives_way_to_a_column_that_is_renamed_before_its_commit(tmp_path):
    desk = mapped(tmp_path, "name", SAME)
    files = desk.active
    assert desk.compact().entry is not None
    log = desk.table / "_delta_log"
    (first,) = [line for line in (log / f"{0:020}.json").read_text().splitlines() if "meta" in line]
    renamed = first.replace(r"{\"name\": \"user\"", r"{\"name\": \"person\"")
    assert renamed != first
    (log / f"{desk.version + 1:020}.json").write_text(renamed + "\n")
    desk.penguin()
    assert desk.active == files
    found = TableDirectory(desk.table).rows()
    assert sorted(row["person"] for row in found) == [f"user-{number}" for number in range(4)]
    assert desk.audited().is_balanced
