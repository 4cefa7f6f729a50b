"""One batch from discovery to hand-off, in one process."""

from dataclasses import replace

import pytest

from blizzard import events
from blizzard.handoff.publish import Publisher
from blizzard.model.settings import SinkSettings
from blizzard.run_totals import TooManyFailures
from lakebed.errors import StoreUnavailable
from lakebed.partition import Template
from lakebed.types import UnknownFields
from tests.support.benches import drain, ids, noting
from tests.support.builders import (
    Bench,
    ndjson,
    pipeline_settings,
    put,
    rows,
)
from tests.support.stores import DropsWrites

BAD = b'{"id": "one"}\n'


def test_an_overwritten_file_is_told_once_and_not_read_again(bench, source):
    """D15."""
    put(source, "a.ndjson", ndjson(rows(3)))
    drain(bench)
    put(source, "a.ndjson", ndjson(rows(4, 10)))
    again = bench.again(run_id="run-2")
    pipeline = again.pipeline()
    assert [pipeline.step(), pipeline.step()] == [False, False]
    assert len(again.said(events.SourceFileOverwritten)) == 1
    assert ids(bench) == [0, 1, 2]


def test_as_many_failures_as_allowed_stop_the_pipeline_after_the_rest_is_journaled(bench, source):
    put(source, "a.ndjson", ndjson(rows(3)))
    put(source, "bad1.ndjson", BAD)
    put(source, "bad2.ndjson", BAD)
    handed_on: list[list[int]] = []
    strict = replace(
        bench,
        settings=replace(bench.settings, max_failures=2),
        publisher=noting(handed_on, lambda: ids(bench)),
    )
    with pytest.raises(TooManyFailures, match="2 source files failed so far"):
        strict.pipeline().step()
    assert ids(bench) == [0, 1, 2]
    assert handed_on[-1] == [0, 1, 2]


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


def test_fields_that_differ_only_in_case_are_told_what_can_be_done(bench, source):
    """HOLES W44: to declare both is refused, so nobody is told to."""
    put(source, "a.ndjson", b'{"id":1,"NAME":"x","pid":1,"Pid":2}\n')
    bench = leaving_out(bench)
    drain(bench)
    (told,) = bench.said(events.FieldsDropped)
    assert told.twins == {"NAME": "name", "pid": "Pid"}
    said = told.sentence()
    assert (
        "NAME differs from name only in case, and Delta column names are case-insensitive" in said
    )
    assert "; declare Pid under schema.fields to keep that; NAME differs" in said
    assert "declare them" not in said
    put(source, "b.ndjson", b'{"id":1,"NAME":"x"}\n')
    again = bench.again(run_id="run-2")
    drain(again)
    (told,) = again.said(events.FieldsDropped)
    assert "; declare " not in told.sentence()


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
