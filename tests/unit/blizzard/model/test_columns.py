"""Columns that were found beside those that are declared, and as the table has them."""

from collections.abc import Callable

import pytest

from blizzard.model.columns import MOST_COLUMNS, adopted, grown, kept_exact, with_found
from blizzard.model.seen import Integers, Objects, Seen, Text
from lakebed.columns.schema import Field, Reading, Schema, walk
from lakebed.types import FieldType, OnMismatch
from tests.support.growth import AT_MOST, growth

NUMBERS = Seen(integers=Integers(0, 5))
TEXTS = Seen(texts=frozenset({Text.OTHER}))


def column(name: str, kind: FieldType = FieldType.INT64, **given: object) -> Field:
    return Field(name=name, type=kind, **given)  # type: ignore[arg-type]


def struct(name: str, *fields: Field) -> Field:
    return Field(name=name, type=FieldType.STRUCT, fields=fields)


def items(name: str, inner: Field) -> Field:
    return Field(name=name, type=FieldType.LIST, items=inner)


def schema(*fields: Field) -> Schema:
    return Schema(fields)


def test_what_is_declared_is_never_changed_by_what_is_found() -> None:
    declared = schema(
        column("id", FieldType.INT32, nullable=False),
        column("at", FieldType.TIMESTAMP, reading=Reading(path=("ts",), formats=("epoch_s",))),
        struct("user", column("id", FieldType.STRING)),
    )
    seen = {"id": TEXTS, "ts": TEXTS, "user.id": NUMBERS, "user": TEXTS, "ID": NUMBERS}

    assert grown(declared, seen) == declared
    wider = grown(declared, {"user.mail": TEXTS, "new": NUMBERS, **seen})
    assert wider.fields[:2] == declared.fields[:2]
    assert wider.fields[2:] == (
        struct("user", column("id", FieldType.STRING), column("mail", FieldType.STRING)),
        column("new"),
    )
    assert with_found(declared, wider) == wider
    found = schema(column("id", FieldType.STRING), column("new"))
    assert with_found(declared, found).fields == (*declared.fields, column("new"))


def test_a_declared_column_stays_as_it_is_declared_whatever_the_table_has() -> None:
    ours = schema(column("id"), struct("user", column("age"), column("mail")))
    table = schema(
        column("ID", FieldType.STRING),
        struct("user", column("age", FieldType.STRING), column("mail", FieldType.STRING)),
    )
    declared = schema(column("id"), struct("user", column("age")))

    assert adopted(ours, table, declared=declared) == schema(
        column("id"), struct("user", column("age"), column("mail", FieldType.STRING))
    )


def test_fields_that_the_table_does_not_have_yet_stay_inside_of_those_it_has() -> None:
    ours = schema(items("tags", struct("element", column("k"), column("v"))))
    table = schema(items("tags", struct("element", column("k", FieldType.STRING))))

    assert adopted(ours, table, declared=schema()) == schema(
        items("tags", struct("element", column("k", FieldType.STRING), column("v")))
    )
    other = schema(struct("tags", column("k")))
    assert adopted(other, table, declared=schema()) == table


def exact_paths(*fields: Field, declared: Schema, policy: OnMismatch) -> set[str]:
    found = kept_exact(schema(*fields), declared, policy)
    return {path for path, one in walk(found.fields) if one.reading.exact}


DOUBLE, SINGLE = FieldType.FLOAT64, FieldType.FLOAT32


def test_in_a_float_that_was_found_no_integer_is_rounded() -> None:
    declared = schema(column("mine", DOUBLE), struct("user", column("mine", SINGLE)))
    mixed = (
        column("mine", DOUBLE),
        struct("user", column("mine", SINGLE), column("score", DOUBLE)),
        column("n"),
        column("f", SINGLE),
        items("list", column("element", DOUBLE)),
        Field(name="map", type=FieldType.MAP, items=struct("value", column("d", DOUBLE))),
    )

    assert exact_paths(*mixed, declared=declared, policy=OnMismatch.FAIL) == {
        "user.score",
        "f",
        "list[]",
        "map[].d",
    }


def test_in_a_declared_float_integers_are_rounded_only_where_they_cannot_be_rescued() -> None:
    fields = (
        column("a", DOUBLE),
        column("required", DOUBLE, nullable=False),
        items("list", column("element", SINGLE)),
        column("at", FieldType.TIMESTAMP),
    )

    assert exact_paths(*fields, declared=schema(*fields), policy=OnMismatch.FAIL) == set()
    assert exact_paths(*fields, declared=schema(*fields), policy=OnMismatch.RESCUE) == {
        "a",
        "list[]",
    }


def test_a_column_that_was_declared_once_is_read_from_its_place_whatever_the_table_has() -> None:
    """Otherwise it would take the values of the member that is called like it."""
    reading = Reading(path=("ts",), formats=("%d/%m/%Y",), coerce=True, null_values=("-",))
    ours = schema(column("at", FieldType.DATE, reading=reading))

    def taken(kind: FieldType, **given: object) -> Field:
        table = schema(column("at", kind, **given))
        (one,) = adopted(ours, table, declared=schema(), known=ours).fields
        assert one.type is kind
        return one

    assert taken(FieldType.DATE).reading == reading
    text = taken(FieldType.STRING)
    assert text.reading == Reading(path=("ts",), null_values=("-",))
    inner = column("element")
    assert taken(FieldType.LIST, items=inner).reading == Reading(path=("ts",))
    # Nothing else is found for the member that it takes.
    assert grown(schema(text), {"ts": TEXTS}) == schema(text)


def test_a_column_of_the_same_type_and_another_size_keeps_its_reading() -> None:
    reading = Reading(coerce=True)
    ours = schema(column("n", FieldType.DECIMAL, precision=10, scale=2, reading=reading))
    table = schema(column("n", FieldType.DECIMAL, precision=12, scale=2))

    (one,) = adopted(ours, table, declared=schema(), known=ours).fields
    assert (one.precision, one.reading) == (12, reading)


@pytest.mark.parametrize("path", ["k{}", "user.k{}", "new.k{}"])
def test_many_found_columns_cost_what_each_of_them_costs(path: str) -> None:
    declared = schema(struct("user", column("id")))

    def growing(paths: int) -> Callable[[], object]:
        seen = {path.format(n): NUMBERS for n in range(paths)}
        return lambda: grown(declared, seen)

    assert growth(growing, 200) < AT_MOST


def test_an_object_of_more_fields_than_there_is_room_for_is_one_column_of_json() -> None:
    wide = Seen(objects=Objects({f"k{n}": NUMBERS for n in range(900)}, 900))

    found = grown(schema(), {"a": wide, "b": wide, "c": wide, "d": NUMBERS})

    assert [one.type for one in found.fields] == [
        FieldType.STRUCT,
        FieldType.STRUCT,
        FieldType.JSON,
        FieldType.INT64,
    ]
    assert sum(1 for _ in walk(found.fields)) <= MOST_COLUMNS
