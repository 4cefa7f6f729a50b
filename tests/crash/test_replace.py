"""A replacement whose process dies before or after its n-th change of the store, for every n.

The life is that of the command, or of a batch, and of the penguin after it. Readers see the old
content or the new, never both and never neither; and whoever runs both again ends where one life
would have.
"""

import contextlib

import pytest

from blizzard.rewrite.transaction import PromotionWaits
from blizzard.worker.stores import OpenedStores
from lakebed.storage.store import Store
from tests.support.dying import Died, Fate, dying, lives
from tests.support.promotions import ID
from tests.support.retractions import Taken
from tests.support.runner import InProcessRunner

pytestmark = pytest.mark.timeout(600)

OLD, NEW = [1, 2, 3], [1, 3, 20, 21]


class DyingStores(OpenedStores):
    """The stores of a unit, of which the sink's dies."""

    fate: Fate

    def sink(self):
        return dying(super().sink(), self.fate)


def life(desk, fate):
    def sink(work):
        return dying(Store(work.sink.uri, work.sink.options), fate)

    def stores(work):
        found = DyingStores(work)
        found.fate = fate
        return found

    runner = InProcessRunner(stores=stores, sink=sink)
    if desk.source:
        desk.blizzard(open_sink=lambda _place: dying(desk.store, fate), runner=runner)
    else:
        desk.replace("b.ndjson", by="b.ndjson", store=dying(desk.store, fate), runner=runner)
    desk.penguin(fate)


def again(desk):
    if desk.source:
        desk.ingest()
        return
    with contextlib.suppress(PromotionWaits):
        desk.replace("b.ndjson", by="b.ndjson")
    desk.penguin()


@pytest.mark.parametrize("source", [{}, {"on_change": "replace"}], ids=["command", "on_change"])
def test_a_replacement_that_dies_at_any_call_is_done_once(tmp_path, source):
    quarantine = {"error_handling": {"on_bad_record": "quarantine"}}
    desk = Taken(tmp_path, {"fields": [ID]}, more=quarantine, source=source)
    desk.land("a.ndjson", {"id": 1})
    desk.land("b.ndjson", {"id": 2}, {"id": "bad"})
    desk.land("c.ndjson", {"id": 3})
    desk.ingest()
    desk.land("b.ndjson", {"id": 20}, {"id": 21}, {"id": "worse"})
    deaths = 0
    for fate in lives(desk.table):
        try:
            life(desk, fate)
        except Died:
            deaths += 1
        else:
            audit = desk.audited()
        assert sorted(desk.ids()) in (OLD, NEW)
        again(desk)
        assert sorted(desk.ids()) == NEW
    assert audit.is_balanced, audit.differences
    assert (audit.totals.rows, audit.totals.discarded) == (5, 1)
    assert deaths >= 7
