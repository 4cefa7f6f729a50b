"""A retraction whose process dies before or after its n-th change of the store, for every n.

The life is that of the command and of the penguin after it. Whatever it leaves behind, readers see
the table as it was or as it is to be; and whoever runs both again ends where one life would have.
"""

import pytest

from blizzard.rewrite.transaction import PromotionWaits
from lakebed.storage.store import Store
from tests.support.dying import Died, dying, lives
from tests.support.promotions import ID
from tests.support.retractions import Taken
from tests.support.runner import InProcessRunner

pytestmark = pytest.mark.timeout(600)

NAMES = ("b.ndjson", "c.ndjson")


def life(desk, fate):
    def sink(work):
        return dying(Store(work.sink.uri, work.sink.options), fate)

    desk.retract(*NAMES, store=dying(desk.store, fate), runner=InProcessRunner(sink=sink))
    desk.penguin(fate)


def again(desk):
    try:
        desk.retract(*NAMES)
    except PromotionWaits:
        desk.penguin()
        assert desk.retract(*NAMES).entry is None
    desk.penguin()


def test_a_retraction_that_dies_at_any_call_is_done_once(tmp_path):
    quarantine = {"error_handling": {"on_bad_record": "quarantine"}}
    desk = Taken(tmp_path, {"fields": [ID]}, more=quarantine)
    desk.land("a.ndjson", {"id": 1})
    desk.land("b.ndjson", {"id": 2}, {"id": "bad"})
    desk.ingest()
    desk.land("c.ndjson", {"id": 3})
    desk.ingest()
    deaths = 0
    for fate in lives(desk.table):
        try:
            life(desk, fate)
        except Died:
            deaths += 1
        else:
            audit = desk.audited()
        assert desk.ids() in ([1, 2, 3], [1])
        again(desk)
        assert desk.ids() == [1]
        assert len(desk.active) == 1
    assert audit.is_balanced, audit.differences
    assert (audit.totals.rows, audit.totals.discarded) == (3, 1)
    assert deaths >= 5
