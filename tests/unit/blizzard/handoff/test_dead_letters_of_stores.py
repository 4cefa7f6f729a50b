"""Files that cannot be read and uploads that are refused: what their dead letters say."""

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from blizzard.worker.download import OpenedStores
from lakebed.errors import LakeError, StoreUnavailable
from lakebed.storage.store import Reader
from tests.support.builders import ndjson, put, rows
from tests.support.dead_letters import drain, lines
from tests.support.runner import FaultyRunner, InProcessRunner
from tests.support.stores import Far

GOOD = ndjson(rows(3))


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


def test_a_fault_of_our_own_while_lines_are_read_is_no_fault_of_the_download(bench, source):
    put(source, "a.ndjson", GOOD)
    drain(replace(bench, runner=FaultyRunner(fault=RuntimeError("a bug"))))
    (line,) = lines(bench)
    assert (line["stage"], line["code"]) == ("parse", "internal_error")
