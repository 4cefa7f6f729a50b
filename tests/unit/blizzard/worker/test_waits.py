"""Whoever tries again waits as the clock of the batch does."""

from pathlib import Path
from typing import Any

from blizzard.worker.unit import run_unit
from lakebed.clock import Clock
from lakebed.errors import StoreUnavailable
from lakebed.storage.store import ObjectFacts, Store
from tests.support.builders import listed, ndjson, put, rows, unit, work
from tests.support.stores import Far, opened_as


def test_a_download_and_an_upload_that_are_tried_again_wait_by_the_clock_that_is_handed_in(
    tmp_path: Path,
) -> None:
    waits: list[float] = []
    left = ["stream", "upload"]

    def fails_once(call: str) -> None:
        if call in left:
            left.remove(call)
            raise StoreUnavailable("no answer")

    class Wavers(Far):
        def stream(self, *given: Any, **named: Any) -> Any:
            fails_once("stream")
            return super().stream(*given, **named)

    class WaversToo(Store):
        def upload(self, *given: Any, **named: Any) -> ObjectFacts:
            fails_once("upload")
            return super().upload(*given, **named)

    put(tmp_path / "in", "a.ndjson", ndjson(rows(3)))
    given = work(tmp_path / "in", tmp_path / "table", clock=Clock(sleep=waits.append))
    stores = opened_as(reader=Wavers, store=WaversToo)(given)
    outcome = run_unit(unit(listed(tmp_path / "in")), given, stores)

    assert [each.rows for each in outcome.sources] == [3]
    assert (outcome.effort.download_retries, outcome.effort.upload_retries) == (1, 1)
    assert [0.5 <= seconds <= 1 for seconds in waits] == [True, True]
