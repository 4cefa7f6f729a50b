"""Garbage, a new journal and the state of a table on S3, where folders are only prefixes."""

from dataclasses import replace
from datetime import timedelta

import pytest

from blizzard.answers.status import pipeline_status
from blizzard.handoff.publish import Publisher
from blizzard.journal.identity import identity_of
from blizzard.journal.ledger import Ledger
from blizzard.model.settings import PipelineSettings, SinkSettings
from blizzard.repair.gc import collect
from blizzard.repair.new_journal import take_over
from lakebed.clock import Clock
from lakebed.deltalog import tables
from lakebed.journal import JournalReader
from lakebed.layout import file_id, journal_entry, journal_folder
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import Reader, Store
from penguin import inline
from tests.support.builders import ID_AND_NAME, ndjson, put, rows, source_settings
from tests.support.pipelines import pipeline_of
from tests.support.runner import InProcessRunner
from tests.support.s3 import options


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
        return inline.committer(None, uri, given, emit=lambda _event: None, clock=Clock())()

    for number in range(2):
        put(tmp_path / "in", f"{number}.ndjson", ndjson(rows(2, number * 2)))
        assert step(settings)
    (named, _other) = (one for one in store.objects() if file_id(one.path))
    left = f"{Clock().fresh_id()}.parquet"
    store.create(left, store.get(named.path))

    done = collect(
        store,
        "default",
        lambda: tables.named_files(uri, given),
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
    found = pipeline_status(
        settings,
        lambda place: Reader(place.uri, place.options),
        clock=Clock(),
        ledger=Ledger(),
    )
    assert (found.last_entry, found.committed_entry, found.totals.rows) == (2, 2, 2)
    assert tables.named_files(uri, given) >= {
        one.path for one in store.objects() if file_id(one.path)
    }
    assert len(list(store.objects(journal_folder("default")))) == 3


@pytest.mark.parametrize(
    "written", ["s3a://{}/in/", "s3n://{}/in", "https://{}.s3.us-east-1.amazonaws.com/in"]
)
def test_a_bucket_in_another_spelling_is_the_same_source_and_nothing_is_read_again(
    s3, bucket, settings, written
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

    before, after = at(f"s3://{bucket}/in", f"s3://{bucket}/table"), written.format(bucket)
    assert step(before)
    again = at(after, after.removesuffix("/").removesuffix("in") + "table")
    assert not step(again)
    landing.create("b.ndjson", ndjson(rows(1, 2)))
    assert step(again)
    assert not step(before)
    books = JournalReader(store_of(settings), "default")
    read = [record.path for entry in books.entries() for record in entry.sources]
    assert read == ["a.ndjson", "b.ndjson"]
