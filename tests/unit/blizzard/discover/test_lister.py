"""Looks at a source: what they cost, and that they find everything."""

from typing import Any

import pytest

from blizzard.discover.finding import Reason
from blizzard.model.settings import ListingLimits
from lakebed.errors import StoreUnavailable
from tests.support.builders import failure, record
from tests.support.site import HOUR, QUICK, SECOND, Site, flat, taken


def known(names: list[str], **given: Any) -> Site:
    """Return a source whose files are all ingested, and that was looked at whole."""
    site = Site(names, limits=QUICK, **given)
    site.finish_all()
    site.look()
    return site


# ------------------------------------------------------------------------------ quick looks


def test_files_that_finish_in_another_order_than_their_names_are_found_quickly():
    """L07, L11."""
    site = known(flat(100))
    site.arrive("00000105.ndjson")
    assert taken(site.look(later=10 * SECOND)) == ["00000105.ndjson"]
    site.finish("00000105.ndjson")
    site.look(later=10 * SECOND)
    site.arrive("00000102.ndjson")
    finding = site.look(later=10 * SECOND)
    assert not finding.swept
    assert taken(finding) == ["00000102.ndjson"]


def test_an_arrival_is_looked_behind_until_the_late_window_has_passed():
    site = known(flat(1000), sweep_interval=10**6, poll_interval=3600, late_window=600)
    site.arrive("00001005.ndjson")
    site.look(later=SECOND)
    site.finish("00001005.ndjson")
    site.look(later=SECOND)
    site.look(later=599 * SECOND)
    site.arrive("00001003.ndjson")
    assert taken(site.look()) == ["00001003.ndjson"]
    site.finish("00001003.ndjson")
    for _ in range(2):
        site.look(later=601 * SECOND)
    site.arrive("00001002.ndjson")
    assert site.look(later=SECOND).take == ()
    found = site.look(later=10**6 * SECOND)
    assert found.swept
    assert taken(found) == ["00001002.ndjson"]


def test_a_name_from_the_future_does_not_hide_what_comes_after_it():
    """L22, L11: names are compared with the journal, and a mark stands below every arrival."""
    site = known([*flat(100), "zzz.ndjson"])
    site.arrive("00000100.ndjson")
    assert site.look(later=10 * SECOND).take == ()  # It sorts before the mark: a sweep finds it.
    assert taken(site.look(later=HOUR)) == ["00000100.ndjson"]
    site.finish("00000100.ndjson")
    for number in range(101, 110):
        site.arrive(f"{number:08d}.ndjson")
        finding = site.look(later=SECOND)
        assert not finding.swept
        assert taken(finding) == [f"{number:08d}.ndjson"]
        site.finish(f"{number:08d}.ndjson")


def test_new_folders_are_found_quickly_behind_the_last_one_at_every_level():
    """L08, L20."""
    site = Site(
        [
            *(f"region=a/date=2024-01-{day:02d}/x.ndjson" for day in range(1, 30)),
            *(f"region=b/date=2024-01-{day:02d}/x.ndjson" for day in range(1, 30)),
        ],
        limits=QUICK,
    )
    site.finish_all()
    for name in ("region=a/date=2024-01-29/x.ndjson", "region=b/date=2024-01-29/x.ndjson"):
        site.bucket.modified[name] = site.now
    site.look()
    new = ["region=a/date=2024-01-30/x.ndjson", "region=b/date=2024-02-01/y.ndjson", "z.ndjson"]
    site.arrive(*new)
    finding = site.look(later=10 * SECOND)
    assert not finding.swept
    assert sorted(taken(finding)) == new


def test_late_data_for_an_old_folder_is_found_by_the_next_sweep_and_its_folder_is_live_then():
    """L08."""
    site = known([f"date=2024-01-{day:02d}/x.ndjson" for day in range(1, 30)])
    site.arrive("date=2024-01-03/late.ndjson")
    assert site.look(later=10 * SECOND).take == ()
    finding = site.look(later=HOUR)
    assert taken(finding) == ["date=2024-01-03/late.ndjson"]
    site.finish("date=2024-01-03/late.ndjson")
    site.arrive("date=2024-01-03/later.ndjson")
    finding = site.look(later=10 * SECOND)
    assert not finding.swept
    assert taken(finding) == ["date=2024-01-03/later.ndjson"]


def test_files_beside_folders_are_found():
    """L19: before, between and after them."""
    folders = [f"d{day:02d}/x.ndjson" for day in range(1, 30)]
    site = known(folders)
    beside = ["a.ndjson", "d05.ndjson", "z.ndjson"]
    site.arrive(*beside)
    first = taken(site.look(later=10 * SECOND))
    assert first == ["z.ndjson"]
    assert sorted(taken(site.look(later=HOUR))) == beside
    site.finish(*beside)
    site.arrive("zz.ndjson")
    assert taken(site.look(later=10 * SECOND)) == ["zz.ndjson"]


def test_files_that_wait_are_listed_until_they_are_done():
    """L11: a mark stays below the first one that is not done, however long that takes."""
    site = known(flat(50), sweep_interval=10**7, poll_interval=10**6)
    site.arrive("00000060.ndjson", "00000070.ndjson")
    for _ in range(5):
        assert taken(site.look(later=HOUR)) == ["00000060.ndjson", "00000070.ndjson"]
        assert not site.look().swept
    site.finish("00000070.ndjson")
    for _ in range(3):
        assert taken(site.look(later=HOUR)) == ["00000060.ndjson"]


def test_a_failed_file_that_is_due_is_taken_though_no_range_lists_it():
    """L04."""
    site = Site(flat(100), limits=QUICK)
    site.finish_all()
    bad = record("00000000.ndjson", etag="e-00000000.ndjson", failure=failure(retryable=True))
    site.fail(bad)
    site.history.segments = []
    site.finish(*site.bucket.names[1:])
    site.look()
    site.bucket.requests.clear()
    finding = site.look(later=31 * SECOND)
    assert not finding.swept
    assert taken(finding) == ["00000000.ndjson"]
    assert site.bucket.requests == {"list": 1, "head": 1}


def test_a_file_that_rests_keeps_no_mark_from_moving():
    """L04: one file that fails for days does not make every look a sweep."""
    site = Site(flat(50), limits=ListingLimits(page=1, names=10))
    site.finish(*site.bucket.names[1:])
    bad = record("00000000.ndjson", etag="e-00000000.ndjson", failure=failure(retryable=True))
    site.fail(bad)
    site.look()
    for number in range(50, 90):
        site.arrive(f"{number:08d}.ndjson")
        finding = site.look(later=SECOND)
        assert (finding.swept, taken(finding)[-1:]) == (False, [f"{number:08d}.ndjson"])
        site.finish(f"{number:08d}.ndjson")
        site.fail(bad)


def test_a_sweep_is_made_in_time_and_at_once_when_the_clock_was_set_back():
    """L22."""
    site = Site(flat(100), sweep_interval=300, poll_interval=10, limits=QUICK)
    site.finish_all()
    assert site.look().swept
    assert not site.look(later=299 * SECOND).swept
    assert site.look(later=SECOND).swept
    assert not site.look(later=10 * SECOND).swept
    assert site.look(later=-HOUR).swept


def test_a_folder_with_more_live_names_than_are_kept_is_left_to_the_sweeps():
    site = Site(limits=ListingLimits(page=1, names=10))
    site.arrive(*flat(100))
    site.finish(*site.bucket.names)
    site.look()
    assert sum(len(each.names) for each in site.lister._cursor.folders.values()) <= 10
    site.arrive("00000000a.ndjson", "00000100.ndjson")
    assert taken(site.look(later=10 * SECOND)) == ["00000100.ndjson"]
    assert taken(site.look(later=HOUR)) == ["00000000a.ndjson", "00000100.ndjson"]


# ------------------------------------------------------------------------------ never twice


def test_a_known_file_that_was_away_during_the_sweep_is_not_taken_again():
    """D01: what a quick look lists is asked of the journal, not of the look before."""
    site = Site(flat(50), limits=QUICK)
    site.finish_all()
    site.bucket.remove("00000049.ndjson")
    site.look()
    site.bucket.add("00000049.ndjson")
    assert site.look(later=10 * SECOND).take == ()


def test_an_overwritten_file_is_noticed_by_sweeps_and_by_every_look_until_somebody_sees_to_it():
    """D15: a look ahead, whose findings may be dropped, does not make it one that is done."""
    site = Site(flat(50), limits=QUICK)
    site.finish_all()
    site.bucket.modified["00000049.ndjson"] = site.now
    site.look()
    site.bucket.etags["00000049.ndjson"] = "another"
    for _ in range(3):
        assert site.look(later=SECOND).count(Reason.CHANGED) == 1
    site.bucket.etags["00000000.ndjson"] = "another"
    finding = site.look(later=HOUR)
    assert {"00000000.ndjson", "00000049.ndjson"} == {facts.path for facts in finding.changed}
    assert finding.take == ()


# ------------------------------------------------------------------------------ broken listings


@pytest.mark.parametrize("sweep", [True, False])
def test_a_listing_that_breaks_off_fails_whole_and_moves_no_mark(sweep):
    """L10."""
    site = known(flat(100))
    before = site.lister._cursor
    site.arrive("00000200.ndjson", "00000201.ndjson")
    site.bucket.breaks_after = 1
    with pytest.raises(StoreUnavailable):
        site.look(later=HOUR if sweep else SECOND)
    assert site.lister._cursor is before
    site.bucket.breaks_after = None
    assert taken(site.look()) == ["00000200.ndjson", "00000201.ndjson"]
