"""Every row lands in exactly one partition, the one that its values say."""

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from blizzard.model.event_time import row_partitions
from blizzard.worker.output.partitioner import grouped
from lakebed.columns.schema import Field, Schema
from lakebed.layout import NULL_FOLDER, folder
from lakebed.partition import Template
from lakebed.types import FieldType

DECLARED = Schema(
    (
        Field(name="id", type=FieldType.INT64),
        Field(name="ts", type=FieldType.TIMESTAMP),
        Field(name="region", type=FieldType.STRING),
        Field(name="shard", type=FieldType.INT64),
        Field(name="live", type=FieldType.BOOLEAN),
    )
)
PARTS = ["date=%Y-%m-%d", "hour=%H", "minute=%M", "month=%Y-%m", "region=%s", "shard=%s", "live=%s"]
CODES = {"date": "%Y-%m-%d", "hour": "%H", "minute": "%M", "month": "%Y-%m"}

TEXT = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"])),
    st.text(st.sampled_from("/ %=:\\#?*\"'{}[]^\x00\x01\n\x7f\x80ü日😀"), max_size=4),
    st.just(NULL_FOLDER),
)
LONG_AGO, BEFORE, AFTER = (
    datetime.fromisoformat(day) for day in ("1000-01-01", "1969-12-31", "1970-01-02")
)
ROW = st.fixed_dictionaries(
    {
        # Python itself writes years before 1000 with fewer digits than the calendar has.
        "ts": st.none() | st.datetimes(BEFORE, AFTER) | st.datetimes(LONG_AGO),
        "region": st.none() | TEXT,
        "shard": st.none() | st.integers(-3, 3) | st.integers(-(2**63), 2**63 - 1),
        "live": st.none() | st.booleans(),
    }
)


def expected(row: dict[str, Any], key: str) -> str | None:
    if key in CODES:
        return row["ts"].strftime(CODES[key]) if row["ts"] is not None else None
    value = row[key]
    if isinstance(value, bool):
        return str(value).lower()
    return None if value in (None, "", NULL_FOLDER) else str(value)


@settings(deadline=None)
@given(
    st.lists(ROW, min_size=1, max_size=30),
    st.lists(st.sampled_from(PARTS), min_size=1, unique=True),
    st.integers(1, 10),
)
def test_every_row_is_in_its_own_partition_once_and_in_order(rows, parts, size):
    """W09, L18: a partition is given once, whatever spans and values lead to it."""
    template = Template.parse("/".join(parts))
    by = row_partitions(template, DECLARED, "ts")
    assert by is not None
    given_rows = [
        row | {"id": number, "ts": row["ts"] and row["ts"].replace(tzinfo=UTC)}
        for number, row in enumerate(rows)
    ]
    table = pa.Table.from_pylist(given_rows, schema=DECLARED.arrow())
    found = list(grouped(table.to_batches(max_chunksize=size), by, ["id"]))

    wanted: dict[tuple[str | None, ...], list[int]] = {}
    for number, row in enumerate(rows):
        wanted.setdefault(tuple(expected(row, key) for key in template.keys), []).append(number)
    assert {
        values: [number for part in batches for number in part["id"].to_pylist()]
        for values, batches in found
    } == wanted
    assert len(found) == len(wanted)

    for values, _ in found:
        named = dict(zip(template.keys, values, strict=True))
        assert by.values(named, {}) == named
        read_back = template.values(f"{folder(by.values(named, {}))}/x.parquet")
        assert list(read_back.items()) == list(named.items())
