"""A dead letter queue that cannot be written to is noticed before a batch is run."""

from dataclasses import replace

import pytest

from blizzard.handoff import dead_letters
from lakebed.errors import LakeError
from lakebed.storage.options import Location, StorageOptions
from tests.support.builders import ndjson, put, rows
from tests.support.runner import InProcessRunner

GOOD = ndjson(rows(3))
BAD = b'{"id": "one"}\n'


class Counting(InProcessRunner):
    """Counts the batches that are run."""

    runs = 0

    def run(self, units, work):
        self.runs += 1
        return super().run(units, work)


@pytest.fixture
def queue(tmp_path):
    """The folder of the queue; a file in its place is an outage."""
    return tmp_path / "queue"


@pytest.fixture
def counting(bench, queue):
    return replace(bench, settings=replace(bench.settings, dlq_path=str(queue)), runner=Counting())


def test_nothing_is_run_while_the_queue_cannot_be_written_to(counting, source, queue):
    put(source, "good.ndjson", GOOD)
    queue.write_bytes(b"")
    pipeline = counting.pipeline()
    for _ in range(3):
        with pytest.raises(LakeError) as refused:
            pipeline.step()
        assert str(queue) in str(refused.value)
    assert counting.runner.runs == 0
    queue.unlink()
    assert pipeline.step()
    assert counting.runner.runs == 1


def test_after_an_outage_one_batch_is_run_in_vain_and_no_more(counting, source, queue):
    put(source, "good.ndjson", GOOD)
    pipeline = counting.stepping()
    assert pipeline.step()
    queue.rmdir()
    queue.write_bytes(b"")
    put(source, "bad.ndjson", BAD)
    for _ in range(3):
        with pytest.raises(LakeError):
            pipeline.step()
    assert counting.runner.runs == 2
    queue.unlink()
    assert pipeline.step()
    assert counting.runner.runs == 3
    assert len(list(queue.iterdir())) == 1


def test_a_queue_with_options_of_its_own_is_reached_with_these(bench):
    """W17: and not with those of the sink, which are for another store."""
    options = StorageOptions({"AWS_REGION": "eu"})
    settings = replace(bench.settings, dlq_path="s3://letters/x", dlq_options=options)
    assert dead_letters.dlq_location_of(settings)[0].options == options
    there = dead_letters.queue_at(settings, "s3a://letters/x/")
    assert there == Location(uri="s3a://letters/x/", options=options)
    sink = replace(settings.sink, table_uri="s3://b/t", storage_options=StorageOptions({"a": "1"}))
    earlier = dead_letters.queue_at(replace(settings, sink=sink), "s3://letters/y")
    assert earlier.options == StorageOptions({"a": "1"})
