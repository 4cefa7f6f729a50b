"""Commands that rewrite files while a compaction lands: they change nothing, and are run again."""

from pathlib import Path

import pytest

from blizzard.rewrite.transaction import PromotionPending, RewriteConflict
from tests.support.builders import entries
from tests.support.compactions import Crowded, crowded
from tests.support.erasures import FIELDS
from tests.support.runner import InProcessRunner, RewriteRace


@pytest.fixture
def desk(tmp_path: Path) -> Crowded:
    schema = {**FIELDS, "provenance": ["file"]}
    desk = crowded(tmp_path, schema, files=0, compact={"min_files": 2})
    for number in range(2):
        desk.land(f"{number}a.ndjson", {"id": 10 * number, "user": "x"})
        desk.land(f"{number}b.ndjson", {"id": 10 * number + 1, "user": "y"})
        desk.ingest()
    return desk


ORDERS = {
    "retract": lambda desk, runner: desk.retract("0a.ndjson", runner=runner),
    "erase": lambda desk, runner: desk.erase("id = 0", runner=runner),
}


@pytest.fixture(params=ORDERS)
def order(request):
    return ORDERS[request.param]


def files(desk):
    return {path.name for path in desk.table.glob("*.parquet")}


@pytest.mark.parametrize("is_committed", [True, False])
def test_a_compaction_that_lands_meanwhile_comes_first(desk, order, is_committed):
    lands = desk.tidy if is_committed else desk.compact
    with pytest.raises(RewriteConflict):
        order(desk, RewriteRace(after=lands, times=1))
    # Two small files and that of the compaction: no leftover.
    assert len(files(desk)) == 3
    if not is_committed:
        with pytest.raises(PromotionPending, match="is not committed yet"):
            order(desk, InProcessRunner())
        desk.penguin()
    assert desk.ids() == [0, 1, 10, 11]
    order(desk, InProcessRunner())
    desk.penguin()
    assert desk.ids() == [1, 10, 11]
    assert [one.kind for one in entries(desk.table)][-2] == "compact"
    assert desk.audited().is_balanced
