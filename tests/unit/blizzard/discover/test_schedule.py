"""Every source at its own pace; the next batch is found while one runs; no file is taken twice."""

import contextlib
import random
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from blizzard.discover.schedule import THINK_AGAIN_SECS, Pace
from blizzard.execute.runner import RunFailed
from blizzard.journal.ledger import Ledger
from blizzard.model.settings import ListingLimits, RollingPolicy, Sizing
from blizzard.model.work import UnitOutcome, Work, WorkUnit
from blizzard.pipeline import Pipeline
from lakebed.errors import StoreUnavailable
from lakebed.storage.options import Location
from lakebed.storage.store import Reader
from tests.support.builders import (
    Bench,
    Hands,
    ndjson,
    pipeline_settings,
    put,
    rows,
    source_settings,
)
from tests.support.runner import InProcessRunner, Meanwhile, RunsOnly

AT_ONCE = RollingPolicy(inactivity=0.0)


@dataclass
class Sources:
    """A pipeline over folders, which remembers how often each was looked at."""

    root: Path
    bench: Bench
    looks: list[str] = field(default_factory=list)
    in_steps: list[str] = field(default_factory=list)
    """Those looks of them that a step has waited for."""
    fails: set[str] = field(default_factory=set)

    def open(self, place: Location) -> Reader:
        name = Path(place.uri).name
        self.looks.append(name)
        if threading.current_thread() is threading.main_thread():
            self.in_steps.append(name)
        if name in self.fails:
            raise StoreUnavailable("no answer", path=place.uri)
        return Reader(place.uri, place.options)

    def pipeline(self, pace: Pace | None = None) -> Pipeline:
        made = self.bench.pipeline()
        return replace(
            made, open_source=self.open, pace=pace or made.pace, pause=lambda _secs: None
        )

    def land(self, name: str, number: int = 1) -> None:
        put(self.root, name, ndjson(rows(number)))

    def looked(self) -> list[str]:
        """Return the looks since the last time that this was asked."""
        looks, self.looks = self.looks, []
        return sorted(looks)

    def ingested(self) -> list[str]:
        """Return the files whose rows are in the table, each as often as they are."""
        # A file that was listed while it was being written has failed first, as changed.
        records = [record for entry in self.bench.entries() for record in entry.sources]
        return [record.key for record in records if record.failure is None]


def sources_of(
    root: Path, *, once: bool = False, page: int = ListingLimits().page, **intervals: float
) -> Sources:
    """Build a pipeline over a folder per interval; one request lists `page` names."""
    for name in intervals:
        (root / name).mkdir(parents=True)
    made = tuple(
        source_settings(root / name, name=name, poll_interval=secs)
        for name, secs in intervals.items()
    )
    settings = replace(pipeline_settings(root / "x", root / "table"), sources=made)
    settings = replace(settings, sizing=Sizing(quick_listing=ListingLimits(page=page)))
    settings = replace(settings, sink=replace(settings.sink, rolling=AT_ONCE))
    return Sources(root, Bench(settings, once=once, hands=Hands(at=4_000_000_000.0)))


def limited(sources: Sources, files: int) -> None:
    """Let a batch hold so many files of each source."""
    each = tuple(
        replace(source, max_files_per_batch=files) for source in sources.bench.settings.sources
    )
    sources.bench.settings = replace(sources.bench.settings, sources=each)


def test_each_source_is_looked_at_at_its_own_pace(tmp_path: Path) -> None:
    """`poll_interval_secs` is the source's, not the pipeline's."""
    sources = sources_of(tmp_path, quick=10, slow=60)
    pipeline = sources.pipeline()
    pipeline.step()
    assert sources.looked() == ["quick", "slow"]
    for waited in (10, 20, 30, 40, 50):
        assert pipeline.until_next_listing() == 10
        sources.bench.hands.at += 10
        pipeline.step()
        assert sources.looked() == ["quick"], waited
    sources.bench.hands.at += 10
    pipeline.step()
    assert sources.looked() == ["quick", "slow"]


def test_files_of_a_source_that_is_not_due_are_known_from_its_last_look(tmp_path: Path) -> None:
    """They wait for their batch, and are taken once (HOLES D01)."""
    sources = sources_of(tmp_path, quick=10, slow=3600)
    settings = sources.bench.settings
    waits = replace(settings.sink, rolling=RollingPolicy(inactivity=10**9, rollover=25))
    sources.bench.settings = replace(settings, sink=waits)
    sources.land("slow/a.ndjson")
    sources.land("quick/a.ndjson")
    pipeline = sources.pipeline()
    sources.bench.hands.at = (tmp_path / "slow/a.ndjson").stat().st_mtime
    assert not pipeline.step()
    assert pipeline.until_next_listing() <= THINK_AGAIN_SECS
    sources.bench.hands.at += 30
    sources.looked()
    assert pipeline.step()

    assert sources.looked() == ["quick"]
    assert sorted(sources.ingested()) == ["quick:a.ndjson", "slow:a.ndjson"]
    assert not pipeline.step()
    assert len(sources.ingested()) == 2


def test_files_that_wait_are_thought_of_although_no_source_is_due(tmp_path: Path) -> None:
    sources = sources_of(tmp_path, slow=3600)
    settings = sources.bench.settings
    waits = replace(settings.sink, rolling=RollingPolicy(inactivity=10**12, rollover=10**12))
    sources.bench.settings = replace(settings, sink=waits)
    pipeline = sources.pipeline()
    pipeline.step()
    assert pipeline.until_next_listing() == 3600
    sources.land("slow/a.ndjson")
    sources.bench.hands.at += 3600
    assert not pipeline.step()
    assert pipeline.until_next_listing() == THINK_AGAIN_SECS


def test_a_clock_that_is_set_back_does_not_stop_the_looks(tmp_path: Path) -> None:
    sources = sources_of(tmp_path, a=10)
    pipeline = sources.pipeline()
    pipeline.step()
    sources.bench.hands.at -= 86_400
    sources.looked()
    pipeline.step()
    assert sources.looked() == ["a"]


def test_jitter_shifts_the_first_look_and_every_interval_by_chance(tmp_path: Path) -> None:
    """`global.poll_jitter_secs`: up to so much later, never sooner."""
    draws = iter([0.5, 0.25, 1.0])
    pace = Pace(jitter=8.0, chance=lambda: next(draws))
    assert pace.first() == 4.0
    sources = sources_of(tmp_path, a=10)
    pipeline = sources.pipeline(pace)
    pipeline.step()
    assert pipeline.until_next_listing() == 12.0
    sources.bench.hands.at += 12
    pipeline.step()
    assert pipeline.until_next_listing() == 18.0
    assert Pace(drain=True, jitter=8.0, chance=lambda: 1.0).first() == 0.0


def test_to_drain_a_source_it_is_looked_at_once_for_each_batch(tmp_path: Path) -> None:
    """W47: each time as long as there is more than a batch may hold."""
    sources = sources_of(tmp_path, once=True, a=10)
    limited(sources, 2)
    for number in range(6):
        sources.land(f"a/{number}.ndjson")
    pipeline = sources.pipeline()
    while pipeline.step():
        pass
    assert len(sources.ingested()) == 6
    assert sources.looked() == ["a"] * 3


def test_a_source_that_one_batch_empties_is_looked_at_once(tmp_path: Path) -> None:
    """However many names it has: what lands later is for the next run.

    D13: and a file of the same name in another source is another file.
    """
    sources = sources_of(tmp_path, once=True, a=10, b=10)
    for number in range(5):
        sources.land(f"a/{number}.ndjson")
    sources.land("b/0.ndjson")
    sources.bench.runner = Meanwhile(lambda: sources.land("a/later.ndjson"))
    assert drained(sources) == [True, False]
    assert sources.looked() == ["a", "b"]
    assert len(sources.ingested()) == 6
    sources.bench = sources.bench.again(run_id="run-2", runner=InProcessRunner())
    assert drained(sources) == [True, False]
    assert sources.looked() == ["a", "b"]
    assert sorted(sources.ingested())[5:] == ["a:later.ndjson", "b:0.ndjson"]


def test_only_the_source_with_more_than_a_batch_holds_is_looked_at_again(tmp_path: Path) -> None:
    sources = sources_of(tmp_path, once=True, full=10, small=10)
    limited(sources, 2)
    for number in range(5):
        sources.land(f"full/{number}.ndjson")
    sources.land("small/0.ndjson")
    assert drained(sources) == [True, True, True, False]
    assert sources.looked() == ["full"] * 3 + ["small"]
    assert len(sources.ingested()) == 6


def test_to_drain_after_a_batch_that_failed_the_sources_are_looked_at_again(tmp_path: Path) -> None:
    """What is there by then may be something else."""
    sources = sources_of(tmp_path, once=True, a=10)
    sources.land("a/0.ndjson")
    pipeline = sources.pipeline()
    pipeline.runner = Meanwhile((tmp_path / "a/0.ndjson").unlink, RunFailed("Spark is gone"))
    with pytest.raises(RunFailed):
        pipeline.step()
    sources.land("a/1.ndjson")
    pipeline.runner = InProcessRunner()
    assert pipeline.step()
    assert not pipeline.step()
    assert sources.looked() == ["a", "a"]
    assert sources.ingested() == ["a:1.ndjson"]


def test_a_source_with_a_partly_read_file_is_listed_at_once(tmp_path: Path) -> None:
    """Both are drained, but of one a batch has read only the first part of a file."""
    sources = sources_of(tmp_path, once=True, a=10, b=10)
    for name in ("a/1.ndjson", "b/1.ndjson"):
        sources.land(name)
    schedule, journal = sources.pipeline()._schedule, Ledger()
    schedule.findings(journal, frozenset())
    schedule.journaled({"a:1.ndjson", "b:1.ndjson"}, partly_read={"b"})
    sources.looked()
    schedule.findings(journal, frozenset())
    assert sources.looked() == ["b"]


def drained(sources: Sources) -> list[bool]:
    """Run a pipeline to its end, and return what its steps have found."""
    pipeline = sources.pipeline()
    found = [pipeline.step()]
    while found[-1]:
        found.append(pipeline.step())
    return found


@dataclass
class Busy(RunsOnly):
    """A runner during which files land, time passes, and Spark sometimes goes away."""

    sources: Sources
    chance: random.Random
    landed: list[str] = field(default_factory=list)
    parallelism: int = 2

    def land(self) -> None:
        for name in self.chance.choices("ab", k=self.chance.randrange(4)):
            self.landed.append(f"{name}:{len(self.landed)}.ndjson")
            self.sources.land(self.landed[-1].replace(":", "/"))

    def run(self, units: Sequence[WorkUnit], work: Work) -> list[UnitOutcome]:
        self.land()
        self.sources.bench.hands.at += self.chance.choice([0, 11])
        if self.chance.random() < 0.2:
            raise RunFailed("Spark is gone")
        return InProcessRunner().run(units, work)


@pytest.mark.parametrize("seed", range(12))
def test_whatever_lands_whenever_every_file_is_ingested_once(tmp_path: Path, seed: int) -> None:
    """Before, during and between batches, with limits, failures and two paces (HOLES D01)."""
    chance = random.Random(seed)
    sources = sources_of(tmp_path, page=1 if seed % 2 else ListingLimits().page, a=10, b=25)
    limited(sources, chance.randrange(1, 4))
    busy = Busy(sources, chance)
    sources.bench.runner = busy
    pipeline = sources.pipeline()
    for _ in range(6):
        busy.land()
        with contextlib.suppress(RunFailed):
            if not pipeline.step():
                sources.bench.hands.at += pipeline.until_next_listing()
    pipeline.runner = InProcessRunner()
    idle = 0
    while idle < 3:
        idle = 0 if pipeline.step() else idle + 1
        sources.bench.hands.at += 3600
    assert sorted(sources.ingested()) == sorted(busy.landed)
