"""A promotion whose process dies before or after its n-th change of the store, for every n.

The life is that of the command and of the penguin after it. Whatever it leaves behind, readers see
the table as it was or as it is to be; and whoever runs both again ends where one life would have.
"""

from decimal import Decimal

import pytest

from blizzard.rewrite.transaction import PromotionWaits
from lakebed.storage.store import Store
from tests.support.dying import Died, dying, lives
from tests.support.promotions import ID, PRICE, Rescued
from tests.support.runner import InProcessRunner

pytestmark = pytest.mark.timeout(600)

AFTER = [(Decimal("1.25"), None), (None, '{"price":"x"}'), (Decimal("3.25"), None)]


def life(desk, fate):
    def sink(promotion):
        return dying(Store(promotion.sink.uri, promotion.sink.options), fate)

    desk.promote("price", store=dying(desk.store, fate), runner=InProcessRunner(sink=sink))
    desk.penguin(fate)


def again(desk):
    try:
        desk.promote("price")
    except PromotionWaits:
        desk.penguin()
        desk.promote("price")
    desk.penguin()


def seen(desk):
    return [(row.get("price"), row["_rescued"]) for row in desk.rows()]


def test_a_promotion_that_dies_at_any_call_is_done_once(tmp_path):
    desk = Rescued(tmp_path)
    desk.land("a.ndjson", '{"id":1,"price":1.25}', '{"id":2,"price":"x"}')
    desk.ingest()
    desk.land("b.ndjson", '{"id":3,"price":3.25}')
    desk.ingest()
    desk.configure({"fields": [ID, PRICE]})
    before = seen(desk)
    deaths = 0
    for fate in lives(desk.table):
        try:
            life(desk, fate)
        except Died:
            deaths += 1
        assert seen(desk) in (before, AFTER)
        again(desk)
        assert seen(desk) == AFTER
        assert len(desk.active) == 2
    assert seen(desk) == AFTER
    assert deaths >= 7
