"""Columns of tables that record changes of types get the wider types of new files."""

from dataclasses import replace

import pytest

from lakebed.types import Evolution
from penguin.model.commit import Changes, EntryRefused, Evolves
from penguin.plan.evolution import decide
from tests.support.delta_schemas import array, field, mapping, struct, table_of

RECORDS = {"delta.enableTypeWidening": "true"}
CHANGES = "delta.typeChanges"


def records(schema, parts=(), *, features=("typeWidening",), configuration=RECORDS):
    table = table_of(schema, parts)
    both = {**table.configuration, **configuration}
    return replace(table, features=frozenset(features), configuration=both)


def widened(before, after, mode=Evolution.MERGE, **options):
    table = records(struct(field("x", before)), **options)
    return decide(mode, table, struct(field("x", after)), ())


@pytest.mark.parametrize("mode", [Evolution.MERGE, Evolution.OVERWRITE])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("byte", "short"),
        ("byte", "integer"),
        ("short", "long"),
        ("integer", "long"),
        ("float", "double"),
        ("integer", "double"),
        ("byte", "double"),
        ("decimal(10,2)", "decimal(12,2)"),
        ("decimal(10,2)", "decimal(12,4)"),
        ("integer", "decimal(10,0)"),
        ("short", "decimal(12,2)"),
        ("long", "decimal(20,0)"),
    ],
)
def test_a_column_gets_the_wider_type_of_the_files_and_it_is_recorded(before, after, mode):
    found = widened(before, after, mode)
    assert isinstance(found, Evolves)
    assert found.changes == Changes(widened=("x",))
    (column,) = found.table.schema["fields"]
    assert column["type"] == after
    assert column["metadata"] == {CHANGES: [{"fromType": before, "toType": after}]}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("long", "double"),  # A double does not hold every long.
        ("long", "decimal(19,0)"),
        ("integer", "decimal(10,1)"),
        ("decimal(10,2)", "decimal(11,4)"),
        ("decimal(10,2)", "decimal(12,1)"),
        ("integer", "float"),
        ("date", "timestamp"),
        ("date", "timestamp_ntz"),  # Not without the feature for times without a zone.
        ("integer", "string"),
        ("long", "timestamp"),
        ("timestamp", "date"),
    ],
)
def test_what_the_protocol_does_not_name_is_refused(before, after):
    assert isinstance(widened(before, after), EntryRefused)


def test_a_date_becomes_a_time_without_a_zone_where_the_table_may_have_such():
    features = ("typeWidening", "timestampNtz")
    assert isinstance(widened("date", "timestamp_ntz", features=features), Evolves)


def test_nothing_is_widened_in_strict_mode():
    assert isinstance(widened("integer", "long", Evolution.STRICT), EntryRefused)


@pytest.mark.parametrize("said", [{}, {"delta.enableTypeWidening": "false"}])
def test_nothing_is_widened_while_it_is_not_switched_on(said):
    assert isinstance(widened("integer", "long", configuration=said), EntryRefused)
    by_force = widened("integer", "long", Evolution.OVERWRITE, configuration=said)
    assert isinstance(by_force, EntryRefused)
    assert "with delta.enableTypeWidening set" in by_force.reasons[0]


def test_nothing_is_widened_in_merge_where_the_table_does_not_record_it():
    assert isinstance(widened("integer", "long", features=()), EntryRefused)


def test_a_partition_column_keeps_its_type():
    table = records(struct(field("x", "integer")), ("x",))
    assert isinstance(
        decide(Evolution.MERGE, table, struct(field("x", "long")), ("x",)), EntryRefused
    )


def test_earlier_changes_and_other_metadata_stay():
    earlier = {"fromType": "byte", "toType": "short"}
    column = {**field("x", "short"), "metadata": {CHANGES: [earlier], "comment": "c"}}
    found = decide(Evolution.MERGE, records(struct(column)), struct(field("x", "long")), ())
    assert isinstance(found, Evolves)
    (after,) = found.table.schema["fields"]
    later = {"fromType": "short", "toType": "long"}
    assert after["metadata"] == {CHANGES: [earlier, later], "comment": "c"}


@pytest.mark.parametrize(
    ("wrap", "path"),
    [
        (array, "element"),
        (mapping, "value"),
        (lambda kind: array(mapping(kind)), "element.value"),
    ],
)
def test_a_change_inside_a_list_or_a_map_names_its_place(wrap, path):
    found = widened(wrap("integer"), wrap("long"))
    assert isinstance(found, Evolves)
    (column,) = found.table.schema["fields"]
    assert column["type"] == wrap("long")
    assert column["metadata"] == {
        CHANGES: [{"fromType": "integer", "toType": "long", "fieldPath": path}]
    }


def test_a_change_inside_a_struct_is_recorded_by_the_field_of_the_struct():
    found = widened(array(struct(field("a", "float"))), array(struct(field("a", "double"))))
    assert isinstance(found, Evolves)
    (column,) = found.table.schema["fields"]
    assert column["metadata"] == {}
    (inner,) = column["type"]["elementType"]["fields"]
    assert inner["metadata"] == {CHANGES: [{"fromType": "float", "toType": "double"}]}


def test_a_table_that_is_wider_already_reads_narrower_files():
    found = widened("long", "integer")
    assert isinstance(found, Evolves)
    assert found.changes == Changes()
