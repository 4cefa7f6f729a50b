"""A hint makes a look happen now; whether the file is taken is decided as by a sweep."""

import os
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from blizzard.discover.hinted import AT_ONCE
from blizzard.discover.schedule import Pace
from blizzard.events import FilesNoticed
from blizzard.model.notices import Hint
from blizzard.model.settings import ListingLimits, RollingPolicy, Sizing
from blizzard.model.source.form import split
from blizzard.notices.queue import Inbox
from blizzard.pipeline import Pipeline
from lakebed.errors import StoreDenied, StoreUnavailable
from lakebed.listing.lookback import Window
from lakebed.storage.options import Location, ObjectFacts
from lakebed.storage.store import Reader
from lakebed.types import OnChange
from tests.support.builders import (
    Bench,
    Hands,
    ndjson,
    pipeline_settings,
    put,
    rows,
    source_settings,
)
from tests.support.queues import counted

HOUR = 3600.0


class Looked(Reader):
    """A reader that remembers which objects it was asked for one by one."""

    def __init__(self, place: Location, site: "Site") -> None:
        super().__init__(place.uri, place.options)
        self.site = site
        self.lists = False

    def in_order(self, *args: Any, **given: Any) -> Iterator[ObjectFacts]:
        listing = super().in_order(*args, **given)
        while True:
            self.lists = True
            facts = next(listing, None)
            self.lists = False
            if facts is None:
                return
            yield facts

    def head(self, path: str) -> ObjectFacts | None:
        if self.lists:
            return super().head(path)
        self.site.heads.append(path)
        if self.site.fails is not None:
            raise self.site.fails
        return super().head(path)


class Site:
    """A pipeline that polls once an hour, and an inbox that hints come to."""

    def __init__(
        self,
        root: Path,
        *,
        rolling: RollingPolicy | None = None,
        at: float = 4_000_000_000.0,
        **source: Any,
    ) -> None:
        self.root = root / "in"
        self.root.mkdir()
        self.heads: list[str] = []
        self.fails: Exception | None = None
        template = source.pop("template", None)
        settings = pipeline_settings(self.root, root / "table", template=template)
        each = source_settings(self.root, poll_interval=HOUR, **source)
        sink = replace(settings.sink, rolling=rolling or RollingPolicy(inactivity=0.0))
        settings = replace(settings, sources=(each,), sink=sink)
        self.bench = Bench(settings, once=False, hands=Hands(at=at))
        self.numbers = 0
        self.pipeline = self.start()

    def start(self) -> Pipeline:
        """Start a run, with an inbox of its own."""
        self.inbox = Inbox("default", clock=self.bench.hands.clock, emit=self.bench.events.append)
        made = replace(
            self.bench.pipeline(),
            pace=Pace(),
            hints=self.inbox,
            open_source=lambda place: Looked(place, self),
        )
        made.step()
        self.heads.clear()
        return made

    def list_pages_of(self, names: int) -> None:
        """Let one request list so many names, from the next start on."""
        sizing = Sizing(quick_listing=ListingLimits(page=names))
        self.bench.settings = replace(self.bench.settings, sizing=sizing)

    def land(self, *names: str) -> None:
        for name in names:
            put(self.root, name, ndjson(rows(1)))

    def hint(self, *names: str) -> None:
        for name in names:
            self.numbers += 1
            hint = Hint(source="default", path=name)
            self.inbox.put("q", f"m{self.numbers}", f"r{self.numbers}", [hint])

    def step(self) -> bool:
        return self.pipeline.step()

    def ingested(self) -> list[str]:
        records = [record for entry in self.bench.entries() for record in entry.sources]
        return [record.path for record in records if record.failure is None]

    def counted(self) -> dict[str, int]:
        return counted(self.bench.events)

    def deleted(self) -> int:
        return len(self.inbox.take_settled("q"))


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_a_hinted_file_is_found_between_two_looks_and_alone(site: Site):
    site.land("a.ndjson", "b.ndjson")
    site.hint("b.ndjson")
    assert site.step()
    assert site.ingested() == ["b.ndjson"]
    assert site.heads == ["b.ndjson"]
    assert (site.deleted(), site.counted()) == (1, {"taken": 1})
    assert not site.step()
    site.bench.hands.at += HOUR
    assert site.step()
    assert site.ingested() == ["b.ndjson", "a.ndjson"]
    assert len(site.bench.said(FilesNoticed)) == 1


def test_a_late_file_of_an_old_folder_does_not_wait_for_a_sweep(tmp_path: Path):
    site = Site(tmp_path, late_window=1.0, sweep_interval=100 * HOUR)
    site.land("date=1/b.ndjson", "date=2/b.ndjson")
    site.bench.hands.at += HOUR
    assert site.step()
    site.bench.hands.at += HOUR
    site.land("date=1/a.ndjson")
    site.hint("date=1/a.ndjson")
    assert site.step()
    assert site.ingested()[2:] == ["date=1/a.ndjson"]


def test_a_file_that_waits_for_its_batch_survives_looks_that_do_not_list_it(tmp_path: Path):
    """A quick look lists no old folder: the message is still there, and brings the file again."""
    site = Site(
        tmp_path,
        rolling=RollingPolicy(inactivity=10 * HOUR, rollover=10 * HOUR),
        late_window=1.0,
        sweep_interval=1000 * HOUR,
    )
    site.list_pages_of(1)  # So the next sweep is due in 59 hours.
    site.land(*(f"date={number // 20}/b{number:02d}.ndjson" for number in range(60)))
    site.pipeline = site.start()
    assert len(site.ingested()) == 60
    for _ in range(2):
        site.bench.hands.at += HOUR
        assert not site.step()
    site.land("date=0/a.ndjson")
    os.utime(site.root / "date=0/a.ndjson", (site.bench.hands.at, site.bench.hands.at))
    site.hint("date=0/a.ndjson")
    for _ in range(3):
        assert not site.step()
        site.bench.hands.at += HOUR
    assert site.deleted() == 0
    site.bench.hands.at += 9 * HOUR
    assert site.step()
    assert site.ingested()[60:] == ["date=0/a.ndjson"]
    assert site.deleted() == 1
    assert len(site.bench.said(FilesNoticed)) == 1


@pytest.mark.parametrize(
    "name",
    ["_tmp/a.ndjson", ".a.ndjson", "a.ndjson.tmp", "a.csv", "a//b.ndjson", "../a.ndjson", "a/",
     "a\x01.ndjson", "a\ud800.ndjson"],
)  # fmt: skip
def test_names_that_no_sweep_takes_are_not_even_asked_for(site: Site, name: str):
    site.hint(name)
    assert not site.step()
    assert site.heads == []
    assert (site.deleted(), site.counted()) == (1, {"not_matched": 1})


@pytest.mark.parametrize("rule", ["horizon", "lookback", "pattern"])
def test_rules_for_names_and_folders_hold_for_hints_too(tmp_path: Path, rule: str):
    window, pattern = Window.parse("date=%Y-%m-%d", 2), split("/x/*/a*.ndjson")[1]
    given: dict[str, Any] = {rule: pattern if rule == "pattern" else window}
    # Since when a source is read is taken from the times of the journal's files, too.
    site = Site(tmp_path, at=time.time() + 1, **given)
    today = site.bench.hands.clock.now().date()
    new, old = (f"date={today - timedelta(days=age)}/a.ndjson" for age in (0, 30))
    if rule == "pattern":
        old = new.replace("/a.", "/b.")
    site.land(new, old)
    site.hint(new, old)
    assert site.step()
    assert site.ingested() == [new]
    assert site.counted() == {"taken": 1, "not_matched": 1}


@pytest.mark.parametrize("age", [10, -HOUR])
def test_a_file_that_is_too_young_is_looked_at_again(tmp_path: Path, age: float):
    """A store whose clock is ahead keeps no hinted file waiting."""
    site = Site(tmp_path, min_age=30.0)
    site.land("a.ndjson")
    at = site.bench.hands.at - age
    os.utime(site.root / "a.ndjson", (at, at))
    site.hint("a.ndjson")
    assert not site.step()
    assert site.pipeline.until_next_listing() == pytest.approx(30)
    site.bench.hands.at += 31
    assert site.step()
    assert site.ingested() == ["a.ndjson"]


def test_a_message_about_the_object_that_is_in_the_table_changes_nothing(site: Site):
    site.land("a.ndjson")
    site.hint("a.ndjson")
    assert site.step()
    site.hint("a.ndjson")
    assert not site.step()
    assert site.counted() == {"taken": 1, "known": 1}


@pytest.mark.parametrize(
    ("on_change", "times"), [(OnChange.REINGEST, 2), (OnChange.ERROR, 1), (OnChange.IGNORE, 1)]
)
def test_a_changed_object_is_treated_by_the_rule_for_changes(
    tmp_path: Path, on_change: OnChange, times: int
):
    site = Site(tmp_path, on_change=on_change)
    site.land("a.ndjson")
    site.hint("a.ndjson")
    assert site.step()
    put(site.root, "a.ndjson", ndjson(rows(5)))
    site.hint("a.ndjson")
    site.step()
    assert site.ingested() == ["a.ndjson"] * times
    assert site.deleted() == 2


def test_a_message_about_an_object_that_is_not_there_ends(site: Site):
    site.hint("a.ndjson")
    assert not site.step()
    assert (site.deleted(), site.counted()) == (1, {"missing": 1})
    assert site.heads == ["a.ndjson"]


@pytest.mark.parametrize("limit", [{"max_files_per_batch": 2}, {"max_bytes_per_batch": 1}])
def test_a_batch_holds_no_more_for_hints(tmp_path: Path, limit: dict[str, Any]):
    site = Site(tmp_path, **limit)
    names = [f"{number}.ndjson" for number in range(5)]
    site.land(*names)
    site.hint(*names)
    sizes = []
    while site.step():
        sizes.append(len(site.bench.entries()[-1].sources))
    assert sorted(site.ingested()) == names
    assert max(sizes) == limit.get("max_files_per_batch", 1)
    site.step()
    assert site.deleted() == 5


def test_many_hints_are_followed_together(site: Site):
    names = [f"date=1/{number:03d}.ndjson" for number in range(10 * AT_ONCE)]
    site.land(*names, "date=2/a.ndjson", "date=1/below/a.ndjson")
    site.hint(*names, "date=1/005-gone.ndjson", "date=2/a.ndjson")
    assert site.step()
    assert sorted(site.ingested()) == [*names, "date=2/a.ndjson"]
    assert site.counted() == {"missing": 1, "taken": len(names) + 1}


def test_an_object_that_may_not_be_asked_for_is_left_to_the_next_listing(site: Site):
    """Otherwise one message could fail every step."""
    site.fails = StoreDenied("access was refused", path="a.ndjson")
    site.land("a.ndjson")
    site.hint("a.ndjson")
    assert not site.step()
    assert site.deleted() == 1
    site.bench.hands.at += HOUR
    assert site.step()
    assert site.ingested() == ["a.ndjson"]


def test_a_store_that_does_not_answer_fails_the_step_and_keeps_the_message(site: Site):
    site.land("a.ndjson")
    site.hint("a.ndjson")
    site.fails = StoreUnavailable("no answer", path="a.ndjson")
    with pytest.raises(StoreUnavailable):
        site.step()
    assert site.deleted() == 0
    site.fails = None
    assert site.step()
    assert site.deleted() == 1
