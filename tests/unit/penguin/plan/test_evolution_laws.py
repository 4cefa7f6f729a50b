"""Laws of evolution that hold for any two schemas."""

from copy import deepcopy
from dataclasses import replace

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


def test_a_type_is_changed_with_spark_where_the_table_records_its_changes():
    table = replace(
        table_of(struct(field("x", "integer"))),
        features=frozenset({"typeWidening"}),
    )
    for mode in (MERGE, OVERWRITE):
        assert isinstance(decide(mode, table, struct(field("x", "long")), ()), EntryRefused)
    by_force = decide(OVERWRITE, table, struct(field("x", "long")), ())
    assert isinstance(by_force, EntryRefused)
    assert "change x with Spark" in by_force.reasons[0]
