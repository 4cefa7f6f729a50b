"""What blizzard's metrics say while units run."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pytest

from blizzard.events import BatchProgress
from blizzard.execute.runner import RunFailed
from blizzard.model.progress import Progress, Report
from blizzard.model.work import UnitOutcome, Work, WorkUnit
from lakebed.columns.schema import Schema
from lakebed.telemetry.events import Event, shared
from tests.support.builders import ndjson, put, rows
from tests.support.runner import InProcessRunner


@dataclass
class Calls(InProcessRunner):
    """Units that tell how far they are while a test looks."""

    look: Callable[[], None] = lambda: None
    heard: Callable[[Report], None] = lambda _report: None
    error: Exception | None = None

    def run(self, units: Sequence[WorkUnit], work: Work) -> list[UnitOutcome]:
        self.heard(
            Report(
                unit="default/0", progress=Progress(active_uploads=2, active_parts=5, records=10)
            )
        )
        self.heard(Report(unit="default/1", progress=Progress(active_uploads=1, records=10)))
        self.heard(
            Report(
                unit="default/0", progress=Progress(active_uploads=1, active_parts=3, records=20)
            )
        )
        self.look()
        if self.error is not None:
            raise self.error
        return super().run(units, work)


@pytest.mark.parametrize("error", [None, RunFailed("Spark is gone")])
def test_gauges_follow_the_running_units_and_are_zero_after_the_batch(watched, source, error):
    """HOLES W33: what runs shows at once, and the counters have what is journaled."""
    seen: list[float | None] = []

    def look() -> None:
        seen.append(watched.value("blizzard_active_uploads"))
        seen.append(watched.value("blizzard_active_multipart_parts"))

    runner = Calls(look=look, heard=watched.running.heard, error=error)
    watched.bench = replace(watched.bench, runner=runner)
    put(source, "a.ndjson", ndjson(rows(3)))
    if error is None:
        watched.step()
    else:
        with pytest.raises(RunFailed):
            watched.step()
    watched.running.heard(Report(unit="default/0", progress=Progress(active_uploads=9)))
    look()
    assert seen == [2, 3, 0, 0]
    assert watched.value("blizzard_records_total", outcome="ingested") == (3 if not error else 0)


def test_the_conversion_is_reported_after_its_columns_were_inferred(watched, source):
    """The job that infers columns reads every file first; the one that counts comes after it."""
    seen: list[tuple[float | None, list[int]]] = []
    told: list[Event] = []
    watched.running._emit = shared(watched.running._emit, told.append)

    def look() -> None:
        records = [event.records for event in told if isinstance(event, BatchProgress)]
        seen.append((watched.value("blizzard_active_uploads"), records))
        told.clear()

    settings = replace(watched.bench.settings, schema=Schema(()), infer=True)
    runner = Calls(look=look, heard=watched.running.heard)
    watched.bench = replace(watched.bench, settings=settings, runner=runner)
    put(source, "a.ndjson", ndjson(rows(3)))
    watched.step()
    look()
    assert seen == [(2, [10, 20, 30]), (2, [0, 10, 20, 30]), (0, [0])]


def test_a_batch_that_runs_for_long_is_not_stuck(watched, source):
    seen: list[int] = []

    def look() -> None:
        watched.bench.hands.at += 1e6
        seen.append(watched.pages.health()[0])

    watched.bench = replace(watched.bench, runner=Calls(look=look))
    put(source, "a.ndjson", ndjson(rows(3)))
    watched.step()
    assert seen == [200]
