"""What runs now, from the events of a process."""

import pytest

from blizzard.events import (
    BatchProgress,
    BatchStarted,
    BatchStep,
    InferenceEnded,
    SourcesListed,
    StageFinished,
    UnitReported,
)
from lakebed.telemetry.events import LastStepTaken, NextStepDue, StepFailed, StepFinished
from lakebed.telemetry.health import PartKind
from liveview.live import MOST_UNITS, Live
from penguin.events.backlog import BacklogSeen, PipelineResumed, PipelineStopped
from penguin.events.commits import EntriesCommitted


@pytest.fixture
def live():
    return Live("blizzard", version="1", seconds=lambda: 1_704_110_400.0)


def of(live, name="events"):
    return live.process().pipelines[name]


def start(live, units=(("u1", 2, 20),)):
    live.emit(StageFinished(pipeline="events", stage=BatchStep.DISCOVER, seconds=0.5))
    live.emit(
        BatchStarted(
            pipeline="events", entry=3, files=2, bytes=20, units=len(units), planned=tuple(units)
        )
    )


def test_a_batch_goes_through_its_stages_and_is_gone(live):
    start(live)
    batch = of(live).current_batch
    assert batch is not None
    assert batch.started_at == "2024-01-01T12:00:00.000Z"
    assert [one.state for one in batch.stages] == ["done", "done", *["running"], *["waiting"] * 3]
    assert batch.stages[0].seconds == 0.5
    live.emit(
        UnitReported(
            pipeline="events",
            unit="u1",
            files_read=1,
            bytes_read=9,
            records=4,
            worker="h, process 7",
        )
    )
    live.emit(BatchProgress(pipeline="events", bytes_read=9, records=4))
    batch = of(live).current_batch
    assert batch is not None
    assert (batch.read_bytes, batch.rows, batch.units[0].state) == (9, 4, "running")
    assert [one.worker for one in batch.units] == ["h, process 7"]
    live.emit(UnitReported(pipeline="events", unit="u1", files_read=1, files_failed=1))
    live.emit(BatchProgress(pipeline="events"))
    batch = of(live).current_batch
    assert batch is not None
    assert (batch.rows, batch.units[0].state) == (4, "failed")
    for stage in (BatchStep.RUN, BatchStep.JOURNAL):
        live.emit(StageFinished(pipeline="events", stage=stage, seconds=1.0))
    batch = of(live).current_batch
    assert batch is not None
    assert batch.stages[4].state == "running"
    live.emit(StageFinished(pipeline="events", stage=BatchStep.PUBLISH, seconds=1.0))
    assert of(live).current_batch is None


def test_reading_for_the_columns_is_not_the_reading_that_counts(live):
    start(live)
    live.emit(UnitReported(pipeline="events", unit="u1", files_read=2, bytes_read=20))
    live.emit(BatchProgress(pipeline="events", bytes_read=20))
    live.emit(InferenceEnded(pipeline="events"))
    batch = of(live).current_batch
    assert batch is not None
    assert (batch.read_bytes, batch.units[0].state, batch.units[0].read_bytes) == (0, "waiting", 0)
    live.emit(InferenceEnded(pipeline="never began"))


def test_units_are_shown_in_part_and_those_that_run_first(live):
    start(live, [(f"u{number}", 1, 1) for number in range(500)])
    live.emit(UnitReported(pipeline="events", unit="u499", bytes_read=1))
    batch = of(live).current_batch
    assert batch is not None
    assert len(batch.units) == MOST_UNITS
    assert batch.units_left_out == 500 - MOST_UNITS
    assert batch.units[0].id == "u499"


def test_files_that_changed_are_those_of_the_last_whole_listing_of_each_source(live):
    def listed(**changed: int) -> dict[str, int]:
        live.emit(
            SourcesListed(pipeline="events", pending=0, oldest=None, resting=0, changed=changed)
        )
        return dict(of(live).changed_files)

    assert listed(web=2, app=0) == {"web": 2, "app": 0}
    assert listed() == {"web": 2, "app": 0}
    assert listed(web=0) == {"web": 0, "app": 0}


def test_a_step_that_fails_is_a_problem_until_one_is_well(live):
    live.emit(StepFailed(who="events", code="store_full", error="no space", next_try_secs=2.0))
    part = of(live)
    assert (part.state, part.problems[0].code) == ("failing", "store_full")
    assert part.next_listing_at == "2024-01-01T12:00:02.000Z"
    live.emit(StepFinished(who="events", found=False))
    live.emit(NextStepDue(who="events", seconds=10.0))
    assert (of(live).state, of(live).problems) == ("idle", [])
    live.emit(SourcesListed(pipeline="events", pending=4, oldest=1.0, resting=0))
    assert (of(live).state, of(live).waiting) == ("idle", 4)
    live.emit(LastStepTaken(who="events"))
    assert (of(live).state, of(live).next_listing_at) == ("stopped", None)


def test_a_table_is_stopped_by_one_of_its_pipelines_until_that_is_mended():
    live = Live("penguin", version="1", seconds=lambda: 0.0)
    live.expect(PartKind.TABLE, "orders")
    live.emit(BacklogSeen(table="orders", version=1, entries=2, files=2, oldest=None))
    live.emit(PipelineStopped(table="orders", pipeline="p", code="journal_lost", error="gone"))
    part = live.process().tables["orders"]
    assert (part.state, part.waiting) == ("failing", 2)
    assert part.problems[0].subject == "p"
    live.emit(PipelineResumed(table="orders", pipeline="p", code="journal_lost"))
    live.emit(
        EntriesCommitted(table="orders", version=2, entries=1, files=1, rows=1, columns_added=())
    )
    part = live.process().tables["orders"]
    assert (part.problems, part.changes) == ([], 3)
