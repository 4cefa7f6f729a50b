"""Rows of source files taken out of the table, in one process with the real programs."""

import pytest

from tests.support.retractions import Taken


@pytest.fixture
def desk(tmp_path):
    desk = Taken(tmp_path)
    desk.land("a.ndjson", {"id": 1}, {"id": 2})
    desk.land("b.ndjson", {"id": 3}, {"id": 4})
    desk.land("c.ndjson", {"id": 5})
    desk.ingest()
    return desk


def amounts(desk):
    places = desk.audited().places.amounts
    return {place.value: amount.rows for place, amount in places.items() if amount.rows}


def test_the_rows_of_one_of_several_files_in_a_data_file_go(desk):
    done = desk.take_back("b.ndjson")
    assert dict(done.rows) == {"in:b.ndjson": 2}
    assert desk.ids() == [1, 2, 5]
    audit = desk.audited()
    assert audit.is_balanced, audit.differences
    assert audit.totals.rows == 5
    assert amounts(desk) == {"in_table": 3, "replaced": 3, "retracted": 2}


def test_a_data_file_with_no_other_rows_goes_without_a_new_one(tmp_path):
    desk = Taken(tmp_path)
    desk.land("a.ndjson", {"id": 1})
    desk.ingest()
    desk.land("b.ndjson", {"id": 2})
    desk.ingest()
    done = desk.take_back("a.ndjson")
    assert [one.new for one in done.replaced] == [None]
    assert desk.ids() == [2]
    assert desk.audited().is_balanced, desk.audited().differences
    assert amounts(desk) == {"in_table": 1, "retracted": 1}


def test_readers_of_an_earlier_version_still_see_the_rows(desk):
    before = desk.version
    desk.take_back("b.ndjson")
    assert desk.ids(before) == [1, 2, 3, 4, 5]
