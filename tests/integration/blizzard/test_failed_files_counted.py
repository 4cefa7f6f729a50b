"""How many failed files a run tells of: counted from the journal, whenever it is told."""

from dataclasses import replace

from blizzard.discover.finding import Finding
from blizzard.events import NothingNew
from blizzard.outcomes import resting
from tests.support.builders import failure, ndjson, put, record, rows, source_file
from tests.support.failed import BAD, drain

FAILED = record("a.ndjson", failure=failure())


def test_a_failed_file_counts_unless_it_is_read_now_or_gone():
    assert resting({"default": Finding()}, [FAILED, record("b.ndjson")]) == 1
    assert resting({"default": Finding(take=(source_file("a.ndjson"),))}, [FAILED]) == 0
    assert resting({"default": Finding(gone=(FAILED,))}, [FAILED]) == 0
    assert resting({"default": Finding()}, [replace(FAILED, gone=True)]) == 0


def test_one_of_a_source_that_is_not_configured_any_more_does_not_count():
    assert resting({"other": Finding()}, [FAILED]) == 0


def test_a_run_that_ends_notes_all_files_that_failed_and_are_gone(bench, desk):
    """Also where they are more than a batch may hold."""
    source = replace(bench.settings.sources[0], max_files_per_batch=1)
    bench.settings = replace(bench.settings, sources=(source,))
    for number in range(3):
        put(desk.landing, f"{number}.ndjson", BAD)
    drain(bench)
    for number in range(3):
        (desk.landing / f"{number}.ndjson").unlink()
    assert drain(bench.again(run_id="run-2")).files_still_failed == 0


def test_a_run_that_ends_tells_of_the_files_that_failed_in_it(bench, desk):
    """Although it looked at its source before they did."""
    put(desk.landing, "a.ndjson", BAD)
    put(desk.landing, "b.ndjson", ndjson(rows(1)))
    drain(bench)
    assert [one.resting for one in bench.said(NothingNew)] == [1]
