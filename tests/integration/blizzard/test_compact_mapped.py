"""Small files of tables that map their columns: put together under the same names, or refused."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from lakebed.columns.column_mapping import FIELD_ID
from tests.support.compactions import Crowded, crowded
from tests.support.erasures import USER
from tests.support.mapped import added, field, in_files, make_mapped
from tests.support.promotions import ID
from tests.support.tables import TableDirectory

DECLARED = {"fields": [{**ID, "nullable": False}, USER]}
WITH_FILE = {**DECLARED, "provenance": ["file"]}
DATED = {"prefix_template": "date=%Y-%m-%d"}
SAME = [
    field("id", "long", 1, "id"),
    field("user", "string", 2, "user"),
    field("date", "date", 10, "date"),
]
"""Columns that have their own names in files."""
LISTED = {"delta.dataSkippingStatsColumns": "id,user"}
OTHERS = [
    field("id", "long", 1),
    field("user", "string", 2),
    field("_file", "string", 3),
    field("date", "date", 10),
]


def mapped(folder: Path, mode: str, fields: list[dict[str, Any]]) -> Crowded:
    """Return a table of another engine's with four small files of blizzard's."""
    declared = WITH_FILE if len(fields) > len(SAME) else DECLARED
    desk = crowded(folder, declared, files=0, partition_by=DATED)
    make_mapped(TableDirectory(desk.table), mode, fields, LISTED)
    for number in range(4):
        desk.land(f"date=2024-01-01/{number}.ndjson", {"id": number, "user": f"user-{number}"})
        desk.ingest()
    return desk


@pytest.mark.parametrize("mode", ["name", "id"])
def test_columns_that_have_other_names_in_files_keep_them(tmp_path, mode):
    desk = mapped(tmp_path, mode, OTHERS)
    before = in_files(desk)
    assert desk.tidy().failed == ()
    (path,) = desk.active
    assert in_files(desk) == before
    schema = pq.read_schema(desk.table / path)
    assert [(one.name, one.metadata) for one in schema] == [
        ("col-1", {FIELD_ID: b"1"}),
        ("col-2", {FIELD_ID: b"2"}),
        ("col-3", {FIELD_ID: b"3"}),
    ]
    add = added(desk)[path]
    assert json.loads(add["stats"])["minValues"]["col-2"] == "user-0"
    assert add["partitionValues"] == {"col-10": "2024-01-01"}
    assert desk.audited().is_balanced
    # What comes after it is written as before.
    desk.land("date=2024-01-01/later.ndjson", {"id": 9, "user": "x"})
    desk.ingest()
    assert len(in_files(desk)) == 5


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
