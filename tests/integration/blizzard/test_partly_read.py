"""A file that is in the table in part and whose rest cannot be read: seen by all, nothing twice."""

import os
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from blizzard.discover.filter import next_try
from blizzard.events import SourceFileFailed
from blizzard.repair.retry import PresentSources
from lakebed.clock import Clock
from lakebed.documents.records import FailureStage
from lakebed.storage.store import Reader, Store
from lakebed.types import OnChange
from tests.support.builders import gz, known, ndjson, no_options, put, rows
from tests.support.commands import Desk, told
from tests.support.dying import Died, Fate, dying
from tests.support.failed import retry
from tests.support.pipelines import pipeline_of
from tests.support.stops import CUT, NEVER, UNCUT, Stopped, all_at

ROWS = 600
NAME = "large.ndjson"


def begun(desk, body=None, *, name=NAME, runner=None, sizing=CUT):
    """Journal a part of a large file, and stop."""
    put(desk.landing, name, ndjson(rows(ROWS)) if body is None else body)
    bench = replace(desk.bench(sizing=sizing), runner=runner or all_at(30))
    assert bench.pipeline().step()
    (first,) = bench.entries()[-1].sources
    assert not first.complete
    assert 0 < first.rows < ROWS
    return replace(bench, runner=all_at(NEVER))


def drain(bench, **given):
    """Run once, as another process, and give the statistics."""
    pipeline = bench.again(**given).pipeline()
    for _ in range(20):
        if not pipeline.step():
            return pipeline.statistics
    return pytest.fail("it never comes to an end")


def ids(bench):
    """Return what the entries have brought into the table."""
    names = [file.filename for entry in bench.entries() for file in entry.files]
    return sorted(
        each for name in names for each in pq.read_table(bench.table / name)["id"].to_pylist()
    )


def books_balance(bench):
    records = [each for entry in bench.entries() if entry.kind == "batch" for each in entry.sources]
    for each in records:
        assert each.lines == each.rows + each.blank + each.quarantined
    assert sum(each.rows for each in records) == len(ids(bench))


def touch(path: Path) -> int:
    """Set another time on a file, and return the one that it had."""
    before = path.stat().st_mtime_ns
    os.utime(path, ns=(before + 10**9, before + 10**9))
    return before


def append(path: Path, body: bytes) -> None:
    path.write_bytes(path.read_bytes() + body)
    touch(path)


CHANGES = {"touched": touch, "appended": lambda path: append(path, ndjson(rows(1, ROWS)))}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("on_change", [OnChange.ERROR, OnChange.IGNORE])
def test_a_file_that_changes_before_its_rest_is_read_is_a_failure_that_everybody_sees(
    desk, change, on_change
):
    """HOLES L32, D15: before, its rest was never read, and nothing counted it."""
    bench = begun(desk)
    (first,) = bench.entries()[-1].sources
    source = replace(bench.settings.sources[0], on_change=on_change)
    bench = replace(bench, settings=replace(bench.settings, sources=(source,)))
    kept = ids(bench)
    change(desk.landing / NAME)

    second = bench.again(run_id="run-2")
    done = drain(second)
    assert (done.files_failed, done.files_still_failed) == (1, 1)
    (failed,) = bench.entries()[-1].sources
    assert (failed.failure.stage, failed.failure.code) == ("discover", "partial_file_changed")
    assert not failed.failure.retryable
    assert (failed.size, failed.etag, failed.unread) == (first.size, first.etag, first.unread)
    assert (failed.skipped, failed.lines, failed.rows) == (first.lines, 0, 0)
    assert f"{first.lines} of its lines are in the table" in failed.failure.message
    assert len(bench.entries()[-1].dlq) == 1

    # Once, however often it is looked at.
    entries = len(bench.entries())
    assert drain(bench, run_id="run-3").files_still_failed == 1
    assert len(bench.entries()) == entries
    assert ids(bench) == kept
    books_balance(bench)
    (source,) = told(desk.run("status", "--output", "json"))[0]["sources"]
    assert (source["failed_files"], source["changed_files"]) == (1, 0)
    shown = " ".join(desk.run("status").stdout.split())
    assert "partial_file_changed" in shown
    assert "it is taken when either changes" not in shown
    (letter,) = told(desk.run("dlq", "list", "--output", "json"))
    assert letter["code"] == "partial_file_changed"


def test_the_failure_is_told_as_an_event(desk):
    """HOLES L32: and in the metrics by its code."""
    bench = begun(desk)
    touch(desk.landing / NAME)
    second = bench.again()
    second.pipeline().step()
    (said,) = second.said(SourceFileFailed)
    assert (said.stage, said.code) == ("discover", "partial_file_changed")


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "compressed"])
def test_a_file_that_is_put_back_goes_on_with_its_rest(desk, packed):
    """HOLES L32: the very object is due, whatever was said of it."""
    name = f"{NAME}.gz" if packed else NAME
    body = gz(ndjson(rows(ROWS))) if packed else None
    bench = begun(desk, body, name=name)
    before = touch(desk.landing / name)
    assert drain(bench).files_still_failed == 1
    os.utime(desk.landing / name, ns=(before, before))
    assert drain(bench).files_still_failed == 0
    assert ids(bench) == list(range(ROWS))
    books_balance(bench)
    assert desk.run("dlq", "list").stdout.count("partial_file_changed") == 0


def test_where_it_is_asked_for_the_new_object_is_read_whole(desk):
    """HOLES D15: `on_change: reingest` means just this, also after the failure."""
    bench = begun(desk)
    kept = ids(bench)
    touch(desk.landing / NAME)
    assert drain(bench).files_still_failed == 1
    source = replace(bench.settings.sources[0], on_change=OnChange.REINGEST)
    settings = replace(bench.settings, sources=(source,))
    assert drain(bench, settings=settings).files_still_failed == 0
    assert ids(bench) == sorted([*kept, *range(ROWS)])
    assert bench.entries()[-1].sources[0].reingested


def test_a_rest_that_failed_and_is_corrected_then_says_the_same(desk):
    """HOLES L32: before, it was told to be fixed, and then never read."""
    good = ndjson(rows(ROWS))
    bad = good.replace(b'"id": 599', b'"id": "x"').replace(b'"id":599', b'"id":"x"')
    assert bad != good
    bench = begun(desk, bad)
    assert drain(bench).files_still_failed == 1
    assert bench.entries()[-1].sources[0].failure.code == "wrong_type"
    put(desk.landing, NAME, good)
    touch(desk.landing / NAME)
    drain(bench)
    (failed,) = bench.entries()[-1].sources
    assert (failed.failure.code, failed.failure.attempts) == ("partial_file_changed", 2)
    books_balance(bench)


@pytest.mark.parametrize("asked", [("--all",), ("--file", NAME)], ids=["all", "by name"])
def test_a_retry_does_not_promise_what_does_not_happen(desk, asked):
    """HOLES L32: asking again does not bring the object back."""
    bench = begun(desk)
    touch(desk.landing / NAME)
    drain(bench)
    entries = len(bench.entries())
    done = desk.run("dlq", "retry", *asked)
    assert done.exit_code == 1
    assert "is not read again: it changed before all of it was read" in done.stderr
    assert "reads" not in done.stdout.replace("reads it whole", "")
    assert len(bench.entries()) == entries
    (line,) = told(desk.run("dlq", "retry", *asked, "--output", "json"))
    assert (line["entry"], line["files"], [*line["refused"]]) == (None, [], [f"default:{NAME}"])


def test_a_dry_run_names_the_reason(desk):
    """HOLES L32."""
    bench = begun(desk)
    touch(desk.landing / NAME)
    for _ in range(2):
        told_now = desk.run("--dry-run", "--output", "json").stdout
        assert '"partial_file_changed"' in told_now
        drain(bench)


def test_other_settings_do_not_bring_an_object_back(desk):
    """HOLES L32: it is not called due for a template that has changed."""
    bench = begun(desk)
    touch(desk.landing / NAME)
    drain(bench)
    (failed,) = known(*bench.entries()[-1].sources).values()
    assert failed.record.failure is not None
    assert failed.record.failure.basis not in (None, "other")
    assert next_try(failed, {FailureStage.DISCOVER: "other"}) is None


def test_many_of_them_are_bounded_like_files_that_are_taken(desk):
    """HOLES L32: one batch names no more than it may."""
    for number in range(3):
        put(desk.landing, f"{number}.ndjson", ndjson(rows(ROWS, number * ROWS)))
    bench = replace(desk.bench(sizing=CUT), runner=all_at(30))
    assert bench.pipeline().step()
    for number in range(3):
        touch(desk.landing / f"{number}.ndjson")
    source = replace(bench.settings.sources[0], max_files_per_batch=2)
    drain(bench, settings=replace(bench.settings, sources=(source,)), runner=all_at(NEVER))
    assert [len(entry.sources) for entry in bench.entries()[2:]] == [2, 1]


def same_lines(desk, name=NAME):
    return desk.run("dlq", "retry", "--file", name, "--same-lines")


@pytest.mark.parametrize("in_places", [False, True], ids=["its first lines", "in places"])
@pytest.mark.parametrize("change", CHANGES)
def test_the_rest_of_a_file_with_the_same_lines_is_read_and_nothing_twice(desk, change, in_places):
    """HOLES L32, D15: it was touched, or appended to."""
    bench = begun(desk, sizing=CUT if in_places else UNCUT)
    assert bench.entries()[-1].sources[0].has_holes is in_places
    CHANGES[change](desk.landing / NAME)
    assert drain(bench).files_still_failed == 1
    done = same_lines(desk)
    assert (done.exit_code, done.stderr) == (0, "")
    assert "the next batch reads 1 source file again" in done.stdout
    assert drain(bench).files_still_failed == 0
    assert ids(bench) == list(range(ROWS + (change == "appended")))
    books_balance(bench)
    assert not bench.again().pipeline().step()


def test_lines_behind_a_part_that_was_read_to_the_end_are_read(desk):
    """HOLES L32: the last task came to its end, others did not; then lines are appended."""
    bench = begun(desk, runner=Stopped(lambda unit: 30 if unit < 2 else NEVER))
    (first,) = bench.entries()[-1].sources
    assert first.unread[-1].end < first.size
    append(desk.landing / NAME, ndjson(rows(2, ROWS)) + b"{oops\n")
    drain(bench)
    assert same_lines(desk).exit_code == 0
    drain(bench)
    (failed,) = bench.entries()[-1].sources
    assert (failed.failure.code, failed.failure.line) == ("not_json", ROWS + 3)
    path = desk.landing / NAME
    path.write_bytes(path.read_bytes().removesuffix(b"{oops\n"))
    touch(path)
    assert same_lines(desk).exit_code == 0
    assert drain(bench).files_still_failed == 0
    assert ids(bench) == list(range(ROWS + 2))
    books_balance(bench)


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "compressed"])
@pytest.mark.parametrize("seen", [False, True], ids=["at once", "after a look"])
def test_a_corrected_rest_is_read(desk, packed, seen):
    """HOLES L32: also where the correction is shorter, and before blizzard has looked again."""
    name, pack = (f"{NAME}.gz", gz) if packed else (NAME, lambda body: body)
    lines = ndjson(rows(ROWS)).splitlines(keepends=True)
    bad = b"".join([*lines[:-1], b'{"id": "this is no number", "name": null}\n'])
    bench = begun(desk, pack(bad), name=name, sizing=UNCUT)
    assert drain(bench).files_still_failed == 1
    shown = " ".join(desk.run("status").stdout.split())
    assert "--same-lines" in shown
    assert "it is taken when either changes" not in shown
    put(desk.landing, name, pack(b"".join(lines)))
    touch(desk.landing / name)
    if seen:
        drain(bench)
        assert bench.entries()[-1].sources[0].failure.code == "partial_file_changed"
    assert same_lines(desk, name).exit_code == 0
    assert drain(bench).files_still_failed == 0
    assert ids(bench) == list(range(ROWS))
    books_balance(bench)


def test_a_file_that_changes_once_more_fails_once_more(desk):
    """HOLES L32: what was said of one object is not said of the next."""
    bench = begun(desk)
    touch(desk.landing / NAME)
    drain(bench)
    assert same_lines(desk).exit_code == 0
    said = bench.entries()[-1].sources[0]
    touch(desk.landing / NAME)
    assert drain(bench).files_still_failed == 1
    (failed,) = bench.entries()[-1].sources
    assert (failed.failure.code, failed.etag, failed.retry) == (
        "partial_file_changed",
        said.etag,
        False,
    )
    assert same_lines(desk).exit_code == 0
    drain(bench)
    assert ids(bench) == list(range(ROWS))


def test_what_cannot_have_the_same_lines_is_refused(desk):
    """HOLES L32: shorter than what was read, gone, or not in the table at all."""
    bench = begun(desk, sizing=UNCUT)
    whole = (desk.landing / NAME).read_bytes()
    put(desk.landing, "bad.ndjson", b"{oops\n")
    put(desk.landing, NAME, whole[:20])
    drain(bench)
    entries = len(bench.entries())
    assert "it has 20 bytes, fewer than were read of it" in same_lines(desk).stderr
    assert "nothing of it is in the table" in same_lines(desk, "bad.ndjson").stderr
    (desk.landing / NAME).unlink()
    done = same_lines(desk)
    assert (done.exit_code, "it is not in its source" in done.stderr) == (1, True)
    assert desk.run("dlq", "retry", "--all", "--same-lines").exit_code == 2
    assert len(bench.entries()) == entries


def test_a_file_that_ends_where_reading_stopped_is_done(desk):
    """HOLES L32: the rest was cut off on purpose."""
    bench = begun(desk, sizing=UNCUT)
    (left,) = bench.entries()[-1].sources[0].unread
    kept = ids(bench)
    path = desk.landing / NAME
    path.write_bytes(path.read_bytes()[: left.start])
    assert drain(bench).files_still_failed == 1
    assert same_lines(desk).exit_code == 0
    assert drain(bench).files_still_failed == 0
    assert ids(bench) == kept
    books_balance(bench)


def present_of(desk):
    reader = Reader(str(desk.landing), no_options())
    return PresentSources(uris={"default": str(desk.landing)}, open=lambda _name: reader)


def test_a_death_at_any_call_leaves_every_row_once(tmp_path):
    """HOLES L32: of the command or of the run after it, before or after the call."""
    died = 0
    for number in range(1, 40, 3):
        desk = Desk(tmp_path / str(number))
        desk.landing.mkdir(parents=True)
        bench = begun(desk)
        append(desk.landing / NAME, ndjson(rows(1, ROWS)))
        drain(bench)
        present = present_of(desk)
        for fate in (Fate(number, after=bool(number % 2)), Fate.none()):
            store = dying(desk.store, fate)
            try:
                retry(
                    store, "default", frozenset({f"default:{NAME}"}), clock=Clock(), present=present
                )
            except Died:
                died += 1
        for fate in (Fate(number, after=bool(number % 2)), Fate.none()):

            def open_sink(at, fate=fate):
                return dying(Store(at.uri, at.options, make_folder=True), fate)

            try:
                pipeline_of(bench.settings, all_at(NEVER), open_sink=open_sink).step()
            except Died:
                died += 1
        assert ids(bench) == list(range(ROWS + 1)), f"died at call {number}"
        books_balance(bench)
    assert died > 10


def test_a_file_that_is_gone_before_its_rest_is_read_stays_a_failure(desk):
    """HOLES L32, W38: before, it ended as gone, and no book had its rest any more."""
    bench = begun(desk)
    (first,) = bench.entries()[-1].sources
    (desk.landing / NAME).rename(desk.root / "aside")
    done = drain(bench)
    assert (done.files_failed, done.files_still_failed) == (1, 1)
    (failed,) = bench.entries()[-1].sources
    assert (failed.failure.stage, failed.failure.code) == ("discover", "partial_file_gone")
    assert (failed.gone, failed.size, failed.etag) == (False, first.size, first.etag)
    assert (failed.skipped, failed.lines, failed.unread) == (first.lines, 0, first.unread)
    entries = len(bench.entries())
    assert drain(bench).files_still_failed == 1
    assert len(bench.entries()) == entries
    (source,) = told(desk.run("status", "--output", "json"))[0]["sources"]
    assert [each["code"] for each in source["failures"]] == ["partial_file_gone"]
    assert "gone from its source" in " ".join(desk.run("status").stdout.split())
    (letter,) = told(desk.run("dlq", "list", "--output", "json"))
    assert letter["code"] == "partial_file_gone"
    asked = desk.run("dlq", "retry", "--all")
    assert (asked.exit_code, len(bench.entries())) == (1, entries)

    # The same object: its rest is read.
    (desk.root / "aside").rename(desk.landing / NAME)
    assert drain(bench).files_still_failed == 0
    assert ids(bench) == list(range(ROWS))
    books_balance(bench)


def test_a_file_that_comes_back_as_another_object_has_changed(desk):
    """HOLES L32, D15: and the operator may say that it is the same."""
    bench = begun(desk)
    body = (desk.landing / NAME).read_bytes()
    (desk.landing / NAME).unlink()
    drain(bench)
    put(desk.landing, NAME, body)
    touch(desk.landing / NAME)
    assert drain(bench).files_still_failed == 1
    assert bench.entries()[-1].sources[0].failure.code == "partial_file_changed"
    (desk.landing / NAME).unlink()
    assert drain(bench).files_still_failed == 1
    assert bench.entries()[-1].sources[0].failure.code == "partial_file_gone"
    put(desk.landing, NAME, body)
    assert same_lines(desk).exit_code == 0
    assert drain(bench).files_still_failed == 0
    assert ids(bench) == list(range(ROWS))
    books_balance(bench)
