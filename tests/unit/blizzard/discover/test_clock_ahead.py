"""Our clock is ahead of the store's, or was, and is set right: nothing is hidden for good by it."""

import os
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from blizzard.discover.finding import Reason
from blizzard.journal.checkpoint import read_ledger
from blizzard.journal.journal import Journal
from blizzard.journal.ledger import Ledger
from lakebed import layout
from lakebed.listing.lookback import Window
from lakebed.storage.options import ObjectFacts
from lakebed.storage.store import Store
from tests.support.bucket import Bucket
from tests.support.builders import (
    NOON,
    Bench,
    Hands,
    facts,
    failure,
    identity,
    known,
    ndjson,
    pipeline_settings,
    put,
    record,
    rows,
    source_settings,
)
from tests.support.writers import lease
from tests.unit.blizzard.discover.test_filter import look, taken

DAY = timedelta(days=1)
MINUTE = timedelta(minutes=1)


def journal_at(store: Bucket, *times: datetime, sources: tuple[str, ...] = ("default",)) -> Ledger:
    """Append an entry at each of some times, and read them all as the next start does."""
    hands = Hands()
    for number, at in enumerate(times):
        hands.at = at.timestamp()
        uris = {name: f"/in/{name}" for name in sources[: number + 1]}
        history = read_ledger(store, "default")
        journal = Journal(store, identity(source_uris=uris), history, hands.clock)
        if number == 0:
            journal.open_with(lambda: False)
        else:
            journal.append((record(f"{number}.ndjson"),), ())
    return read_ledger(store, "default")


def far_away() -> Bucket:
    """Return a store whose own times say nothing: everything was written in a year."""
    store = Bucket()
    store.head = lambda path: replace(facts(path), modified=NOON + 365 * DAY)  # type: ignore[method-assign]
    return store


def first_read(
    history: Ledger, store: Store, *, now: datetime, source: str = "default"
) -> datetime | None:
    history.store = store
    return history.first_read(source, now=now)


def test_a_clock_that_is_set_back_takes_the_beginning_of_a_source_back_with_it():
    """L29."""
    store = far_away()
    ahead = NOON + 10 * DAY
    history = journal_at(store, ahead, ahead + MINUTE, NOON + 2 * MINUTE, NOON + 5 * DAY)
    assert first_read(history, store, now=NOON + 6 * DAY) == NOON + MINUTE
    assert first_read(history, store, now=NOON + 60 * DAY) == NOON + MINUTE


def test_a_clock_that_is_set_back_counts_before_an_entry_says_so():
    """L29: the next start knows no more than that it is earlier than the last entry."""
    store = far_away()
    ahead = NOON + 10 * DAY
    history = journal_at(store, ahead, ahead + MINUTE)
    assert first_read(history, store, now=NOON) == NOON - MINUTE
    assert first_read(history, store, now=ahead + DAY) == ahead


def test_two_clocks_that_take_turns_do_not_move_the_beginning_on_and_on():
    """L29: by as much as they are apart, once."""
    store = far_away()
    times = [NOON + DAY + number * MINUTE - number % 2 * 10 * MINUTE for number in range(20)]
    history = journal_at(store, *times)
    assert first_read(history, store, now=NOON + 2 * DAY) == times[0] - 9 * MINUTE


def test_the_store_says_when_the_first_sources_were_first_read_and_nothing_of_later_ones():
    """L29."""
    store = Bucket()
    ahead = NOON + 10 * DAY
    history = journal_at(store, ahead, ahead + DAY, sources=("default", "later"))
    store.modified[layout.journal_entry("default", 0)] = NOON
    now = ahead + 2 * DAY
    assert first_read(history, store, now=now) == NOON
    assert first_read(history, store, now=now, source="later") == ahead + DAY
    assert first_read(history, store, now=now, source="never") is None


def dated(at: datetime) -> str:
    return f"date={at:%Y-%m-%d}/{at:%H%M%S}.ndjson"


def test_a_late_file_within_the_first_look_is_taken_though_our_clock_was_ahead_then(tmp_path):
    """L29: the machine's clock is ten days ahead at the first start, and set right."""
    folder = tmp_path / "in"
    window = Window.parse("date=%Y-%m-%d", 1)
    source = source_settings(folder, lookback=window)
    bench = Bench(pipeline_settings(folder, tmp_path / "table", sources=(source,)))
    put(folder, dated(NOON + 10 * DAY), ndjson(rows(1)))
    bench.hands.at = (NOON + 10 * DAY).timestamp()
    assert bench.pipeline().step()
    put(folder, dated(NOON), ndjson(rows(1)))
    bench.hands.at = NOON.timestamp()
    assert bench.again(run_id="run-2").pipeline().step()
    late = dated(NOON - DAY)
    put(folder, late, ndjson(rows(1)))
    for days in (5, 50):
        bench.hands.at = (NOON + days * DAY).timestamp()
        finding = bench.again(run_id=f"run-{days}").pipeline()
        assert finding.step() is (days == 5)
    assert [each.path for each in bench.entries()[-1].sources] == [late]


# ------------------------------------------------------------------------------ age


class BehindUs(Store):
    """A store whose clock is ten minutes behind ours."""

    def head(self, path: str) -> ObjectFacts | None:
        found = super().head(path)
        return found and replace(found, modified=NOON - 10 * MINUTE)


@pytest.fixture
def young(tmp_path: Path) -> Bench:
    """A pipeline with a file that was written this moment, by the store's clock."""
    folder = tmp_path / "in"
    put(folder, "a.ndjson", ndjson(rows(1)))
    written = (NOON - 10 * MINUTE).timestamp()
    os.utime(folder / "a.ndjson", (written, written))
    source = source_settings(folder, min_age=300)
    settings = pipeline_settings(folder, tmp_path / "table", sources=(source,))
    return Bench(settings, lease=lease(), once=False)


def test_a_file_is_not_older_because_our_clock_is_ahead(young):
    """L29: min_age_secs holds by the store's clock; or once we have seen it unchanged so long."""
    young.store = BehindUs
    pipeline = young.pipeline()
    assert not pipeline.step()
    young.hands.at += 200
    assert not pipeline.step()
    young.hands.at += 100
    assert pipeline.step()


def test_a_file_that_is_old_enough_is_taken_where_the_clocks_agree(young):
    young.once = True
    assert young.pipeline().step()


def test_what_our_clock_is_ahead_is_taken_off_the_age_of_a_file():
    """L29."""
    source = source_settings(min_age=60)
    listed = replace(facts("a.ndjson"), modified=NOON - 2 * MINUTE)
    assert taken(look(listed, source=source)) == ["a.ndjson"]
    ahead = look(listed, source=source, ahead=10 * MINUTE)
    assert (ahead.take, ahead.count(Reason.TOO_YOUNG)) == ((), 1)


def test_a_claim_tells_how_far_our_clock_is_ahead_of_the_store():
    """L29."""
    store = Bucket()
    ours = lease()
    assert ours.ahead() == timedelta(0)
    ours.take(store)
    store.modified[layout.writer("default")] = NOON - 10 * MINUTE
    assert ours.ahead() == 10 * MINUTE
    store.modified[layout.writer("default")] = NOON + 10 * MINUTE
    assert ours.ahead() == timedelta(0)
    store.remove(layout.writer("default"))
    assert ours.ahead() == timedelta(0)


def test_a_file_that_failed_by_a_clock_that_was_ahead_does_not_rest_until_that_time():
    """L29, L04."""
    failed = record("a.ndjson", failure=failure(retryable=True))
    before = known(failed, at=NOON + 10 * DAY)
    assert taken(look(facts("a.ndjson"), before=before)) == ["a.ndjson"]
