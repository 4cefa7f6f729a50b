"""One batch from discovery to hand-off, in one process."""

from dataclasses import replace

import pytest

from blizzard import events
from blizzard.handoff.publish import Publisher
from blizzard.model.settings import SinkSettings
from blizzard.run_totals import TooManyFailures
from lakebed.documents.source_record import Stage
from lakebed.errors import DocumentUnreadable, JournalConflict, JournalLost, StoreUnavailable
from lakebed.partition import Template
from lakebed.storage.store import Reader, Store
from lakebed.types import UnknownFields
from tests.support.benches import drain, ids, noting
from tests.support.builders import (
    Bench,
    ndjson,
    pipeline_settings,
    put,
    rows,
    source_settings,
    tree,
)
from tests.support.runner import InProcessRunner
from tests.support.stores import DropsWrites, LosesAnswers

BAD = b'{"id": "one"}\n'


def test_a_second_run_ingests_nothing(bench, source):
    """D01."""
    put(source, "a.ndjson", ndjson(rows(3)))
    drain(bench)
    before = tree(bench.table)
    assert drain(bench.again(run_id="run-2")) == [False]
    assert tree(bench.table) == before


def test_a_file_that_arrives_later_is_in_the_next_batch(bench, source):
    """L07, L08."""
    put(source, "z.ndjson", ndjson(rows(3)))
    pipeline = bench.stepping()
    assert pipeline.step()
    put(source, "a.ndjson", ndjson(rows(3, 3)))
    assert pipeline.step()
    assert ids(bench) == list(range(6))
    assert [entry.sequence for entry in bench.entries()] == [0, 1, 2]


def test_a_batch_is_bounded_and_the_rest_comes_in_the_next(bench, source):
    for number in range(5):
        put(source, f"{number}.ndjson", ndjson(rows(1, number)))
    few = replace(bench.settings, sources=(source_settings(source, max_files_per_batch=2),))
    assert drain(replace(bench, settings=few)) == [True, True, True, False]
    assert ids(bench) == list(range(5))


def test_rows_stand_in_the_folder_of_their_partition(tmp_path, source):
    """L18, L19."""
    put(source, "date=2024-01-01/a.ndjson", ndjson(rows(2)))
    put(source, "date=2024-01-02/a.ndjson", ndjson(rows(2, 2)))
    put(source, "root.ndjson", ndjson(rows(2, 4)))
    bench = Bench(pipeline_settings(source, tmp_path / "table", template="date=%Y-%m-%d"))
    drain(bench)
    batch = bench.entries()[-1]
    assert sorted(file.filename.partition("/")[0] for file in batch.files) == [
        "date=2024-01-01",
        "date=2024-01-02",
    ]
    assert ids(bench) == [0, 1, 2, 3]
    failed = [each for each in batch.sources if each.failure]
    assert [(each.path, each.failure.stage) for each in failed if each.failure] == [
        ("root.ndjson", Stage.DISCOVER)
    ]
    assert batch.partition_columns == ("date",)


def test_a_bad_file_is_skipped_and_told_and_the_rest_goes_on(bench, source):
    """L15."""
    put(source, "a.ndjson", ndjson(rows(3)))
    put(source, "bad.ndjson", ndjson(rows(3, 3)) + BAD)
    pipeline = bench.pipeline()
    assert [pipeline.step(), pipeline.step()] == [True, False]
    assert ids(bench) == [0, 1, 2]
    (told,) = bench.said(events.SourceFileFailed)
    assert "bad.ndjson, line 4, field id" in told.sentence()
    assert pipeline.statistics.files_failed == 1
    assert (pipeline.statistics.files_processed, pipeline.statistics.records_processed) == (1, 3)


def test_a_bad_file_that_was_mended_is_ingested_whole(bench, source):
    """D04, L04."""
    put(source, "a.ndjson", ndjson(rows(3)) + BAD)
    drain(bench)
    assert ids(bench) == []
    put(source, "a.ndjson", ndjson(rows(4)))
    drain(bench.again(run_id="run-2"))
    assert ids(bench) == list(range(4))


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


def test_what_an_earlier_run_journaled_is_handed_on_before_anything_new(bench, source):
    """D02, L06: a crash between the journal and the hand-off."""
    put(source, "a.ndjson", ndjson(rows(3)))
    drain(bench)
    put(source, "b.ndjson", ndjson(rows(3, 3)))
    seen: list[list[int]] = []
    later = bench.again(run_id="run-2", publisher=noting(seen, lambda: ids(bench)))
    later.pipeline().step()
    assert seen == [[0, 1, 2], [0, 1, 2, 3, 4, 5]]


def test_a_lost_answer_of_the_journal_is_no_trouble(bench, source):
    """L24."""
    put(source, "a.ndjson", ndjson(rows(3)))
    assert drain(replace(bench, store=LosesAnswers)) == [True, False]
    assert ids(bench) == [0, 1, 2]


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


def test_two_blizzards_on_one_pipeline_give_the_rows_once(bench, source):
    """D07."""
    put(source, "a.ndjson", ndjson(rows(3)))
    handed_on: list[str] = []
    one = bench.again(run_id="one")
    other = bench.again(run_id="other", publisher=noting(handed_on, lambda: "other"))
    first, second = one.pipeline(), other.pipeline()
    first._open_journal()
    second._open_journal()
    second._publish()
    handed_on.clear()
    assert first.step()
    with pytest.raises(JournalConflict, match="run one"):
        second.step()
    assert handed_on == []
    assert ids(bench) == [0, 1, 2]


def test_a_crash_before_the_journal_leaves_files_that_nobody_names(bench, source):
    """D02."""
    put(source, "a.ndjson", ndjson(rows(3)))

    class Dies(InProcessRunner):
        def run(self, units, work):
            super().run(units, work)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        replace(bench, runner=Dies()).pipeline().step()
    assert len(list(bench.table.rglob("*.parquet"))) == 1
    drain(bench.again(run_id="run-2"))
    assert ids(bench) == [0, 1, 2]
    assert len(list(bench.table.rglob("*.parquet"))) == 2


def test_an_unreadable_journal_stops_the_run_and_ingests_nothing(bench, source):
    """D05."""
    put(source, "a.ndjson", ndjson(rows(3)))
    drain(bench)
    last = max((bench.table / "_blizzard/default/journal").iterdir())
    last.write_bytes(b"{")
    before = tree(bench.table)
    with pytest.raises(DocumentUnreadable, match=last.name):
        bench.again(run_id="run-2").pipeline().step()
    assert tree(bench.table) == before


def test_a_journal_that_is_gone_is_not_begun_anew(bench, source):
    """L21."""
    put(source, "a.ndjson", ndjson(rows(3)))
    with pytest.raises(JournalLost):
        replace(bench, log_knows_pipeline=True).pipeline().step()
    assert list(bench.table.rglob("*.parquet")) == []


def test_fields_that_nobody_declared_are_told(bench, source):
    """L16."""
    put(source, "a.ndjson", b'{"id":1,"surprise":2}\n')
    bench = leaving_out(bench)
    drain(bench)
    (told,) = bench.said(events.FieldsDropped)
    assert "surprise (1); declare them under schema.fields to keep them" in told.sentence()


def leaving_out(bench: Bench) -> Bench:
    return bench.again(settings=replace(bench.settings, unknown_fields=UnknownFields.DROP))


def test_values_that_no_column_takes_are_told(bench, source):
    put(source, "a.ndjson", b'{"id":1,"x":{"y":1}}\n{"id":2,"x":2,"z":3}\n')
    drain(bench)
    (told,) = bench.said(events.ValuesRescued)
    assert told.paths == {"x": 2, "z": 1}
    assert "values that no column takes are in _rescued: x (2), z (1)" in told.sentence()
    assert not bench.said(events.FieldsDropped)


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


def test_what_explain_is_handed_cannot_write():
    assert not {"create", "replace", "upload", "delete"} & set(dir(Reader))
    assert issubclass(Store, Reader)


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
