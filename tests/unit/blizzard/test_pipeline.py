"""Batches from discovery to hand-off, of sources of every kind, in one process."""

from dataclasses import replace
from typing import Any

import pytest

from blizzard import events
from blizzard.handoff.publish import Publisher
from blizzard.model.settings import SinkSettings
from blizzard.model.source.form import SourcePattern
from lakebed.errors import StoreUnavailable
from lakebed.listing.lookback import Window
from lakebed.partition import Template
from lakebed.types import OnChange, UnknownFields
from tests.support.builders import Bench, ndjson, pipeline_settings, put, rows
from tests.support.readers import parquet_ids
from tests.support.stores import DropsWrites


def ids(bench: Bench) -> list[Any]:
    """Read the rows that the journal names."""
    return parquet_ids(bench.entries(), bench.table)


def drain(bench: Bench) -> list[bool]:
    pipeline = bench.pipeline()
    steps = [pipeline.step()]
    while steps[-1]:
        steps.append(pipeline.step())
    return steps


def test_a_hand_off_that_failed_is_done_again_at_the_next_step(bench, source):
    """L06."""
    put(source, "a.ndjson", ndjson(rows(3)))
    asked: list[int] = []

    def commit() -> int:
        asked.append(len(bench.entries()))
        if len(asked) == 2:
            raise StoreUnavailable("the commit had no answer")
        return 1 if len(asked) > 2 else 0

    pipeline = replace(bench, publisher=Publisher(commit=commit)).pipeline()
    with pytest.raises(StoreUnavailable):
        pipeline.step()
    assert pipeline.step() is False
    assert asked == [1, 2, 2]
    assert pipeline.statistics.delta_commits == 1
    assert len(bench.entries()) == 2
    assert pipeline.step() is False
    assert len(asked) == 3


class DropsABatch(DropsWrites):
    """The first batch never arrives, for as long as a step tries."""

    only = "00000000000000000001.json"
    dropped = 6


def test_a_batch_without_an_answer_is_settled_at_the_next_step_and_not_run_again(bench, source):
    """L24, D02."""
    put(source, "a.ndjson", ndjson(rows(3)))
    stubborn = replace(bench, store=DropsABatch)
    pipeline = stubborn.pipeline()
    with pytest.raises(StoreUnavailable):
        pipeline.step()
    assert pipeline.statistics.files_processed == 0
    assert pipeline.step() is False
    assert ids(bench) == [0, 1, 2]
    assert len(list(bench.table.rglob("*.parquet"))) == 1
    assert pipeline.statistics.files_processed == 1
    assert len(bench.said(events.BatchStarted)) == 1


def leaving_out(bench: Bench) -> Bench:
    return bench.again(settings=replace(bench.settings, unknown_fields=UnknownFields.DROP))


def test_fields_that_are_left_out_are_told_with_the_ways_out(bench, source):
    """HOLES W44: to declare two names that differ only in case is refused; nobody is told to."""
    put(source, "a.ndjson", b'{"id":1,"NAME":"x","pid":1,"Pid":2}\n')
    bench = leaving_out(bench)
    drain(bench)
    (told,) = bench.said(events.FieldsDropped)
    said = told.sentence()
    assert "declare them under schema.fields to keep them, and rename those in the data" in said
    assert "differ from another field only in case" in said


# ------------------------------------------------------------------------------ explain


def test_a_required_partition_value_may_not_be_missing(tmp_path, source):
    """W09: an empty folder value is null, and a required column holds none."""
    put(source, "date=/a.ndjson", ndjson(rows(2)))
    settings = replace(
        pipeline_settings(source, tmp_path / "table"),
        sink=SinkSettings(
            table_uri=str(tmp_path / "table"), template=Template.parse("date=%Y-%m-%d")
        ),
    )
    bench = Bench(settings)
    drain(bench)
    (file,) = bench.entries()[-1].files
    assert file.partition_values == {"date": None}
    assert file.filename.startswith("date=__HIVE_DEFAULT_PARTITION__/")


def with_source(bench: Bench, **given: Any) -> Bench:
    """Return the same pipeline with another setting of its source."""
    (one,) = bench.settings.sources
    return replace(bench, settings=replace(bench.settings, sources=(replace(one, **given),)))


@pytest.mark.parametrize(
    ("on_change", "told", "more"),
    [
        (OnChange.ERROR, 1, []),
        (OnChange.IGNORE, 0, []),
        (OnChange.REINGEST, 0, [10, 11, 12, 13]),
    ],
)
def test_an_overwritten_file_is_told_once_or_skipped_or_ingested_again_as_asked_for(
    bench, source, on_change, told, more
):
    """D15: the old rows stay."""
    put(source, "a.ndjson", ndjson(rows(3)))
    drain(bench)
    put(source, "a.ndjson", ndjson(rows(4, 10)))
    again = with_source(bench.again(run_id="run-2"), on_change=on_change)
    pipeline = again.stepping()
    assert [pipeline.step() for _ in range(3)] == [bool(more), False, False]
    assert ids(bench) == [0, 1, 2, *more]
    records = [each for entry in bench.entries() for each in entry.sources]
    assert [each.reingested for each in records] == [False, True][: 1 + bool(more)]
    assert len(again.said(events.SourceFileOverwritten)) == told


def test_a_late_file_is_read(bench, source):
    """L07: a bare watermark would have missed it."""
    put(source, "b.ndjson", ndjson(rows(1)))
    pipeline = bench.stepping()
    pipeline.step()
    put(source, "a.ndjson", ndjson(rows(1, 1)))
    put(source, "c.ndjson", ndjson(rows(1, 2)))
    while pipeline.step():
        pass
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
