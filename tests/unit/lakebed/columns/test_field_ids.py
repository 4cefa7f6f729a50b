"""Every field of a data file has an id of its own, which it keeps."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebed.columns.column_mapping import (
    FIELD_ID,
    MOST_IDS,
    field_id,
    format_path,
    parse_path,
    same_ids,
    with_field_ids,
)
from lakebed.columns.schema import Field, Schema
from lakebed.types import FieldType

NAME = Field(name="name", type=FieldType.STRING)
USER = Field(
    name="user",
    type=FieldType.STRUCT,
    fields=(
        Field(name="id", type=FieldType.INT64, nullable=False),
        Field(name="tags", type=FieldType.LIST, items=Field(name="element", type=FieldType.STRING)),
        Field(name="of", type=FieldType.MAP, items=Field(name="value", type=FieldType.INT8)),
    ),
)


def struct(name: str, *fields: Field) -> Field:
    return Field(name=name, type=FieldType.STRUCT, fields=fields)


def ids_in(field, path=()):
    """Return the id of a field and of every field inside it, by path."""
    here = (*path, field.name)
    found = {".".join(here): int(field.metadata[FIELD_ID])}
    kind = field.type
    inner = []
    if pa.types.is_map(kind):
        inner = [kind.key_field, kind.item_field]
    elif pa.types.is_nested(kind):
        inner = [kind.field(place) for place in range(kind.num_fields)]
    for one in inner:
        found |= ids_in(one, here)
    return found


def ids_of(*fields):
    schema = Schema(fields).arrow()
    numbered = with_field_ids(schema)
    assert numbered == schema  # ids apart, it is the same one
    return {path: number for field in numbered for path, number in ids_in(field).items()}


def test_the_id_of_a_field_is_what_it_has_always_been():
    """Data files of before have these; they may never be others."""
    assert ids_of(NAME, USER) == {
        "name": 819_711_615,
        "user": 660_846_506,
        "user.id": 418_346_862,
        "user.tags": 929_526_517,
        "user.tags.element": 503_883_570,
        "user.of": 703_753_786,
        "user.of.key": 100_077_089,
        "user.of.value": 526_521_141,
    }


def test_the_id_of_a_field_depends_on_no_other_field():
    assert ids_of(USER).items() < ids_of(NAME, USER).items()
    assert ids_of(USER, NAME) == ids_of(NAME, USER)


@given(st.lists(st.text(min_size=1), min_size=1, max_size=4).map(tuple))
def test_any_path_has_an_id_that_leaves_room_above_it_and_is_read_back(path):
    assert 1 <= field_id(path) <= MOST_IDS
    assert parse_path(format_path(path)) == path


def test_a_name_with_a_dot_has_another_id_than_a_field_of_a_struct():
    assert field_id(("user.id",)) != field_id(("user", "id"))


@pytest.mark.parametrize("text", ["", "a.", ".a", "`a", "a`b"])
def test_what_is_no_path_is_refused(text):
    with pytest.raises(ValueError, match="path"):
        parse_path(text)


def test_fields_with_one_id_are_found_at_every_depth():
    assert list(same_ids((NAME, USER))) == []
    inner = Field(name="f4189", type=FieldType.STRING)
    user = struct("user", struct("of", inner))
    outer = Field(name="f29075", type=FieldType.STRING)
    assert list(same_ids((NAME, outer, user))) == [("f29075", "user.of.f4189")]
