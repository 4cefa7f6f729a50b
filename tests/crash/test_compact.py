"""A compaction whose process dies before or after its n-th change of the store, for every n.

The life is that of the command and of the penguin after it. Whatever it leaves behind, readers see
the same rows; and whoever runs both again ends where one life would have.
"""

import pytest

from blizzard.rewrite.transaction import PromotionWaits
from lakebed.storage.store import Store
from tests.support.compactions import crowded
from tests.support.dying import Died, dying, lives
from tests.support.runner import InProcessRunner

pytestmark = pytest.mark.timeout(600)


def life(desk, fate):
    def sink(work):
        return dying(Store(work.sink.uri, work.sink.options), fate)

    desk.compact(store=dying(desk.store, fate), runner=InProcessRunner(sink=sink))
    desk.penguin(fate)


def again(desk):
    try:
        desk.compact()
    except PromotionWaits:
        desk.penguin()
        assert desk.compact().entry is None
    desk.penguin()


def test_a_compaction_that_dies_at_any_call_is_done_once(tmp_path):
    desk = crowded(tmp_path, files=2, compact={"min_files": 2})
    deaths = 0
    for fate in lives(desk.table):
        try:
            life(desk, fate)
        except Died:
            deaths += 1
        else:
            audit = desk.audited()
        assert desk.ids() == list(range(4))
        again(desk)
        assert desk.ids() == list(range(4))
        assert len(desk.active) == 1
    assert audit.is_balanced, audit.differences
    assert audit.totals.rows == 4
    assert deaths >= 5
