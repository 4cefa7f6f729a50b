"""Decimals and nested fields of other programs' files: every reader finds every row."""

import json
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.foreign import Directory
from tests.support.readers import Filtered, ids, value_at

MONEY = pa.decimal128(12, 3)
LARGE = pa.decimal128(38, 0)
"""More digits than a 64-bit number has, or a float keeps."""
COLUMNS: dict[str, pa.DataType] = {
    "id": pa.int64(),
    "price": MONEY,
    "large": LARGE,
    "info": pa.struct([("n", pa.int64()), ("text", pa.string())]),
    "tags": pa.list_(pa.string()),
}
SCHEMA = pa.schema(COLUMNS)
DIGITS = 10**12 - 1
RECORD = st.fixed_dictionaries(
    {
        "price": st.none() | st.integers(-DIGITS, DIGITS).map(lambda n: Decimal(n).scaleb(-3)),
        "large": st.none() | st.integers(-(10**38) + 1, 10**38 - 1).map(Decimal),
        "info": st.none()
        | st.fixed_dictionaries(
            {
                "n": st.none() | st.integers(-(2**63), 2**63 - 1),
                "text": st.none() | st.text(st.characters(exclude_categories=["Cs", "Cc"])),
            }
        ),
        "tags": st.none() | st.lists(st.none() | st.sampled_from(["a", "ü", ""]), max_size=3),
    }
)
FILES = st.lists(st.lists(RECORD, min_size=1, max_size=4), min_size=1, max_size=4)
FEW = settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def made(folder: str, files: list[list[dict[str, Any]]]) -> tuple[Directory, list[dict[str, Any]]]:
    """Write the files as another program does, have them committed, and give all rows."""
    table = Directory(Path(folder) / "table")
    rows: list[dict[str, Any]] = []
    for records in files:
        numbered = [{**one, "id": len(rows) + place} for place, one in enumerate(records)]
        rows += numbered
        table.file(data=pa.Table.from_pylist(numbered, schema=SCHEMA), folder="date=2024-01-01")
    table.penguin().drain()
    return table, rows


FIELDS: dict[tuple[str, ...], pa.DataType] = {
    ("price",): MONEY,
    ("large",): LARGE,
    ("info", "n"): pa.int64(),
    ("info", "text"): pa.string(),
}


@FEW
@given(FILES, st.data())
def test_every_reader_finds_decimals_and_nested_fields_under_every_filter(files, data):
    """HOLES W13: bounds of decimals are exact or not given; a null struct has null fields."""
    with tempfile.TemporaryDirectory() as folder:
        table, rows = made(folder, files)
        assert ids(table.root) == [row["id"] for row in rows]
        for path, kind in FIELDS.items():
            by = Filtered(table.root, rows, path, kind)
            values = [value for row in rows if (value := value_at(row, path)) is not None]
            if values:
                value = data.draw(st.sampled_from(values), label=".".join(path))
                by.compare(data.draw(st.sampled_from(["=", "<", ">="]), label="sign"), value)
            by.check_nulls()


@FEW
@given(FILES)
def test_no_decimal_is_outside_the_bounds_of_its_file(files):
    """HOLES W13"""
    with tempfile.TemporaryDirectory() as folder:
        table, rows = made(folder, files)
        start = 0
        by_path = {}
        for path, records in zip(sorted(table.root.glob("date=*/*.parquet")), files, strict=True):
            by_path[str(path.relative_to(table.root))] = rows[start : start + len(records)]
            start += len(records)
        for version in (table.root / "_delta_log").glob("*.json"):
            for line in version.read_text().splitlines():
                add = json.loads(line, parse_float=Decimal, parse_int=Decimal).get("add")
                if add is None:
                    continue
                told = json.loads(add["stats"], parse_float=Decimal, parse_int=Decimal)
                held = by_path[add["path"]]
                assert told["numRecords"] == len(held)
                for name in ("price", "large"):
                    values = [row[name] for row in held if row[name] is not None]
                    if name in told.get("minValues", {}) and values:
                        low, high = told["minValues"][name], told["maxValues"][name]
                        assert low <= min(values), name
                        assert max(values) <= high, name
                    if name in told.get("nullCount", {}):
                        assert told["nullCount"][name] == len(held) - len(values), name
