"""Batches of sources that are gone, equal in names, or set to treat some files otherwise."""

import os
from dataclasses import replace
from typing import Any

import pytest

from blizzard import events
from blizzard.model.source.glob import SourcePattern
from lakebed.errors import ObjectMissing
from lakebed.listing.lookback import Window
from lakebed.types import OnChange
from tests.support.benches import drain, ids
from tests.support.builders import Bench, ndjson, put, rows, source_settings


def test_a_source_that_is_gone_is_an_error_and_moves_nothing(bench, source):
    """L10."""
    put(source, "a.ndjson", ndjson(rows(3)))
    drain(bench)
    (source / "a.ndjson").unlink()
    source.rmdir()
    with pytest.raises(ObjectMissing):
        bench.again(run_id="run-2").pipeline().step()
    assert len(bench.entries()) == 2


def test_two_sources_with_equal_names_are_two_files(bench, source, tmp_path):
    """D13."""
    put(source, "a.ndjson", ndjson(rows(2)))
    put(tmp_path / "other", "a.ndjson", ndjson(rows(2, 2)))
    both = replace(
        bench.settings,
        sources=(
            source_settings(source, name="x"),
            source_settings(tmp_path / "other", name="y"),
        ),
    )
    bench = replace(bench, settings=both)
    drain(bench)
    assert ids(bench) == [0, 1, 2, 3]
    assert drain(bench.again(run_id="run-2")) == [False]


def with_source(bench: Bench, **given: Any) -> Bench:
    """Return the same pipeline with another setting of its source."""
    (one,) = bench.settings.sources
    return replace(bench, settings=replace(bench.settings, sources=(replace(one, **given),)))


def test_an_overwritten_file_is_ingested_again_where_that_is_asked_for_and_the_entry_says_so(
    bench, source
):
    """D15: the old rows stay."""
    put(source, "a.ndjson", ndjson(rows(3)))
    drain(bench)
    put(source, "a.ndjson", ndjson(rows(4, 10)))
    again = with_source(bench.again(run_id="run-2"), on_change=OnChange.REINGEST)
    assert drain(again) == [True, False]
    assert ids(bench) == [0, 1, 2, 10, 11, 12, 13]
    assert [each.reingested for entry in bench.entries() for each in entry.sources] == [False, True]
    assert again.said(events.SourceFileOverwritten) == []


def test_an_overwritten_file_is_passed_over_without_a_word_where_that_is_asked_for(bench, source):
    """D15."""
    put(source, "a.ndjson", ndjson(rows(3)))
    drain(bench)
    put(source, "a.ndjson", ndjson(rows(4, 10)))
    again = with_source(bench.again(run_id="run-2"), on_change=OnChange.IGNORE)
    assert drain(again) == [False]
    assert (again.said(events.SourceFileOverwritten), ids(bench)) == ([], [0, 1, 2])


def test_a_file_that_may_still_be_written_waits_and_is_taken_when_it_is_old_enough(bench, source):
    put(source, "a.ndjson", ndjson(rows(3)))
    put(source, "b.ndjson.tmp", ndjson(rows(3, 3)))
    os.utime(source / "a.ndjson", (bench.hands.at, bench.hands.at))
    pipeline = with_source(bench, min_age=60).stepping()
    bench.hands.at += 59
    assert not pipeline.step()
    bench.hands.at += 1
    assert pipeline.step()
    assert ids(bench) == [0, 1, 2]


def test_a_late_file_is_told_and_counted_once(bench, source):
    """L07: a bare watermark would have missed it."""
    put(source, "b.ndjson", ndjson(rows(1)))
    pipeline = bench.stepping()
    pipeline.step()
    put(source, "a.ndjson", ndjson(rows(1, 1)))
    put(source, "c.ndjson", ndjson(rows(1, 2)))
    while pipeline.step():
        pass
    (told,) = bench.said(events.LateFiles)
    assert (told.files, told.example) == (1, "a.ndjson")
    assert ids(bench) == [0, 1, 2]


def test_names_with_stars_are_ingested_and_the_same_files_are_known_by_a_wider_pattern(
    bench, source
):
    """D01: files are known by their names below the folder that is written out."""
    for number, name in enumerate(["x/app-1.ndjson", "x/web-1.ndjson", "y/app-2.ndjson"]):
        put(source, name, ndjson(rows(1, number)))
    assert drain(with_source(bench, pattern=SourcePattern("*/app-*.ndjson"))) == [True, False]
    assert ids(bench) == [0, 2]
    assert drain(with_source(bench.again(run_id="run-2"), pattern=None)) == [True, False]
    assert ids(bench) == [0, 1, 2]


def test_a_filter_bounds_the_first_run_and_the_runs_after_it(bench, source):
    """L12: what the first run left is not taken by the second; what is new is."""
    for number, day in enumerate(["2023-12-25", "2023-12-31", "2024-01-01"]):
        put(source, f"date={day}/a.ndjson", ndjson(rows(1, number)))
    recent = with_source(bench, lookback=Window.parse("date=%Y-%m-%d", 1))
    drain(recent)
    assert ids(bench) == [1, 2]
    bench.hands.at += 10 * 24 * 3600
    put(source, "date=2024-01-03/a.ndjson", ndjson(rows(1, 3)))
    drain(recent.again(run_id="run-2"))
    assert ids(bench) == [1, 2, 3]
    wider = with_source(bench, lookback=Window.parse("date=%Y-%m-%d", 30))
    drain(wider.again(run_id="run-3"))
    assert ids(bench) == [0, 1, 2, 3]
