"""Rows of a table that maps its columns and has dropped fields inside of them."""

import pyarrow as pa
import pytest

from blizzard.worker.output.mapped import ColumnsUnknown, as_in_files, as_people_see, logical_schema
from lakebed.columns.column_mapping import InFiles
from lakebed.columns.field_ids import FIELD_ID
from lakebed.columns.schema import ELEMENT, VALUE

INSIDE = pa.struct([("gone", pa.string()), ("c-b", pa.struct([("c-c", pa.int64())]))])
SCHEMA = pa.schema(
    [("c-who", INSIDE), ("c-list", pa.list_(INSIDE)), ("c-map", pa.map_(pa.string(), INSIDE))]
)
MAPPING = {
    ("who",): InFiles("c-who", 1),
    ("who", "b"): InFiles("c-b", 2),
    ("who", "b", "c"): InFiles("c-c", 3),
    ("list",): InFiles("c-list", 4),
    ("list", ELEMENT, "b"): InFiles("c-b", 5),
    ("list", ELEMENT, "b", "c"): InFiles("c-c", 6),
    ("map",): InFiles("c-map", 7),
    ("map", VALUE, "b"): InFiles("c-b", 8),
    ("map", VALUE, "b", "c"): InFiles("c-c", 9),
}


def held(number):
    return {"gone": "x", "c-b": None if number is None else {"c-c": number}}


def seen(number):
    return {"b": None if number is None else {"c": number}}


ROWS = [
    {"c-who": held(1), "c-list": [held(2), None, held(None)], "c-map": {"k": held(3)}},
    {"c-who": None, "c-list": None, "c-map": None},
    {"c-who": held(None), "c-list": [], "c-map": {"k": None, "l": held(4)}},
]
SEEN = [
    {"who": seen(1), "list": [seen(2), None, seen(None)], "map": [("k", seen(3))]},
    {"who": None, "list": None, "map": None},
    {"who": seen(None), "list": [], "map": [("k", None), ("l", seen(4))]},
]


@pytest.mark.parametrize("start", [0, 1])
def test_fields_that_were_dropped_are_left_out_at_every_depth(start):
    """And everything else is as it was: nulls, empty lists, the order."""
    table = pa.Table.from_pylist(ROWS, schema=SCHEMA).slice(start)
    found = as_people_see(table, MAPPING)
    found.validate(full=True)
    assert found.to_pylist() == SEEN[start:]
    assert found.schema == logical_schema(SCHEMA, MAPPING)
    again = as_in_files(found, MAPPING)
    assert as_people_see(again, MAPPING).to_pylist() == SEEN[start:]


def test_a_struct_of_which_every_field_was_dropped_is_refused():
    """A new file could not say which of its structs are null."""
    schema = pa.schema([("c-who", pa.struct([("gone", pa.string())]))])
    with pytest.raises(ColumnsUnknown, match="every field"):
        logical_schema(schema, MAPPING)


def test_a_field_that_the_table_has_under_another_name_is_not_taken_for_dropped():
    other = pa.field("other", pa.int64(), metadata={FIELD_ID: b"2"})
    schema = pa.schema([("c-who", pa.struct([other]))])
    with pytest.raises(ColumnsUnknown, match="another name"):
        logical_schema(schema, MAPPING)
