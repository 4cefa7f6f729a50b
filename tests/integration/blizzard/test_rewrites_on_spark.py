"""Commands that rewrite rows or replay lines on a real Spark session: tasks do the work."""

from decimal import Decimal

import pytest

from blizzard.rewrite.replay import NotReplayed, _units, replay
from blizzard.rewrite.transaction import NotRewritten
from lakebed.clock import Clock
from lakebed.types import Handoff
from tests.support.builders import entries
from tests.support.compactions import DAYS, crowded_by_day
from tests.support.dying import Fate
from tests.support.promotions import ID, PRICE, Rescued
from tests.support.replays import Replayed
from tests.support.retractions import Taken
from tests.support.spark import shared_runner

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("session")]


def test_files_are_rewritten_by_tasks(tmp_path):
    desk = Rescued(tmp_path)
    for number in range(1, 4):
        desk.land(f"{number}.ndjson", f'{{"id":{number},"price":{number}.25}}')
        desk.ingest()
    desk.configure({"fields": [ID, PRICE]})
    done = desk.promote("price", runner=shared_runner())
    assert [one.old.path for one in done.rewritten] == [one.path for one in done.found.files]
    desk.penguin()
    assert desk.column("price") == [(Decimal(f"{number}.25"), None) for number in range(1, 4)]


@pytest.mark.unbalanced("file_gone")
def test_a_file_that_is_gone_is_named_and_nothing_is_changed(tmp_path):
    desk = Rescued(tmp_path)
    desk.land("a.ndjson", '{"id":1,"price":1.25}')
    desk.ingest()
    desk.configure({"fields": [ID, PRICE]})
    (path,) = desk.active
    (desk.table / path).unlink()
    with pytest.raises(NotRewritten) as trouble:
        desk.promote("price", runner=shared_runner())
    assert path in str(trouble.value)
    assert "object_missing" in str(trouble.value)
    assert [one.kind for one in entries(desk.table)][-1] == "batch"


def test_tasks_write_files_without_the_rows(tmp_path):
    desk = Taken(tmp_path, {"fields": [ID], "provenance": ["file"]})
    for batch in range(2):
        desk.land(f"{batch}/a.ndjson", {"id": batch})
        desk.land(f"{batch}/b.ndjson", {"id": batch + 10})
        desk.ingest()
    before = desk.version
    done = desk.retract("0/a.ndjson", "1/b.ndjson", runner=shared_runner())
    assert [one.removed for one in done.rewritten] == [1, 1]
    desk.penguin()
    assert desk.ids() == [1, 10]
    assert desk.ids(before) == [0, 1, 10, 11]
    desk.optimize()
    desk.retract("0/b.ndjson", runner=shared_runner())
    desk.penguin()
    assert desk.ids() == [1]


def test_tasks_read_the_new_content_and_write_the_rows_that_stay(tmp_path):
    desk = Taken(tmp_path, {"fields": [ID]}, source={"on_change": "replace"})
    desk.land("a.ndjson", {"id": 1})
    desk.land("b.ndjson", {"id": 2})
    desk.ingest()
    desk.land("b.ndjson", {"id": 20}, {"id": 21})
    desk.blizzard(runner=shared_runner())
    assert desk.ids() == [1, 2]
    desk.penguin()
    assert sorted(desk.ids()) == [1, 20, 21]


def test_tasks_put_the_files_of_each_partition_together_and_sort_their_rows(tmp_path):
    desk = crowded_by_day(tmp_path)
    before, version = desk.rows(), desk.version
    assert len(desk.active) == 8
    told: list[tuple[int, int]] = []
    done = desk.tidy(runner=shared_runner(), progress=lambda *counts: told.append(counts))
    assert (told[0], told[-1]) == ((0, 2), (2, 2))
    assert (done.failed, done.gave_way) == ((), None)
    assert sorted(path.partition("/")[0] for path in desk.active) == [f"date={day}" for day in DAYS]
    assert desk.rows() == before
    assert desk.rows(version) == before
    assert [one.sorted_by for one in entries(desk.table)[-1].rewrites] == [("user",)] * 2
    audit = desk.audited()
    assert audit.is_balanced, audit.differences
    amounts = {one.value: found.rows for one, found in audit.places.amounts.items() if found.rows}
    assert amounts == {"in_table": 16, "replaced": 16}
    # Sorted rows are found by what they say of themselves.
    desk.retract(f"date={DAYS[1]}/2.ndjson", runner=shared_runner())
    desk.penguin()
    assert desk.ids() == [row["id"] for row in before if row["id"] not in (104, 105)]


def replayed(desk: Replayed) -> int:
    done = replay(desk.store, desk.settings, None, shared_runner(), clock=Clock())
    return done.lines


@pytest.fixture
def quarantined(tmp_path):
    desk = Replayed(tmp_path / "desk", handoff=Handoff.JOURNAL, inlined=False)
    desk.begin()
    return desk


def test_lines_are_read_again_by_tasks(quarantined):
    assert replayed(quarantined) == 2
    quarantined.live(Fate.none())

    assert (quarantined.ids(), quarantined.waiting()) == ([1, 2, 3], [b'{"id":'])
    assert replayed(quarantined) == 0


@pytest.mark.unbalanced("quarantine_gone")
def test_a_quarantine_file_that_goes_meanwhile_is_named_and_nothing_is_changed(
    quarantined, monkeypatch
):
    def units(*given):
        for path in (quarantined.table / "_blizzard/default/quarantine").iterdir():
            path.unlink()
        return _units(*given)

    monkeypatch.setattr("blizzard.rewrite.replay._units", units)
    with pytest.raises(NotReplayed, match="object_missing"):
        replayed(quarantined)
    assert [one.kind for one in entries(quarantined.table)][-1] == "batch"
