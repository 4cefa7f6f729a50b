"""Commands that rewrite files while a compaction lands: they begin anew by themselves."""

from dataclasses import replace
from pathlib import Path

import pytest

from blizzard.rewrite.transaction import MOST_WAITS, TRIES, PromotionPending, RewriteConflict
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


def test_a_compaction_that_lands_meanwhile_costs_nobody_a_second_run(desk, order):
    order(desk, RewriteRace(after=desk.tidy, times=1))
    desk.penguin()
    assert desk.ids() == [1, 10, 11]
    assert [one.kind for one in entries(desk.table)][-2] == "compact"
    assert desk.audited().is_balanced
    # Two small files, that of the compaction, and what took its place: no leftover.
    assert len(files(desk)) == 4


def test_a_compaction_that_waits_for_penguin_is_waited_for(desk, order):
    waits = []

    def sleep(seconds):
        waits.append(seconds)
        if len(waits) == 3:
            desk.penguin()

    desk.clock = replace(desk.clock, sleep=sleep)
    order(desk, RewriteRace(after=desk.compact, times=1))
    desk.penguin()
    assert len(waits) == 3
    assert desk.ids() == [1, 10, 11]
    assert desk.audited().is_balanced


def test_nobody_waits_for_ever(desk, order):
    waits: list[float] = []
    desk.clock = replace(desk.clock, sleep=waits.append)
    with pytest.raises(PromotionPending, match="is not committed yet"):
        order(desk, RewriteRace(after=desk.compact, times=1))
    assert len(waits) == MOST_WAITS
    # And at its beginning a command does not wait at all.
    with pytest.raises(PromotionPending):
        order(desk, InProcessRunner())
    assert len(waits) == MOST_WAITS
    desk.penguin()
    assert desk.ids() == [0, 1, 10, 11]


def test_whoever_is_overtaken_all_the_time_is_told(desk, order):
    def other():
        number = 100 + len(entries(desk.table))
        desk.land(f"{number}.ndjson", {"id": number, "user": "z"})
        desk.ingest()
        desk.optimize()

    with pytest.raises(RewriteConflict, match="try again"):
        order(desk, RewriteRace(after=other, times=TRIES))
    assert {0, 1, 10, 11} < set(desk.ids())
    assert "erase" not in {one.kind for one in entries(desk.table)}
