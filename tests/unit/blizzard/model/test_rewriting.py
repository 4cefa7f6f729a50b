"""Which field a name means, and what the table's schema is with it."""

import pytest

from blizzard.model.rewriting import Target, find_target, with_target
from lakebed.columns.schema import Field, Reading, Schema
from lakebed.types import FieldType

AGE = Field(name="age", type=FieldType.INT32)
USER = Field(name="user", type=FieldType.STRUCT, fields=(AGE,))
PLAN = Field(name="plan", type=FieldType.STRING, reading=Reading(path=("account", "plan.name")))
TAGS = Field(name="tags", type=FieldType.LIST, items=Field(name="element", type=FieldType.STRING))
KNOWN = Schema((USER, PLAN, TAGS))


@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("user", ("user",)),
        ("user.age", ("user", "age")),
        ("plan", ("plan",)),
        ("account.`plan.name`", ("plan",)),
    ],
)
def test_a_field_is_named_by_its_column_or_by_where_its_values_stand(name, names):
    target = find_target(KNOWN, name)
    assert target is not None
    assert target.names == names


@pytest.mark.parametrize("name", ["", "age", "user.plan", "user.age.x", "tags[]", "tags[0]"])
def test_a_name_of_no_field_means_none(name):
    assert find_target(KNOWN, name) is None


def test_a_value_is_found_at_its_path_or_inside_of_an_object_above():
    plan = Target((PLAN,))
    assert plan.path == "account.`plan.name`"
    assert plan.holds("account.`plan.name`")
    assert plan.holds("account")
    assert not plan.holds("account.`plan.name`.x")
    assert not plan.holds("account.plan")
    assert not plan.holds("account[0]")
    assert not plan.holds("")


def test_nothing_is_required_of_a_record_that_is_made_again():
    required = Field(name="user", type=FieldType.STRUCT, nullable=False, fields=(AGE, PLAN))
    assert Target((required, AGE)).alone() == Schema((USER,))


def delta(*fields):
    return Schema(fields).delta()


def test_a_new_column_comes_last_and_may_be_null():
    known = {**delta(AGE), "more": 1}
    wider = with_target(known, Target((Field(name="x", type=FieldType.DATE, nullable=False),)))
    assert wider == {**delta(AGE, Field(name="x", type=FieldType.DATE)), "more": 1}


def test_a_field_inside_of_a_struct_widens_the_struct_of_the_table():
    theirs = Field(name="user", type=FieldType.STRUCT, nullable=False, fields=(PLAN,))
    wider = with_target(delta(theirs), Target((USER, AGE)))
    both = Field(name="user", type=FieldType.STRUCT, nullable=False, fields=(PLAN, AGE))
    assert wider == delta(both)


def test_a_column_that_the_table_has_is_said_as_files_will_have_it():
    theirs = Field(name="age", type=FieldType.INT64)
    assert with_target(delta(theirs), Target((AGE,))) == delta(AGE)
