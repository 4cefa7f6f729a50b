"""Looks at values join in any order, and every value that was seen fits the column it gave."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blizzard.model import seen as seeing
from blizzard.model.bad_lines import steps
from blizzard.model.seen import NOTHING, columns_of
from blizzard.worker.ndjson.exact import ExactPath
from blizzard.worker.ndjson.inference import infer, parse
from blizzard.worker.ndjson.lines import Block
from lakebed.columns.schema import Field, Schema
from lakebed.types import FieldType, OnMismatch, UnknownFields
from tests.support.json_values import records, values
from tests.support.together import plain, record_of, without_nulls


def looked(value: Any) -> seeing.Seen:
    return infer([parse(json.dumps(value))])


@pytest.fixture(autouse=True)
def few_names(monkeypatch):
    """Names become data early, so that small examples reach it."""
    for limit in ("MOST_MEMBERS", "FEWEST_KEYS"):
        monkeypatch.setattr(seeing, limit, 3)
    monkeypatch.setattr(seeing, "KEYS_PER_OBJECT", 2)


@given(st.tuples(values, values, values))
@settings(deadline=None)
def test_joining_is_commutative_associative_and_idempotent(three):
    a, b, c = map(looked, three)
    assert a.join(b) == b.join(a)
    assert a.join(b).join(c) == a.join(b.join(c))
    assert a.join(a) == a
    assert a.join(NOTHING) == a
    assert a.join(b).join(b) == a.join(b)


@given(st.lists(values, min_size=1, max_size=6))
@settings(deadline=None)
def test_a_column_never_narrows_as_more_is_seen(some):
    found = NOTHING
    for value in some:
        found = found.join(looked(value))
    assert found == infer([parse(json.dumps(value)) for value in some])


@given(records)
@settings(deadline=None)
def test_what_comes_out_put_together_is_what_went_in(some):
    data = "".join(json.dumps(record) + "\n" for record in some).encode()
    seen = infer([parse(json.dumps(record)) for record in some])
    members = seen.objects.members if seen.objects else {}
    columns = columns_of(members)
    if not columns:
        return
    path = ExactPath(
        Schema(columns),
        max_line_bytes=1 << 20,
        unknown=UnknownFields.ADD,
        on_mismatch=OnMismatch.RESCUE,
    )
    decoded = path.read(Block(text=data, first_line=1, lines=len(some)))
    for row, record in zip(decoded.batch.to_pylist(), some, strict=True):
        assert record_of(row, columns) == without_nulls(plain(record))
    # Only what has no column is rescued: whatever was seen fits the column that it gave.
    typed = {one.name for one in columns}
    for left in decoded.rescued:
        assert column_path(left, columns) is None, (left, typed)


def column_path(path: str, columns: Sequence[Field]) -> Field | None:
    """Return the field that a path of the data names, if there is one."""
    fields = {one.name: one for one in columns}
    found: Field | None = None
    for step in steps(path):
        if isinstance(step, int):
            found = found.items if found else None
        elif found is not None and found.type is FieldType.MAP:
            found = found.items
        else:
            found = fields.get(step)
        if found is None:
            return None
        fields = {one.name: one for one in found.fields}
    return found
