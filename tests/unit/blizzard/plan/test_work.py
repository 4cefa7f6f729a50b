"""What the units of a batch share."""

import pytest

from blizzard.model.bounds import Bounds
from blizzard.plan.work import work_of
from lakebed.clock import Clock
from tests.support.builders import pipeline_settings


@pytest.mark.parametrize(
    ("units", "cores", "ahead"),
    [(1, 1, False), (1, 2, True), (2, 2, False), (2, 4, True), (3, 4, False), (None, 8, False)],
)
def test_decompression_gets_a_thread_only_where_each_unit_has_two_cores(
    tmp_path, units, cores, ahead
):
    work = work_of(
        pipeline_settings(tmp_path, tmp_path),
        journal="j",
        batch=1,
        bounds=Bounds(),
        clock=Clock(),
        parallelism=cores,
        total_concurrency=None,
        units=units,
    )
    assert work.decompress_ahead is ahead
