"""A command that rewrites rows, whose process dies before or after its n-th change of the store.

The life is that of the command, or of a batch, and of the penguin after it. After any death readers
see the table as it was or as it is to be; running both again ends where one life would have.
"""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from blizzard.rewrite.transaction import PromotionPending
from blizzard.worker.download import OpenedStores
from lakebed.storage.store import Store
from tests.support.compactions import crowded
from tests.support.dying import Died, Fate, dying, lives
from tests.support.erasures import FIELDS, Forgetful
from tests.support.promotions import ID, PRICE
from tests.support.retractions import Taken
from tests.support.runner import InProcessRunner

pytestmark = pytest.mark.timeout(600)

QUARANTINE = {"error_handling": {"on_bad_record": "quarantine"}}


class DyingStores(OpenedStores):
    """The stores of a unit, of which the sink's dies."""

    fate: Fate

    def sink(self) -> Store:
        return dying(super().sink(), self.fate)


def runner(fate: Fate) -> InProcessRunner:
    """Return a runner whose tasks share the fate of their driver."""

    def stores(work: Any) -> DyingStores:
        found = DyingStores(work)
        found.fate = fate
        return found

    return InProcessRunner(
        stores=stores, sink=lambda work: dying(Store(work.sink.uri, work.sink.options), fate)
    )


@dataclass(frozen=True, kw_only=True)
class Command:
    """A command, the table that it is given, and what readers see afterwards."""

    begin: Callable[[Path], Any]
    run: Callable[..., Any]
    after: list[Any]
    active: int | None
    """How many data files the table has then; None where that depends on the death."""
    totals: tuple[int, int]
    """The lines that an audit counts, and those that were discarded."""
    seen: Callable[[Any], list[Any]] = lambda desk: sorted(desk.ids())
    repeats: bool = False
    """Whether it does the same again, once it is done."""
    deaths: int = 5


def retracted(folder: Path) -> Taken:
    desk = Taken(folder, {"fields": [ID]}, more=QUARANTINE)
    desk.land("a.ndjson", {"id": 1})
    desk.land("b.ndjson", {"id": 2}, {"id": "bad"})
    desk.ingest()
    desk.land("c.ndjson", {"id": 3})
    desk.ingest()
    return desk


def replaced(folder: Path, **source: Any) -> Taken:
    desk = Taken(folder, {"fields": [ID]}, more=QUARANTINE, source=source)
    desk.land("a.ndjson", {"id": 1})
    desk.land("b.ndjson", {"id": 2}, {"id": "bad"})
    desk.land("c.ndjson", {"id": 3})
    desk.ingest()
    desk.land("b.ndjson", {"id": 20}, {"id": 21}, {"id": "worse"})
    return desk


def erased(folder: Path) -> Forgetful:
    desk = Forgetful(folder, FIELDS)
    desk.land("a.ndjson", {"id": 1, "user": "x"}, {"id": 2, "user": "y"})
    desk.ingest()
    desk.land("b.ndjson", {"id": 3, "user": "x"})
    desk.ingest()
    return desk


def promoted(folder: Path) -> Taken:
    desk = Taken(folder)
    desk.land("a.ndjson", '{"id":1,"price":1.25}', '{"id":2,"price":"x"}')
    desk.ingest()
    desk.land("b.ndjson", '{"id":3,"price":3.25}')
    desk.ingest()
    desk.configure({"fields": [ID, PRICE]})
    return desk


def batch(desk: Taken, **around: Any) -> None:
    """Run a batch of `on_change: replace`."""
    store = around.pop("store", desk.store)
    desk.blizzard(open_sink=lambda _place: store, **around)


COMMANDS = {
    "retract": Command(
        begin=retracted,
        run=lambda desk, **around: desk.retract("b.ndjson", "c.ndjson", **around),
        after=[1],
        active=1,
        totals=(3, 1),
    ),
    "replace": Command(
        begin=replaced,
        run=lambda desk, **around: desk.replace("b.ndjson", by="b.ndjson", **around),
        after=[1, 3, 20, 21],
        active=None,
        totals=(5, 1),
        repeats=True,
        deaths=7,
    ),
    "on_change": Command(
        begin=partial(replaced, on_change="replace"),
        run=batch,
        after=[1, 3, 20, 21],
        active=None,
        totals=(5, 1),
        repeats=True,
        deaths=7,
    ),
    "erase": Command(
        begin=erased,
        run=lambda desk, **around: desk.erase("user = 'x'", **around),
        after=[2],
        active=1,
        totals=(3, 0),
    ),
    "compact": Command(
        begin=lambda folder: crowded(folder, files=2, compact={"min_files": 2}),
        run=lambda desk, **around: desk.compact(**around),
        after=[0, 1, 2, 3],
        active=1,
        totals=(4, 0),
    ),
    "promote": Command(
        begin=promoted,
        run=lambda desk, **around: desk.promote("price", **around),
        seen=lambda desk: [(row.get("price"), row["_rescued"]) for row in desk.rows()],
        after=[(Decimal("1.25"), None), (None, '{"price":"x"}'), (Decimal("3.25"), None)],
        active=2,
        totals=(3, 0),
        deaths=7,
    ),
}


def again(command: Command, desk: Any) -> None:
    """Run the command until it has nothing left to do."""
    try:
        command.run(desk)
    except PromotionPending:
        desk.penguin()
        if not command.repeats:
            assert command.run(desk).entry is None
    desk.penguin()


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_that_dies_at_any_call_is_done_once(tmp_path: Path, name: str) -> None:
    command = COMMANDS[name]
    desk = command.begin(tmp_path)
    before, deaths, audit = command.seen(desk), 0, None
    for fate in lives(desk.table):
        try:
            command.run(desk, store=dying(desk.store, fate), runner=runner(fate))
            desk.penguin(fate)
        except Died:
            deaths += 1
        else:
            audit = desk.audited()
        assert command.seen(desk) in (before, command.after)
        again(command, desk)
        assert command.seen(desk) == command.after
        assert command.active in (None, len(desk.active))
    assert audit is not None
    assert audit.is_balanced, audit.differences
    assert (audit.totals.rows, audit.totals.discarded) == command.totals
    assert deaths >= command.deaths
