"""Bounds of a Parquet file never exclude a row of it, in the form that Delta keeps them."""

import io
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lakebed.documents.parquet_footer import LONGEST_STRING, statistics
from lakebed.documents.records import ColumnStatistics

TOP = "\U0010ffff"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LAST = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)

TEXT = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=40),
    st.text(st.sampled_from("a😀\ud7ff\ue000" + TOP), min_size=25, max_size=80),
)
DECIMALS = st.decimals(-(10**34), 10**34, places=3)
INSTANTS = st.datetimes(timezones=st.just(UTC))
COLUMNS = st.one_of(
    st.tuples(st.just(pa.int32()), st.lists(st.none() | st.integers(-(2**31), 2**31 - 1))),
    st.tuples(st.just(pa.int8()), st.lists(st.none() | st.integers(-(2**7), 2**7 - 1))),
    st.tuples(st.just(pa.int16()), st.lists(st.none() | st.integers(-(2**15), 2**15 - 1))),
    st.tuples(st.just(pa.decimal128(38, 3)), st.lists(st.none() | DECIMALS)),
    st.tuples(st.just(pa.timestamp("us")), st.lists(st.none() | st.datetimes())),
    st.tuples(st.just(pa.int64()), st.lists(st.none() | st.integers(-(2**63), 2**63 - 1))),
    st.tuples(st.just(pa.string()), st.lists(st.none() | TEXT)),
    st.tuples(st.just(pa.timestamp("us", tz="UTC")), st.lists(st.none() | INSTANTS)),
    st.tuples(st.just(pa.date32()), st.lists(st.none() | st.dates())),
)


def facts_of(
    column: "pa.Array[Any]", *, name: str = "c", path: str | None = None, group: int = 100
) -> ColumnStatistics | None:
    file = io.BytesIO()
    pq.write_table(pa.table({name: column}), file, row_group_size=group, store_schema=False)
    return statistics(pq.read_metadata(file)).get(path or name)


def as_read(bound: object, kind: pa.DataType) -> object:
    """Read a bound as a reader of the Delta log does."""
    if isinstance(bound, str) and pa.types.is_timestamp(kind):
        zone = "" if kind.tz is None else "Z"
        assert bound.endswith(zone)
        assert len(bound.rpartition(".")[2]) == len(f"000{zone}")
        return datetime.fromisoformat(bound)
    if isinstance(bound, str) and pa.types.is_date(kind):
        return date.fromisoformat(bound)
    if isinstance(bound, str) and pa.types.is_decimal(kind):
        return Decimal(bound)
    return bound


@settings(max_examples=100, deadline=None)
@given(COLUMNS, st.integers(1, 4))
@example((pa.string(), [TOP * 40]), 1)
@example((pa.string(), ["a" * 32 + TOP * 3 + "b"]), 1)
@example((pa.string(), ["a" * 31 + "😀" + "x"]), 1)
@example((pa.timestamp("us", tz="UTC"), [datetime.max.replace(tzinfo=UTC)]), 1)
@example((pa.timestamp("us", tz="UTC"), [EPOCH - timedelta(microseconds=1)]), 1)
def test_no_row_lies_outside_its_bounds(column, group):
    """W13."""
    kind, values = column
    column = pa.array(values, kind)
    facts = facts_of(column, group=group)
    inside = pa.StructArray.from_arrays([column], ["in"])
    assert facts_of(inside, name="s", path="s.in", group=group) == facts
    present = [value for value in values if value is not None]
    assert facts is not None or not values
    if facts is None:
        return
    assert facts.null_count == len(values) - len(present)
    if facts.minimum is None or facts.maximum is None:
        assert facts.minimum is facts.maximum is None
        return
    low, high = as_read(facts.minimum, kind), as_read(facts.maximum, kind)
    assert all(low <= value <= high for value in present)


@settings(deadline=None)
@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1), st.integers(1, 3))
def test_bounds_of_integers_are_exact(values, group):
    facts = facts_of(pa.array(values, pa.int64()), group=group)
    assert facts == ColumnStatistics(null_count=0, minimum=min(values), maximum=max(values))


@settings(deadline=None)
@given(INSTANTS.filter(lambda value: value < LAST))
def test_bounds_of_a_timestamp_are_within_a_millisecond(instant):
    facts = facts_of(pa.array([instant], pa.timestamp("us", tz="UTC")))
    assert facts is not None
    low = as_read(facts.minimum, pa.timestamp("us", tz="UTC"))
    high = as_read(facts.maximum, pa.timestamp("us", tz="UTC"))
    assert isinstance(low, datetime)
    assert isinstance(high, datetime)
    assert low <= instant <= high
    assert high - low <= timedelta(milliseconds=1)


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=LONGEST_STRING + 1, max_size=300))
def test_a_long_string_has_bounds_that_are_short(value):
    """W13."""
    facts = facts_of(pa.array([value]))
    assert facts is not None
    assert len(str(facts.minimum)) <= LONGEST_STRING
    tail = len(value[LONGEST_STRING:]) - len(value[LONGEST_STRING:].lstrip(TOP))
    assert len(str(facts.maximum)) <= LONGEST_STRING + tail + 1
