from copy import deepcopy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penguin.evolution import decide
from penguin.flow import AddColumns, Fits, Refused


def field(name, kind="string", nullable=True):
    return {"name": name, "type": kind, "nullable": nullable, "metadata": {}}


def struct(*fields):
    return {"type": "struct", "fields": list(fields)}


TABLE = struct(field("id", "long", nullable=False), field("name"), field("date", "date"))


def decision(entry, table=TABLE, table_parts=("date",), entry_parts=("date",)):
    return decide(table, table_parts, entry, entry_parts)


def test_the_same_schema_fits():
    assert decision(deepcopy(TABLE)) == Fits()


def test_a_nullable_column_may_be_missing():
    assert decision(struct(field("id", "long", nullable=False), field("date", "date"))) == Fits()


def test_a_new_nullable_column_is_added_at_the_end():
    match decision(struct(*TABLE["fields"], field("extra", "double"))):
        case AddColumns(fields, schema):
            assert fields == (field("extra", "double"),)
            assert schema["fields"][-1] == field("extra", "double")
        case other:
            pytest.fail(f"{other}")


def test_a_new_field_inside_a_struct_is_added_there():
    table = struct(field("who", struct(field("a", "long"))))
    entry = struct(field("who", struct(field("a", "long"), field("b"))))
    match decide(table, (), entry, ()):
        case AddColumns((changed,), schema):
            assert changed["name"] == "who"
            assert schema == entry
        case other:
            pytest.fail(f"{other}")


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (struct(*TABLE["fields"], field("new", nullable=False)), ["new", "nullable"]),
        (struct(field("name"), field("date", "date")), ["id", "requires", "do not have"]),
        (struct(field("id", "long"), field("date", "date")), ["id", "null"]),
        (struct(field("id", nullable=False), field("date", "date")), ["id", "long", "string"]),
        (struct(*TABLE["fields"], field("Name")), ["Name", "name", "case"]),
        (struct(*TABLE["fields"], field("x"), field("X")), ["X", "x", "case"]),
        (struct(*TABLE["fields"], field("x", "void")), ["x", "void"]),
    ],
)
def test_what_does_not_fit_is_refused_with_field_and_types(entry, words):
    """W07."""
    match decision(entry):
        case Refused((reason,)):
            assert all(word in reason for word in words), reason
        case other:
            pytest.fail(f"{other}")


@pytest.mark.parametrize(
    ("table", "file", "fits"),
    [
        ("long", "integer", True),
        ("double", "float", True),
        ("integer", "long", False),
        ("float", "double", False),
        ("double", "integer", False),
        ("string", "long", False),
        ("timestamp", "date", False),
    ],
)
def test_a_narrower_type_is_accepted_only_where_every_reader_widens_it(table, file, fits):
    """W06."""
    found = decide(struct(field("x", table)), (), struct(field("x", file)), ())
    assert (found == Fits()) is fits


@pytest.mark.parametrize("parts", [(), ("name",), ("date", "name"), ("name", "date")])
def test_partition_columns_must_be_the_same_in_the_same_order(parts):
    assert isinstance(decision(TABLE, table_parts=("date", "id"), entry_parts=parts), Refused)


def test_every_reason_is_given_at_once():
    match decision(struct(field("name", "long"), field("new", nullable=False))):
        case Refused(reasons):
            assert len(reasons) == 3
        case other:
            pytest.fail(f"{other}")


def test_a_partition_column_that_the_table_requires_is_judged_by_its_values():
    table = struct(field("id", "long"), field("date", "date", nullable=False))
    entry = struct(field("id", "long"), field("date", "date"))
    assert decide(table, ("date",), entry, ("date",)) == Fits()


NAMES = st.sampled_from(["a", "b", "c", "A", "d e"])
KINDS = st.sampled_from(["long", "integer", "string", "double", "float", "date"])
FIELDS = st.builds(field, NAMES, KINDS, st.booleans())
STRUCTS = st.lists(FIELDS, max_size=4, unique_by=lambda one: one["name"].casefold()).map(
    lambda fields: struct(*fields)
)
NESTED = st.one_of(
    STRUCTS,
    st.tuples(STRUCTS, STRUCTS).map(lambda two: struct(*two[0]["fields"], field("inner", two[1]))),
)


@given(NESTED, NESTED)
def test_once_the_columns_are_added_the_same_entry_fits(table, entry):
    match decide(table, (), entry, ()):
        case AddColumns(_, schema):
            assert decide(schema, (), entry, ()) == Fits()
            # What fitted the table before still does.
            assert decide(schema, (), table, ()) == Fits()
        case Fits() | Refused():
            pass


@given(NESTED, NESTED)
def test_a_decision_changes_nothing_and_never_changes_a_type(table, entry):
    before = deepcopy((table, entry))
    found = decide(table, (), entry, ())
    assert (table, entry) == before
    if isinstance(found, AddColumns):
        kept = {one["name"]: one["type"] for one in found.schema["fields"]}
        for one in table["fields"]:
            if isinstance(one["type"], str):
                assert kept[one["name"]] == one["type"]


@given(NESTED)
def test_every_table_takes_its_own_schema(table):
    assert decide(table, (), table, ()) == Fits()
