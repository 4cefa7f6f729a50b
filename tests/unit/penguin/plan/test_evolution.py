"""Schemas that fit, evolve and are refused."""

from copy import deepcopy
from dataclasses import replace

import pytest

from lakebed.deltalog.delta_types import DROPPED_PROPERTY
from lakebed.types import RESCUED, Evolution
from penguin.model.commit import Changes, EntryRefused, Evolves
from penguin.plan.evolution import decide
from tests.support.delta_schemas import array, field, mapping, struct, table_of

STRICT, MERGE, OVERWRITE = Evolution.STRICT, Evolution.MERGE, Evolution.OVERWRITE
SCHEMA = struct(field("id", "long", nullable=False), field("name"), field("date", "date"))
TABLE = table_of(SCHEMA, ("date",))


def decision(entry, mode=MERGE, table=TABLE, parts=("date",)):
    return decide(mode, table, entry, parts)


def keeps(mode, table, entry, parts):
    """Whether a table holds files of a schema as it is."""
    return decide(mode, table, entry, parts) == Evolves(table, Changes())


def fits(entry, mode=MERGE, table=TABLE, parts=("date",)):
    return keeps(mode, table, entry, parts)


def evolved(entry, mode=MERGE, table=TABLE, parts=("date",)):
    found = decision(entry, mode, table, parts)
    assert isinstance(found, Evolves), found
    assert found.table is not table
    return found


def reason(entry, mode=MERGE, table=TABLE, parts=("date",)):
    found = decision(entry, mode, table, parts)
    assert isinstance(found, EntryRefused), found
    (only,) = found.reasons
    return only


@pytest.mark.parametrize("mode", Evolution)
def test_the_same_schema_fits(mode):
    """W04: nested columns, too, over as many entries as you like."""
    nested = struct(
        *SCHEMA["fields"],
        field("tags", array("string")),
        field("who", struct(field("a", "long"), field("b", mapping(array("double"))))),
        field("price", "decimal(10,2)"),
    )
    assert fits(deepcopy(SCHEMA), mode)
    assert keeps(mode, table_of(nested), deepcopy(nested), ())


@pytest.mark.parametrize(
    "kind", ["timestamp_ntz", array("timestamp_ntz"), struct(field("at", "timestamp_ntz"))]
)
def test_a_time_without_a_zone_is_added_only_where_the_table_has_the_feature(kind):
    entry = struct(*SCHEMA["fields"], field("x", kind))
    told = reason(entry)
    assert "needs the table feature timestampNtz" in told
    assert "'delta.feature.timestampNtz' = 'supported'" in told
    made_for_it = replace(TABLE, features=frozenset({"timestampNtz"}))
    assert evolved(entry, table=made_for_it).changes == Changes(added=("x",))


@pytest.mark.parametrize("mode", Evolution)
def test_files_without_rescued_values_fit_a_table_that_has_some(mode):
    """blizzard's files have the column only where something is in it."""
    rescues = table_of(struct(*SCHEMA["fields"], field(RESCUED)), ("date",))
    assert fits(deepcopy(SCHEMA), mode, rescues)
    inner = struct(field("who", struct(field("a"), field(RESCUED))))
    assert isinstance(
        decide(STRICT, table_of(inner), struct(field("who", struct(field("a")))), ()), EntryRefused
    )


def test_strict_says_how_a_column_gets_in():
    told = reason(struct(*SCHEMA["fields"], field("more")), STRICT)
    assert "add it with ALTER TABLE, or let it in once with schema_evolution: merge" in told
    assert "unknown_fields" not in told
    assert "unknown_fields: drop" in reason(struct(*SCHEMA["fields"], field(RESCUED)), STRICT)


@pytest.mark.parametrize("mode", Evolution)
def test_the_order_of_columns_does_not_matter(mode):
    assert fits(struct(*reversed(SCHEMA["fields"])), mode)


@pytest.mark.parametrize("mode", Evolution)
def test_partition_columns_are_never_missing(mode):
    """W05: their values stand in the paths."""
    inside = struct(field("id", "long", nullable=False), field("name"))
    required = table_of(struct(*inside["fields"], field("date", "date", nullable=False)), ("date",))
    assert fits(inside, mode)
    assert fits(inside, mode, required)


@pytest.mark.parametrize("mode", Evolution)
@pytest.mark.parametrize("parts", [(), ("name",), ("date", "name"), ("name", "date")])
def test_partition_columns_must_be_the_same_in_the_same_order(mode, parts):
    table = replace(TABLE, partition_columns=("date", "id"))
    assert isinstance(decision(SCHEMA, mode, table, parts), EntryRefused)


@pytest.mark.parametrize("mode", Evolution)
def test_a_column_that_the_files_promise_never_to_leave_empty_fits_one_that_may_be(mode):
    entry = struct(field("id", "long", nullable=False), field("name", "string", nullable=False))
    assert fits(entry, mode)


class TestStrict:
    @pytest.mark.parametrize(
        ("entry", "words"),
        [
            (struct(*SCHEMA["fields"], field("x", "double")), ["x:", "does not have", "double"]),
            (struct(SCHEMA["fields"][0]), ["name:", "string", "do not have it"]),
            (struct(field("name"), field("date", "date")), ["id:", "long", "do not have it"]),
            (
                struct(field("id", "integer", nullable=False), field("name")),
                ["id:", "long", "integer"],
            ),
            (struct(field("id", "long"), field("name")), ["id:", "long", "null"]),
        ],
    )
    def test_no_difference_is_accepted(self, entry, words):
        """W07."""
        told = reason(entry, STRICT)
        assert all(word in told for word in words), told


class TestMerge:
    def test_a_nullable_column_may_be_missing(self):
        assert fits(struct(field("id", "long", nullable=False)))

    @pytest.mark.parametrize("wrap", [lambda one: one, array, lambda o: array(array(o))])
    def test_a_new_field_inside_a_struct_is_added_there(self, wrap):
        """Structs in lists, too."""
        table = table_of(struct(field("who", wrap(struct(field("a", "long"))))))
        entry = struct(field("who", wrap(struct(field("a", "long"), field("b")))))
        found = evolved(entry, MERGE, table, ())
        assert found.table.schema == entry
        assert [name.replace("[]", "") for name in found.changes.added] == ["who.b"]

    @pytest.mark.parametrize(
        ("entry", "words"),
        [
            (struct(*SCHEMA["fields"], field("new", nullable=False)), ["new", "nullable"]),
            (
                struct(*SCHEMA["fields"], field("n", struct(field("a", "long", nullable=False)))),
                ["n.a", "long", "nullable"],
            ),
            (struct(field("name")), ["id", "long", "requires", "do not have"]),
            (struct(field("id", "long"), field("date", "date")), ["id", "null", "long"]),
            (struct(field("id", nullable=False), field("date", "date")), ["id", "long", "string"]),
            (struct(*SCHEMA["fields"], field("Name")), ["Name", "name", "case"]),
            (struct(*SCHEMA["fields"], field("x"), field("X")), ["X", "x", "case"]),
            (struct(*SCHEMA["fields"], field("x", "void")), ["x", "void"]),
            (struct(*SCHEMA["fields"], field("x", array("timestamp_ntz"))), ["x[]", "ntz"]),
            (struct(*SCHEMA["fields"][:1], field("name", array("string"))), ["name", "array<str"]),
        ],
    )
    def test_what_does_not_fit_is_refused_with_field_and_types(self, entry, words):
        """W07."""
        told = reason(entry)
        assert all(word in told for word in words), told
        assert "\n" not in told

    @pytest.mark.parametrize("mode", list(Evolution))
    @pytest.mark.parametrize(
        "wrap", [mapping, lambda o: array(mapping(o)), lambda o: mapping(array(o))]
    )
    @pytest.mark.parametrize(
        "theirs",
        [
            struct(field("a", "long"), field("b"), field("c")),
            struct(field("a", "long")),
            struct(field("a", "long"), field("c")),
        ],
    )
    def test_structs_inside_a_map_have_the_same_fields_in_every_file(self, theirs, wrap, mode):
        """HOLES W25: deltalake does not match them by name."""
        table = table_of(struct(field("m", wrap(struct(field("a", "long"), field("b"))))))
        told = reason(struct(field("m", wrap(theirs))), mode, table, ())
        assert told.startswith("m")
        assert "inside a map" in told

    def test_structs_inside_a_map_may_have_another_order_and_narrower_types(self):
        table = table_of(struct(field("m", mapping(struct(field("a", "long"), field("b"))))))
        entry = struct(field("m", mapping(struct(field("b"), field("a", "integer")))))
        assert keeps(MERGE, table, entry, ())

    def test_every_reason_is_given_at_once(self):
        match decision(struct(field("name", "long"), field("new", nullable=False))):
            case EntryRefused(reasons):
                assert len(reasons) == 3
            case other:
                pytest.fail(f"{other}")

    @pytest.mark.parametrize(
        ("ours", "theirs", "fits"),
        [
            ("long", "integer", True),
            ("long", "short", True),
            ("long", "byte", True),
            ("integer", "short", True),
            ("integer", "byte", True),
            ("short", "byte", True),
            ("double", "float", True),
            ("decimal(12,2)", "decimal(10,2)", True),
            ("decimal(12,2)", "decimal(12, 2)", True),
            ("decimal(12,2)", "decimal(13,2)", False),
            ("decimal(12,2)", "decimal(10,1)", False),
            ("decimal(12,2)", "integer", False),
            ("integer", "long", False),
            ("byte", "integer", False),
            ("float", "double", False),
            ("double", "integer", False),
            ("double", "long", False),
            ("string", "long", False),
            ("timestamp", "date", False),
            ("timestamp", "timestamp_ntz", False),
        ],
    )
    @pytest.mark.parametrize("wrap", [lambda one: one, lambda one: struct(field("in", one)), array])
    def test_a_narrower_type_is_accepted_only_where_every_reader_widens_it(
        self, ours, theirs, fits, wrap
    ):
        """W06: and the table's type stays what it is."""
        table = table_of(struct(field("x", wrap(ours))))
        found = decide(MERGE, table, struct(field("x", wrap(theirs))), ())
        assert (found == Evolves(table, Changes())) is fits
        assert fits or (isinstance(found, EntryRefused) and ours in found.reasons[0])

    def test_lists_that_may_hold_nulls_do_not_fit_lists_that_may_not(self):
        table = table_of(struct(field("x", array("long", nulls=False))))
        assert "null" in reason(struct(field("x", array("long"))), MERGE, table, ())
        assert keeps(MERGE, table_of(struct(field("x", array("long")))), table.schema, ())

    def test_a_partition_column_that_the_table_requires_is_judged_by_its_values(self):
        table = table_of(
            struct(field("id", "long"), field("date", "date", nullable=False)), ("date",)
        )
        entry = struct(field("id", "long"), field("date", "date"))
        assert fits(entry, MERGE, table)


class TestOverwrite:
    def test_a_wider_type_replaces_a_narrower_one_and_never_the_other_way_round(self):
        """W06: old files are read as the new type."""
        table = table_of(struct(field("x", "integer")))
        found = evolved(struct(field("x", "long")), OVERWRITE, table, ())
        assert found.table.schema == struct(field("x", "long"))
        assert found.changes == Changes(widened=("x",))
        assert keeps(OVERWRITE, found.table, table.schema, ())

    def test_a_type_that_old_files_cannot_be_read_as_is_refused_by_name(self):
        told = reason(struct(field("name", "date")), OVERWRITE)
        assert told == "name: the table has type string, the files have type date"

    def test_a_partition_column_keeps_its_type(self):
        table = table_of(struct(field("id"), field("n", "integer")), ("n",))
        assert "n: " in reason(struct(field("id"), field("n", "long")), OVERWRITE, table, ("n",))

    def test_a_required_column_becomes_one_that_may_be_null(self):
        entry = struct(field("id", "long"), field("name"))
        assert evolved(entry, OVERWRITE).table.schema["fields"][0] == field("id", "long")

    def test_a_new_required_column_is_refused(self):
        told = reason(struct(*SCHEMA["fields"], field("new", nullable=False)), OVERWRITE)
        assert "new" in told
        assert "nullable" in told

    @pytest.mark.parametrize("wrap", [lambda one: one, array])
    def test_a_field_of_a_struct_is_never_dropped(self, wrap):
        """HOLES W25: a file may have none of the others, and deltalake cannot scan it then."""
        table = table_of(struct(field("who", wrap(struct(field("a", "long", nullable=False))))))
        found = evolved(struct(field("who", wrap(struct(field("b"))))), OVERWRITE, table, ())
        assert found.table.schema == struct(
            field("who", wrap(struct(field("a", "long"), field("b"))))
        )
        assert found.changes.dropped == ()
        assert [name.replace("[]", "") for name in found.changes.widened] == ["who.a"]
        assert DROPPED_PROPERTY not in found.table.configuration

    def test_a_struct_that_was_dropped_comes_back_with_all_of_its_fields(self):
        """HOLES W25: its files have none of the new ones."""
        table = table_of(struct(field("id"), field("who", struct(field("a", "long")))))
        after = evolved(struct(field("id")), OVERWRITE, table, ()).table
        entry = struct(field("id"), field("who", struct(field("b"))))
        back = evolved(entry, MERGE, after, ()).table
        assert back.schema["fields"][1] == field("who", struct(field("a", "long"), field("b")))

    @pytest.mark.parametrize("mode", [MERGE, OVERWRITE])
    @pytest.mark.parametrize(
        ("was", "comes", "becomes"),
        [
            ("long", "long", "long"),
            ("integer", "long", "long"),
            ("long", "integer", "long"),
            ("long", "string", None),
            ("string", "long", None),
        ],
    )
    def test_a_dropped_column_comes_back_only_as_a_type_that_reads_its_files(
        self, mode, was, comes, becomes
    ):
        """W06: the files of before still hold it."""
        table = table_of(struct(field("id"), field("x", was)))
        after = evolved(struct(field("id")), OVERWRITE, table, ()).table
        entry = struct(field("id"), field("x", comes))
        if becomes is None:
            told = reason(entry, mode, after, ())
            assert was in told
            assert comes in told
            assert "dropped before" in told
            return
        back = evolved(entry, mode, after, ()).table
        assert back.schema == struct(field("id"), field("x", becomes))
        assert DROPPED_PROPERTY not in back.configuration

    def test_a_name_that_differs_from_a_dropped_one_only_in_case_is_refused(self):
        table = table_of(struct(field("id"), field("x")))
        after = evolved(struct(field("id")), OVERWRITE, table, ()).table
        assert "case" in reason(struct(field("id"), field("X")), MERGE, after, ())

    @pytest.mark.parametrize("text", ["", "{", "[]", "{}", "null", '{"fields": [1]}'])
    def test_a_memory_that_cannot_be_read_stops_and_is_not_taken_for_empty(self, text):
        table = table_of(struct(field("id")), **{DROPPED_PROPERTY: text})
        assert DROPPED_PROPERTY in reason(struct(field("id")), OVERWRITE, table, ())
