"""A compaction on a real Spark session: tasks put the files of each partition together."""

import pytest

from tests.support.builders import entries
from tests.support.compactions import DAYS, crowded_by_day
from tests.support.spark import shared_runner

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("session")]


def test_tasks_put_the_files_of_each_partition_together_and_sort_their_rows(tmp_path):
    desk = crowded_by_day(tmp_path)
    before, version = desk.rows(), desk.version
    assert len(desk.active) == 8
    told: list[tuple[int, int]] = []
    done = desk.tidy(runner=shared_runner(), rewritten=lambda *counts: told.append(counts))
    assert (told[0], told[-1]) == ((0, 2), (2, 2))
    assert (done.failed, done.gave_way) == ((), None)
    assert sorted(path.partition("/")[0] for path in desk.active) == [f"date={day}" for day in DAYS]
    assert desk.rows() == before
    assert desk.rows(version) == before
    assert [one.sorted_by for one in entries(desk.table)[-1].merged] == [("user",)] * 2
    audit = desk.audited()
    assert audit.is_balanced, audit.differences
    amounts = {one.value: found.rows for one, found in audit.places.amounts.items() if found.rows}
    assert amounts == {"in_table": 16, "replaced": 16}
    # Sorted rows are found by what they say of themselves.
    desk.retract(f"date={DAYS[1]}/2.ndjson", runner=shared_runner())
    desk.penguin()
    assert desk.ids() == [row["id"] for row in before if row["id"] not in (104, 105)]
