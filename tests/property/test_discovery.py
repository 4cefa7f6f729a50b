"""Whatever arrives in whatever order, whatever fails and whenever it restarts: once, and surely."""

from collections import Counter
from datetime import timedelta
from itertools import pairwise
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from blizzard.discover import cursor
from blizzard.discover.finding import Finding
from blizzard.discover.hinted import HintCheck
from blizzard.discover.lister import SourceLister
from blizzard.discover.scan import DiscoveryContext
from blizzard.journal.checkpoint import SnapshotWriter, read_ledger
from blizzard.journal.journal import Journal
from blizzard.journal.ledger import Ledger
from blizzard.journal.segments import Blocks
from blizzard.model.notices import Hint, NoticeKind
from blizzard.model.settings import ListingLimits, SnapshotLimits, SourceSettings
from blizzard.model.source.file import IngestedFile, SourceFile
from lakebed.clock import Clock
from lakebed.documents.entry import decode_entry
from lakebed.documents.records import SourceRecord
from lakebed.errors import StoreUnavailable
from lakebed.layout import entry_sequence
from tests.support.bucket import Bucket
from tests.support.builders import Hands, failure, finished_file, identity, source_settings
from tests.support.site import Backlog, Site

FOLDERS = ("", "a/", "b/", "b/c/", "b/d/", "date=1/", "date=2/hour=1/", "date=2/hour=2/")
NAMES = st.builds(
    lambda folder, number: f"{folder}{number:02d}.ndjson",
    st.sampled_from(FOLDERS),
    st.integers(0, 60),
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("arrive"), st.lists(NAMES, max_size=6)),
        st.tuples(st.just("look"), st.sampled_from(["all", "none", "half", "fail some"])),
        st.tuples(st.just("hints"), st.lists(NAMES, max_size=20)),
        st.tuples(st.just("broken look"), st.integers(0, 5)),
        st.tuples(st.just("wait"), st.sampled_from([1, 10, 300, 4000, -3600])),
        st.tuples(st.just("restart"), st.none()),
    ),
    max_size=40,
)


# A few files count as many, so that quick looks, merges and snapshots are made.
LOOKS = ListingLimits(page=1, names=12)
KEYS = st.text(max_size=6).map(lambda path: f"s:{path}")
SNAPSHOTS = SnapshotLimits(entries=4, names=8, block=3)


class World:
    """A source, a journal in a store, and a run that may die at any time."""

    def __init__(self) -> None:
        self.source = Bucket()
        self.table = Bucket(uri="s3://bucket/table")
        self.hands = Hands()
        self.arrived: set[str] = set()
        self.settings: SourceSettings = source_settings("s3://bucket/in", max_files_per_batch=7)
        self.waiting: set[str] = set()
        self.restart()

    def restart(self) -> None:
        writer = SnapshotWriter(
            store=self.table, pipeline="default", clock=Clock(), limits=SNAPSHOTS
        )
        history = read_ledger(self.table, "default", spill=writer.spill)
        self.journal = Journal(self.table, identity(), history, self.hands.clock, limits=SNAPSHOTS)
        self.journal.open_with(lambda: False)
        self.lister = SourceLister(
            source=self.settings, template=None, partition_fields={}, limits=LOOKS
        )
        self.waiting = set()

    def arrive(self, names: list[str]) -> None:
        for name in names:
            if name not in self.arrived:
                self.arrived.add(name)
                self.source.add(name, modified=self.hands.clock.now())

    def context(self) -> DiscoveryContext:
        return DiscoveryContext(
            store=self.source,
            lookup=self.journal.ledger.lookup(),
            unfinished=self.journal.ledger.unfinished,
            since=self.journal.ledger.first_read("default", now=self.hands.clock.now()),
            now=self.hands.clock.now(),
        )

    def look(self) -> tuple[SourceFile, ...]:
        open_work = [f"default:{path}" for path in self.waiting]
        finding = self.lister.discover(self.context(), open_work=open_work)
        self.waiting = {file.path for file in finding.take}
        self.check_marks()
        return finding.take

    def follow(self, names: list[str]) -> tuple[SourceFile, ...]:
        """Look at files that messages name, some of which may never have been there."""
        look = HintCheck(lister=self.lister, context=self.context())
        hints = [Hint(source="default", path=name) for name in set(names)]
        finding, followed = look.follow(hints, Finding())
        assert {file.path for file in finding.take} <= self.arrived
        known = {hint.path for hint, kind in followed.settled.items() if kind is NoticeKind.KNOWN}
        resting = {each.record.path for each in self.journal.ledger.unfinished.values()}
        assert known <= {*self.ingested(), *resting}, "a message would go before its file is in"
        missing = {
            hint.path for hint, kind in followed.settled.items() if kind is NoticeKind.MISSING
        }
        assert missing.isdisjoint(self.arrived)
        self.check_marks()
        return finding.take

    def check_marks(self) -> None:
        """No mark has passed a file that was seen and is not done: the next look lists it."""
        found = self.lister._cursor
        if found.incomplete or found.swept_at is None or self.lister._stopped is not None:
            return
        ranges = found.ranges()
        resting = {each.record.path for each in self.journal.ledger.unfinished.values()}
        for path in self.waiting - resting:
            assert any(
                path.startswith(f"{each.prefix}/" if each.prefix else "")
                and each.after < path
                and (each.until is None or path <= each.until)
                for each in ranges
            ), f"{path} is waiting, and no range lists it"

    def ingest(self, files: tuple[SourceFile, ...], how: str) -> None:
        if how == "none" or not files:
            return
        some = files[::2] if how == "half" else files
        records = []
        for place, file in enumerate(some):
            failed = failure(retryable=True) if how == "fail some" and place % 3 == 0 else None
            records.append(
                SourceRecord(
                    source="default", path=file.path, size=file.size, etag=file.etag, failure=failed
                )
            )
        self.journal.append(tuple(records), (finished_file(),))
        self.waiting -= {record.path for record in records}
        if self.journal.snapshot_is_due:
            self.journal.write_snapshot()

    def ingested(self) -> Counter[str]:
        entries = (
            decode_entry(self.table.bodies[name], name)
            for name in self.table.names
            if entry_sequence(name) is not None
        )
        return Counter(
            record.path for entry in entries for record in entry.sources if record.failure is None
        )


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(STEPS)
def test_every_file_is_ingested_once_after_a_sweep_and_no_mark_passes_one_that_waits(steps):
    """L07, L08, L10, L11, L22, D01."""
    world = World()
    for step, given_ in steps:
        match step:
            case "arrive":
                world.arrive(given_)
            case "look":
                world.ingest(world.look(), given_)
            case "hints":
                world.ingest(world.follow(given_), "all")
            case "broken look":
                world.source.breaks_after = given_
                before = world.lister._cursor
                try:
                    world.look()
                except StoreUnavailable:
                    assert world.lister._cursor is before
                world.source.breaks_after = None
            case "wait":
                world.hands.at += given_
            case "restart":
                world.restart()
        assert max(world.ingested().values(), default=0) <= 1
    for _ in range(30):
        world.hands.at += 4000
        world.ingest(world.look(), "all")
    assert world.ingested() == dict.fromkeys(world.arrived, 1)


BACKLOG = st.lists(
    st.one_of(
        st.tuples(st.just("arrive"), st.lists(NAMES, max_size=25)),
        st.tuples(st.just("overwrite"), NAMES),
        st.tuples(st.just("batch"), st.sampled_from(["all", "all", "half", "none", "fails"])),
        st.tuples(st.just("wait"), st.sampled_from([11, 300, 4000, -3600])),
        st.tuples(st.just("restart"), st.none()),
    ),
    max_size=20,
)


class Drain:
    """A backlog that is read in batches which end as they may, and what the journal has of it."""

    def __init__(self, names: set[str], most: int, *, once: bool) -> None:
        # Older than the late window, so that quick looks do not list them once more.
        self.site = Site(sorted(names), limits=LOOKS, max_files_per_batch=most)
        self.site.bucket.page = 3
        self.backlog = Backlog(self.site, once=once)
        self.most = most
        self.journaled: Counter[str] = Counter()
        self.promised: set[str] = set()
        """What was there when a run first looked: the look that begins then comes by it."""
        self.fresh = True

    def step(self, step: str, given_: Any) -> None:
        match step:
            case "arrive":
                self.site.arrive(*given_)
            case "overwrite":
                self.site.bucket.etags[given_] = f"at {self.site.now}"
            case "batch":
                self.batch(given_)
            case "wait":
                self.site.now += timedelta(seconds=given_)
            case "restart":
                self.backlog.restart()
                self.fresh = True

    def batch(self, how: str = "all") -> int:
        if self.fresh:
            self.promised |= set(self.site.bucket.names)
        self.fresh = False
        files = self.backlog.found()
        assert len(files) <= self.most
        done = {"all": files, "half": files[::2]}.get(how, ())
        if how == "fails":
            self.backlog.schedule.batch_failed()
        self.backlog.journal(done)
        self.journaled.update(file.path for file in done)
        assert max(self.journaled.values(), default=0) <= 1
        return len(files)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sets(NAMES, min_size=12, max_size=40), BACKLOG, st.integers(2, 6), st.booleans())
def test_a_backlog_is_read_once_and_none_of_it_waits_for_what_arrives_later(
    names, steps, most, once
):
    """L07, L08, L11, D01, D15: batches that go on where the one before stopped, or begin anew."""
    drain = Drain(names, most, once=once)
    for step, given_ in [*steps, ("batch", "all")]:
        drain.step(step, given_)
    for _ in range(200):
        if not drain.batch():
            break
        drain.site.now += timedelta(seconds=0 if once else 11)
    # No sweep need come for a file that was found and that its batch left.
    assert drain.promised <= set(drain.journaled)
    if once:
        return
    # What landed below the position of one sweep is found by the next, though no look comes to the
    # end of what lands meanwhile.
    there = set(drain.site.bucket.names)
    for number in range(3 * len(there) // most + 40):
        drain.site.arrive(*(f"~{number:04d}-{place}.ndjson" for place in range(most)))
        if number % 2:
            drain.site.arrive(f"!{number:04d}.ndjson")
        drain.site.now += timedelta(seconds=300)
        drain.batch()
    assert there <= set(drain.journaled)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.dictionaries(KEYS, st.integers(0, 9), min_size=1, max_size=20), max_size=12))
def test_segments_answer_as_a_dictionary_does(writes):
    """D01: the newest word on a name counts, in whichever segments it stands."""
    store = Bucket()
    book = SnapshotWriter(store=store, pipeline="p", clock=Clock(), limits=SnapshotLimits(block=3))
    history = Ledger(store=store, pipeline="p", blocks=Blocks(most=1, ahead=2))
    truth: dict[str, int] = {}
    for write in writes:
        for key, size in write.items():
            history.recent[key] = IngestedFile(key=key, size=size, etag=None)
        truth |= write
        book._write_rows(history, [])
    lookup = history.lookup()
    asked = sorted({*truth, "s:", "s:zz", "s:m"})
    for keys in (asked, list(reversed(asked))):
        for key in keys:
            found = lookup(key).finished
            assert (found.size if found else None) == truth.get(key), key
    sizes = [each.names for each in history.segments]
    assert all(one >= 2 * other for one, other in pairwise(sizes))


@given(st.integers(0, 3 * 24), st.integers(1, 5))
def test_a_sweep_is_never_further_away_than_its_interval(hours, interval):
    found = cursor.ListingCursor(swept_at=0.0, pages=10**9, folders={"": cursor.FolderCursor()})
    due = found.sweep_is_due(
        timedelta(hours=hours).total_seconds(), interval=interval * 3600.0, poll_interval=10
    )
    assert due is (hours >= interval)
