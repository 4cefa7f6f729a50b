"""Failed files that are gone from the source, what is not taken for gone, and how they count."""

from dataclasses import replace

import pytest

from blizzard.discover.finding import Finding
from blizzard.discover.lister import SourceLister
from blizzard.discover.scan import DiscoveryContext
from blizzard.events import NothingNew, SourceFilesGone
from blizzard.journal.ledger import Ledger
from blizzard.model.source.file import Recorded
from blizzard.model.source.form import SourcePattern
from blizzard.outcomes import resting
from lakebed.documents.entry import Entry, digest, encode
from lakebed.errors import StoreUnavailable
from lakebed.storage.store import Reader
from lakebed.types import Handoff
from tests.support.builders import (
    ID_AND_NAME,
    NOON,
    facts,
    failure,
    known,
    ndjson,
    no_options,
    put,
    record,
    rows,
    source_file,
    source_settings,
)
from tests.support.commands import recorded, told
from tests.support.failed import BAD, drain, last_sources


def test_a_file_that_was_moved_ends_as_gone(bench, desk):
    """HOLES W38: before, it was failed for ever, and the file under its new name was ingested."""
    put(desk.landing, "a.ndjson", BAD)
    assert drain(bench).files_still_failed == 1
    (desk.landing / "a.ndjson").unlink()
    put(desk.landing, "mended.ndjson", ndjson(rows(1)))
    second = bench.again(run_id="run-2")
    done = drain(second)
    assert (done.files_failed, done.files_still_failed, done.files_processed) == (0, 0, 1)
    left = last_sources(bench)["a.ndjson"]
    assert (left.gone, left.failure.code) == (True, "wrong_type")
    (said,) = second.said(SourceFilesGone)
    assert (said.files, said.example) == (1, "a.ndjson")
    assert bench.entries()[-1].dlq == ()
    (source,) = told(desk.run("status", "--output", "json"))[0]["sources"]
    assert (source["failed_files"], source["failures"]) == (0, [])
    sources = recorded(desk.run("journal", "2").stdout)["sources"]
    assert [one["path"] for one in sources if one.get("gone")] == ["a.ndjson"]
    entries = len(bench.entries())
    drain(bench.again(run_id="run-3"))
    assert len(bench.entries()) == entries


def test_a_file_that_is_gone_is_told_and_given_up_by_its_uri(bench, desk):
    put(desk.landing, "a.ndjson", BAD)
    drain(bench)
    uri = (desk.landing / "a.ndjson").as_uri()
    assert desk.run("dlq", "retry", "--file", uri).exit_code == 0
    (desk.landing / "a.ndjson").unlink()
    drain(bench.again(run_id="run-2"))

    (why,) = told(desk.run("why", uri, "--output", "json"))
    assert (why["state"], why["gone"], why["failure"]["entry"]) == ("failed", True, 1)
    again = desk.run("dlq", "retry", "--file", uri)
    assert again.exit_code == 1
    assert "is no longer in its source" in again.stderr
    assert "not among the failed files" not in again.stderr
    both = desk.run("dlq", "discard", "--deleted", "--all")
    assert (both.exit_code, "or --deleted for deleted files" in both.stderr) == (2, True)
    assert desk.run("dlq", "discard", uri, "--yes").exit_code == 0
    assert last_sources(bench)["a.ndjson"].discarded


def test_of_files_that_are_gone_alone_there_is_an_entry(bench, desk):
    """HOLES W38: nothing else needs to arrive."""
    put(desk.landing, "a.ndjson", BAD)
    drain(bench)
    (desk.landing / "a.ndjson").unlink()
    assert drain(bench.again(run_id="run-2")).files_still_failed == 0
    assert last_sources(bench)["a.ndjson"].gone


def test_a_file_that_comes_back_is_a_new_one(bench, desk):
    """HOLES W38: the very same object, too; to be taken for gone by mistake costs one try."""
    put(desk.landing, "a.ndjson", BAD)
    drain(bench)
    (desk.landing / "a.ndjson").rename(desk.root / "aside")
    drain(bench.again(run_id="run-2"))
    (desk.root / "aside").rename(desk.landing / "a.ndjson")
    third = bench.again(run_id="run-3")
    assert drain(third).files_failed == 1
    assert last_sources(bench)["a.ndjson"].failure.attempts == 1


def test_what_is_in_the_table_of_a_file_that_is_gone_is_not_read_again(bench, desk):
    """HOLES W38: its first lines were journaled by a stop; it comes back, and its rest is read."""
    put(desk.landing, "a.ndjson", ndjson(rows(3)))
    drain(bench)
    entry = bench.entries()[-1]
    half = replace(entry.sources[0], complete=False)
    path = desk.table / f"_blizzard/default/journal/{entry.sequence:020d}.json"
    path.write_bytes(encode(replace(entry, sources=(half,))))
    body = (desk.landing / "a.ndjson").rename(desk.root / "aside")
    drain(bench.again(run_id="run-2"))
    left = last_sources(bench)["a.ndjson"]
    assert (left.gone, left.skipped, left.rows) == (False, 3, 0)
    assert left.failure.code == "partial_file_gone"
    body.rename(desk.landing / "a.ndjson")
    drain(bench.again(run_id="run-3"))
    (rest,) = bench.entries()[-1].sources
    assert (rest.skipped, rest.lines, rest.complete) == (3, 0, True)


def test_a_file_whose_rows_were_given_up_stays_one_that_is_not_done():
    """HOLES L04: gone and back, it is read again, though it was ingested once."""
    done, lost = record(), replace(record(failure=failure(retryable=True)), redo=True)
    history = read_history_of([done], [lost], [replace(lost, gone=True)])
    (left,) = history.unfinished.values()
    assert (left.record.redo, left.record.gone) == (True, True)
    assert history.lookup()(done.key).finished is None


def read_history_of(*sources):
    """Learn a journal whose entries have these sources."""
    history = Ledger()
    for number, each in enumerate(sources):
        entry = Entry(
            kind="batch",
            pipeline="default",
            journal="j",
            sequence=number,
            run="r",
            created=NOON.isoformat(),
            previous=history.digest,
            handoff=Handoff.JOURNAL,
            source_uris={"default": "/in"},
            table_schema=ID_AND_NAME.delta(),
            partition_columns=(),
            sources=tuple(each),
        )
        history.learn(entry, encode(entry))
        assert history.digest == digest(encode(entry))
    return history


def test_a_quick_look_never_takes_a_file_for_gone(desk):
    """HOLES W38: only a sweep has seen the whole source."""
    put(desk.landing, "b.ndjson", ndjson(rows(1)))
    before = known(record("a.ndjson", failure=failure()))
    lister = SourceLister(source=source_settings(desk.landing), template=None, partition_fields={})

    def gone():
        context = DiscoveryContext(
            store=Reader(str(desk.landing), no_options()),
            lookup=lambda key: Recorded(unfinished=before.get(key)),
            unfinished=before,
            now=NOON,
        )
        found = lister.discover(context)
        failed = resting({"default": found}, [each.record for each in before.values()])
        return found.swept, [each.path for each in found.gone], failed

    assert gone() == (True, ["a.ndjson"], 0)
    lister._cursor.pages = 1000  # As if the source were large: the next look is a quick one.
    assert gone() == (False, [], 1)


def test_a_listing_that_breaks_off_takes_nothing_for_gone(bench, desk):
    """HOLES W38: nor does one that fails."""
    put(desk.landing, "a.ndjson", BAD)
    put(desk.landing, "z.ndjson", ndjson(rows(1)))
    drain(bench)

    class Broken(Reader):
        def in_order(self, prefix="", *, after="", guide=None):
            yield facts("a.ndjson")
            raise StoreUnavailable("half-way", path=prefix)

    second = bench.again(run_id="run-2")
    pipeline = second.pipeline()
    pipeline.open_source = lambda place: Broken(place.uri, place.options)
    pipeline.__post_init__()
    with pytest.raises(StoreUnavailable):
        pipeline.step()
    assert len(bench.entries()) == 2


@pytest.mark.parametrize("path", ["c/a.ndjson", "a.ndjson"])
def test_what_a_sweep_does_not_come_by_is_not_gone(bench, desk, path):
    """HOLES W38: a pattern that was narrowed, and so is not listed, decides nothing."""
    put(desk.landing, path, BAD)
    drain(bench)
    (source,) = bench.settings.sources
    narrow = replace(source, pattern=SourcePattern("b/*.ndjson"))
    second = bench.again(settings=replace(bench.settings, sources=(narrow,)), run_id="run-2")
    assert drain(second).files_still_failed == 1
    assert len(bench.entries()) == 2


FAILED = record("a.ndjson", failure=failure())


def test_a_failed_file_counts_unless_it_is_read_now_gone_or_of_no_source_any_more():
    assert resting({"default": Finding()}, [FAILED, record("b.ndjson")]) == 1
    assert resting({"default": Finding(take=(source_file("a.ndjson"),))}, [FAILED]) == 0
    assert resting({"default": Finding(gone=(FAILED,))}, [FAILED]) == 0
    assert resting({"default": Finding()}, [replace(FAILED, gone=True)]) == 0
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
