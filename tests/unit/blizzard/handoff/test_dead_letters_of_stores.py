"""Files that cannot be read and uploads that are refused: what their dead letters say."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from blizzard.worker.stores import OpenedStores
from lakebed.errors import LakeError, StoreDenied, StoreUnavailable
from lakebed.storage.store import Reader, Store
from tests.support.builders import ndjson, put, rows
from tests.support.dead_letters import drain, lines
from tests.support.readers import parquet_ids
from tests.support.runner import FaultyRunner, InProcessRunner
from tests.support.stores import Far, RefusesUploads

GOOD = ndjson(rows(3))
HOUR = 3600


class Meddling(InProcessRunner):
    """Something happens to the files after they were listed and before they are read."""

    def __init__(self, meddle: Callable[[], object]) -> None:
        super().__init__()
        self.meddle = meddle

    def run(self, units, work):
        self.meddle()
        return super().run(units, work)


def test_a_file_that_vanished_is_told_and_read_when_it_is_back(bench, source):
    """L05, L04."""
    put(source, "a.ndjson", GOOD)
    put(source, "b.ndjson", ndjson(rows(3, 10)))
    away = source.parent / "away"
    moved = Meddling(lambda: (source / "a.ndjson").rename(away))
    drain(replace(bench, runner=moved))
    (line,) = lines(bench)
    assert (line["stage"], line["code"]) == ("download", "object_missing")
    assert parquet_ids(bench.entries(), bench.table) == [10, 11, 12]
    # The very same object again, as it was: size, e-tag and all.
    away.rename(source / "a.ndjson")
    bench.hands.at += HOUR
    drain(bench.again(run_id="run-2"))
    assert parquet_ids(bench.entries(), bench.table) == [0, 1, 2, 10, 11, 12]


def test_a_file_that_is_replaced_while_it_is_read_is_told(bench, source):
    """D17."""
    put(source, "a.ndjson", GOOD)
    replaced = Meddling(lambda: put(source, "a.ndjson", ndjson(rows(5))))
    drain(replace(bench, runner=replaced))
    assert next((line["stage"], line["code"]) for line in lines(bench)) == (
        "download",
        "object_changed",
    )


class Refuses(Far):
    """Reading one object ends in an error."""

    path = "a.ndjson"
    error: LakeError

    def stream(self, path: str, **given: Any) -> Iterator[bytes]:
        if path == self.path:
            raise self.error
        return super().stream(path, **given)


def refusing(error: LakeError) -> InProcessRunner:
    """Run units over a source that refuses an object, until the error is taken away."""

    class Stores(OpenedStores):
        def source(self, name: str) -> Reader:
            location = self.work.sources[name]
            store = Refuses(location.uri, location.options)
            store.error = error
            return store

    return InProcessRunner(stores=Stores)


@pytest.mark.parametrize("error", [StoreUnavailable("no answer"), StoreDenied("permission denied")])
def test_an_object_that_cannot_be_read_is_told_and_read_once_it_can_be(bench, source, error):
    """L04, W16: a later file succeeds, and the failed one lands too, once."""
    put(source, "a.ndjson", GOOD)
    put(source, "b.ndjson", ndjson(rows(3, 10)))
    drain(replace(bench, runner=refusing(error)))
    bench.hands.at += HOUR
    drain(bench.again(run_id="run-2", runner=refusing(error)))
    assert [(line["stage"], line["code"], line["retry_count"]) for line in lines(bench)] == [
        ("download", error.code, 0),
        ("download", error.code, 1),
    ]
    put(source, "c.ndjson", ndjson(rows(3, 20)))
    drain(bench.again(run_id="run-3"))
    assert parquet_ids(bench.entries(), bench.table) == [10, 11, 12, 20, 21, 22]
    bench.hands.at += HOUR
    drain(bench.again(run_id="run-4"))
    bench.hands.at += HOUR
    drain(bench.again(run_id="run-5"))
    assert parquet_ids(bench.entries(), bench.table) == [0, 1, 2, 10, 11, 12, 20, 21, 22]


def test_a_failed_file_rests_longer_each_time(bench, source):
    """L04."""
    put(source, "a.ndjson", GOOD)
    polling = replace(bench, once=False, runner=refusing(StoreUnavailable("no answer")))
    pipeline = polling.pipeline()
    tried: list[float] = []
    for _ in range(40):
        if pipeline.step():
            tried.append(bench.hands.at)
        bench.hands.at += 30
    waits = [after - before for before, after in itertools.pairwise(tried)]
    assert waits == [30, 60, 120, 240, 480]
    assert [line["retry_count"] for line in lines(polling)] == list(range(6))


def test_a_refused_upload_fails_the_files_of_its_unit_and_they_land_later(bench, source, tmp_path):
    """L03, L04."""
    put(source, "a.ndjson", GOOD)

    class Stores(OpenedStores):
        def sink(self) -> Store:
            return RefusesUploads(tmp_path / "table", StoreDenied("access was refused"))

    drain(replace(bench, runner=InProcessRunner(stores=Stores)))
    (line,) = lines(bench)
    assert (line["stage"], line["code"]) == ("upload", "store_denied")
    bench.hands.at += HOUR
    drain(bench.again(run_id="run-2"))
    assert parquet_ids(bench.entries(), bench.table) == [0, 1, 2]


def test_a_fault_of_our_own_while_lines_are_read_is_no_fault_of_the_download(bench, source):
    put(source, "a.ndjson", GOOD)
    drain(replace(bench, runner=FaultyRunner(fault=RuntimeError("a bug"))))
    (line,) = lines(bench)
    assert (line["stage"], line["code"]) == ("parse", "internal_error")
