"""What crosses between the driver and Spark's workers arrives as it was sent."""

import pickle
from dataclasses import replace

from blizzard.model.files import Location, UnitOutcome
from lakebed.storage.options import StorageOptions
from tests.support.builders import failure, finished_file, record, source_file, unit, work

SECRET = StorageOptions({"AWS_SECRET_ACCESS_KEY": "hunter2-very-secret"})


def test_a_unit_arrives_as_it_was_sent():
    sent = unit([source_file("a b/ü.ndjson", partition_values={"date": None, "r": "a/b"})])
    assert pickle.loads(pickle.dumps(sent)) == sent


def test_an_outcome_arrives_with_its_failures_and_statistics():
    bad = record("b.ndjson", failure=failure(retryable=True, attempts=3))
    sent = UnitOutcome(unit="7", sources=(record(), bad), files=(finished_file(),))
    assert pickle.loads(pickle.dumps(sent)) == sent


def test_workers_get_the_options_that_open_the_store_and_nobody_sees_them(tmp_path):
    """W17."""
    here = work(tmp_path, tmp_path)
    sent = replace(here, sink=Location(uri="s3://bucket/table", options=SECRET))
    arrived = pickle.loads(pickle.dumps(sent))
    assert arrived == sent
    assert arrived.sink.options.plain() == {"AWS_SECRET_ACCESS_KEY": "hunter2-very-secret"}
    assert "hunter2" not in repr(sent)
    assert "hunter2" not in f"{arrived} {arrived.sink.options}"
