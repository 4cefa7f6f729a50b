"""A retraction on a real Spark session: tasks write the rows that stay."""

import pytest

from tests.support.promotions import ID
from tests.support.retractions import Taken
from tests.support.spark import shared_runner

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("session")]


def test_tasks_write_files_without_the_rows(tmp_path):
    desk = Taken(tmp_path, {"fields": [ID], "provenance": ["file"]})
    for batch in range(2):
        desk.land(f"{batch}/a.ndjson", {"id": batch})
        desk.land(f"{batch}/b.ndjson", {"id": batch + 10})
        desk.ingest()
    before = desk.version
    done = desk.retract("0/a.ndjson", "1/b.ndjson", runner=shared_runner())
    assert [one.removed for one in done.rewritten] == [1, 1]
    desk.penguin()
    assert desk.ids() == [1, 10]
    assert desk.ids(before) == [0, 1, 10, 11]
    desk.optimize()
    desk.retract("0/b.ndjson", runner=shared_runner())
    desk.penguin()
    assert desk.ids() == [1]


def test_tasks_read_the_new_content_and_write_the_rows_that_stay(tmp_path):
    desk = Taken(tmp_path, {"fields": [ID]}, source={"on_change": "replace"})
    desk.land("a.ndjson", {"id": 1})
    desk.land("b.ndjson", {"id": 2})
    desk.ingest()
    desk.land("b.ndjson", {"id": 20}, {"id": 21})
    desk.blizzard(runner=shared_runner())
    assert desk.ids() == [1, 2]
    desk.penguin()
    assert sorted(desk.ids()) == [1, 20, 21]
