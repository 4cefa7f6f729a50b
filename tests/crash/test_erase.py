"""An erasure whose process dies before or after its n-th change of the store, for every n.

The life is that of the command and of the penguin after it. Whatever it leaves behind, readers see
the table as it was or as it is to be; and whoever runs both again ends where one life would have.
"""

import pytest

from blizzard.rewrite.transaction import PromotionWaits
from lakebed.storage.store import Store
from tests.support.dying import Died, dying, lives
from tests.support.erasures import FIELDS, Forgetful
from tests.support.runner import InProcessRunner

pytestmark = pytest.mark.timeout(600)

X = "user = 'x'"


def life(desk, fate):
    def sink(work):
        return dying(Store(work.sink.uri, work.sink.options), fate)

    desk.erase(X, store=dying(desk.store, fate), runner=InProcessRunner(sink=sink))
    desk.penguin(fate)


def again(desk):
    try:
        desk.erase(X)
    except PromotionWaits:
        desk.penguin()
        assert desk.erase(X).entry is None
    desk.penguin()


def test_an_erasure_that_dies_at_any_call_is_done_once(tmp_path):
    desk = Forgetful(tmp_path, FIELDS)
    desk.land("a.ndjson", {"id": 1, "user": "x"}, {"id": 2, "user": "y"})
    desk.ingest()
    desk.land("b.ndjson", {"id": 3, "user": "x"})
    desk.ingest()
    deaths = 0
    for fate in lives(desk.table):
        try:
            life(desk, fate)
        except Died:
            deaths += 1
        else:
            audit = desk.audited()
        assert desk.ids() in ([1, 2, 3], [2])
        again(desk)
        assert desk.ids() == [2]
        assert len(desk.active) == 1
    assert audit.is_balanced, audit.differences
    assert audit.totals.rows == 3
    assert deaths >= 5
