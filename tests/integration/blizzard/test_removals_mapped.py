"""Rows are taken out of tables that have other names for their columns in files."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from blizzard.worker.output.encoding import ColumnsUnknown, logical_schema
from lakebed.columns.column_mapping import FIELD_ID, ColumnMapping, PhysicalField
from tests.support.compactions import Crowded, crowded
from tests.support.mapped import added, field, in_files, make_mapped, struct
from tests.support.promotions import ID
from tests.support.tables import TableDirectory

PLACE = {
    "name": "place",
    "type": "struct",
    "fields": [{"name": "city", "type": "string"}, {"name": "user", "type": "string"}],
}
PRICE = {"name": "price", "type": "int64"}
DECLARED: dict[str, Any] = {
    "fields": [{**ID, "nullable": False}, {"name": "user", "type": "string"}, PLACE],
    "provenance": ["file"],
    "unknown_fields": "rescue",
}
# Somebody renamed columns until every name was one that another column has in files.
INNER = struct(field("city", "string", 6, "user"), field("user", "string", 7, "city"))
FIELDS = [
    field("id", "long", 1),
    field("user", "string", 2),
    field("place", INNER, 5, "user"),
    field("_file", "string", 3),
    field("_rescued", "string", 4),
    field("price", "long", 8),
    field("date", "date", 10),
]
LISTED = {"delta.dataSkippingStatsColumns": "id,user"}
DAY = "date=2024-01-01"


@pytest.fixture(params=["name", "id"])
def desk(tmp_path: Path, request: pytest.FixtureRequest) -> Crowded:
    """A table of another engine's with one data file that has the rows of two sources."""
    found = crowded(tmp_path, DECLARED, files=0, partition_by={"prefix_template": "date=%Y-%m-%d"})
    make_mapped(TableDirectory(found.table), request.param, FIELDS, LISTED)
    for name in ("a", "b"):
        start = 10 if name == "b" else 0
        found.land(f"{DAY}/{name}.ndjson", *(record(start + one) for one in range(3)))
    found.ingest()
    assert len(found.active) == 1
    return found


def record(number: int) -> dict[str, Any]:
    place = {"city": f"c{number}", "user": f"in-{number}"}
    return {"id": number, "user": f"u{number}", "place": place, "price": number}


def rows(*numbers: int) -> list[tuple[Any, ...]]:
    return [(number, f"u{number}") for number in numbers]


def whole(desk: Crowded) -> list[dict[str, Any]]:
    (path,) = desk.active
    return sorted(pq.read_table(desk.table / path).to_pylist(), key=lambda row: row["col-1"])


def is_as_the_table_says(desk: Crowded) -> None:
    (path,) = desk.active
    schema = pq.read_schema(desk.table / path)
    numbers = {one.name: int((one.metadata or {})[FIELD_ID]) for one in schema}
    assert numbers.items() >= {"col-1": 1, "col-2": 2, "user": 5, "col-3": 3}.items()
    inner = schema.field("user").type
    assert [inner.field(place).name for place in range(2)] == ["user", "city"]
    assert added(desk)[path]["partitionValues"] == {"col-10": "2024-01-01"}
    assert desk.audited().is_balanced


def test_rows_of_a_source_are_traced_and_taken_back(desk: Crowded) -> None:
    before = whole(desk)
    assert desk.meant("user = 'c1'").files == (), "the name in files means no column"
    shown = desk.cli("trace", "--where", "user = 'u11'", "--output", "json")
    assert shown.exit_code == 0, shown.output
    assert f"{DAY}/b.ndjson" in shown.stdout
    desk.take_back(f"{DAY}/a.ndjson")
    assert in_files(desk) == rows(10, 11, 12)
    assert whole(desk) == before[3:]
    is_as_the_table_says(desk)
    (path,) = desk.active
    told = json.loads(added(desk)[path]["stats"])
    assert (told["minValues"]["col-2"], told["maxValues"]["col-1"]) == ("u10", 12)


def test_rows_are_erased_by_the_names_that_people_see(desk: Crowded) -> None:
    before, left = whole(desk), [0, 1, 2, 10, 11, 12]
    for number, where in (
        (1, "user = 'u1'"),
        (2, "place.city = 'c2'"),
        (0, "id = 0 AND _file IS NOT NULL"),
    ):
        desk.forget(where)
        left.remove(number)
        assert in_files(desk) == rows(*left)
        assert whole(desk) == [one for one in before if one["col-1"] in left]
        is_as_the_table_says(desk)


def test_a_column_that_the_table_has_is_filled(desk: Crowded) -> None:
    assert {one.get("col-8") for one in whole(desk)} == {None}
    desk.configure({**DECLARED, "fields": [*DECLARED["fields"], PRICE]})
    done = desk.promote("price")
    assert done.entry is not None
    desk.penguin()
    assert [one["col-8"] for one in whole(desk)] == [0, 1, 2, 10, 11, 12]
    is_as_the_table_says(desk)


def test_new_content_takes_the_place_of_rows(desk: Crowded) -> None:
    desk.land(f"{DAY}/c.ndjson", record(20))
    assert desk.replace(f"{DAY}/a.ndjson", by=f"{DAY}/c.ndjson").entry is not None
    desk.penguin()
    assert in_files(desk) == rows(10, 11, 12, 20)
    assert desk.audited().is_balanced


def test_a_file_that_names_a_column_otherwise_is_not_taken_for_one_without_it() -> None:
    columns: ColumnMapping = {("id",): PhysicalField("col-1", 1)}
    other = pa.schema([pa.field("x", pa.int64(), metadata={FIELD_ID: b"1"})])
    with pytest.raises(ColumnsUnknown, match="under a name that its mapping does not have"):
        logical_schema(other, columns)
    dropped = pa.schema([pa.field("x", pa.int64(), metadata={FIELD_ID: b"7"})])
    assert logical_schema(dropped, columns).names == []
    nested = pa.schema([pa.field("col-1", pa.struct([pa.field("gone", pa.int64())]))])
    with pytest.raises(ColumnsUnknown, match="dropped"):
        logical_schema(nested, columns)
