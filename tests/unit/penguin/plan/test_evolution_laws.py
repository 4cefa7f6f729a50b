"""Laws of evolution that hold for any two schemas, and types that tables record as widened."""

from copy import deepcopy
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lakebed.deltalog.delta_types import reads
from lakebed.types import Evolution
from penguin.model.commit import Changes, EntryRefused, Evolves
from penguin.plan.evolution import decide
from tests.support.delta_schemas import array, field, mapping, names, nested, struct, table_of

STRICT, MERGE, OVERWRITE = Evolution.STRICT, Evolution.MERGE, Evolution.OVERWRITE
PLAIN = st.sampled_from(
    ["long", "integer", "byte", "string", "double", "float", "date", "decimal(5,2)", "decimal(9,2)"]
)


def structs(kinds, nullable):
    one = st.builds(field, st.sampled_from(["a", "b", "c", "d e"]), kinds, nullable)
    return st.lists(one, min_size=1, max_size=4, unique_by=lambda made: made["name"]).map(
        lambda made: struct(*made)
    )


def schemas(nullable):
    kinds = st.recursive(
        PLAIN,
        lambda inner: st.one_of(structs(inner, nullable), inner.map(array), inner.map(mapping)),
        max_leaves=6,
    )
    return structs(kinds, nullable)


ANY = schemas(st.booleans())
NULLABLE = schemas(st.just(True))
MODES = st.sampled_from(list(Evolution))


def leaves(kind, path=()):
    """Yield every plain type of a schema by its path."""
    match kind if isinstance(kind, str) else kind["type"]:
        case "struct":
            for one in kind["fields"]:
                yield from leaves(one["type"], (*path, one["name"]))
        case "array":
            yield from leaves(kind["elementType"], (*path, "[]"))
        case "map":
            yield from leaves(kind["valueType"], (*path, "{}"))
        case _:
            yield path, kind


def canonical(kind):
    """Write a schema without the order of its fields."""
    match kind if isinstance(kind, str) else kind["type"]:
        case "struct":
            return {
                one["name"]: (canonical(one["type"]), one["nullable"]) for one in kind["fields"]
            }
        case "array":
            return ["array", canonical(kind["elementType"]), kind["containsNull"]]
        case "map":
            return ["map", canonical(kind["valueType"]), kind["valueContainsNull"]]
        case _:
            return kind


def keeps(mode, table, entry, parts):
    """Whether a table holds files of a schema as it is."""
    return decide(mode, table, entry, parts) == Evolves(table, Changes())


@given(MODES, ANY)
def test_every_table_takes_its_own_schema(mode, schema):
    assert keeps(mode, table_of(schema), deepcopy(schema), ())


@given(MODES, ANY, ANY)
def test_what_evolved_for_an_entry_fits_it_ever_after(mode, schema, entry):
    """Idempotent: the same entry changes nothing the second time, in either mode."""
    found = decide(mode, table_of(schema), entry, ())
    if isinstance(found, Evolves):
        assert keeps(mode, found.table, entry, ())
        assert keeps(MERGE, found.table, entry, ())


@given(MODES, ANY, ANY)
def test_a_decision_changes_nothing_it_was_handed(mode, schema, entry):
    before = deepcopy((schema, entry))
    decide(mode, table_of(schema), entry, ())
    assert (schema, entry) == before


@given(ANY, ANY)
def test_a_merge_takes_nothing_away_and_changes_no_type(schema, entry):
    found = decide(MERGE, table_of(schema), entry, ())
    if isinstance(found, Evolves):
        assert dict(leaves(schema)).items() <= dict(leaves(found.table.schema)).items()
        assert names(found.table.schema)[: len(schema["fields"])] == names(schema)
        # What fitted the table before still does.
        assert keeps(MERGE, found.table, schema, ())


@given(ANY, NULLABLE, NULLABLE)
def test_merges_give_the_same_columns_in_either_order(schema, one, other):
    """Where both orders are accepted. A narrower new type must not come first."""

    def after(first, second):
        table = table_of(schema)
        for entry in (first, second):
            match decide(MERGE, table, entry, ()):
                case EntryRefused():
                    return None
                case Evolves(table, _):
                    pass
        return canonical(table.schema)

    there, back = after(one, other), after(other, one)
    assert there is None or back is None or there == back


@given(ANY, NULLABLE, NULLABLE)
def test_merges_that_agree_on_types_are_accepted_in_either_order(schema, one, other):
    ours, theirs = dict(leaves(one)), dict(leaves(other))
    assume(all(theirs.get(path, kind) == kind for path, kind in ours.items()))
    assume(not nested(ours, theirs))
    assume(not nested(theirs, ours))

    def refused(first, second):
        table = table_of(schema)
        for entry in (first, second):
            match decide(MERGE, table, entry, ()):
                case EntryRefused():
                    return True
                case Evolves(table, _):
                    pass
        return False

    assert refused(one, other) == refused(other, one)


@given(st.sampled_from([MERGE, OVERWRITE]), ANY, st.lists(ANY, max_size=4))
def test_every_file_ever_taken_stays_readable(mode, schema, entries):
    """Never narrows: each visible leaf reads every type that a file holds under its name."""
    table = table_of(schema)
    held = [dict(leaves(schema))]
    for entry in entries:
        match decide(mode, table, entry, ()):
            case EntryRefused():
                continue
            case Evolves(table, _):
                pass
        held.append(dict(leaves(entry)))
    for path, kind in leaves(table.schema):
        for file in held:
            if path in file:
                assert reads(kind, file[path]), (path, kind, file[path])
            # A name that is nested in one of them is nested in all of them.
            assert not any(other != path and other[: len(path)] == path for other in file)


@given(ANY, ANY)
def test_overwrite_shows_exactly_the_entrys_columns_and_keeps_fields_of_structs(schema, entry):
    found = decide(OVERWRITE, table_of(schema), entry, ())
    if isinstance(found, EntryRefused):
        return
    after = found.table.schema if isinstance(found, Evolves) else schema
    assert set(names(after)) == set(names(entry))
    kept = {path for path, _ in leaves(schema) if path[0] in names(entry)}
    assert dict(leaves(after)).keys() == kept | dict(leaves(entry)).keys()


@given(ANY, ANY)
def test_strict_never_changes_a_table(schema, entry):
    table = table_of(schema)
    decision = decide(STRICT, table, entry, ())
    assert not isinstance(decision, Evolves) or decision == Evolves(table, Changes())


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


@pytest.mark.parametrize("said", [{}, {"delta.enableTypeWidening": "false"}])
def test_nothing_is_widened_while_it_is_not_switched_on(said):
    assert isinstance(widened("integer", "long", configuration=said), EntryRefused)
    by_force = widened("integer", "long", Evolution.OVERWRITE, configuration=said)
    assert isinstance(by_force, EntryRefused)
    assert "with delta.enableTypeWidening set" in by_force.reasons[0]


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
