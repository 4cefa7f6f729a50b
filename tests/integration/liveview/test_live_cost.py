"""What an open page asks of the stores: counted, so that it does not grow unseen."""

import gc
import time
from collections import Counter
from pathlib import Path

import pytest

from blizzard.answers.file_counts import EntryRows
from blizzard.events import BatchStarted, UnitReported
from lakebed.clock import Clock
from lakebed.telemetry.health import PartKind
from liveview.answer_cache import CachedAnswer
from liveview.followers import DocumentWindow
from liveview.observer import ANSWER_SECS
from liveview.routes import ROUTES
from penguin.events.commits import EntriesCommitted
from tests.integration.liveview.test_live_trouble import Asking
from tests.support.live_lake import PATIENT, LiveLake, asked

VIEWS = (
    "/api/v1/pipelines/orders",
    "/api/v1/pipelines/orders/batches",
    "/api/v1/pipelines/orders/throughput",
    "/api/v1/pipelines/orders/freshness",
    "/api/v1/tables/orders-t",
    "/api/v1/tables/orders-t/versions",
)


class Looked(Asking):
    """The API of a run of blizzard."""

    def __init__(self, lake: LiveLake) -> None:
        # Time passes when the test says so: then nothing takes long, and what is kept is not kept
        # for longer. Whole seconds add up exactly: what is five seconds old is not a little less.
        self.ahead, began = 0.0, float(int(time.time()))
        super().__init__(lake, Clock(seconds=lambda: began + self.ahead), "blizzard")
        for name in lake.names:
            self.live.expect(PartKind.PIPELINE, name)
            self.live.expect(PartKind.TABLE, f"{name}-t")

    def see(self, *paths):
        """Return documents, when everything that was begun for them is done."""
        answers = [self.get(path) for path in paths]
        assert [status for status, _found in answers] == [200] * len(paths)
        self.observer.settle(PATIENT.first)
        return [found for _status, found in answers]

    def later(self, seconds):
        """Let time pass, and look at the overview as the stream does."""
        self.ahead += seconds
        return self.see("/api/v1/overview")[0]


@pytest.fixture
def lake(tmp_path):
    lake = LiveLake(tmp_path, names=("orders", "clicks"))
    lake.fill()
    return lake


@pytest.fixture
def looked(lake):
    looked = Looked(lake)
    for _ in range(2):
        looked.later(1)
    looked.see(*VIEWS)
    looked.asked.clear()
    yield looked
    looked.api.close()


def started(name="orders"):
    planned = (("u1", 1, 10),)
    return BatchStarted(pipeline=name, entry=9, files=1, bytes=10, units=1, planned=planned)


def test_while_a_batch_only_moves_no_store_is_asked(looked):
    looked.live.emit(started())
    for rows in range(20):
        looked.live.emit(UnitReported(pipeline="orders", unit="u1", records=rows))
        (unit,) = looked.later(1)["pipelines"][0]["current_batch"]["units"]
        assert unit["rows"] == rows
    assert looked.asked == {}


def test_views_that_are_asked_for_together_look_once(looked):
    looked.ahead += ANSWER_SECS
    looked.see(VIEWS[0])
    first = Counter(looked.asked)
    assert first["list _blizzard/orders/journal"] == 1
    looked.see(*VIEWS[1:])
    assert looked.asked == first


def test_an_entry_costs_one_look_at_its_journal_and_none_at_another(lake, looked):
    lake.land("orders", "2024/new.ndjson", 1)
    lake.ingest("orders", looked.live.emit)
    looked.asked.clear()
    overview = looked.later(1)
    (detail,) = looked.see(VIEWS[0])
    assert detail["recent_batches"][0]["entry"] == overview["pipelines"][0]["last_entry"]
    looked.see(*VIEWS[1:])
    # One look for all views, and one that compares what landed yesterday with the table.
    assert looked.asked["list _blizzard/orders/journal"] == 2
    assert not [path for path in looked.asked if "clicks" in path]


def test_a_change_that_is_told_of_is_seen_at_once_however_young_the_last_look_is(lake, looked):
    (before,) = looked.see(VIEWS[0])
    lake.land("orders", "2024/new.ndjson", 1)
    lake.ingest("orders", looked.live.emit)
    lake.commit("orders")
    looked.live.emit(
        EntriesCommitted(table="orders-t", version=9, entries=1, files=1, rows=1, columns_added=())
    )
    looked.later(2.1)  # An answer is shared for two seconds.
    (after,) = looked.see(VIEWS[0])
    assert after["recent_batches"][0]["entry"] > before["recent_batches"][0]["entry"]
    assert after["recent_batches"][0]["committed_version"] is not None


def test_what_nobody_tells_of_is_seen_after_some_seconds(lake, looked):
    (before,) = looked.see(VIEWS[1])
    lake.land("orders", "2024/new.ndjson", 1)
    lake.ingest("orders")
    looked.ahead += ANSWER_SECS
    (after,) = looked.see(VIEWS[1])
    assert after["batches"][0]["entry"] == before["batches"][0]["entry"] + 1


def kept_objects() -> Counter[str]:
    """Count objects of ours, and what stands in tables of tuples.

    Files of the late window are left out: each reader of a journal keeps those, as a run does.
    """
    gc.collect()
    found = gc.get_objects()
    names = Counter(f"{type(one).__module__}.{type(one).__qualname__}" for one in found)
    ours = ("lakebed.", "blizzard.", "penguin.", "liveview.")
    kept = Counter({name: count for name, count in names.items() if name.startswith(ours)})
    del kept["blizzard.model.source.file.IngestedFile"]
    kept["rows"] = sum(len(one._kept) for one in found if type(one) is EntryRows)
    return kept


def test_an_open_page_keeps_no_more_with_every_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Whatever is kept has a bound. With low bounds, the second half of a run adds no objects."""
    monkeypatch.setattr("blizzard.answers.file_counts.MOST_KEPT", 10)
    monkeypatch.setattr("blizzard.journal.ledger.NEWEST", 10)
    monkeypatch.setitem(DocumentWindow.__init__.__kwdefaults__, "most", 10)  # type: ignore[arg-type]
    monkeypatch.setattr(CachedAnswer, "age", lambda *_given: (float("inf"), 0.0))
    lake = LiveLake(tmp_path, ("orders",))
    paths = [
        route.path.replace("{name}", "orders-t" if route.of == "tables" else "orders")
        for route in ROUTES
        if not any(one.required for one in route.parameters)
    ]
    counts: list[Counter[str]] = []
    with lake.served() as (pages, _site, emit):
        for batch in range(48):
            lake.land("orders", f"2024/{batch:03}.ndjson", 2)
            lake.ingest("orders", emit)
            if batch % 2:
                lake.commit("orders")
            for path in paths:
                asked(pages, path)
            if batch in (31, 47):
                pages.events.clear()
                counts.append(kept_objects())
    first, second = counts
    assert {name: more for name, more in (second - first).items() if more > 12} == {}
