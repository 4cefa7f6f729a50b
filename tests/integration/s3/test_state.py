"""Moves, metas, garbage and a new journal on S3, where folders are only prefixes."""

from dataclasses import replace
from datetime import timedelta

import pytest

from blizzard.answers.status_reader import StatusReader
from blizzard.handoff.publish import Publisher
from blizzard.journal.fence import identity_of
from blizzard.model.settings import PipelineSettings, SinkSettings
from blizzard.repair.gc import collect
from blizzard.repair.new_journal import take_over
from lakebed.clock import Clock
from lakebed.deltalog import tables
from lakebed.deltalog.files import named_files
from lakebed.deltalog.tables import preview
from lakebed.errors import ObjectMissing
from lakebed.journal import JournalReader
from lakebed.layout import file_id, journal_entry, journal_folder, log_version
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import Store
from penguin.model.settings import TableSettings
from penguin.pipeline import InlineCommitter
from tests.support.builders import ID_AND_NAME, ndjson, put, rows, source_settings
from tests.support.pipelines import pipeline_of
from tests.support.runner import InProcessRunner
from tests.support.s3 import options, store
from tests.support.s3_lake import Lake
from tests.support.tables import commit_table


@pytest.fixture
def settings(s3, bucket, tmp_path):
    return PipelineSettings(
        sources=(source_settings(tmp_path / "in"),),
        sink=SinkSettings(
            table_uri=f"s3://{bucket}/table", storage_options=StorageOptions(options(s3))
        ),
        schema=ID_AND_NAME,
    )


def store_of(settings):
    return Store(settings.sink.table_uri, settings.sink.storage_options)


def step(settings):
    pipeline = pipeline_of(
        settings,
        InProcessRunner(),
        publisher=Publisher(),
        open_sink=lambda place: Store(place.uri, place.options),
    )
    return pipeline.step()


@pytest.mark.unbalanced("entry_missing", "file_unnamed")
def test_garbage_is_taken_and_a_rolled_back_journal_is_replaced(settings, tmp_path):
    """HOLES L21, W20."""
    uri, given = settings.sink.table_uri, settings.sink.storage_options
    store = store_of(settings)

    def commit():
        return InlineCommitter.of(None, uri, given, emit=lambda _event: None, clock=Clock())()

    for number in range(2):
        put(tmp_path / "in", f"{number}.ndjson", ndjson(rows(2, number * 2)))
        assert step(settings)
    (named, _other) = (one for one in store.objects() if file_id(one.path))
    left = f"{Clock().fresh_id()}.parquet"
    store.create(left, store.get(named.path))

    done = collect(
        store,
        "default",
        lambda: named_files(uri, given),
        clock=Clock(),
        older_than=timedelta(seconds=-60),
    )
    assert [piece.path for piece in done.pieces] == [left]
    assert store.get(left) is None
    assert commit() >= 1

    for number in (2, 3):
        store.delete(journal_entry("default", number))
    renewed = take_over(
        store,
        identity_of(settings, "run-new"),
        "default",
        lambda pipeline, journal: tables.last_committed(uri, given, pipeline, journal),
        Clock(),
    )
    assert (renewed.entries, renewed.files) == (2, 1)
    assert step(settings)
    assert commit() >= 1
    _asked, found = StatusReader(settings, Clock()).read()
    assert (found.last_entry, found.committed_entry, found.totals.rows) == (2, 2, 2)
    assert named_files(uri, given) >= {one.path for one in store.objects() if file_id(one.path)}
    assert len(list(store.objects(journal_folder("default")))) == 3


def test_a_bucket_in_another_spelling_is_the_same_source_and_nothing_is_read_again(
    s3, bucket, settings
):
    """HOLES L26: the journal holds the old spelling."""
    given = StorageOptions(options(s3))
    landing = Store(f"s3://{bucket}/in", given)
    landing.create("a.ndjson", ndjson(rows(2)))

    def at(uri: str, table: str) -> PipelineSettings:
        source = replace(settings.sources[0], uri=uri, storage_options=given)
        sink = replace(settings.sink, table_uri=table)
        moved: PipelineSettings = replace(settings, sources=(source,), sink=sink)
        return moved

    before = at(f"s3://{bucket}/in", f"s3://{bucket}/table")
    assert step(before)
    https = f"https://{bucket}.s3.us-east-1.amazonaws.com"
    places = {"b": f"s3a://{bucket}", "c": f"s3n://{bucket}", "d": https}
    for name, place in places.items():
        again = at(f"{place}/in{'/' * (name == 'b')}", f"{place}/table")
        assert not step(again)
        landing.create(f"{name}.ndjson", ndjson(rows(1, 2)))
        assert step(again)
        assert not step(before)
    books = JournalReader(store_of(settings), "default")
    read = [record.path for entry in books.entries() for record in entry.sources]
    assert read == [f"{name}.ndjson" for name in "abcd"]


@pytest.fixture
def opened(s3, bucket):
    return store(s3, f"s3://{bucket}/table")


def test_a_moved_object_has_the_new_name_only_and_moving_it_again_changes_nothing(opened):
    """D02."""
    opened.create("outbox/date=2024-01-01/x y", b"12")
    move = ("outbox/date=2024-01-01/x y", "date=2024-01-01/x y")
    assert opened.move(*move, size=2) is True
    assert (opened.get(move[0]), opened.get(move[1])) == (None, b"12")
    assert opened.move(*move, size=2) is False
    with pytest.raises(ObjectMissing):
        opened.move("outbox/none", "none", size=2)


def test_a_copy_whose_source_was_not_deleted_is_made_again(opened):
    """D02: the process died between the copy and the deletion."""
    opened.create("outbox/x", b"12")
    opened.create("x", b"12")
    assert opened.move("outbox/x", "x", size=2) is True
    assert (opened.get("outbox/x"), opened.get("x")) == (None, b"12")


def test_old_versions_of_a_log_on_s3_are_removed(s3, bucket, tmp_path):
    lake = Lake(bucket, s3, s3, tmp_path)
    uri, given = f"s3://{bucket}/table", StorageOptions(options(s3))
    settings = TableSettings(
        name="t",
        table_uri=uri,
        storage_options=given,
        checkpoint_interval=2,
        properties={"delta.logRetentionDuration": "interval 0 seconds"},
    )
    # The store's times are whole seconds: what is written in one of them is not old in it.
    for number in range(100):
        lake.land(f"{number}.ndjson", ndjson(rows(5, number * 5)))
        lake.drain()
        # Each is a penguin of its own: one alone would not clean up so soon again.
        commit_table(settings, store(s3, uri), lambda _event: None, Clock())
        log = {facts.path for facts in store(s3, uri).objects("_delta_log")}
        if log_version(0) not in log and log_version(1) not in log:
            break

    assert log_version(1) not in log
    assert log_version(number + 1) in log
    assert preview(uri, rows=1, options=given).rows == 5 * (number + 1)
