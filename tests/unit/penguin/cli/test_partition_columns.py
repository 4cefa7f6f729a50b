"""Partition columns as they are written on a command line."""

import pytest

from penguin.cli.adopt import PartitionColumns, parse_partition_columns


def test_columns_have_an_order_and_types_that_may_be_left_out():
    found = parse_partition_columns("date:date, region ,n:bigint,b:boolean,s:int16")
    assert found.names == ("date", "region", "n", "b", "s")
    assert found.types == {"date": "date", "n": "long", "b": "boolean", "s": "short"}


@pytest.mark.parametrize("text", ["", ",", "a:", ":date", "a,a", "a:float", "a:decimal(3,1)"])
def test_what_cannot_be_a_partition_column_is_refused(text):
    with pytest.raises(ValueError, match=r"form|twice|cannot be of type"):
        parse_partition_columns(text)


def test_a_template_of_the_configuration_says_the_same():
    found = PartitionColumns.of_template("date=%Y-%m-%d/region=%s")
    assert found is not None
    assert found.types == {"date": "date", "region": "string"}
    assert PartitionColumns.of_template(None) is None
