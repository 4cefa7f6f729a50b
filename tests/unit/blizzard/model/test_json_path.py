"""Where a value stands in a record, written and read back."""

import pytest

from blizzard.model.json_path import ANY, any_element, element_path, member_path, steps

NAMES = ["id", "a.b", "items[0]", "[]", "`", "``", "a`[1]`b", "", " ", "é"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("below", NAMES)
def test_a_path_is_read_back_as_it_was_written(name, below):
    path = member_path(element_path(member_path("", name), 3), below)
    assert steps(path) == [name, 3, below]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_looks_like_an_element_stays_a_name(name):
    """A record of a flattened list has keys like `items[0]`: no two of them are one column."""
    path = element_path(member_path("", name), 12)
    assert steps(any_element(path)) == [name, ANY]
