"""The table that files of several schemas become: whatever their order, nothing is cast."""

from itertools import permutations
from typing import Any

import pytest

from penguin.adopt.folder import AdoptOptions, SchemaUse, Survey
from penguin.adopt.new_table import NewTable, new_table
from penguin.model.settings import TableSettings

SETTINGS = TableSettings(name="t", table_uri="/t")


def field(name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "nullable": True, "metadata": {}}


def struct(**kinds: Any) -> dict[str, Any]:
    return {"type": "struct", "fields": [field(name, kind) for name, kind in kinds.items()]}


def array(kind: Any) -> dict[str, Any]:
    return {"type": "array", "elementType": kind, "containsNull": True}


def made_of(*schemas: tuple[dict[str, Any], int]) -> NewTable:
    """Return the table of schemas that so many files have each."""
    survey = Survey()
    for place, (schema, files) in enumerate(schemas):
        key = str(place)
        use = SchemaUse(key=key, schema=schema, files=files, example=f"{place}.parquet")
        survey.schemas[key] = use
    return new_table(survey, AdoptOptions(), SETTINGS)


def types(found: NewTable) -> dict[str, Any]:
    return {one["name"]: one["type"] for one in found.facts.schema["fields"]}


@pytest.mark.parametrize(
    ("kinds", "widest"),
    [
        (("byte", "short", "integer", "long"), "long"),
        (("float", "double"), "double"),
        (("decimal(7,2)", "decimal(12,2)", "decimal(9,2)"), "decimal(12,2)"),
        ((array("integer"), array("long")), array("long")),
        ((struct(a="integer"), struct(a="long")), struct(a="long")),
        ((struct(a="integer"), struct(b="long")), struct(a="integer", b="long")),
    ],
)
def test_the_widest_type_is_taken_whatever_comes_first(kinds, widest):
    for order in permutations(kinds):
        found = made_of(*((struct(c=kind), 1) for kind in order))
        assert found.refused == {}
        kept = types(found)["c"]
        if isinstance(kept, dict) and kept["type"] == "struct":
            kept = {**kept, "fields": sorted(kept["fields"], key=lambda one: str(one["name"]))}
        assert kept == widest


@pytest.mark.parametrize(
    ("few", "many"),
    [
        ("string", "long"),
        ("long", "double"),
        ("decimal(7,3)", "decimal(7,2)"),
        ("timestamp_ntz", "timestamp"),
        ("integer", array("integer")),
    ],
)
def test_the_few_are_refused_with_both_types_and_the_way_out(few, many):
    for order in ([(few, 1), (many, 9)], [(many, 9), (few, 1)]):
        found = made_of(*((struct(c=kind), files) for kind, files in order))
        assert types(found) == {"c": many}
        (reason,) = found.refused.values()
        assert reason.startswith("c: the table has type ")
        assert "write the file again" in reason


def test_columns_mixed_in_width_are_each_as_wide_as_it_takes():
    found = made_of((struct(a="integer", b="long"), 1), (struct(a="long", b="short"), 1))
    assert found.refused == {}
    assert types(found) == {"a": "long", "b": "long"}


def test_local_times_in_the_second_schema_make_the_feature_one_of_the_table():
    found = made_of((struct(a="long"), 2), (struct(a="long", at="timestamp_ntz"), 1))
    assert found.refused == {}
    assert found.facts.features == {"timestampNtz"}


def test_names_that_differ_only_in_case_are_refused():
    found = made_of((struct(id="long"), 2), (struct(ID="long"), 1))
    assert list(found.refused) == ["1"]
    assert "only in case" in found.refused["1"]
